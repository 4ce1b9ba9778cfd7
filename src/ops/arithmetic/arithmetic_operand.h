// One tensor of an arithmetic call, as blocks of f32 in the order of the call's elements.
//
// A call is flattened to one list of elements: the output's axes in memory order, fastest first, then the batch. Each
// operand is seen through that list, whatever its strides, type and broadcasting, and picks the cheapest access:
//   direct   dense f32: a block is a pointer into the tensor
//   tiled    repeats after at most kBlock elements (a scalar, a row of biases): copies side by side, made once per task
//   runs     f32 in stretches of at least kMinRun: a pointer, as long as no block crosses the end of a stretch
//   filled   stands still for at least kMinRun elements (a bias per channel): one value, spread over the block
//   staged   everything else: Elements gathers and scatters
// The ends of stretches are products of leading extents, so the shortest cut of a call divides all others and one
// number, cut, keeps every operand's blocks inside its stretches.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns::arithmetic {

inline constexpr size_t kMinRun = 256;  // below, a copy is cheaper than more blocks
inline constexpr size_t kOperandBufferFloats =
    2 * kBlock;                                // what read may need: a tile of kBlock elements and a block beyond it
inline constexpr size_t kTaskElements = 8192;  // a task of an element-wise loop: some microseconds

// The elements of a call.
struct Space {
  Tensor order;  // a tensor of the sample's extents; order.axis[] is the order of elements, fastest first
  size_t batch = 1, sample = 0, total = 0;

  // row_first: size axis 0 is taken as the fastest (row-wise activations), else the memory order of t.
  Space(const Tensor& t, size_t batch, bool row_first);
};

// Where a tensor of a call lies: what aliasing checks compare.
struct Placement {
  const Tensor* tensor = nullptr;
  const void* data = nullptr;
  size_t batch = 1, batch_stride = 0;  // in elements

  size_t bytes() const;
};
// Whether an element of one can be an element of the other. Slices of one matrix side by side are told apart.
bool share_memory(const Placement& a, const Placement& b) noexcept;
// The same element of both is at the same address, for all elements.
bool same_place(const Placement& a, const Placement& b) noexcept;

class Operand {
 public:
  Operand() = default;
  // t has the space's layout and each extent equal or 1; batch_stride is 0 for a tensor that all samples share.
  Operand(const Space& space, const Tensor& t, const void* data, size_t batch_stride);

  size_t cut() const { return cut_; }  // no block may cross a multiple of it

  // Once per task, before read. buffer (kOperandBufferFloats floats) belongs to this operand for the whole task.
  void prepare(float* buffer) const;
  // Elements [first, first + n), n <= kBlock: a pointer into the tensor, or buffer.
  const float* read(size_t first, size_t n, float* buffer) const;
  // Where a kernel may put these elements: the tensor itself, or buffer.
  float* target(size_t first, float* buffer) const { return pointer_ ? at(first) : buffer; }
  // Brings values to the tensor unless target() was there already.
  void write(size_t first, size_t n, const float* values) const;
  // Adds them to what is there; values are not the tensor itself.
  void accumulate(size_t first, size_t n, const float* values) const;

 private:
  enum class Access { direct, tiled, runs, filled, staged };
  float* at(size_t first) const;
  void gather(size_t first, size_t n, float* buffer) const;
  void* sample_at(size_t index) const;

  Access access_ = Access::direct;
  bool pointer_ = true;   // direct or runs
  void* data_ = nullptr;  // const data is only ever read
  BNNSDataType type_ = BNNSDataTypeFloat32;
  size_t sample_ = 1, total_ = 1, batch_stride_ = 0, period_ = 1, cut_ = SIZE_MAX;
  Elements elements_;  // one sample
};

// Calls f(first, n) for [begin, end) in blocks of at most kBlock that do not cross multiples of cut.
template <class F>
void for_each_block(size_t begin, size_t end, size_t cut, F&& f) {
  for (size_t first = begin; first < end;) {
    size_t n = std::min(kBlock, end - first);
    if (cut != SIZE_MAX) n = std::min(n, cut - first % cut);
    f(first, n);
    first += n;
  }
}

}  // namespace bnns::arithmetic
