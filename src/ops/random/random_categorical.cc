// Samples of categorical distributions.
//
// probabilities has logical shape (d1, ..., dr-1, K): a distribution of K classes for each row. desc has the same
// leading extents and a last axis of S samples per row, or no last axis (S = 1). Sample s of a row is
//   the first class k with  c_k > word 2^-32 c_K-1,   c_k = p_0 + ... + p_k in double, in index order
// with p the given values, or exp(x - max x) of logarithms. Each word belongs to its element of desc in memory order.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/half.h"
#include "src/core/parallel.h"
#include "src/ops/random/random.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "random";

struct CategoricalProblem {
  Tensor y, p;
  bool logarithms = false;
  size_t rows = 1, samples = 1, classes = 1;
  size_t class_stride = 0;                            // of p
  size_t sample_stride = 0, sample_index_stride = 0;  // of y; index strides count elements in memory order
  size_t lead = 0;                                    // leading axes, last one fastest in the row number
  size_t extent[kMaxRank] = {}, p_stride[kMaxRank] = {}, y_stride[kMaxRank] = {}, y_index_stride[kMaxRank] = {};
};

// Where a row of the problem lies.
struct Row {
  size_t p_offset = 0, y_offset = 0, y_index = 0;
};

Row find_row(const CategoricalProblem& problem, size_t row) {
  Row at;
  for (size_t i = problem.lead; i-- > 0; row /= problem.extent[i]) {
    const size_t x = row % problem.extent[i];
    at.p_offset += x * problem.p_stride[i];
    at.y_offset += x * problem.y_stride[i];
    at.y_index += x * problem.y_index_stride[i];
  }
  return at;
}

// Logical axis i as a size axis: a row-major matrix is (row, column) with size = {columns, rows}.
size_t logical_axis(const Tensor& t, size_t i) {
  return t.layout == BNNSDataLayoutRowMajorMatrix ? t.rank - 1 - i : i;
}

// Size axis -> elements between neighbours when all are counted in memory order.
size_t index_stride(const Tensor& t, size_t axis) {
  size_t stride = 1;
  for (size_t j = 0; t.axis[j] != axis; ++j) stride *= t.size[t.axis[j]];
  return stride;
}

void check_layout(const Tensor& t, const char* field) {
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHrWr || t.layout == BNNSDataLayoutConvolutionWeightsIOHrWr ||
      t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is %s; rotated and packed weights hold no classes", kOp, field,
                     enum_text(t.layout).text);
  }
  if (!is_float(t.type)) {
    fail_invalid("%s: %s.data_type is %s, expected f32, f16 or bf16", kOp, field, type_name(t.type));
  }
}

CategoricalProblem make_problem(const BNNSNDArrayDescriptor* desc, const BNNSNDArrayDescriptor* probabilities,
                                bool log_probabilities) {
  CategoricalProblem problem;
  problem.logarithms = log_probabilities;
  const Tensor& y = problem.y = resolve_fill(desc);
  const Tensor& p = problem.p = resolve_with_data(probabilities, kOp, "probabilities");
  check_layout(y, "desc");
  check_layout(p, "probabilities");
  if (y.rank != p.rank && y.rank + 1 != p.rank) {
    fail_invalid("%s: desc has rank %zu, expected %zu or %zu: probabilities have rank %zu", kOp, y.rank, p.rank - 1,
                 p.rank, p.rank);
  }
  problem.lead = p.rank - 1;
  for (size_t i = 0; i < problem.lead; ++i) {
    const size_t p_axis = logical_axis(p, i), y_axis = logical_axis(y, i);
    if (y.size[y_axis] != p.size[p_axis]) {
      fail_invalid("%s: desc.size[%zu] is %zu, expected %zu = probabilities.size[%zu]", kOp, y_axis, y.size[y_axis],
                   p.size[p_axis], p_axis);
    }
    problem.rows *= p.size[p_axis];
    problem.extent[i] = p.size[p_axis];
    problem.p_stride[i] = p.stride[p_axis];
    problem.y_stride[i] = y.stride[y_axis];
    problem.y_index_stride[i] = index_stride(y, y_axis);
  }
  const size_t class_axis = logical_axis(p, p.rank - 1);
  problem.classes = p.size[class_axis];
  problem.class_stride = p.stride[class_axis];
  if (y.rank == p.rank) {
    const size_t sample_axis = logical_axis(y, y.rank - 1);
    problem.samples = y.size[sample_axis];
    problem.sample_stride = y.stride[sample_axis];
    problem.sample_index_stride = index_stride(y, sample_axis);
  }
  // Above these the type skips integers: 24, 11 and 8 bits of significand.
  const size_t exact = y.is(BNNSDataTypeFloat32) ? size_t{1} << 24 : y.is(BNNSDataTypeFloat16) ? 2048 : 256;
  if (problem.classes - 1 > exact) {
    fail_invalid("%s: probabilities.size[%zu] is %zu, but %s holds class indices up to %zu exactly", kOp, class_axis,
                 problem.classes, type_name(y.type), exact);
  }
  check_disjoint(y.data, y.span_bytes(), "desc", p.data, p.span_bytes(), "probabilities", kOp);
  return problem;
}

// f(k, value) for every class of a row, in order.
template <class F>
void for_each_class(const CategoricalProblem& problem, const Row& row, F&& f) {
  const size_t stride = problem.class_stride;
  if (problem.p.is(BNNSDataTypeFloat32)) {
    const float* values = static_cast<const float*>(problem.p.data) + row.p_offset;
    for (size_t k = 0; k < problem.classes; ++k) f(k, values[k * stride]);
    return;
  }
  const bool half = problem.p.is(BNNSDataTypeFloat16);
  const uint16_t* values = static_cast<const uint16_t*>(problem.p.data) + row.p_offset;
  for (size_t k = 0; k < problem.classes; ++k) {
    f(k, half ? half_to_float(values[k * stride]) : bfloat16_to_float(values[k * stride]));
  }
}

// ---- what a row must be --------------------------------------------------------------------------------------------

// Probabilities: finite, none negative, not all zero. Logarithms: no NaN, no +inf, not all -inf.
bool is_usable(float value, bool logarithm) {
  return logarithm ? value < std::numeric_limits<float>::infinity() : value >= 0 && !std::isinf(value);
}
bool is_possible(float value, bool logarithm) {
  return logarithm ? value > -std::numeric_limits<float>::infinity() : value > 0;
}

bool row_is_usable(const CategoricalProblem& problem, size_t row) {
  bool usable = true, possible = false;
  for_each_class(problem, find_row(problem, row), [&](size_t, float value) {
    usable &= is_usable(value, problem.logarithms);
    possible |= is_possible(value, problem.logarithms);
  });
  return usable && possible;
}

[[noreturn]] void refuse_row(const CategoricalProblem& problem, size_t row) {
  for_each_class(problem, find_row(problem, row), [&](size_t k, float value) {
    if (!is_usable(value, problem.logarithms)) {
      fail_invalid("%s: probabilities, row %zu, class %zu is %g, expected %s", kOp, row, k, static_cast<double>(value),
                   problem.logarithms ? "a logarithm below inf" : "a finite number, at least 0");
    }
  });
  fail_invalid("%s: probabilities, row %zu: no class has a probability above 0", kOp, row);
}

void check_rows(const CategoricalProblem& problem, size_t n_threads) {
  const size_t rows_per_task = div_up(4096, problem.classes), tasks = div_up(problem.rows, rows_per_task);
  std::atomic<size_t> bad{problem.rows};  // the first one, whichever thread meets it
  parallel_for(tasks, threads_for(n_threads, tasks, problem.p.count), [&](size_t task, size_t) {
    const size_t end = std::min(problem.rows, (task + 1) * rows_per_task);
    for (size_t row = task * rows_per_task; row < end; ++row) {
      if (row_is_usable(problem, row)) continue;
      size_t known = bad.load(std::memory_order_relaxed);
      while (row < known && !bad.compare_exchange_weak(known, row, std::memory_order_relaxed)) {
      }
      return;
    }
  });
  if (const size_t row = bad.load(std::memory_order_relaxed); row < problem.rows) refuse_row(problem, row);
}

// ---- drawing -------------------------------------------------------------------------------------------------------

void cumulate(const CategoricalProblem& problem, const Row& row, double* table) {
  double sum = 0;
  if (!problem.logarithms) {
    for_each_class(problem, row, [&](size_t k, float value) { table[k] = sum += value; });
    return;
  }
  float largest = -std::numeric_limits<float>::infinity();
  for_each_class(problem, row, [&](size_t, float value) { largest = std::max(largest, value); });
  for_each_class(problem, row, [&](size_t k, float value) {
    table[k] = sum += std::exp(static_cast<double>(value) - static_cast<double>(largest));
  });
}

void store_class(const Tensor& y, size_t offset, size_t k) {
  const float value = static_cast<float>(k);
  switch (y.type) {
    case BNNSDataTypeFloat16:
      static_cast<uint16_t*>(y.data)[offset] = float_to_half(value);
      break;
    case BNNSDataTypeBFloat16:
      static_cast<uint16_t*>(y.data)[offset] = float_to_bfloat16(value);
      break;
    default:
      static_cast<float*>(y.data)[offset] = value;
      break;
  }
}

// The first k with table[k] > target; there is one. Without branches, since a draw cannot be predicted: 23 -> 6 ns per
// sample of ten classes, against std::upper_bound (gcc 12, Zen 4).
size_t find_class(const double* table, size_t classes, double target) {
  size_t first = 0;
  for (size_t left = classes; left > 1;) {
    const size_t half = left / 2;
    first += table[first + half - 1] <= target ? half : 0;
    left -= half;
  }
  return first;
}

// Samples [begin, end) of a row. Words are fetched four at a time where the samples are neighbours in memory.
void draw(const CategoricalProblem& problem, const WordStream& stream, const Row& row, Range samples,
          const double* table) {
  const double total = table[problem.classes - 1];
  const size_t run = problem.sample_index_stride == 1 ? 64 : 1;
  uint32_t words[64];
  for (size_t first = samples.begin; first < samples.end; first += run) {
    const size_t n = std::min(run, samples.end - first);
    stream.words(row.y_index + first * problem.sample_index_stride, n, words);
    for (size_t i = 0; i < n; ++i) {
      // word 2^-32 is exact and below 1, so the product is below the total: some class always exceeds it.
      const double target = words[i] * 0x1p-32 * total;
      const size_t k = find_class(table, problem.classes, target);
      store_class(problem.y, row.y_offset + (first + i) * problem.sample_stride, k);
    }
  }
}

}  // namespace

void fill_categorical_float(Generator& generator, const BNNSNDArrayDescriptor* desc,
                            const BNNSNDArrayDescriptor* probabilities, bool log_probabilities) {
  const CategoricalProblem problem = make_problem(desc, probabilities, log_probabilities);
  const Options& options = generator.options();
  check_rows(problem, options.n_threads);

  // An item is a row and some of its samples, enough of them to pay for the row's table; a task is some items.
  const size_t samples_per_item = std::min(problem.samples, std::max<size_t>(1024, 4 * problem.classes));
  const size_t items_per_row = div_up(problem.samples, samples_per_item), items = problem.rows * items_per_row;
  const size_t items_per_task = div_up(4096, problem.classes + samples_per_item);
  const size_t tasks = div_up(items, items_per_task);
  constexpr size_t kWorkPerClass = 4, kWorkPerSample = 64;  // in bytes moved: an addition, a search
  const size_t work = items * problem.classes * kWorkPerClass + problem.y.count * kWorkPerSample;
  const size_t threads = threads_for(options.n_threads, tasks, work);

  constexpr size_t kSmallTable = 256;
  const bool small = problem.classes <= kSmallTable;
  const Buffer tables(options, small ? 0 : threads * problem.classes * sizeof(double), "cumulative probabilities");
  const WordStream stream = generator.take(problem.y.count);
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    double small_table[kSmallTable];
    double* table = small ? small_table : tables.as<double>() + worker * problem.classes;
    const size_t end = std::min(items, (task + 1) * items_per_task);
    for (size_t item = task * items_per_task; item < end; ++item) {
      const Row row = find_row(problem, item / items_per_row);
      const size_t begin = item % items_per_row * samples_per_item;
      cumulate(problem, row, table);
      draw(problem, stream, row, {begin, std::min(problem.samples, begin + samples_per_item)}, table);
    }
  });
}

}  // namespace bnns
