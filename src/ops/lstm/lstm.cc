// Checks of BNNSLayerParametersLSTM and the views of its tensors.
#include "src/ops/lstm/lstm.h"

#include <cstdio>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kGateNames[kGates] = {"input_gate", "forget_gate", "candidate_gate", "output_gate"};

const BNNSLSTMGateDescriptor& gate_of(const BNNSLayerParametersLSTM& layer, size_t k) {
  const BNNSLSTMGateDescriptor* gates[] = {&layer.input_gate, &layer.forget_gate, &layer.candidate_gate,
                                           &layer.output_gate};
  return *gates[k];
}

// Layouts whose memory order is plain: stride position j is size[j], or size[rank - 1 - j] for FirstMajor.
bool is_orderly(BNNSDataLayout layout) {
  switch (layout) {
    case BNNSDataLayoutVector:
    case BNNSDataLayoutRowMajorMatrix:
    case BNNSDataLayoutImageCHW:
    case BNNSDataLayoutSNE:
    case BNNSDataLayoutNSE:
      return true;
    default:
      return (static_cast<unsigned>(layout) & 0x8000) != 0;
  }
}

std::string text_of(std::initializer_list<LstmAxis> axes) {
  std::string result;
  for (const LstmAxis& axis : axes) {
    if (!result.empty()) result += 'x';
    result += std::to_string(axis.extent);
  }
  return result;
}

// Extents of 0 come from the axes; the last axis of a layout with fewer of them stands for all that are left.
void inherit_sizes(BNNSNDArrayDescriptor* d, size_t rank, std::initializer_list<LstmAxis> axes) {
  const bool first_major = (static_cast<unsigned>(d->layout) & 0x8001) == 0x8001;
  for (size_t j = 0; j < rank; ++j) {
    size_t& size = d->size[first_major ? rank - 1 - j : j];
    if (size != 0) continue;
    size = j < axes.size() ? axes.begin()[j].extent : 1;
    for (size_t k = j + 1; j + 1 == rank && k < axes.size(); ++k)
      size = checked_mul(size, axes.begin()[k].extent, kLstm);
  }
}

// Cuts the tensor's axes into the expected ones; false when they do not fit.
bool match_axes(const Tensor& t, std::initializer_list<LstmAxis> axes, LstmView* view) {
  const LstmAxis* axis = axes.begin();
  for (size_t j = 0; j < t.rank; ++j) {
    size_t rest = t.size[t.axis[j]], stride = t.stride[t.axis[j]];
    while (rest > 1) {
      while (axis != axes.end() && axis->extent == 1) ++axis;
      if (axis == axes.end() || rest % axis->extent != 0) return false;
      (axis->place == 3 ? view->step : view->stride[axis->place]) = stride;
      stride *= axis->extent;
      rest /= axis->extent;
      ++axis;
    }
  }
  while (axis != axes.end() && axis->extent == 1) ++axis;
  return axis == axes.end();
}

}  // namespace

void LstmView::load(size_t a, size_t b, size_t c, float* to) const {
  const float* values = row.read(at(a, b, c), 0, width, to);
  if (values != to) std::memcpy(to, values, width * sizeof(float));
}

void LstmView::store(size_t a, size_t b, size_t c, const float* values) const {
  void* to = at(a, b, c);
  if (accumulate) {
    row.accumulate(to, 0, width, values);
  } else if (row.direct()) {
    std::memcpy(to, values, width * sizeof(float));
  } else {
    row.write(to, 0, width, values);
  }
}

LstmView make_lstm_view(const BNNSNDArrayDescriptor& d, std::initializer_list<LstmAxis> axes, const char* field,
                        bool written) {
  LstmView view;
  if (is_absent(d)) return view;
  BNNSNDArrayDescriptor filled = d;
  if (static_cast<unsigned>(d.layout) == 0) {
    filled.layout = axes.size() == 3 ? BNNSDataLayout3DLastMajor : BNNSDataLayout4DLastMajor;
  }
  const size_t rank = layout_rank(filled.layout);
  if (rank != SIZE_MAX && !is_orderly(filled.layout)) {
    fail_invalid(
        "%s: %s.layout is %s, expected BNNSDataLayoutSNE, NSE, Vector, RowMajorMatrix, ImageCHW or a generic layout",
        kLstm, field, enum_text(d.layout).text);
  }
  if (rank != SIZE_MAX) inherit_sizes(&filled, rank, axes);
  const Tensor t = resolve_with_data(filled, kLstm, field);
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; an LSTM takes f32, f16 and bf16", kLstm, field, type_name(t.type));
  }
  if (!match_axes(t, axes, &view)) {
    fail_invalid("%s: %s is %s, expected %s in memory, fastest first (or 0 to take these)", kLstm, field,
                 t.text().c_str(), text_of(axes).c_str());
  }
  if (written) check_distinct(t, kLstm, field);
  view.data = t.data;
  view.type = t.type;
  view.accumulate = t.accumulate;
  view.width = axes.begin()->extent;
  view.span_bytes = t.span_bytes();
  Tensor row = vector_tensor(view.width, t.data);
  row.type = t.type;
  row.stride[0] = view.step;
  view.row = Elements(row);
  return view;
}

namespace {

// Places in LstmView: data (0, t, b), states (layer, direction, b). NSE puts the batch outermost.
LstmView data_view(const LstmProblem& p, const BNNSNDArrayDescriptor& d, size_t width, const char* field,
                   bool written) {
  if (d.layout == BNNSDataLayoutNSE) return make_lstm_view(d, {{width, 3}, {p.T, 1}, {p.B, 2}}, field, written);
  return make_lstm_view(d, {{width, 3}, {p.B, 2}, {p.T, 1}}, field, written);
}

LstmView state_view(const LstmProblem& p, const BNNSNDArrayDescriptor& d, const char* field, bool written) {
  if (d.layout == BNNSDataLayoutNSE) return make_lstm_view(d, {{p.H, 3}, {p.D, 1}, {p.L, 0}, {p.B, 2}}, field, written);
  return make_lstm_view(d, {{p.H, 3}, {p.B, 2}, {p.D, 1}, {p.L, 0}}, field, written);
}

LstmView weights_view(const LstmProblem& p, const BNNSNDArrayDescriptor& d, size_t width, size_t layers, size_t k,
                      const char* part, bool written) {
  char field[64];
  std::snprintf(field, sizeof field, "%s.%s", kGateNames[k], part);
  return make_lstm_view(d, {{width, 3}, {p.H, 2}, {p.D, 1}, {layers, 0}}, field, written);
}

// gradients: of the arguments, which are written; else the results are.
LstmTensors make_tensors(const LstmProblem& p, const BNNSLayerParametersLSTM& layer, bool gradients) {
  LstmTensors t;
  t.x = data_view(p, layer.input_descriptor.data_desc, p.I, "input_descriptor.data_desc", gradients);
  t.h0 = state_view(p, layer.input_descriptor.hidden_desc, "input_descriptor.hidden_desc", gradients);
  t.c0 = state_view(p, layer.input_descriptor.cell_state_desc, "input_descriptor.cell_state_desc", gradients);
  t.y = data_view(p, layer.output_descriptor.data_desc, p.D * p.H, "output_descriptor.data_desc", !gradients);
  t.h = state_view(p, layer.output_descriptor.hidden_desc, "output_descriptor.hidden_desc", !gradients);
  t.c = state_view(p, layer.output_descriptor.cell_state_desc, "output_descriptor.cell_state_desc", !gradients);
  for (size_t k = 0; k < kGates; ++k) {
    const BNNSLSTMGateDescriptor& gate = gate_of(layer, k);
    t.first[k] = weights_view(p, gate.iw_desc[0], p.I, p.shared_input ? p.L : 1, k, "iw_desc[0]", gradients);
    if (p.L > 1 && !p.shared_input) {
      t.rest[k] = weights_view(p, gate.iw_desc[1], p.D * p.H, p.L - 1, k, "iw_desc[1]", gradients);
    }
    t.hw[k] = weights_view(p, gate.hw_desc, p.H, p.L, k, "hw_desc", gradients);
    t.cw[k] = weights_view(p, gate.cw_desc, p.H, p.L, k, "cw_desc", gradients);
    char field[64];
    std::snprintf(field, sizeof field, "%s.b_desc", kGateNames[k]);
    t.b[k] = make_lstm_view(gate.b_desc, {{p.H, 3}, {p.D, 1}, {p.L, 0}}, field, gradients);
  }
  return t;
}

Tensor read_sequence(const LstmProblem& p, const BNNSNDArrayDescriptor& d) {
  if (is_absent(d)) return {};
  BNNSNDArrayDescriptor filled = d;
  if (static_cast<unsigned>(d.layout) == 0) filled.layout = BNNSDataLayoutVector;
  if (filled.size[0] == 0 && layout_rank(filled.layout) == 1) filled.size[0] = p.T;
  const Tensor t = resolve_with_data(filled, kLstm, "sequence_descriptor");
  if (t.rank != 1 || t.size[0] != p.T) {
    fail_invalid("%s: sequence_descriptor is %s, expected a vector of seq_len = %zu", kLstm, t.text().c_str(), p.T);
  }
  if (t.type != BNNSDataTypeUInt32) {
    fail_invalid("%s: sequence_descriptor has type %s, expected u32", kLstm, type_name(t.type));
  }
  int64_t before = static_cast<int64_t>(p.B);
  for (size_t step = 0; step < p.T; ++step) {
    const int64_t active = load_integer(t, t.data, step * t.stride[0]);
    if (active > before) {
      fail_invalid(
          "%s: sequence_descriptor[%zu] is %lld, expected at most %lld: the sequences active at a step, longest "
          "sequence first",
          kLstm, step, static_cast<long long>(active), static_cast<long long>(before));
    }
    before = active;
  }
  return t;
}

void check_size(size_t value, const char* field) {
  if (value == 0) fail_invalid("%s: %s is 0, expected at least 1", kLstm, field);
}

}  // namespace

LstmProblem make_lstm_sizes(const BNNSLayerParametersLSTM* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersLSTM", kLstm);
  LstmProblem p;
  p.I = layer->input_size, p.H = layer->hidden_size, p.B = layer->batch_size;
  p.L = layer->num_layers, p.T = layer->seq_len;
  check_size(p.I, "input_size"), check_size(p.H, "hidden_size"), check_size(p.B, "batch_size");
  check_size(p.L, "num_layers"), check_size(p.T, "seq_len");
  constexpr uint32_t kKnown = BNNSLayerFlagsLSTMBidirectional | BNNSLayerFlagsLSTMDefaultActivations;
  if (layer->lstm_flags & ~kKnown) {
    fail_invalid(
        "%s: lstm_flags is 0x%x, expected BNNSLayerFlagsLSTMBidirectional (0x1), BNNSLayerFlagsLSTMDefaultActivations "
        "(0x2), "
        "both or 0",
        kLstm, layer->lstm_flags);
  }
  p.D = layer->lstm_flags & BNNSLayerFlagsLSTMBidirectional ? 2 : 1;
  if (!(layer->dropout >= 0 && layer->dropout < 1)) {
    fail_invalid("%s: dropout is %g, expected at least 0 and below 1", kLstm, static_cast<double>(layer->dropout));
  }
  p.dropout = layer->dropout;
  // Every product of extents below is a part of this one, times at most 64 bytes.
  size_t all = checked_mul(p.T, p.B, "lstm: seq_len and batch_size");
  all =
      checked_mul(all, checked_add(p.I, checked_mul(16, p.H, "lstm: hidden_size"), "lstm: input_size and hidden_size"),
                  "lstm: seq_len, batch_size, input_size and hidden_size");
  checked_mul(checked_mul(all, checked_mul(p.L, p.D, "lstm: num_layers"), "lstm: num_layers and seq_len"), 64,
              "lstm: num_layers, seq_len, batch_size, input_size and hidden_size");
  size_t weights =
      checked_mul(p.H, checked_add(p.I, checked_mul(4, p.H, "lstm: hidden_size"), "lstm: input_size and hidden_size"),
                  "lstm: input_size and hidden_size");
  checked_mul(checked_mul(weights, p.L, "lstm: num_layers and hidden_size"), 64, "lstm: num_layers and hidden_size");
  for (size_t k = 0; k < kGates; ++k) {
    if (layer->lstm_flags & BNNSLayerFlagsLSTMDefaultActivations) {
      p.gate[k].function = k == kCandidate ? BNNSActivationFunctionTanh : BNNSActivationFunctionSigmoid;
    } else {
      p.gate[k] = make_fused_activation(gate_of(*layer, k).activation, kLstm);
    }
    const auto usual = k == kCandidate ? BNNSActivationFunctionTanh : BNNSActivationFunctionSigmoid;
    p.plain = p.plain && p.gate[k].function == usual;
    p.from_output = p.from_output && has_derivative_from_output(p.gate[k]);
  }
  p.hidden.function = BNNSActivationFunctionTanh;
  if (!(layer->lstm_flags & BNNSLayerFlagsLSTMDefaultActivations)) {
    p.hidden = make_fused_activation(layer->hidden_activation, kLstm);
  }
  p.plain = p.plain && p.hidden.function == BNNSActivationFunctionTanh;
  return p;
}

LstmProblem make_lstm_problem(const BNNSLayerParametersLSTM* layer) {
  LstmProblem p = make_lstm_sizes(layer);
  if (p.L > 1 && p.I == p.D * p.H) {  // one tensor for all layers, unless the second one is used
    p.shared_input = true;
    for (size_t k = 0; k < kGates; ++k) p.shared_input = p.shared_input && is_absent(gate_of(*layer, k).iw_desc[1]);
  }
  p.sequence = read_sequence(p, layer->sequence_descriptor);
  p.at = make_tensors(p, *layer, false);
  for (size_t k = 0; k < kGates; ++k) {
    const char* missing = !p.at.first[k].present()                                ? "iw_desc[0]"
                          : p.L > 1 && !p.shared_input && !p.at.rest[k].present() ? "iw_desc[1]"
                          : !p.at.hw[k].present()                                 ? "hw_desc"
                                                                                  : nullptr;
    if (missing) fail_invalid("%s: %s.%s.data is NULL, expected the weights", kLstm, kGateNames[k], missing);
  }
  p.peephole = p.at.cw[kInput].present() || p.at.cw[kForget].present() || p.at.cw[kCandidate].present();
  p.peephole_output = p.at.cw[kOutput].present();
  return p;
}

LstmTensors make_lstm_gradients(const LstmProblem& p, const BNNSLayerParametersLSTM* deltas) {
  if (!deltas) fail_invalid("%s: layer_delta_params is NULL, expected a BNNSLayerParametersLSTM", kLstm);
  const struct {
    const char* name;
    size_t got, expected;
  } sizes[] = {{"input_size", deltas->input_size, p.I},
               {"hidden_size", deltas->hidden_size, p.H},
               {"batch_size", deltas->batch_size, p.B},
               {"num_layers", deltas->num_layers, p.L},
               {"seq_len", deltas->seq_len, p.T}};
  for (const auto& size : sizes) {
    if (size.got != 0 && size.got != size.expected) {
      fail_invalid("%s: layer_delta_params.%s is %zu, expected %zu as in layer_params (or 0)", kLstm, size.name,
                   size.got, size.expected);
    }
  }
  LstmTensors t = make_tensors(p, *deltas, true);
  for (size_t k = 0; k < kGates; ++k) {
    if (t.cw[k].present() && !p.at.cw[k].present()) {
      fail_invalid("%s: %s.cw_desc of layer_delta_params has data, but the layer has no peephole weights there", kLstm,
                   kGateNames[k]);
    }
  }
  return t;
}

std::string LstmProblem::text() const {
  char sizes[160];
  std::snprintf(sizes, sizeof sizes, "%s %s i%zu h%zu b%zu layers%zu steps%zu", kLstm, type_name(at.x.type), I, H, B, L,
                T);
  std::string result = sizes;
  if (D == 2) result += " bidirectional";
  if (peephole || peephole_output) result += " peephole";
  if (sequence.data) result += " ragged";
  if (!plain) result += " custom";
  if (dropout > 0) {
    std::snprintf(sizes, sizeof sizes, " dropout %g", static_cast<double>(dropout));
    result += sizes;
  }
  return result;
}

}  // namespace bnns
