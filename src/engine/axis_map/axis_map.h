// Linear maps that are a product of one sparse matrix per axis, and their transposes: padding and resizing.
//
//   y[o0, o1, ...] = sum over taps of w0 w1 ... x[i0, i1, ...]       taps of o_k: the few (i_k, w_k) of axis k
//
// A table holds the taps of one axis, and where they are found from the other side. Tensors bring only their strides,
// so that the same tables serve data and gradients of any layout. Axes that a map leaves alone have no table, and those
// that are dense on both sides are merged; what is left is walked row by row along the fastest axis of the destination:
//   move_elements   one tap of weight 1 or none everywhere, same types: bits are moved, what has no tap gets a fill
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

enum class MapDirection : uint8_t { forward, backward };

// The matrix of one axis. Default: the identity.
class AxisTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Rows [begin, end) whose one tap has weight 1 and is the one after that of the row before.
  struct Run {
    size_t begin = 0, end = 0;
  };
  // Taps of a row: their numbers [begin, end) for index() and weight(), by rising index.
  struct Taps {
    size_t begin, end;
  };

  AxisTable() = default;
  // tap(o) for every o < out; indices with a fraction rise with o. op begins the message when an extent is too large.
  template <class Function>
  AxisTable(const Options& options, size_t in, size_t out, bool linear, const char* op, Function&& tap)
      : AxisTable(options, in, out, linear, op) {
    for (size_t o = 0; o < out; ++o) {
      const Tap t = tap(o);
      index_[o] = t.index < 0 ? kNone : static_cast<uint32_t>(t.index);
      if (linear) fraction_[o] = t.fraction;
    }
    finish();
  }

  bool identity() const { return index_ == nullptr; }
  // Every row has one tap of weight 1 or none.
  bool moves(MapDirection d) const { return fraction_ == nullptr && (d == MapDirection::forward || most_ <= 1); }
  // Taps of a row, at most.
  size_t most(MapDirection d) const { return d == MapDirection::backward ? most_ : fraction_ ? 2 : 1; }

  Taps taps(MapDirection d, size_t row) const {
    if (d == MapDirection::forward) {
      return {2 * row, 2 * row + (index_[row] == kNone ? 0 : fraction_ && fraction_[row] != 0 ? 2 : 1)};
    }
    // With fractions, indices rise: the rows of index - 1, whose second tap it may be, come before those of index.
    return {first_[fraction_ && row > 0 ? row - 1 : row], first_[row + 1]};
  }
  size_t index(MapDirection d, size_t tap) const {
    if (d == MapDirection::forward) return index_[tap / 2] + tap % 2;
    return rows_ ? rows_[tap] : tap;
  }
  // May be 0 backward: such a tap is none, whatever stands there.
  float weight(MapDirection d, size_t row, size_t tap) const {
    if (!fraction_) return 1;
    if (d == MapDirection::forward) return tap % 2 ? fraction_[tap / 2] : 1 - fraction_[tap / 2];
    return index_[tap] == row ? 1 - fraction_[tap] : fraction_[tap];
  }

  // For a table that moves: the index of a row, or kNone.
  uint32_t source(MapDirection d, size_t row) const {
    if (const uint32_t* all = sources(d)) return all[row];
    const size_t at = first_[row];
    return at == first_[row + 1] ? kNone : rows_ ? rows_[at] : static_cast<uint32_t>(at);
  }
  // The same for all rows; NULL backward, where some have none.
  const uint32_t* sources(MapDirection d) const {
    if (d == MapDirection::forward) return index_;
    return most_ == 1 && first_[in_] == in_ ? rows_ : nullptr;
  }
  Run run(MapDirection d) const { return runs_[d == MapDirection::forward ? 0 : 1]; }

  // The arrays themselves, for kernels.
  const uint32_t* indices() const { return index_; }
  const float* fractions() const { return fraction_; }
  const uint32_t* firsts() const { return first_; }

 private:
  AxisTable(const Options& options, size_t in, size_t out, bool linear, const char* op);
  void finish();

  Buffer memory_;
  size_t in_ = 0, out_ = 0, most_ = 1;
  uint32_t* index_ = nullptr;  // the first tap of an output
  float* fraction_ = nullptr;  // the weight of the second; NULL: there is none
  uint32_t* first_ = nullptr;  // outputs whose first tap is i: [first_[i], first_[i + 1]) of rows_
  uint32_t* rows_ = nullptr;   // NULL: these are the outputs themselves
  Run runs_[2];                // forward, backward
};

// Tables by size axis.
struct AxisTables {
  AxisTable axis[kMaxRank];
  bool moves(MapDirection d) const {
    for (const AxisTable& t : axis) {
      if (!t.identity() && !t.moves(d)) return false;
    }
    return true;
  }
};

// to = M from, or to = M' from, bits moved; every table moves in that direction, and the types are equally wide whole
// bytes. fill: the bits of an element without a tap, in the leading bytes.
void move_elements(const AxisTables& tables, MapDirection direction, const BatchPair& pair,
                   const unsigned char (&fill)[8], size_t n_threads);

// The same through f32; added to what is there when pair.to.accumulate. Scratch is a few rows of `from` and of `to` for
// each thread, and a row of doubles where more than kSumRows rows are summed.
void sum_elements(const AxisTables& tables, MapDirection direction, const BatchPair& pair, size_t n_threads,
                  ScratchShelf& shelf);

// ---- kernels ----------------------------------------------------------------------------------------------------

inline constexpr size_t kFewRows = 4;
// y = the sum of weight x over `count` rows, 1 to kFewRows, in order; y may be one of them.
void row_weighted_sum(const float* const* x, const float* weights, size_t count, float* y, size_t n) noexcept;
void row_scale_add(const float* x, float weight, float* y, size_t n) noexcept;  // y += weight x
// y[o] = (1 - fraction) x[index] + fraction x[index + 1]; where fraction is 0, x[index] alone.
void row_interpolate(const float* x, const uint32_t* index, const float* fraction, float* y, size_t n) noexcept;
// first[o] = (1 - fraction) x[o], second[o] = fraction x[o], 0 where fraction is 0.
void row_split(const float* x, const float* fraction, float* first, float* second, size_t n) noexcept;
double row_sum(const float* x, size_t n) noexcept;  // f32 within kRowBlock values
inline constexpr size_t kRowBlock = 256;

}  // namespace bnns
