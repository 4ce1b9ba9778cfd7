// The kernels of normalization, forward and backward; see normalization.h for the formulas.
//
// All but the moments work on f32 blocks of `rows` rows of n values; row r of an operand begins r * stride after its
// pointer. Body and tail of a row run the same vector code: a value's place does not change its bits.
#pragma once

#include <cstddef>

namespace bnns {

// Loops that read one row and write another fetch a page ahead of what they read: hardware stops at the end of a page,
// and non-temporal stores leave the processor no time to look ahead. To L2: two cores of a Zen 4 take the
// gradient of 16384 rows of 768 1.24 times as fast, and no faster with fetches to L1.
inline constexpr size_t kFetchAhead = 4096 / sizeof(float);

// ---- moments: forward/moments_simd.cc -------------------------------------------------------------------------------

// What is left of the values of a set: their number, and sums about a shift near their mean. Sums about different
// shifts merge exactly enough: all in double, so that a mean of 1e7 with a deviation of 1e-2 keeps its digits.
struct MomentSums {
  double count = 0, shift = 0, sum = 0, squares = 0;  // sum of (x - shift), sum of (x - shift)^2

  // Merging in another order gives other bits: merge in index order.
  void merge(const MomentSums& other) noexcept {
    if (count == 0) {
      *this = other;
      return;
    }
    const double distance = other.shift - shift;
    squares += other.squares + distance * (2 * other.sum + other.count * distance);
    sum += other.sum + other.count * distance;
    count += other.count;
  }
  double mean() const noexcept { return shift + sum / count; }
  double variance() const noexcept;  // of the population; not below 0
};

// The moments of a block of `rows` rows of n values, `stride` apart. f32 sums inside: blocks of at most kMomentBlock
// values keep the error of the variance below 40 eps; merge the blocks of a set. The caller reads next_rows more rows
// (at most `rows`) next, at the same stride: they are fetched meanwhile, since hardware stops at the end of a page.
inline constexpr size_t kMomentBlock = 1024;
MomentSums moments_of_block(const float* x, size_t rows, size_t stride, size_t n, size_t next_rows = 0) noexcept;
// Merges into sums[c] the moments of columns [c plane, (c + 1) plane), in blocks of at most kMomentBlock columns.
void merge_channel_moments(const float* x, size_t rows, size_t stride, size_t next_rows, size_t plane, size_t channels,
                           MomentSums* sums) noexcept;

// Merges the moments of each column of a block into sums[column]: at most kColumnRows rows, at most kColumns columns.
// For values whose channels are neighbours (a fully connected first stage).
inline constexpr size_t kColumnRows = 64, kColumns = 64;
void merge_column_moments(const float* x, size_t rows, size_t stride, size_t columns, MomentSums* sums) noexcept;

// ---- x^ and y: forward/channels_simd.cc, forward/rows_simd.cc -------------------------------------------------------

// x^ = ((x - mean_high) - mean_low) rstd: the mean in two floats, since one would cost digits where mean >> deviation.
struct SetCoefficients {
  float mean_high = 0, mean_low = 0, rstd = 1;
};
// rstd is 0 where variance + epsilon is 0 (K20).
SetCoefficients make_set_coefficients(double mean, double variance, float epsilon) noexcept;
SetCoefficients make_set_coefficients(const MomentSums& sums, float epsilon) noexcept;

struct NormalizeBlock {
  const float* x;
  size_t x_stride;
  float* values;  // receives x^; NULL: not wanted. May be x.
  size_t values_stride;
  float* y;  // may be x
  size_t y_stride;
  size_t rows, n;
  float floor;                   // y = max(floor, ...): 0 is ReLU, -infinity nothing
  bool stream_values, stream_y;  // bypass the cache where their alignment allows
  size_t ahead = 0;              // what the caller reads next is so many values behind x: it is fetched; 0: nothing
  ptrdiff_t ahead_rows = 0;      // and so many rows
};
// Columns [c plane, (c + 1) plane) have the numbers of channel c; n is a multiple of plane, which has at least a
// vector's lanes unless it is n.
struct ChannelCoefficients {
  SetCoefficients set;
  float gamma, beta;
};
void normalize_channel_block(const NormalizeBlock& block, size_t plane, const ChannelCoefficients* channels) noexcept;
// gamma and beta have n values.
void normalize_row_block(const NormalizeBlock& block, const SetCoefficients& set, const float* gamma,
                         const float* beta) noexcept;
// Every row is a set: its moments first. rstd receives 1 / sigma of each; NULL: not wanted. Bit-identical to
// moments_of_block, merged in order, make_set_coefficients and normalize_row_block.
void normalize_each_row(const NormalizeBlock& block, float epsilon, const float* gamma, const float* beta,
                        float* rstd) noexcept;
// Column j has its own numbers; n <= kColumns.
struct ColumnCoefficients {
  float mean_high[kColumns], mean_low[kColumns], rstd[kColumns], gamma[kColumns], beta[kColumns];
};
void normalize_column_block(const NormalizeBlock& block, const ColumnCoefficients& columns) noexcept;

// ---- sums of g: backward/sums_simd.cc -------------------------------------------------------------------------------

struct GradientBlock {
  const float* dy;
  size_t dy_stride;
  const float* y;  // not NULL: g = dy (y > 0), the gradient of ReLU
  size_t y_stride;
  const float* values;
  size_t values_stride;
  size_t rows, n;
  size_t ahead = 0;  // of dx: as in NormalizeBlock
  ptrdiff_t ahead_rows = 0;
  size_t next_rows = 0;  // of sums: as in moments_of_block
  // By channels, y NULL. Not NULL: g = dy (gamma[c] x^ + beta[c] > 0) in channel c of the block, what y would tell.
  const float* gamma = nullptr;
  const float* beta = nullptr;
};
struct GradientSums {
  double g = 0, gx = 0;  // sum of g, sum of g x^
};
// f32 sums inside a block (at most kMomentBlock values), added to *sums. With a shift (not 0: no ReLU) the terms are
// (g - shift) x^: the same sum over a whole set, whose x^ add up to 0, but a large mean of g does not multiply the
// roundings of x^.
void add_gradient_sums(const GradientBlock& block, float shift, GradientSums* sums) noexcept;
// The same for each channel of `plane` columns, added to sums[channel] in blocks of at most kMomentBlock columns.
// shifts has one for each channel, or is NULL.
void add_channel_gradient_sums(const GradientBlock& block, size_t plane, const float* shifts,
                               GradientSums* sums) noexcept;
// The same with gamma[j] g for g.
void add_scaled_gradient_sums(const GradientBlock& block, const float* gamma, GradientSums* sums) noexcept;
// One row: the same, gamma may be NULL (1), and g and g x^ themselves are added to sums over rows, n values each.
void add_row_gradient_sums(const GradientBlock& block, const float* gamma, float* sum_g, float* sum_gx,
                           GradientSums* sums) noexcept;
// The sums of each column; at most kColumnRows rows and kGradientColumns columns.
inline constexpr size_t kGradientColumns = 256;
void add_column_gradient_sums(const GradientBlock& block, GradientSums* sums) noexcept;

// ---- dx: backward/channels_simd.cc, backward/rows_simd.cc -----------------------------------------------------------

// dx = scale g + slope x^ + offset.
struct GradientCoefficients {
  float scale, slope, offset;
};
struct GradientTarget {
  float* dx;
  size_t dx_stride;
  bool add, stream;
};
// Columns have their channel's numbers, as in normalize_channel_block.
void gradient_channel_block(const GradientBlock& block, size_t plane, const GradientCoefficients* channels,
                            const GradientTarget& to) noexcept;
// scale gamma[j] instead of scale.
void gradient_row_block(const GradientBlock& block, const GradientCoefficients& set, const float* gamma,
                        const GradientTarget& to) noexcept;
// scale lacks gamma. h, hx: the sums of gamma g and gamma g x^ over `count` values.
inline GradientCoefficients make_gradient_coefficients(float rstd, size_t count, double h, double hx) noexcept {
  const double per_value = -static_cast<double>(rstd) / static_cast<double>(count);
  return {rstd, static_cast<float>(per_value * hx), static_cast<float>(per_value * h)};
}
// Every row is a set and y is NULL: dx, and g and g x^ added to sums over rows. Bit-identical to add_row_gradient_sums
// and gradient_row_block. rstd has a value for each row.
void gradient_each_row(const GradientBlock& block, const float* gamma, const float* rstd, float* sum_g, float* sum_gx,
                       const GradientTarget& to) noexcept;
struct ColumnGradientCoefficients {
  float scale[kColumns], slope[kColumns], offset[kColumns];
};
void gradient_column_block(const GradientBlock& block, const ColumnGradientCoefficients& columns,
                           const GradientTarget& to) noexcept;

}  // namespace bnns
