// A stack of LSTM layers over a batch of sequences, in one or both directions.
//
//   gate_k = act_k(b_k + Wx_k x_t + Wh_k h_{t-1} + Wc_k c),  k = input i, forget f, candidate g, output o
//            c is c_{t-1} for i, f, g and c_t for o; Wc is a full H x H matrix (peephole), optional
//   c_t = f c_{t-1} + i g,   h_t = o act_h(c_t)
//
// Layer l > 0 reads the concatenated directions of layer l - 1, through dropout when training. README.md has the
// gradients, the layouts of the arguments and of the training cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "bnns/bnns.h"
#include "src/core/memory.h"
#include "src/engine/activation/activation.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

inline constexpr const char* kLstm = "lstm";                              // the operator's name in messages
enum LstmGate : size_t { kInput, kForget, kCandidate, kOutput, kGates };  // the order inside packed operands

// A tensor of the layer as rows of `width` elements, addressed by three indices (slowest first):
// data (0, t, b), states (layer, direction, b), weights (layer, direction, unit), bias (layer, direction, 0).
struct LstmView {
  void* data = nullptr;
  BNNSDataType type = BNNSDataTypeFloat32;
  bool accumulate = false;  // a gradient that is added to what is there
  size_t width = 0, step = 1;
  size_t stride[3] = {};
  size_t span_bytes = 0;
  Elements row;

  bool present() const { return data != nullptr; }
  void* at(size_t a, size_t b, size_t c) const {
    return element_at(data, type, a * stride[0] + b * stride[1] + c * stride[2]);
  }
  // The row as f32, always copied to `to`.
  void load(size_t a, size_t b, size_t c, float* to) const;
  // Writes a row, or adds to it.
  void store(size_t a, size_t b, size_t c, const float* values) const;
};

// One axis that a descriptor must have: its extent, and which index of LstmView runs over it (3: along the row).
struct LstmAxis {
  size_t extent;
  size_t place;
};

// Reads a descriptor whose elements lie in memory as `axes`, fastest first. Layouts of fewer axes may join neighbours
// (a RowMajorMatrix for one layer and direction, a Vector for anything dense); extents of 0 are taken from `axes`, and
// layout 0 is the generic layout of as many axes. A descriptor without data is absent.
LstmView make_lstm_view(const BNNSNDArrayDescriptor& d, std::initializer_list<LstmAxis> axes, const char* field,
                        bool written);

// The tensors of one BNNSLayerParametersLSTM: values, or gradients in the same places.
struct LstmTensors {
  LstmView x, h0, c0, y, h, c;
  LstmView first[kGates], rest[kGates];  // input weights of layer 0 and of the others; rest is (layer - 1, ...)
  LstmView hw[kGates], cw[kGates], b[kGates];
};

struct LstmProblem {
  size_t I = 0, H = 0, B = 0, L = 0, T = 0;  // input, hidden, batch, layers, steps
  size_t D = 1;                              // directions
  float dropout = 0;
  Activation gate[kGates], hidden;
  bool plain = true;          // sigmoid, sigmoid, tanh, sigmoid; tanh: the fused kernels
  bool from_output = true;    // every gate's derivative follows from its value, so pre-activations need not be kept
  bool shared_input = false;  // one descriptor holds the input weights of all layers
  bool peephole = false;      // on i, f, g
  bool peephole_output = false;
  Tensor sequence;  // active sequences at each step; no data: all of them
  LstmTensors at;

  size_t input_width(size_t l) const { return l == 0 ? I : D * H; }
  // The input weights of a gate of layer l, and their first index.
  const LstmView& input_weights(const LstmTensors& t, size_t k, size_t l) const {
    return l == 0 || shared_input ? t.first[k] : t.rest[k];
  }
  size_t input_weights_layer(size_t l) const { return l == 0 || shared_input ? l : l - 1; }
  // Of a forward pass; the gradients of all its products take twice as many.
  double operations() const {
    double macs = 0;
    for (size_t l = 0; l < L; ++l) macs += static_cast<double>(kGates * H) * static_cast<double>(input_width(l) + H);
    return 2 * macs * static_cast<double>(T * B * D);
  }
  std::string text() const;  // "lstm f32 i3 h4 b2 layers2 steps5 bidirectional peephole dropout 0.5"
};

// Sizes, flags, dropout and activations: what the capacity of the cache depends on.
LstmProblem make_lstm_sizes(const BNNSLayerParametersLSTM* layer);

// Every check of a layer with its tensors. Weights of all gates must be there; whether x, y and the states are needed
// depends on the call.
LstmProblem make_lstm_problem(const BNNSLayerParametersLSTM* layer);

// The gradient descriptors of a layer: all optional, extents as in the problem.
LstmTensors make_lstm_gradients(const LstmProblem& problem, const BNNSLayerParametersLSTM* deltas);

// Bytes of the training cache.
size_t lstm_cache_bytes(const LstmProblem& problem);

// Runs the layer. cache may be NULL: inference, no dropout. Refuses a cache that is too small before anything is
// written. seed decides what is dropped.
void lstm_forward(const LstmProblem& problem, const Options& options, void* cache, size_t capacity, uint32_t seed);

// Gradients. cache NULL: the forward pass is run again, without dropout. Of gradients of hw, cw and b that share memory
// only the last one is written.
void lstm_backward(const LstmProblem& problem, LstmTensors deltas, const Options& options, const void* cache,
                   size_t capacity);

// ---- kernels: lstm_simd.cc; rows of H floats
// -------------------------------------------------------------------------

// Of one row: values of the gates [4H] in the order of LstmGate, cell state, act_h(c).
struct LstmRow {
  const float* z;  // pre-activations [4H]; a may be z
  float *a, *c, *ch;
};

// plain: a = act(z) for i, f, g; c = state = f state + i g; ch = tanh(c). Else i, f, g are in `a` already, and ch is
// not written.
void lstm_cell_forward(bool plain, size_t H, const LstmRow& row, float* state) noexcept;
// plain: a = sigmoid(z) for o. Then y = state = o ch. Else o is in `a` already.
void lstm_hidden_forward(bool plain, size_t H, const LstmRow& row, float* state, float* y) noexcept;

// dh = dy + state_h. plain: dz_o = dh ch o', state_c += dh o (1 - ch^2). Else dz_o = dh ch and du = dh o: what the
// activations' own gradients are applied to.
void lstm_hidden_backward(bool plain, size_t H, const LstmRow& row, const float* dy, const float* state_h,
                          float* state_c, float* dz, float* du) noexcept;
// With dc = state: dz_i = dc g i', dz_f = dc previous f', dz_g = dc i g', state = dc f. plain: with the derivatives.
void lstm_cell_backward(bool plain, size_t H, const LstmRow& row, const float* previous, float* state,
                        float* dz) noexcept;
// y += x
void lstm_add(size_t n, const float* x, float* y) noexcept;

}  // namespace bnns
