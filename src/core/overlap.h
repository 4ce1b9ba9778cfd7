// Which tensors of a call share memory, for calls that take lists of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace bnns
