// A table of layers and functions of the C API, each with data of its own and its calls in order: what the tests of
// this folder run under faults, on small stacks and in forked children.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/testing.h"

namespace bnns::testing {

using Array = BNNSNDArrayDescriptor;
using FilterOptions = BNNSFilterParameters;

// Threads that calls of the table use, and with it what they allocate.
inline constexpr size_t kTableThreads = 3;

// Where the arrays of a layer lie: anywhere, with spare memory behind each, or flush against a page that faults, at
// their end or at their start.
enum class Memory { heap, spare, flush_end, flush_start };

class Layer {
 public:
  explicit Layer(std::string title) : name(std::move(title)), random_(name.size() * 131 + 7), place_(place_of_new_) {}
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // n elements of a type, small normal numbers, that the calls read; or that they write.
  void* in(size_t n, BNNSDataType type = BNNSDataTypeFloat32);
  void* out(size_t n, BNNSDataType type = BNNSDataTypeFloat32);
  uint32_t* indices(size_t n, size_t below);
  float* probabilities(size_t n);
  // A call; nonzero: it was refused.
  void call(std::string title, std::function<int(BNNSFilter, const FilterOptions*)> run) {
    calls.push_back({std::move(title), std::move(run)});
  }

  struct Call {
    std::string name;
    std::function<int(BNNSFilter, const FilterOptions*)> run;
  };
  struct Bytes {
    void* data;
    size_t size;
  };
  const std::string name;
  std::function<BNNSFilter(const FilterOptions*)> create;  // none: a function without a filter
  std::vector<Call> calls;
  std::vector<Bytes> outputs;
  bool keeps_state = false;  // a call may depend on the one before it

  // Everything that calls may write; before the first call it is a pattern.
  std::vector<char> written() const;
  void restore(const std::vector<char>& bytes);

  // What in() gave becomes subnormal numbers of its type, about as many significant bits as fit.
  void make_inputs_subnormal();

  // Memory for what is neither an input nor an output.
  void* block(size_t bytes);

 private:
  friend std::vector<std::unique_ptr<Layer>> every_layer(Memory place);
  struct Input {
    void* data;
    size_t n;
    BNNSDataType type;
  };
  Random random_;
  std::vector<Input> inputs_;
  Memory place_;
  std::deque<std::vector<double>> memory_;  // double: aligned for every type
  std::deque<Guarded<char>> flush_;
  static inline Memory place_of_new_ = Memory::heap;
};

using Layers = std::vector<std::unique_ptr<Layer>>;
void add_products(Layers& layers);        // fully connected, matrix products, attention, LSTM, ...
void add_convolutions(Layers& layers);    // and transposed ones
void add_normalizations(Layers& layers);  // and fused layers
void add_poolings(Layers& layers);
void add_elementwise(Layers& layers);  // activation, arithmetic, loss, reduction, ...
void add_tensors(Layers& layers);      // calls without a filter

// Twice the same data, if called twice.
inline Layers every_layer(Memory place = Memory::heap) {
  Layers layers;
  Layer::place_of_new_ = place;
  for (auto* add : {add_products, add_convolutions, add_normalizations, add_poolings, add_elementwise, add_tensors}) {
    add(layers);
  }
  return layers;
}

// The calls of a filter with one input, f32 or 16 bits: forward, and backward with the gradients that are there.
struct Plain {
  size_t batch, x, y;
  BNNSDataType type = BNNSDataTypeFloat32;
  Array dx = {}, dw = {}, db = {};  // data NULL: not wanted
  bool forward = true;              // by BNNSFilterApplyBatch
  bool backward = true;
};
void add_plain_calls(Layer& layer, const Plain& plain);

inline Array image(size_t c, size_t h, size_t w, void* data = nullptr, BNNSDataType type = BNNSDataTypeFloat32) {
  return descriptor(BNNSDataLayoutImageCHW, {w, h, c}, data, type);
}
inline Array row_major(size_t columns, size_t rows, void* data = nullptr, BNNSDataType type = BNNSDataTypeFloat32) {
  return descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, data, type);
}

}  // namespace bnns::testing
