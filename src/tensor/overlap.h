// Which tensors of a call share memory, for calls that take lists of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/tensor.h"

namespace bnns {

// The bytes that one tensor of a list covers. `list` and `index` name it in messages: "gradients", 3.
struct Extent {
  uintptr_t begin = 0, end = 0;
  const char* list = "";
  size_t index = 0;
  bool written = false;

  Extent() = default;
  Extent(const void* data, size_t bytes, const char* list_name, size_t list_index, bool is_written)
      : begin(reinterpret_cast<uintptr_t>(data)),
        end(begin + bytes),
        list(list_name),
        index(list_index),
        written(is_written) {}
};

// Refuses extents that share bytes when at least one of the two is written. Sorts the array: n log n, no allocation.
void check_extents(Extent* extents, size_t n, const char* op);

// One operand of a batched call: samples `stride` elements apart.
struct BatchExtent {
  const Tensor& sample;
  const void* base;
  size_t stride;
  const char* name;
};

// Refuses an output whose samples share bytes with samples of an input, unless both name the same elements (in place).
// A sample counts with its gaps; samples of the two may alternate in memory.
void check_in_place_or_apart(const BatchExtent& input, const BatchExtent& output, size_t batch, const char* op);

}  // namespace bnns
