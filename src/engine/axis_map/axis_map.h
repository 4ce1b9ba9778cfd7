// Linear maps that are a product of one sparse matrix per axis, and their transposes: padding, resizing, repeating.
//
//   y[o0, o1, ...] = sum over taps of w0 w1 ... x[i0, i1, ...]       taps of o_k: the few (i_k, w_k) of axis k
//
// A table holds the taps of one axis in both directions. Tensors bring only their strides, so that the same tables
// serve data and gradients of any layout. Axes that a map leaves alone have no table, and those that are dense on both
// sides are merged; what is left is walked row by row along the fastest axis of the destination:
//   move_elements   at most one tap of weight 1 everywhere, same types: bits are moved, what has no tap gets a fill
//   sum_elements    anything else: in f32, long sums in double beyond a block, taps in rising order, so that the bits
//                   do not depend on the threads
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/memory.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/tensor.h"

namespace bnns {

// y = (1 - fraction) x[index] + fraction x[index + 1]; index < 0: nothing.
struct Tap {
  ptrdiff_t index = -1;
  float fraction = 0;
};

// Compressed rows: the taps of row r are [first[r], first[r + 1]), by rising index.
struct TapRows {
  const size_t* first = nullptr;
  const size_t* index = nullptr;
  const float* weight = nullptr;  // NULL: all 1
  size_t most = 0;                // taps of a row, at most
};

// The matrix of one axis. Default: the identity.
class AxisTable {
 public:
  AxisTable() = default;
  AxisTable(const Options& options, const Tap* taps, size_t in, size_t out);

  bool identity() const { return forward_.first == nullptr; }
  bool moves() const { return forward_.weight == nullptr; }  // every tap has weight 1, and no row has two
  const TapRows& forward() const { return forward_; }
  const TapRows& backward() const { return backward_; }
  // For a table that moves: the one index of row o or -1, and the longest stretch of rows with consecutive indices.
  const ptrdiff_t* source() const { return source_; }
  size_t run_begin() const { return run_begin_; }
  size_t run_end() const { return run_end_; }

 private:
  Buffer memory_;
  TapRows forward_, backward_;
  const ptrdiff_t* source_ = nullptr;
  size_t run_begin_ = 0, run_end_ = 0;
};

// Tables by size axis.
struct AxisTables {
  AxisTable axis[kMaxRank];
};

enum class MapDirection { forward, backward };

// to = M from, bits moved; every table moves, and the types are equally wide whole bytes. fill: the bits of an element
// without a tap, in the leading bytes.
void move_elements(const AxisTables& tables, const BatchPair& pair, const unsigned char (&fill)[8], size_t n_threads);

// to = M from, or to = M' from, through f32; added to what is there when pair.to.accumulate. Scratch is two rows of
// `from` and one of `to` for each thread, and a row of doubles where more than kSumRows rows are summed.
void sum_elements(const AxisTables& tables, MapDirection direction, const BatchPair& pair, size_t n_threads,
                  ScratchShelf& shelf);

// ---- kernels ----------------------------------------------------------------------------------------------------

void row_scale(const float* x, float weight, float* y, size_t n) noexcept;      // y = weight x
void row_scale_add(const float* x, float weight, float* y, size_t n) noexcept;  // y += weight x
double row_sum(const float* x, size_t n) noexcept;                              // f32 within kRowBlock values
inline constexpr size_t kRowBlock = 256;

}  // namespace bnns
