// A layer for the tests: every tensor in a LayoutTensor of its own (guard pages, poison in the gaps), filled from and
// read back into the flat vectors of the reference.
#pragma once

#include <memory>

#include "src/ops/dropout/dropout_ref.h"
#include "src/ops/lstm/lstm_ref.h"
#include "src/ops/lstm/lstm_run.h"
#include "tests/support/layouts.h"

namespace bnns::testing {

struct LstmCase {
  size_t I = 1, H = 1, B = 1, L = 1, T = 1, D = 1;
  unsigned peephole = 0;  // bit k: gate k has cell weights
  bool bias = true, states = true, ragged = false, batch_first = false, custom = false;
  double dropout = 0;
  BNNSDataType type = BNNSDataTypeFloat32;
  size_t unit = 1, pad = 0;  // strides of every tensor
  BNNSActivationFunction functions[5] = {BNNSActivationFunctionSigmoid, BNNSActivationFunctionSigmoid,
                                         BNNSActivationFunctionTanh, BNNSActivationFunctionSigmoid,
                                         BNNSActivationFunctionTanh};  // custom: i, f, g, o, hidden
  float alpha = 0.8f, beta = 0.6f;

  std::string text() const {
    char line[200];
    std::snprintf(line, sizeof line,
                  "I %zu H %zu B %zu L %zu T %zu D %zu peephole %x bias %d states %d ragged %d "
                  "batch_first %d custom %d dropout %g type %x unit %zu pad %zu",
                  I, H, B, L, T, D, peephole, bias, states, ragged, batch_first, custom, dropout, unsigned(type), unit,
                  pad);
    return line;
  }
  // One tensor for the input weights of all layers.
  bool shared_input() const { return L > 1 && I == D * H; }
};

inline ref::Lstm reference(const LstmCase& c) {
  ref::Lstm m{c.I, c.H, c.B, c.L, c.T, c.D};
  for (size_t k = 0; c.custom && k < 4; ++k) m.gate[k] = {c.functions[k], c.alpha, c.beta};
  if (c.custom) m.hidden = {c.functions[4], c.alpha, c.beta};
  for (size_t t = 0; c.ragged && t < c.T; ++t) m.active.push_back(c.B - (c.B * t) / (c.T + 1));
  return m;
}

// The tensors of one BNNSLayerParametersLSTM: values and results, or their gradients.
class LstmLayer {
 public:
  using Handle = std::unique_ptr<LayoutTensor>;
  enum Slot { kX, kH0, kC0, kY, kH, kC, kFirst };  // then for each gate: iw0, iw1, hw, cw, b

  explicit LstmLayer(const LstmCase& c) : case_(c), model_(reference(c)) {
    std::memset(&parameters, 0, sizeof parameters);
    parameters.input_size = c.I, parameters.hidden_size = c.H, parameters.batch_size = c.B;
    parameters.num_layers = c.L, parameters.seq_len = c.T;
    parameters.dropout = float(c.dropout);
    parameters.lstm_flags = (c.D == 2 ? 1u : 0u) | (c.custom ? 0u : 2u);
    const auto data = [&](size_t width) {
      return c.batch_first ? tensor(BNNSDataLayoutNSE, {width, c.T, c.B})
                           : tensor(BNNSDataLayoutSNE, {width, c.B, c.T});
    };
    const auto states = [&] { return tensor(BNNSDataLayout4DLastMajor, {c.H, c.B, c.D, c.L}); };
    slots_.push_back(data(c.I));
    for (int i = 0; i < 2; ++i) slots_.push_back(c.states ? states() : nullptr);
    slots_.push_back(data(c.D * c.H));
    for (int i = 0; i < 2; ++i) slots_.push_back(states());
    // Gradients written where nobody asked for them would hit the guard pages of a NULL.
    for (size_t k = 0; k < 4; ++k) {
      const size_t first = c.shared_input() ? c.L : 1;
      slots_.push_back(tensor(BNNSDataLayout4DFirstMajor, {first, c.D, c.H, c.I}));
      slots_.push_back(c.L > 1 && !c.shared_input() ? tensor(BNNSDataLayout4DLastMajor, {c.D * c.H, c.H, c.D, c.L - 1})
                                                    : nullptr);
      slots_.push_back(tensor(BNNSDataLayout4DLastMajor, {c.H, c.H, c.D, c.L}));
      slots_.push_back(c.peephole >> k & 1 ? tensor(BNNSDataLayout4DLastMajor, {c.H, c.H, c.D, c.L}) : nullptr);
      slots_.push_back(c.bias ? tensor(BNNSDataLayout3DLastMajor, {c.H, c.D, c.L}) : nullptr);
    }
    for (size_t t = 0; t < model_.active.size(); ++t) active_.push_back(uint32_t(model_.active[t]));
    attach();
  }

  // Sets every descriptor's data; called again after a slot was changed.
  void attach() {
    const auto put = [&](BNNSNDArrayDescriptor& d, size_t slot) {
      if (slots_[slot]) d = slots_[slot]->descriptor();
    };
    put(parameters.input_descriptor.data_desc, kX);
    put(parameters.input_descriptor.hidden_desc, kH0), put(parameters.input_descriptor.cell_state_desc, kC0);
    put(parameters.output_descriptor.data_desc, kY);
    put(parameters.output_descriptor.hidden_desc, kH), put(parameters.output_descriptor.cell_state_desc, kC);
    for (size_t k = 0; k < 4; ++k) {
      BNNSLSTMGateDescriptor& g = gate(k);
      put(g.iw_desc[0], kFirst + 5 * k), put(g.iw_desc[1], kFirst + 5 * k + 1), put(g.hw_desc, kFirst + 5 * k + 2);
      put(g.cw_desc, kFirst + 5 * k + 3), put(g.b_desc, kFirst + 5 * k + 4);
      g.activation.function = case_.functions[k], g.activation.alpha = case_.alpha, g.activation.beta = case_.beta;
    }
    parameters.hidden_activation.function = case_.functions[4];
    parameters.hidden_activation.alpha = case_.alpha, parameters.hidden_activation.beta = case_.beta;
    if (case_.ragged) {
      parameters.sequence_descriptor = vector_descriptor(case_.T, active_.data(), BNNSDataTypeUInt32);
    }
  }

  BNNSLSTMGateDescriptor& gate(size_t k) {
    BNNSLSTMGateDescriptor* gates[] = {&parameters.input_gate, &parameters.forget_gate, &parameters.candidate_gate,
                                       &parameters.output_gate};
    return *gates[k];
  }
  LayoutTensor& slot(size_t i) { return *slots_[i]; }
  bool has(size_t i) const { return slots_[i] != nullptr; }
  size_t slots() const { return slots_.size(); }

  // Calls f(tensor, coordinates, index in the flat vector) for every element of the arguments, or of the results.
  template <class F>
  void for_arguments(F&& f) {
    const ref::Lstm& m = model_;
    const auto walk = [&](size_t slot, auto&& index) {
      if (!slots_[slot]) return;
      for_each_coordinate(slots_[slot]->size(), [&](const Coordinates& at) { f(*slots_[slot], at, index(at)); });
    };
    walk(kX, [&](const Coordinates& at) { return m.x(time(at), sample(at), at[0]); });
    walk(kH0, [&](const Coordinates& at) { return m.h0(at[3], at[2], at[1], at[0]); });
    walk(kC0, [&](const Coordinates& at) { return m.c0(at[3], at[2], at[1], at[0]); });
    for (size_t k = 0; k < 4; ++k) {
      const size_t first = kFirst + 5 * k;
      walk(first, [&](const Coordinates& at) { return m.wx(at[0], at[1], k, at[2], at[3]); });
      walk(first + 1, [&](const Coordinates& at) { return m.wx(at[3] + 1, at[2], k, at[1], at[0]); });
      walk(first + 2, [&](const Coordinates& at) { return m.wh(at[3], at[2], k, at[1], at[0]); });
      walk(first + 3, [&](const Coordinates& at) { return m.wc(at[3], at[2], k, at[1], at[0]); });
      walk(first + 4, [&](const Coordinates& at) { return m.b(at[2], at[1], k, at[0]); });
    }
  }
  template <class F>
  void for_results(F&& f) {
    const ref::Lstm& m = model_;
    const auto walk = [&](size_t slot, auto&& index) {
      for_each_coordinate(slots_[slot]->size(), [&](const Coordinates& at) { f(*slots_[slot], at, index(at)); });
    };
    walk(kY, [&](const Coordinates& at) { return m.y(time(at), sample(at), at[0]); });
    walk(kH, [&](const Coordinates& at) { return m.h(at[3], at[2], at[1], at[0]); });
    walk(kC, [&](const Coordinates& at) { return m.c(at[3], at[2], at[1], at[0]); });
  }

  // Random arguments, kept as the type holds them; arguments that the layer does not have stay 0. Weights are scaled so
  // that a row's norm is about `gain`.
  std::vector<double> fill_arguments(Random& random, double gain = 0.8) {
    std::vector<double> in(model_.arguments());
    const size_t first_weight = model_.weights(0, 0);
    for_arguments([&](LayoutTensor& t, const Coordinates& at, size_t index) {
      const double scale = index < first_weight ? 1 : gain / std::sqrt(double(std::max(model_.H, model_.I)));
      in[index] = t.set(at, scale * random.normal());
    });
    // What the padding of a sequence holds must not matter: NaN there.
    for_each_coordinate(slots_[kX]->size(), [&](const Coordinates& at) {
      if (sample(at) < model_.n(time(at))) return;
      slots_[kX]->set(at, NAN);
      in[model_.x(time(at), sample(at), at[0])] = 0;
    });
    return in;
  }

  bool gaps_untouched() const {
    for (const Handle& slot : slots_) {
      if (slot && !slot->gaps_untouched()) return false;
    }
    return true;
  }
  const ref::Lstm& model() const { return model_; }

  BNNSLayerParametersLSTM parameters;

 private:
  Handle tensor(BNNSDataLayout layout, std::vector<size_t> size) const {
    return std::make_unique<LayoutTensor>(layout, std::move(size), case_.type, case_.unit, case_.pad);
  }
  size_t time(const Coordinates& at) const { return case_.batch_first ? at[1] : at[2]; }
  size_t sample(const Coordinates& at) const { return case_.batch_first ? at[2] : at[1]; }

  LstmCase case_;
  ref::Lstm model_;
  std::vector<Handle> slots_;
  std::vector<uint32_t> active_;
};

// The multipliers of dropout that a training cache stands for.
inline std::vector<double> mask_of_cache(const LstmCase& c, const void* cache) {
  LstmCacheHeader header;
  std::memcpy(&header, cache, sizeof header);
  const ref::Lstm m = reference(c);
  std::vector<double> mask((c.L - 1) * c.T * c.B * c.D * c.H, 1);
  const size_t width = c.D * c.H;
  for (size_t l = 0; l + 1 < c.L && c.dropout > 0; ++l) {
    size_t row = 0;
    for (size_t t = 0; t < c.T; ++t) {
      for (size_t b = 0; b < m.n(t); ++b, ++row) {
        for (size_t j = 0; j < width; ++j) {
          const uint32_t word = ref::dropout_word(header.seed, l + 1, row * width + j);
          const double rate = double(float(c.dropout));
          mask[((l * c.T + t) * c.B + b) * width + j] = word < rate * 0x1p32 ? 0 : 1 / (1 - rate);
        }
      }
    }
  }
  return mask;
}

// Unit in the last place of the stored type.
inline double type_epsilon(BNNSDataType type) {
  return type == BNNSDataTypeFloat32 ? 0x1p-24 : type == BNNSDataTypeFloat16 ? 0x1p-11 : 0x1p-8;
}

// The longest chain of roundings from an argument to a result: every layer and step sums K + 2H + 1 products and
// evaluates five activations of at most 4 ulp; gradients do so twice and sum over steps and sequences. The weights of
// the tests have norms below 1, so an error does not grow on its way.
inline double chain(const LstmCase& c) {
  const double products = double(std::max(c.I, c.D * c.H) + 2 * c.H + 20);
  return 2 * double(c.L) * (double(c.T) * products + double(c.T * c.B));
}

}  // namespace bnns::testing
