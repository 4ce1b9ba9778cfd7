// Sums over many rows: what gradients of parameters are made of.
//
// A plain f32 sum loses a digit for every tenfold of the terms: 1 M times 0.1 comes out 1 % short. Here eight rows at a
// time are added by pairs in f32, ((0 1)(2 3))((4 5)(6 7)), and the eight go to a sum in double, so the error stays
// below 3 roundings of f32 however many rows there are, and the conversions cost two additions in ten. The order
// depends on the number of rows alone: the same bits on every instruction set.
#pragma once

#include <cstddef>

namespace bnns {

inline constexpr size_t kSumRows = 8;  // that are added in f32

// sums[c] += rows[c] + rows[stride + c] + ... over `count` rows.
void add_column_sums(const float* rows, size_t count, size_t stride, size_t columns, double* sums) noexcept;

// to[c] = or += the same sum, rounded once.
void column_sums(const float* rows, size_t count, size_t stride, size_t columns, bool accumulate, float* to) noexcept;

// For rows that come one by one: add_row kSumRows times, or as many as there are, then move_sums.
void add_row(const float* x, size_t n, float* run) noexcept;  // run[i] += x[i]
void move_sums(float* run, size_t n, double* sums) noexcept;  // sums[i] += run[i], run[i] = 0

// to[i] = sums[i], rounded.
void round_sums(const double* sums, size_t n, float* to) noexcept;

}  // namespace bnns
