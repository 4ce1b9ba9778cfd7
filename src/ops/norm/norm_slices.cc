// Walks a tensor slice by slice, whatever its layout, strides and type.
//
// Two walks, chosen by the fastest axis of x in memory:
//   rows      it is reduced: a slice is contiguous (or nearly), and is summed by itself
//   columns   it is kept: neighbours in memory belong to neighbouring slices, so a block of slices is summed together,
//             one double per slice, and every cache line is read once

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/ops/norm/norm.h"

namespace bnns {
namespace {

constexpr size_t kChunk = 16 * 1024;  // elements of one task
constexpr size_t kMaxParts = 256;     // partial sums of one slice

// The axes of `axes` alone, fastest first in the memory order of `order`. No axes: one element.
Tensor pick(const Tensor& t, const Tensor& order, uint32_t axes) {
  Tensor picked = t;
  picked.rank = 0;
  picked.count = 1;
  for (size_t j = 0; j < order.rank; ++j) {
    const size_t k = order.axis[j];
    if (!(axes >> k & 1)) continue;
    picked.axis[picked.rank] = static_cast<uint8_t>(picked.rank);
    picked.size[picked.rank] = t.size[k];
    picked.stride[picked.rank++] = t.stride[k];
    picked.count *= t.size[k];
  }
  if (picked.rank == 0) {
    picked.rank = 1;
    picked.axis[0] = 0;
    picked.size[0] = picked.stride[0] = 1;
  }
  return picked;
}

bool walks_rows(const NormProblem& p) {
  for (size_t j = 0; j < p.x.rank; ++j) {
    if (p.x.size[p.x.axis[j]] > 1) return p.axes >> p.x.axis[j] & 1;
  }
  return true;
}

double square_sum_range(const Elements& x, const void* base, size_t begin, size_t end) noexcept {
  if (x.direct()) return square_sum(static_cast<const float*>(base) + begin, end - begin);
  float buffer[kBlock];
  double sum = 0;
  for (size_t at = begin; at < end; at += kBlock) {
    const size_t m = std::min(kBlock, end - at);
    sum += square_sum(x.read(base, at, m, buffer), m);
  }
  return sum;
}

void squares_by_rows(const NormProblem& p, const SliceLens& x, double* squares) {
  if (p.length >= 4 * kChunk) {  // long slices: one after the other, each split over the threads
    for (size_t s = 0; s < p.slices; ++s) {
      squares[s] = sum_of_squares(x.slice, element_at(p.x.data, x.type, x.across.offset(s)), 0);
    }
    return;
  }
  const size_t group = std::max<size_t>(1, kChunk / p.length), tasks = div_up(p.slices, group);
  parallel_for(tasks, threads_for(0, tasks, p.x.count), [&](size_t task, size_t) {
    for (size_t s = task * group; s < std::min(p.slices, (task + 1) * group); ++s) {
      squares[s] = square_sum_range(x.slice, element_at(p.x.data, x.type, x.across.offset(s)), 0, p.length);
    }
  });
}

void squares_by_columns(const NormProblem& p, const SliceLens& x, double* squares) {
  constexpr size_t kColumns = 128;
  const size_t blocks = div_up(p.slices, kColumns);
  // Few columns and many rows: the rows are split too, into parts that depend on the shape alone.
  const size_t parts = blocks >= 16 ? 1 : std::clamp<size_t>(p.x.count / (4 * kChunk), 1, 16);
  const size_t rows = div_up(p.length, parts);
  Buffer partial_buffer(Options{}, parts > 1 ? parts * p.slices * sizeof(double) : 0, "partial sums");
  double* partial = parts > 1 ? partial_buffer.as<double>() : squares;
  parallel_for(blocks * parts, threads_for(0, blocks * parts, p.x.count), [&](size_t task, size_t) {
    const size_t block = task % blocks, part = task / blocks;
    const size_t first = block * kColumns, m = std::min(kColumns, p.slices - first);
    double* sums = partial + part * p.slices + first;
    std::fill(sums, sums + m, 0.0);
    float buffer[kColumns];
    for (size_t i = part * rows; i < std::min(p.length, (part + 1) * rows); ++i) {
      const void* row = element_at(p.x.data, x.type, x.slice.offset(i));
      square_add(x.across.read(row, first, m, buffer), sums, m);
    }
  });
  if (parts == 1) return;
  std::copy(partial, partial + p.slices, squares);
  for (size_t part = 1; part < parts; ++part) {
    for (size_t s = 0; s < p.slices; ++s) squares[s] += partial[part * p.slices + s];
  }
}

// Brings a block of results to y, or adds it.
struct Sink {
  const Elements& lens;
  bool accumulate;
  float* target(void* base, size_t first, float* buffer) const {
    return accumulate ? buffer : lens.target(base, first, buffer);
  }
  void put(void* base, size_t first, size_t n, const float* values) const {
    accumulate ? lens.accumulate(base, first, n, values) : lens.write(base, first, n, values);
  }
};

void scale_rows(const NormProblem& p, const SliceLens& x, const void* x_data, const SliceLens& y,
                const Tensor& y_tensor, const double* factors) {
  const Sink sink{y.slice, y_tensor.accumulate};
  const size_t tasks = div_up(p.x.count, kChunk);
  parallel_for(tasks, threads_for(0, tasks, p.x.count), [&](size_t task, size_t) {
    float x_buffer[kBlock], y_buffer[kBlock];
    const size_t end = std::min(p.x.count, (task + 1) * kChunk);
    for (size_t at = task * kChunk; at < end;) {  // slices lie end to end: element i of slice s is s * length + i
      const size_t s = at / p.length, stop = std::min(end, (s + 1) * p.length);
      const void* from = element_at(x_data, x.type, x.across.offset(s));
      void* to = element_at(y_tensor.data, y.type, y.across.offset(s));
      while (at < stop) {
        const size_t i = at - s * p.length, m = std::min(kBlock, stop - at);
        float* out = sink.target(to, i, y_buffer);
        scale_all(x.slice.read(from, i, m, x_buffer), factors[s], out, m);
        sink.put(to, i, m, out);
        at += m;
      }
    }
  });
}

void scale_columns(const NormProblem& p, const SliceLens& x, const void* x_data, const SliceLens& y,
                   const Tensor& y_tensor, const double* factors) {
  const Sink sink{y.across, y_tensor.accumulate};
  const size_t columns = std::min(p.slices, kChunk), blocks = div_up(p.slices, columns);
  const size_t rows = std::max<size_t>(1, kChunk / columns), groups = div_up(p.length, rows);
  parallel_for(blocks * groups, threads_for(0, blocks * groups, p.x.count), [&](size_t task, size_t) {
    float x_buffer[kBlock], y_buffer[kBlock];
    const size_t first = task % blocks * columns, last = std::min(p.slices, first + columns), group = task / blocks;
    for (size_t i = group * rows; i < std::min(p.length, (group + 1) * rows); ++i) {
      const void* from = element_at(x_data, x.type, x.slice.offset(i));
      void* to = element_at(y_tensor.data, y.type, y.slice.offset(i));
      for (size_t s = first; s < last; s += kBlock) {
        const size_t m = std::min(kBlock, last - s);
        float* out = sink.target(to, s, y_buffer);
        scale_each(x.across.read(from, s, m, x_buffer), factors + s, out, m);
        sink.put(to, s, m, out);
      }
    }
  });
}

}  // namespace

SliceLens::SliceLens(const Tensor& t, const Tensor& order, uint32_t axes)
    : slice(pick(t, order, axes)), across(pick(t, order, ~axes)), type(t.type) {}

double sum_of_squares(const Elements& x, const void* base, size_t n_threads) noexcept {
  const size_t n = x.count();
  const size_t part = std::max(kChunk, round_up(div_up(n, kMaxParts), 1024)), parts = div_up(n, part);
  if (parts <= 1) return square_sum_range(x, base, 0, n);
  double partial[kMaxParts];
  parallel_for(parts, threads_for(n_threads, parts, n), [&](size_t task, size_t) {
    partial[task] = square_sum_range(x, base, task * part, std::min(n, (task + 1) * part));
  });
  double sum = 0;
  for (size_t i = 0; i < parts; ++i) sum += partial[i];  // in index order, whoever computed them
  return sum;
}

double sum_of_squares(const float* x, size_t n, size_t n_threads) noexcept {
  return sum_of_squares(Elements(vector_tensor(n, nullptr)), x, n_threads);
}

void slice_squares(const NormProblem& problem, double* squares) {
  const SliceLens x(problem.x, problem.x, problem.axes);
  walks_rows(problem) ? squares_by_rows(problem, x, squares) : squares_by_columns(problem, x, squares);
}

void slice_scale(const NormProblem& problem, const void* x_data, const Tensor& y, const double* factors) {
  const SliceLens x(problem.x, problem.x, problem.axes), to(y, problem.x, problem.axes);
  (walks_rows(problem) ? scale_rows : scale_columns)(problem, x, x_data, to, y, factors);
}

}  // namespace bnns
