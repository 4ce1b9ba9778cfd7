// The walk over all functions of the C API: one entry per function, with a call that must work and one that must not.
// A group of entries lives in a file of its own; every_function_test.cc runs them and compares them with the list of
// symbols.
#pragma once

#include <ostream>
#include <vector>

#include "tests/support/layers.h"

namespace bnns::testing {

using Array = BNNSNDArrayDescriptor;
using Floats = std::vector<float>;

// `good` checks results against numbers written by hand and leaves no reason behind. The last call of `bad` that leaves
// a reason is the wrong one; it must return the documented failure value and touch no output (both checked by `bad`),
// and its reason begins with the function's name (checked by the walk). `harmless` says why a function has no failure:
// then `bad` is a call that must do nothing, without a reason.
struct Entry {
  const char* name;
  void (*good)();
  void (*bad)();
  const char* harmless = nullptr;
};

// What GoogleTest calls an entry.
inline void PrintTo(const Entry& entry, std::ostream* out) {
  *out << entry.name;
}

std::vector<Entry> create_entries();        // layers with weights, legacy constructors, loss, normalization, fused
std::vector<Entry> create_shape_entries();  // layers that move, combine or reduce
std::vector<Entry> apply_entries();         // filters forward, and their end
std::vector<Entry> backward_entries();      // filters backward
std::vector<Entry> gradient_entries();      // arithmetic and attention backward, losses
std::vector<Entry> parameter_entries();     // optimizer, clipping, norms, sizes and pointers
std::vector<Entry> matrix_entries();        // activation, matrix products, LSTM, quantizer
std::vector<Entry> tensor_entries();        // copies, comparisons, gathers and their relatives
std::vector<Entry> search_entries();        // reduction, embedding, top-K, crop-resize
std::vector<Entry> sparse_entries();        // nearest neighbours, sparse weights
std::vector<Entry> random_entries();        // the generator

// What outputs hold before a call that must not write.
inline constexpr float kUntouched = -77;
inline Floats untouched(size_t n) {
  return Floats(n, kUntouched);
}
inline bool is_untouched(const Floats& v) {
  for (float x : v) {
    if (x != kUntouched) return false;
  }
  return true;
}

// Descriptors of f32 data; `Vector` unless a layout is given.
inline Array vec(Floats& v) {
  return vector_descriptor(v.size(), v.data());
}
inline Array vec_of(size_t n) {
  return vector_descriptor(n, nullptr);
}
inline Array chw(size_t width, size_t height, size_t channels, void* data = nullptr) {
  return descriptor(BNNSDataLayoutImageCHW, {width, height, channels}, data);
}
inline Array row_major(size_t columns, size_t rows, void* data = nullptr) {
  return descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, data);
}

// Results of a few roundings: each within `ulps` units of the largest value.
inline void expect_close(const Floats& got, const std::vector<double>& want, double ulps = 8) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 0;
  for (double x : want) largest = std::max(largest, std::fabs(x));
  EXPECT_TRUE(within(got, want, got.size(), [&](size_t) { return ulps * 0x1p-24 * largest; }));
}

// A refused constructor.
inline void expect_no_filter(BNNSFilter filter) {
  EXPECT_EQ(filter, nullptr);
  BNNSFilterDestroy(filter);
}

}  // namespace bnns::testing
