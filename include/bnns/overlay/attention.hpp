// OpenBNNS C++ overlay: multi-head attention (not in Swift).
#pragma once

#include "layer.hpp"

namespace bnns {

/// One projection of attention: what is projected (or the result), its weights and bias.
struct AttentionProjection {
  OptDesc target{}, weights{}, bias{};
};
/// The gradients of the three; any may be left out.
struct AttentionGradients {
  OptOutput target{}, weights{}, bias{};
};

/// With filterParameters left out it copies weights and biases at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
/// Logical shapes: query and output target (L, model), key and value target (S, k) and (S, v), weights (model, d,
/// heads), output weights (heads * d_value, model).
class MultiheadAttentionLayer : public Layer {
 public:
  using Projection = AttentionProjection;
  using Gradients = AttentionGradients;
  struct Parameters {
    Projection query, key, value, output;
    bool addsZeroAttention = false;
    OptDesc keyAttentionBias{}, valueAttentionBias{};
    float dropout = 0;
    std::uint32_t seed = 0;  ///< 0: not seeded
    OptFilterParams filterParameters{};
  };
  explicit MultiheadAttentionLayer(const Parameters& p)
      : Layer(create(p), "MultiheadAttentionLayer", "BNNSFilterCreateLayerMultiheadAttention"),
        query_(p.query),
        key_(p.key),
        value_(p.value),
        output_(p.output),
        keyRow_(p.keyAttentionBias),
        valueRow_(p.valueAttentionBias) {}

  /// What a call takes besides query, key and value.
  struct Options {
    OptInput keyMask{};         ///< Boolean; true hides a key
    OptInput addToAttention{};  ///< added to the logits, or Boolean
    std::span<std::byte> backpropCache{};
    std::span<std::byte> workspace{};  ///< none: the layer has memory of its own
  };

  /// Bytes of the cache that lets applyBackward skip the forward pass.
  std::size_t backpropCacheSize(std::size_t batchSize) {
    std::size_t bytes = 0;
    ask(batchSize, &bytes, nullptr);
    return bytes;
  }
  /// Bytes of the workspace of apply.
  std::size_t workspaceSize(std::size_t batchSize) {
    std::size_t bytes = 0;
    ask(batchSize, nullptr, &bytes);
    return bytes;
  }

  void apply(std::size_t batchSize, const Input& query, const Input& key, const Input& value, const Output& output) {
    apply(batchSize, query, key, value, output, Options{});
  }
  void apply(std::size_t batchSize, const Input& query, const Input& key, const Input& value, const Output& output,
             const Options& o) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data q = detail::fitting(where, "query", query, query_.target, batchSize),
                       k = detail::fitting(where, "key", key, key_.target, batchSize),
                       v = detail::fitting(where, "value", value, value_.target, batchSize),
                       y = detail::fitting(where, "output", output, output_.target, batchSize);
    const Masks masks(where, o, batchSize);
    std::size_t cacheBytes = o.backpropCache.size(), workspaceBytes = o.workspace.size();
    detail::check(::BNNSApplyMultiheadAttention(
                      filter, batchSize, q.data, q.stride, k.data, k.stride, masks.key, masks.keyStride, v.data,
                      v.stride, y.data, y.stride, masks.add, cacheBytes > 0 ? &cacheBytes : nullptr,
                      cacheBytes > 0 ? o.backpropCache.data() : nullptr, workspaceBytes > 0 ? &workspaceBytes : nullptr,
                      workspaceBytes > 0 ? o.workspace.data() : nullptr),
                  where, "BNNSApplyMultiheadAttention");
  }

  struct Backward {
    std::size_t batchSize;
    Input query, key, value, output, outputGradient;
    Gradients generatingQueryGradients{}, generatingKeyGradients{}, generatingValueGradients{};
    OptOutput generatingOutputWeightsGradient{}, generatingOutputBiasGradient{};
    OptOutput generatingKeyAttentionBiasGradient{}, generatingValueAttentionBiasGradient{};
    Options options{};
  };
  /// Query, key and value gradients with the same memory receive their sum.
  void applyBackward(const Backward& a) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const std::size_t n = a.batchSize;
    const detail::Data q = detail::fittingIfGiven(where, "query", a.query, query_.target, n),
                       k = detail::fittingIfGiven(where, "key", a.key, key_.target, n),
                       v = detail::fittingIfGiven(where, "value", a.value, value_.target, n),
                       y = detail::fittingIfGiven(where, "output", a.output, output_.target, n);
    BNNSMHAProjectionParameters dq = fields(where, queryLabels, a.generatingQueryGradients, query_, n),
                                dk = fields(where, keyLabels, a.generatingKeyGradients, key_, n),
                                dv = fields(where, valueLabels, a.generatingValueGradients, value_, n), dy{};
    dy.target_desc = target(detail::described(where, "outputGradient", a.outputGradient, output_.target, n));
    dy.weights = optional(detail::describedIfGiven(where, "generatingOutputWeightsGradient",
                                                   a.generatingOutputWeightsGradient, output_.weights));
    dy.bias = optional(
        detail::describedIfGiven(where, "generatingOutputBiasGradient", a.generatingOutputBiasGradient, output_.bias));
    const auto keyRow = detail::describedIfGiven(where, "generatingKeyAttentionBiasGradient",
                                                 a.generatingKeyAttentionBiasGradient, keyRow_),
               valueRow = detail::describedIfGiven(where, "generatingValueAttentionBiasGradient",
                                                   a.generatingValueAttentionBiasGradient, valueRow_);
    const Options& o = a.options;
    const Masks masks(where, o, n);
    std::size_t workspaceBytes = o.workspace.size();
    detail::check(
        ::BNNSApplyMultiheadAttentionBackward(
            filter, n, q.data, q.stride, &dq, k.data, k.stride, masks.key, masks.keyStride, &dk, v.data, v.stride, &dv,
            masks.add, keyRow.descriptor, valueRow.descriptor, y.data, y.stride, &dy, o.backpropCache.size(),
            o.backpropCache.empty() ? nullptr : o.backpropCache.data(), workspaceBytes > 0 ? &workspaceBytes : nullptr,
            workspaceBytes > 0 ? o.workspace.data() : nullptr),
        where, "BNNSApplyMultiheadAttentionBackward");
  }

 private:
  struct Expected {
    Expected(const Projection& p) : target(p.target), weights(p.weights), bias(p.bias) {}
    detail::Expected target, weights, bias;
  };
  // The C call sees these descriptors; only the batch is ours to compare.
  struct Masks {
    Masks(const detail::Where& where, const Options& o, std::size_t batchSize) {
      if (o.keyMask) {
        detail::requireData(where, "keyMask", *o.keyMask);
        detail::requireCapacity(where, "keyMask", *o.keyMask, batchSize);
        key = &o.keyMask->descriptor(), keyStride = detail::batchStride(*key);
      }
      if (o.addToAttention) {
        detail::requireOneSample(where, "addToAttention", o.addToAttention->batchSize());
        add = &o.addToAttention->descriptor();
      }
    }
    const Desc *key = nullptr, *add = nullptr;
    std::size_t keyStride = 0;
  };

  struct Labels {
    const char *target, *weights, *bias;
  };
  static constexpr Labels queryLabels{"generatingQueryGradients.target", "generatingQueryGradients.weights",
                                      "generatingQueryGradients.bias"},
      keyLabels{"generatingKeyGradients.target", "generatingKeyGradients.weights", "generatingKeyGradients.bias"},
      valueLabels{"generatingValueGradients.target", "generatingValueGradients.weights",
                  "generatingValueGradients.bias"};

  static Desc optional(const detail::Described& g) { return g.descriptor ? *g.descriptor : Desc{}; }
  // The C call finds the stride between samples of a gradient in stride[2]; 0 is dense.
  static Desc target(const detail::Described& g) {
    Desc d = optional(g);
    if (d.data && detail::rankOf(d.layout) == 2) d.stride[2] = g.stride;
    return d;
  }
  static BNNSMHAProjectionParameters fields(const detail::Where& where, const Labels& labels, const Gradients& g,
                                            const Expected& e, std::size_t batchSize) {
    BNNSMHAProjectionParameters c{};
    c.target_desc = target(detail::describedIfGiven(where, labels.target, g.target, e.target, batchSize));
    c.weights = optional(detail::describedIfGiven(where, labels.weights, g.weights, e.weights));
    c.bias = optional(detail::describedIfGiven(where, labels.bias, g.bias, e.bias));
    return c;
  }
  static BNNSMHAProjectionParameters fields(const Projection& p) {
    BNNSMHAProjectionParameters c{};
    c.target_desc = detail::orAbsent(p.target), c.weights = detail::orAbsent(p.weights);
    c.bias = detail::orAbsent(p.bias);
    return c;
  }
  void ask(std::size_t batchSize, std::size_t* cache, std::size_t* workspace) {
    const detail::Where where = call(cache ? "backpropCacheSize" : "workspaceSize");
    char none = 0;  // the data are not read when a size is asked for
    detail::check(::BNNSApplyMultiheadAttention(live(where), batchSize, &none, 0, &none, 0, nullptr, 0, &none, 0, &none,
                                                0, nullptr, cache, nullptr, workspace, nullptr),
                  where, "BNNSApplyMultiheadAttention");
  }
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersMultiheadAttention layer{};
    layer.query = fields(p.query), layer.key = fields(p.key), layer.value = fields(p.value);
    layer.output = fields(p.output), layer.add_zero_attn = p.addsZeroAttention;
    layer.key_attn_bias = detail::orAbsent(p.keyAttentionBias);
    layer.value_attn_bias = detail::orAbsent(p.valueAttentionBias);
    layer.dropout = p.dropout, layer.seed = p.seed;
    return ::BNNSFilterCreateLayerMultiheadAttention(&layer, detail::pointer(p.filterParameters));
  }

  Expected query_, key_, value_, output_;
  detail::Expected keyRow_, valueRow_;
};

}  // namespace bnns
