// Helpers for layers without parameters: handles, gradient calls, tensors filled from and read into dense arrays.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "tests/support/layouts.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<std::remove_pointer_t<BNNSFilter>, void (*)(BNNSFilter)>;

inline FilterHandle own(BNNSFilter filter) {
  EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  return FilterHandle(filter, &BNNSFilterDestroy);
}

inline int apply_backward(const FilterHandle& filter, size_t batch, BNNSNDArrayDescriptor* dx, size_t dx_stride,
                          const BNNSNDArrayDescriptor* dy, size_t dy_stride) {
  return BNNSFilterApplyBackwardBatch(filter.get(), batch, nullptr, 0, dx, dx_stride, nullptr, 0, dy, dy_stride,
                                      nullptr, nullptr);
}

inline size_t count_of(const std::vector<size_t>& size) {
  size_t n = 1;
  for (size_t extent : size) n *= extent;
  return n;
}

// Dense arrays have size[0] fastest, whatever the tensor's layout; fill returns what the type could hold.
inline std::vector<double> fill(LayoutTensor* t, const std::vector<double>& values) {
  std::vector<double> stored;
  for_each_coordinate(t->size(), [&](const Coordinates& at) { stored.push_back(t->set(at, values[stored.size()])); });
  return stored;
}
inline std::vector<double> read(const LayoutTensor& t) {
  std::vector<double> values;
  for_each_coordinate(t.size(), [&](const Coordinates& at) { values.push_back(t.get(at)); });
  return values;
}

inline std::vector<double> random_integers(Random* random, size_t n, int bound = 4) {
  std::vector<double> v(n);
  for (double& x : v) x = random->integer(-bound, bound);
  return v;
}
inline std::vector<double> random_normals(Random* random, size_t n) {
  std::vector<double> v(n);
  for (double& x : v) x = random->normal();
  return v;
}
inline std::vector<double> to_double(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

// The generic layout of a rank whose first (or last) index is slowest.
inline BNNSDataLayout generic_layout(size_t rank, bool first_major) {
  return BNNSDataLayout(unsigned(rank) << 16 | 0x8000u | (first_major ? 1u : 0u));
}

// Counts and fails allocations of a filter.
struct Accountant {
  static inline int live = 0, requests = 0, fail_at = -1;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    if (requests++ == fail_at) return 12;
    ++live;
    return posix_memalign(memory, alignment, bytes);
  }
  static void free(void* memory) {
    live -= memory != nullptr;
    std::free(memory);
  }
  static BNNSFilterParameters options() {
    live = requests = 0;
    fail_at = -1;
    BNNSFilterParameters result = {};
    result.alloc_memory = alloc;
    result.free_memory = free;
    return result;
  }
};

}  // namespace bnns::testing
