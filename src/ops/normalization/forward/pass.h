// One forward pass, as the files of this folder share it: the sums of a set, its coefficients, then x^ and y, while
// its values are in cache. Training and inference take the same algorithms, those of kNormalizationForward:
//   columns   batch normalization of short planes: kColumns neighbouring values of every sample
//   split     segment by segment, where sets are few and long
//   rows      layer normalization: a few rows at a time
//   bundles   neighbouring sets that lie side by side, together
//   sets      one after the other
#pragma once

#include <hwy/cache_control.h>

#include "src/ops/normalization/implementations.h"

namespace bnns {

class ForwardPass {
 public:
  ForwardPass(const NormalizationProblem& problem, NormalizationParameters& parameters,
              const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads);
  void run();

  void run_columns() const;
  void run_split() const;
  void run_rows() const;
  void run_bundles() const;
  void run_sets() const;

 private:
  // Runs body(sets) on all threads.
  template <class Body>
  void for_each_task(Body&& body) const {
    parallel_for(schedule_.tasks, schedule_.threads, [&](size_t task, size_t) {
      body(schedule_.sets(plan_, task));
      flush();
    });
  }
  void flush() const {
    if (stream_values_ || stream_y_) hwy::FlushStream();
  }
  size_t bytes() const { return pass_bytes(problem_, plan_.batch); }
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(lease_.as<char>() + offset);
  }

  ConstMatrix values(const Rectangle& r) const {
    return {values_ + r.row * plan_.row_length + r.column, plan_.row_length};
  }
  // Training copies what is neither f32 nor dense to where x^ will be, once. Dense f16 and bf16 are converted twice
  // instead: half of the bytes come from the cache then, and x^ is written once, past it.
  void stage(const Rectangle& r) const {
    for (size_t i = 0; i < r.rows; ++i) {
      const Rectangle row{r.row + i, r.column, 1, r.columns};
      x_.gather(row, values_ + row.row * plan_.row_length + row.column);
    }
  }
  ConstMatrix first_read(const Rectangle& r, float* buffer) const {
    if (x_twice_ || !values_) return x_.read(r, buffer);
    stage(r);
    return values(r);
  }
  ConstMatrix second_read(const Rectangle& r, float* buffer) const {
    return x_twice_ || !values_ ? x_.read(r, buffer) : values(r);
  }

  // How many rows behind r, as many as r's at most, are to be fetched while r is read.
  size_t next_rows(const Rectangle& r) const { return x_uniform_ ? plan_.next_rows(r) : 0; }

  void finish_block(const Rectangle& r, const Matrix& y) const {
    for (size_t i = 0; separate_activation_ && i < r.rows; ++i) {
      activation_forward(problem_.activation, y.data + i * y.stride, y.data + i * y.stride, r.columns);
    }
    y_.bring(r, y.data, false);
  }

  size_t layout();

  // sets.cc
  MomentSums segment_moments(size_t set, size_t segment) const;
  SetCoefficients finish_set(size_t set, const MomentSums& sums) const;
  NormalizeBlock block(const Rectangle& r, const ConstMatrix& x, const Matrix& y) const;
  void normalize(size_t set, const Rectangle& r, const SetCoefficients& set_coefficients, float* x_buffer,
                 float* y_buffer) const;
  void normalize_segment(size_t set, size_t segment, const SetCoefficients& set_coefficients) const;
  void run_set(size_t set) const;
  void update_moving() const;

  // bundles.cc, columns.cc
  void normalize_group(size_t set, const Rectangle& segment, const SetCoefficients& set_coefficients, float* x_buffer,
                       float* y_buffer) const;
  void run_bundle(Range sets, bool more) const;
  void run_channels(size_t first_channel, size_t channels) const;

  const NormalizationProblem& problem_;
  NormalizationParameters& parameters_;
  const NormalizationForward& call_;
  NormalizationPlan plan_;
  size_t n_threads_;
  float* values_;  // x^ of a training pass
  bool moving_mean_wanted_, moving_variance_wanted_, update_;
  Schedule schedule_;
  size_t bundle_, block_columns_;  // of the second pass: nothing goes through a buffer, so rows need not be cut
  size_t affine_at_ = 0, moving_at_ = 0, statistics_at_ = 0, moments_at_ = 0, coefficients_at_ = 0;
  ScratchShelf::Lease lease_;
  MatrixView x_, y_;
  Affine affine_;
  NormalizationShape shape_;
  bool joined_, x_direct_, x_twice_, x_uniform_, gather_moments_, separate_activation_, stream_values_, stream_y_;
};

}  // namespace bnns
