// OpenBNNS C++ overlay: multi-head attention (not in Swift).
#pragma once

#include "layer.hpp"

namespace bnns {

/// One projection of attention: what is projected (or the result), its weights and bias. In gradients any of the three
/// may be absent.
struct AttentionProjection {
  OptDesc target{}, weights{}, bias{};
};

/// Logical shapes: query and output target (L, model), key and value target (S, k) and (S, v), weights (model, d,
/// heads), output weights (heads * d_value, model).
class MultiheadAttentionLayer : public Layer {
 public:
  using Projection = AttentionProjection;
  struct Parameters {
    Projection query, key, value, output;
    bool addsZeroAttention = false;
    OptDesc keyAttentionBias{}, valueAttentionBias{};
    float dropout = 0;
    std::uint32_t seed = 0;  ///< 0: not seeded
    OptFilterParams filterParameters{};
  };
  explicit MultiheadAttentionLayer(const Parameters& p) : Layer(create(p), "BNNSFilterCreateLayerMultiheadAttention") {}

  /// What a call takes besides query, key and value.
  struct Options {
    OptDesc keyMask{};         ///< Boolean; true hides a key
    OptDesc addToAttention{};  ///< added to the logits, or Boolean
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

  void apply(std::size_t batchSize, const Desc& query, const Desc& key, const Desc& value, const Desc& output) {
    apply(batchSize, query, key, value, output, Options{});
  }
  void apply(std::size_t batchSize, const Desc& query, const Desc& key, const Desc& value, const Desc& output,
             const Options& o) {
    constexpr auto function = "BNNSApplyMultiheadAttention";
    const BNNSFilter filter = live(function);
    std::size_t cacheBytes = o.backpropCache.size(), workspaceBytes = o.workspace.size();
    detail::check(
        ::BNNSApplyMultiheadAttention(
            filter, batchSize, detail::requireData(query, "query"), detail::batchStride(query),
            detail::requireData(key, "key"), detail::batchStride(key), detail::pointer(o.keyMask), maskStride(o),
            detail::requireData(value, "value"), detail::batchStride(value), detail::requireData(output, "output"),
            detail::batchStride(output), detail::pointer(o.addToAttention), cacheBytes > 0 ? &cacheBytes : nullptr,
            cacheBytes > 0 ? o.backpropCache.data() : nullptr, workspaceBytes > 0 ? &workspaceBytes : nullptr,
            workspaceBytes > 0 ? o.workspace.data() : nullptr),
        function);
  }

  struct Backward {
    std::size_t batchSize;
    const Desc &query, &key, &value, &output, &outputGradient;
    Projection generatingQueryGradients{}, generatingKeyGradients{}, generatingValueGradients{};
    OptDesc generatingOutputWeightsGradient{}, generatingOutputBiasGradient{};
    OptDesc generatingKeyAttentionBiasGradient{}, generatingValueAttentionBiasGradient{};
    Options options{};
  };
  /// Query, key and value gradients with the same memory receive their sum.
  void applyBackward(const Backward& a) {
    constexpr auto function = "BNNSApplyMultiheadAttentionBackward";
    const BNNSFilter filter = live(function);
    BNNSMHAProjectionParameters dq = fields(a.generatingQueryGradients), dk = fields(a.generatingKeyGradients),
                                dv = fields(a.generatingValueGradients), dy{};
    for (auto* d : {&dq, &dk, &dv}) setBatchStride(d->target_desc);
    detail::requireData(a.outputGradient, "outputGradient");
    dy.target_desc = a.outputGradient;
    setBatchStride(dy.target_desc);
    dy.weights = detail::orAbsent(a.generatingOutputWeightsGradient);
    dy.bias = detail::orAbsent(a.generatingOutputBiasGradient);
    detail::Gradient keyRow(a.generatingKeyAttentionBiasGradient, "generatingKeyAttentionBiasGradient"),
        valueRow(a.generatingValueAttentionBiasGradient, "generatingValueAttentionBiasGradient");
    const Options& o = a.options;
    std::size_t workspaceBytes = o.workspace.size();
    detail::check(
        ::BNNSApplyMultiheadAttentionBackward(
            filter, a.batchSize, a.query.data, detail::batchStride(a.query), &dq, a.key.data,
            detail::batchStride(a.key), detail::pointer(o.keyMask), maskStride(o), &dk, a.value.data,
            detail::batchStride(a.value), &dv, detail::pointer(o.addToAttention), keyRow.pointer(), valueRow.pointer(),
            a.output.data, detail::batchStride(a.output), &dy, o.backpropCache.size(),
            o.backpropCache.empty() ? nullptr : o.backpropCache.data(), workspaceBytes > 0 ? &workspaceBytes : nullptr,
            workspaceBytes > 0 ? o.workspace.data() : nullptr),
        function);
  }

 private:
  static std::size_t maskStride(const Options& o) { return o.keyMask ? detail::batchStride(*o.keyMask) : 0; }
  // The C call finds the stride between samples of a gradient here; 0 is dense.
  static void setBatchStride(Desc& target) {
    if (target.data && detail::rankOf(target.layout) == 2) target.stride[2] = detail::batchStride(target);
  }
  static BNNSMHAProjectionParameters fields(const Projection& p) {
    BNNSMHAProjectionParameters c{};
    c.target_desc = detail::orAbsent(p.target), c.weights = detail::orAbsent(p.weights);
    c.bias = detail::orAbsent(p.bias);
    return c;
  }
  void ask(std::size_t batchSize, std::size_t* cache, std::size_t* workspace) {
    constexpr auto function = "BNNSApplyMultiheadAttention";
    char none = 0;  // the data are not read when a size is asked for
    detail::check(::BNNSApplyMultiheadAttention(live(function), batchSize, &none, 0, &none, 0, nullptr, 0, &none, 0,
                                                &none, 0, nullptr, cache, nullptr, workspace, nullptr),
                  function);
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
};

}  // namespace bnns
