// How a batch splits into sets, tasks and blocks, and the lens through which blocks are read and written.
//
// In memory order the batch is a matrix: row r is part of sample r / rows_per_sample. A set is a rectangle of it.
//   batch      rows are samples,              a set is columns [c HW, (c + 1) HW) of all rows
//   instance   rows are channels of samples,  a set is a row
//   group      rows are channels of samples,  a set is C / G rows
//   layer      rows are what shares a mean,   a set is a row
// Groups with planes below kShortPlane are treated as rows too, with gamma and beta repeated for each value of a plane.
// Batch normalization with planes below kShortPlane works on neighbouring channels at once instead (by_columns).
//
// A set is cut into segments, and these into blocks of at most kMomentBlock values, by the shape alone: sums are made
// per block and merged in index order, so threads and layouts do not change a bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/normalization/common/kernels.h"
#include "src/ops/normalization/normalization.h"
#include "src/tensor/elements.h"

namespace bnns {

inline constexpr size_t kShortPlane = 16;            // an AVX-512 vector: shorter rows waste lanes
inline constexpr size_t kSegment = size_t{1} << 17;  // 512 KiB: half of a typical L2
inline constexpr size_t kBundleValues = 96 * 1024;   // small sets are bundled to this size: 384 KiB
inline constexpr size_t kMostSets = 64;              // per bundle

// Tensors from these sizes on are written with non-temporal stores, which saves reading them first. Measured on two
// cores of a Zen 4 with 32 MiB of L3, data not in cache: x^ has no reader before backward; dx stored so makes backward
// of 1.5 to 6 MB 1.2 to 1.35 times as fast, while a training step of a residual network stays as it is. The reader of y
// comes at once. In training, batch sets (32x256x14x14) gain 1.2, and a step whose layers have 4 MiB stays as it is,
// one with 2 MiB loses 3 %; rows of a layer of 6 and 12 MB with a reader of y behind take 0.90 and 0.87 of the
// time. 1.5 MB would too where memory is cold, but 1.4 of it where they stay in cache from call to call. Other sets
// that are one run: training keeps y in cache longer (group 4x320x64x64: 1.67 -> 1.36 ms), inference does not (0.85 ->
// 0.97).
inline constexpr size_t kStreamStateBytes = size_t{1} << 20;
inline constexpr size_t kStreamOutputBytes = size_t{8} << 20;  // inference
inline constexpr size_t kStreamTrainingBytes = size_t{3} << 20;
inline constexpr size_t kStreamRunBytes = size_t{32} << 20;
inline constexpr size_t kStreamGradientBytes = size_t{1} << 20;

// What a pass reads and writes, as a measure of its work.
inline size_t pass_bytes(const NormalizationProblem& problem, size_t batch) {
  return 4 * batch * problem.count() * sizeof(float);
}

struct Rectangle {
  size_t row, column, rows, columns;
};

struct NormalizationPlan {
  size_t batch, rows_per_sample, row_length;
  size_t sets, set_rows, set_columns;
  bool by_columns;   // sets are channels of `plane` columns, taken kColumns at a time
  bool per_element;  // gamma and beta run along the row (layer; short groups) instead of one pair per channel
  bool batch_sets;   // batch: a set spans all samples
  size_t channels, plane, groups;
  size_t affine_length;  // how many values gamma and beta have as the kernels read them
  size_t block_rows;     // rows of a block; more than 1 only for short rows of batch sets and groups
  size_t pieces, segment_rows, segment_columns, segments;  // of a set

  // by_channel: sums are wanted for each channel of a group, as in backward, not of the group alone.
  NormalizationPlan(const NormalizationProblem& p, size_t batch, bool by_channel = false);

  size_t rows() const { return batch * rows_per_sample; }
  size_t set_count() const { return set_rows * set_columns; }
  Rectangle segment(size_t set, size_t index) const {
    const size_t row = index / pieces * segment_rows, column = index % pieces * segment_columns;
    return {(batch_sets ? 0 : set * set_rows) + row, (batch_sets ? set * set_columns : 0) + column,
            std::min(segment_rows, set_rows - row), std::min(segment_columns, set_columns - column)};
  }
  // Neighbouring sets of one row per sample lie side by side: [c, c + columns) of rows of the sets from `set` on,
  // counted from the first one's beginning.
  bool grouped() const { return !batch_sets && set_rows > 1; }
  bool side_by_side() const {
    return segments == 1 && !grouped() && set_columns == plane && plane >= kShortPlane && !per_element;
  }
  Rectangle beside(size_t set, size_t row, size_t c, size_t columns) const {
    const size_t rows = std::min(block_rows, set_rows - row);
    return batch_sets ? Rectangle{row, set * set_columns + c, rows, columns} : Rectangle{set, c, rows, columns};
  }
  // What is read after a block of a batch set: hardware fetches ahead along a row, not from sample to sample.
  size_t next_rows(const Rectangle& r) const { return batch_sets ? std::min(r.rows, rows() - r.row - r.rows) : 0; }
  // From a block to the rows of the next set that its second pass fetches: the first ones first, which are read first,
  // while blocks of its own are taken from the end.
  ptrdiff_t ahead_rows(const Rectangle& r) const {
    return batch_sets ? static_cast<ptrdiff_t>(set_rows - r.rows) - 2 * static_cast<ptrdiff_t>(r.row) : 0;
  }
  // Where gamma and beta of a row begin (per_element), and the channel of a row (otherwise).
  size_t affine_offset(size_t set) const { return affine_length == set_columns ? 0 : set % groups * set_columns; }
  size_t channel(size_t set, size_t row) const { return batch_sets ? set : row % channels; }
};

// Runs body(block) over the blocks of a segment, in order. Sums need blocks of at most kMomentBlock columns.
template <class Body>
void for_each_block(const NormalizationPlan& plan, const Rectangle& segment, size_t block_columns, Body&& body) {
  for (size_t r = 0; r < segment.rows; r += plan.block_rows) {
    const size_t rows = std::min(plan.block_rows, segment.rows - r);
    for (size_t c = 0; c < segment.columns; c += block_columns) {
      body(Rectangle{segment.row + r, segment.column + c, rows, std::min(block_columns, segment.columns - c)});
    }
  }
}

// The same with the last rows first, in passes whose order is free: they are what a first pass has left in cache where
// a set is larger than it.
template <class Body>
void for_each_block_from_end(const NormalizationPlan& plan, const Rectangle& segment, size_t block_columns,
                             Body&& body) {
  for (size_t k = div_up(segment.rows, plan.block_rows); k-- > 0;) {
    const size_t r = k * plan.block_rows, rows = std::min(plan.block_rows, segment.rows - r);
    for (size_t c = 0; c < segment.columns; c += block_columns) {
      body(Rectangle{segment.row + r, segment.column + c, rows, std::min(block_columns, segment.columns - c)});
    }
  }
}

// A matrix of f32: row r at data + r * stride.
struct ConstMatrix {
  const float* data;
  size_t stride;
};
struct Matrix {
  float* data;
  size_t stride;
};

// One operand as that matrix, whatever its layout, strides and type. Rectangles of f32 whose rows are contiguous are
// used in place; others pass through a buffer of rows * columns values.
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(const NormalizationPlan& plan, const Tensor& sample, const void* base, size_t stride);

  // Whether neighbouring sets of a plan's side_by_side() can be used in place as one.
  bool joined() const { return joined_; }
  bool direct(const Rectangle& r) const { return direct_ && (r.rows == 1 || uniform_); }
  ConstMatrix read(const Rectangle& r, float* buffer) const {
    if (direct(r)) return {address(r), stride_};
    gather(r, buffer);
    return {buffer, r.columns};
  }
  // Where a kernel may put the rectangle; bring() then takes it to the operand unless it is there.
  Matrix target(const Rectangle& r, float* buffer) const {
    return direct(r) ? Matrix{address(r), stride_} : Matrix{buffer, r.columns};
  }
  void bring(const Rectangle& r, const float* buffer, bool add) const;
  void gather(const Rectangle& r, float* buffer) const;

 private:
  float* address(const Rectangle& r) const {
    size_t sample = r.row, index = r.column;
    if (rows_per_sample_ != 1) {
      sample = r.row / rows_per_sample_;
      index += r.row % rows_per_sample_ * row_length_;
    }
    return static_cast<float*>(base_) + sample * stride_of_sample_ + (dense_ ? index : elements_.offset(index));
  }

  Elements elements_;
  void* base_ = nullptr;
  BNNSDataType type_ = BNNSDataTypeFloat32;
  size_t stride_of_sample_ = 0, stride_ = 0, rows_per_sample_ = 1, row_length_ = 0;
  bool dense_ = false, direct_ = false, uniform_ = false, joined_ = false;
};

// gamma and beta as the kernels read them: affine_length values each; both NULL when per_element and both are absent.
// Dense f32 is read where it is.
struct Affine {
  const float* gamma = nullptr;
  const float* beta = nullptr;

  // `buffer` has buffer_floats() floats.
  Affine(const NormalizationPlan& plan, const NormalizationParameters& parameters, float* buffer);
  static size_t buffer_floats(const NormalizationPlan& plan, const NormalizationParameters& parameters);
};

// The batch as tasks of whole sets, or, when there are fewer sets than would keep the threads busy, as segments: then
// the sums of all segments are made before any of them is normalised.
//
// A task runs through its sets in bundles that stay in L2 between the two passes. Sets of a batch lie side by side in
// every sample: a bundle is read in runs of its whole width, and the second pass fetches the next bundle's while it
// writes.
struct Schedule {
  size_t threads, bundle, sets_per_task, tasks;  // bundle <= kMostSets
  bool split;
  // operands: how many arrays the second pass of a set reads.
  Schedule(const NormalizationPlan& plan, size_t n_threads, size_t bytes, size_t operands);
  // Whether the thread that has finished the sets before `set` most likely takes it next: in its task, or in the next
  // one where parallel_for gives a thread neighbouring tasks.
  bool goes_on(const NormalizationPlan& plan, size_t set) const {
    if (split || set >= plan.sets) return false;
    const size_t task = set / sets_per_task;
    return set % sets_per_task != 0 || share_with(tasks, threads, task).begin != task;
  }
  Range sets(const NormalizationPlan& plan, size_t task) const {
    return {task * sets_per_task, std::min(plan.sets, (task + 1) * sets_per_task)};
  }
};

// Batch normalization of short planes: runs body(first channel, channels) on as many channels as kColumns hold.
// Runs of single values begin where a cache line of `lead` does, after a shorter first one, and a thread gets many
// neighbours, not every other one: threads that share the lines between their columns in every row wait for each other.
template <class Body>
void for_each_column_run(const NormalizationPlan& plan, const float* lead, size_t n_threads, size_t bytes,
                         Body&& body) {
  const size_t width = kColumns / plan.plane;
  const size_t early = plan.plane == 1 ? reinterpret_cast<uintptr_t>(lead) % kAlignment / sizeof(float) : 0;
  const size_t runs = div_up(plan.channels + early, width);
  const size_t threads = threads_for(n_threads, runs, bytes), per_task = div_up(runs, 2 * threads);
  parallel_for(div_up(runs, per_task), threads, [&](size_t task, size_t) {
    for (size_t run = task * per_task; run < std::min(runs, (task + 1) * per_task); ++run) {
      const size_t first = run ? run * width - early : 0;
      body(first, std::min(plan.channels, (run + 1) * width - early) - first);
    }
  });
}

// ReLU and nothing are a floor of the kernels; every other function is a pass of its own over the block.
inline bool is_relu(const Activation& a) {
  return a.function == BNNSActivationFunctionRectifiedLinear;
}
inline float activation_floor(const Activation& a) {
  return is_relu(a) ? 0.0f : -std::numeric_limits<float>::infinity();
}
inline bool needs_activation_pass(const Activation& a) {
  return !a.is_identity() && !is_relu(a);
}

// Parts of one scratch block, each aligned.
class ScratchLayout {
 public:
  template <class T>
  size_t add(size_t n) {
    const size_t at = bytes_;
    bytes_ = checked_add(bytes_, round_up(checked_mul(n, sizeof(T), "scratch"), kAlignment), "scratch");
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace bnns
