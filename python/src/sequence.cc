// Multi-head attention and LSTM.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "python/src/filters.h"

namespace openbnns {

namespace {

using Handle = nb::handle;
constexpr bool kRead = false, kWritten = true, kNeeded = false, kOptional = true;

// Projections in the order query, key, value, output; each has target, weights, bias.
struct Attention : Filter {
  Expected target[4], weights[4], bias[4], row[2];
};
constexpr const char* kProjection[] = {"query", "key", "value", "output"};

using Triple = std::tuple<nb::object, nb::object, nb::object>;

void make_attention(Attention& f, const std::vector<Triple>& projections, bool add_zero, Handle key_row,
                    Handle value_row, float dropout, std::uint32_t seed, const Options& o) {
  constexpr auto where = "MultiheadAttentionLayer";
  if (projections.size() != 4) refuse(where, "expected 4 projections, got " + std::to_string(projections.size()));
  BNNSLayerParametersMultiheadAttention p{};
  BNNSMHAProjectionParameters* c[] = {&p.query, &p.key, &p.value, &p.output};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& [target, weights, bias] = projections[i];
    c[i]->target_desc = f.argument(target, Role::matrix, f.target[i], kNeeded, kRead, where, kProjection[i]);
    c[i]->weights = f.argument(weights, Role::generic, f.weights[i], kNeeded, kRead, where, "weights");
    c[i]->bias = f.argument(bias, Role::vector, f.bias[i], kOptional, kRead, where, "bias");
  }
  p.key_attn_bias = f.argument(key_row, Role::vector, f.row[0], kOptional, kRead, where, "key_attention_bias");
  p.value_attn_bias = f.argument(value_row, Role::vector, f.row[1], kOptional, kRead, where, "value_attention_bias");
  p.add_zero_attn = add_zero, p.dropout = dropout, p.seed = seed;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerMultiheadAttention(&p, &options), where);
}

struct Masks {
  Masks(Handle key_mask, Handle add, std::size_t n, const char* where) {
    if (!key_mask.is_none()) {
      Array made;
      const Array& a = array_of(key_mask, made, where, "key_mask");
      if (a.type != BNNSDataTypeBoolean || !a.packed || a.rank != 2 || a.shape[0] != n) {
        refuse(where, "key_mask has shape " + a.shape_text() + " and dtype " + type_name(a.type) +
                          ", expected bool of (batch, keys)");
      }
      key.layout = BNNSDataLayoutVector, key.size[0] = a.shape[1], key.data_type = a.type, key.data = a.data;
      stride = a.shape[1];
    }
    if (!add.is_none()) {
      Array made;
      this->add = describe(array_of(add, made, where, "add_to_attention"), Role::generic, where, "add_to_attention");
    }
  }
  Desc* key_or_null() { return key.data ? &key : nullptr; }
  Desc* add_or_null() { return add.data ? &add : nullptr; }
  Desc key{}, add{};
  std::size_t stride = 0;
};

struct Bytes {
  Bytes(Handle object, bool written, const char* where) {
    if (object.is_none()) return;
    Array made;
    const Array& a = written ? output_of(object, made, where, "cache") : array_of(object, made, where, "cache");
    if (a.type != BNNSDataTypeUInt8 || !a.packed) refuse(where, "cache is no packed array of uint8");
    data = a.data, size = a.count, hold = std::move(made.hold);
  }
  void* data = nullptr;
  std::size_t size = 0;
  nb::ndarray<> hold{};
};

std::size_t attention_cache(Attention& f, std::size_t n) {
  std::size_t bytes = 0;
  char none = 0;  // the data are not read when a size is asked for
  check(BNNSApplyMultiheadAttention(f.live("backprop_cache_size"), n, &none, 0, &none, 0, nullptr, 0, &none, 0, &none,
                                    0, nullptr, &bytes, nullptr, nullptr, nullptr),
        f.name.c_str());
  return bytes;
}

void attend(Attention& f, std::size_t n, Handle q, Handle k, Handle v, Handle y, Handle key_mask, Handle add,
            Handle cache) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  const Bound bq = bind(q, f.target[0], n, kRead, kNeeded, where, "query"),
              bk = bind(k, f.target[1], n, kRead, kNeeded, where, "key"),
              bv = bind(v, f.target[2], n, kRead, kNeeded, where, "value"),
              by = bind(y, f.target[3], n, kWritten, kNeeded, where, "output");
  Masks masks(key_mask, add, n, where);
  Bytes room(cache, kWritten, where);
  unlocked(where, [&] {
    return BNNSApplyMultiheadAttention(filter, n, bq.data, bq.stride, bk.data, bk.stride, masks.key_or_null(),
                                       masks.stride, bv.data, bv.stride, by.data, by.stride, masks.add_or_null(),
                                       room.data ? &room.size : nullptr, room.data, nullptr, nullptr);
  });
}

void attend_backward(Attention& f, std::size_t n, Handle q, Handle k, Handle v, Handle y, Handle dy,
                     const std::vector<Triple>& gradients, Handle key_row, Handle value_row, Handle key_mask,
                     Handle add, Handle cache) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  if (gradients.size() != 4) refuse(where, "expected 4 triples of gradients");
  const Bound bq = bind(q, f.target[0], n, kRead, kOptional, where, "query"),
              bk = bind(k, f.target[1], n, kRead, kOptional, where, "key"),
              bv = bind(v, f.target[2], n, kRead, kOptional, where, "value"),
              by = bind(y, f.target[3], n, kRead, kOptional, where, "output");
  BNNSMHAProjectionParameters d[4]{};
  std::vector<Gradient> kept;
  const auto take = [&](auto&&... arguments) { return kept.emplace_back(arguments...).desc; };
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& [target, weights, bias] = gradients[i];
    const bool incoming = i == 3;  // the output's gradient is read
    d[i].target_desc = take(incoming ? dy : Handle(target), f.target[i], n, incoming ? kRead : kWritten, !incoming,
                            where, kProjection[i]);
    // where the library finds the stride between samples
    if (d[i].target_desc.data) d[i].target_desc.stride[2] = kept.back().stride;
    d[i].weights = take(Handle(weights), f.weights[i], kWhole, kWritten, kOptional, where, "weights gradient");
    d[i].bias = take(Handle(bias), f.bias[i], kWhole, kWritten, kOptional, where, "bias gradient");
  }
  Gradient gk(key_row, f.row[0], kWhole, kWritten, kOptional, where, "key_attention_bias gradient"),
      gv(value_row, f.row[1], kWhole, kWritten, kOptional, where, "value_attention_bias gradient");
  Masks masks(key_mask, add, n, where);
  Bytes room(cache, kRead, where);
  unlocked(where, [&] {
    return BNNSApplyMultiheadAttentionBackward(filter, n, bq.data, bq.stride, &d[0], bk.data, bk.stride,
                                               masks.key_or_null(), masks.stride, &d[1], bv.data, bv.stride, &d[2],
                                               masks.add_or_null(), gk.get(), gv.get(), by.data, by.stride, &d[3],
                                               room.size, room.data, nullptr, nullptr);
  });
}

// An LSTM runs without a filter: the descriptors of its arrays are the layer. A gate is a tuple of input weights,
// further input weights, hidden weights, cell weights, bias; data is a tuple of sequence, hidden and cell states.
using Gate = std::tuple<nb::object, nb::object, nb::object, nb::object, nb::object>;

class LSTM {
 public:
  LSTM(std::size_t input, std::size_t hidden, std::size_t batch, std::size_t layers, std::size_t steps, float dropout,
       bool bidirectional, nb::object lengths, const Triple& in, const Triple& out, const std::vector<Gate>& gates) {
    layer_.input_size = input, layer_.hidden_size = hidden, layer_.batch_size = batch, layer_.num_layers = layers;
    layer_.seq_len = steps, layer_.dropout = dropout;
    layer_.lstm_flags = std::uint32_t{BNNSLayerFlagsLSTMDefaultActivations} |
                        (bidirectional ? std::uint32_t{BNNSLayerFlagsLSTMBidirectional} : 0u);
    layer_.sequence_descriptor = take(kept_, lengths, Role::vector, kRead);
    set(layer_, kept_, in, out, gates, kRead, kWritten, kRead);
    if (cache_size() == static_cast<std::size_t>(-1)) refused("LSTMLayer");
  }
  std::size_t cache_size() const { return BNNSComputeLSTMTrainingCacheCapacity(&layer_); }
  void apply(Handle cache) const {
    Bytes room(cache, kWritten, "LSTMLayer");
    unlocked("LSTMLayer",
             [&] { return BNNSDirectApplyLSTMBatchTrainingCaching(&layer_, nullptr, room.data, room.size); });
  }
  void apply_backward(const Triple& in, const Triple& out, const std::vector<Gate>& gates, Handle cache) const {
    BNNSLayerParametersLSTM delta = layer_;
    std::vector<Array> kept;
    set(delta, kept, in, out, gates, kWritten, kRead, kWritten);
    Bytes room(cache, kRead, "LSTMLayer");
    unlocked("LSTMLayer",
             [&] { return BNNSDirectApplyLSTMBatchBackward(&layer_, &delta, nullptr, room.data, room.size); });
  }

 private:
  static Desc take(std::vector<Array>& kept, Handle object, Role role, bool written) {
    if (object.is_none()) return Desc{};
    Array made;
    made = written ? output_of(object, made, "LSTMLayer", "an array") : array_of(object, made, "LSTMLayer", "an array");
    const Desc d = describe(made, role, "LSTMLayer", "an array");
    kept.push_back(std::move(made));
    return d;
  }
  static void set(BNNSLayerParametersLSTM& l, std::vector<Array>& kept, const Triple& in, const Triple& out,
                  const std::vector<Gate>& gates, bool in_written, bool out_written, bool gates_written) {
    const auto data = [&](BNNSLSTMDataDescriptor& d, const Triple& t, bool written) {
      d.data_desc = take(kept, std::get<0>(t), Role::generic, written);
      d.hidden_desc = take(kept, std::get<1>(t), Role::generic, written);
      d.cell_state_desc = take(kept, std::get<2>(t), Role::generic, written);
    };
    data(l.input_descriptor, in, in_written), data(l.output_descriptor, out, out_written);
    if (gates.size() != 4) refuse("LSTMLayer", "expected 4 gates, got " + std::to_string(gates.size()));
    BNNSLSTMGateDescriptor* c[] = {&l.input_gate, &l.forget_gate, &l.candidate_gate, &l.output_gate};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& [iw, further, hw, cw, b] = gates[i];
      c[i]->iw_desc[0] = take(kept, iw, Role::matrix, gates_written);
      c[i]->iw_desc[1] = take(kept, further, Role::generic, gates_written);
      c[i]->hw_desc = take(kept, hw, Role::matrix, gates_written);
      c[i]->cw_desc = take(kept, cw, Role::matrix, gates_written);
      c[i]->b_desc = take(kept, b, Role::vector, gates_written);
    }
  }

  BNNSLayerParametersLSTM layer_{};
  std::vector<Array> kept_;
};

}  // namespace

void bind_sequence(nb::module_& m) {
  const auto none = [](const char* name) { return nb::arg(name).none() = nb::none(); };
  nb::class_<Attention, Filter>(m, "AttentionFilter")
      .def(nb::init<>())
      .def("backprop_cache_size", &attention_cache, nb::arg("batch_size"))
      .def("apply", &attend, nb::arg("batch_size"), nb::arg("query"), nb::arg("key"), nb::arg("value"),
           nb::arg("output"), none("key_mask"), none("add_to_attention"), none("backprop_cache"))
      .def("apply_backward_all", &attend_backward, nb::arg("batch_size"), nb::arg("query").none(),
           nb::arg("key").none(), nb::arg("value").none(), nb::arg("output").none(), nb::arg("output_gradient"),
           nb::arg("gradients"), none("key_attention_bias_gradient"), none("value_attention_bias_gradient"),
           none("key_mask"), none("add_to_attention"), none("backprop_cache"));
  m.def("make_attention", &make_attention, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
        nb::arg(), nb::arg(), nb::arg());
  nb::class_<LSTM>(m, "LSTM")
      .def(nb::init<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, float, bool, nb::object,
                    const Triple&, const Triple&, const std::vector<Gate>&>(),
           nb::arg("input_size"), nb::arg("hidden_size"), nb::arg("batch_size"), nb::arg("layer_count"),
           nb::arg("sequence_length"), nb::arg("dropout"), nb::arg("bidirectional"), nb::arg("lengths").none(),
           nb::arg("input"), nb::arg("output"), nb::arg("gates"))
      .def("training_cache_capacity", &LSTM::cache_size)
      .def("apply", &LSTM::apply, none("training_cache"))
      .def("apply_backward", &LSTM::apply_backward, nb::arg("input"), nb::arg("output"), nb::arg("gates"),
           none("training_cache"));
}

}  // namespace openbnns
