// How a batch splits into sets, tasks and blocks, and operands of any layout as matrices: see plan.h.

#include "src/ops/normalization/common/plan.h"

#include <numeric>

namespace bnns {
namespace {

constexpr size_t kLine = kAlignment / sizeof(float);  // values in a cache line

// How many elements from the beginning of a sample, and from every multiple of that number, are contiguous.
size_t contiguous_prefix(const Tensor& t) {
  size_t prefix = 1;
  for (size_t j = 0; j < t.rank; ++j) {
    const size_t k = t.axis[j];
    if (t.size[k] != 1 && t.stride[k] != prefix) break;
    prefix *= t.size[k];
  }
  return prefix;
}

void fill_affine(const Tensor& t, float absent, size_t length, float* to) {
  if (!t.data) {
    std::fill_n(to, length, absent);
    return;
  }
  const Elements elements(t);
  const size_t repeat = length / t.count;  // short groups: each channel's value for the whole plane
  for (size_t first = 0; first < t.count; first += kBlock) {
    const size_t n = std::min(kBlock, t.count - first);
    float buffer[kBlock];
    const float* values = elements.read(t.data, first, n, buffer);
    for (size_t i = 0; i < n; ++i) std::fill_n(to + (first + i) * repeat, repeat, values[i]);
  }
}

bool is_read_in_place(const Tensor& t, size_t length) {
  return t.data && t.count == length && Elements(t).direct();
}

}  // namespace

NormalizationPlan::NormalizationPlan(const NormalizationProblem& p, size_t batch_size, bool by_channel)
    : batch(batch_size),
      by_columns(false),
      per_element(false),
      batch_sets(p.kind == NormalizationKind::batch),
      channels(p.channels),
      plane(p.plane()),
      groups(1),
      affine_length(p.affine_count()) {
  set_rows = 1;
  switch (p.kind) {
    case NormalizationKind::batch:
      rows_per_sample = 1;
      row_length = p.count();
      set_rows = batch;
      set_columns = plane;
      by_columns = plane < kShortPlane;
      break;
    case NormalizationKind::instance:
      rows_per_sample = channels;
      row_length = set_columns = plane;
      break;
    case NormalizationKind::group:
      groups = p.groups;
      if (plane < kShortPlane) {
        per_element = true;
        affine_length = p.count();
        rows_per_sample = groups;
        row_length = set_columns = p.count() / groups;
      } else {
        rows_per_sample = channels;
        row_length = set_columns = plane;
        set_rows = channels / groups;
      }
      break;
    case NormalizationKind::layer:
      per_element = true;
      rows_per_sample = p.axis == 0 ? 1 : p.axis == 1 ? channels : channels * p.height;
      row_length = set_columns = p.count() / rows_per_sample;
      break;
  }
  sets = p.sets(batch);
  const bool joins_rows = batch_sets || (set_rows > 1 && !by_channel);
  block_rows = joins_rows ? std::max<size_t>(1, kMomentBlock / set_columns) : 1;
  pieces = div_up(set_columns, kSegment);
  segment_columns = pieces > 1 ? kSegment : set_columns;
  segment_rows = pieces > 1 || !joins_rows ? 1 : round_up(div_up(kSegment, set_columns), block_rows);
  segments = div_up(set_rows, segment_rows) * pieces;
}

MatrixView::MatrixView(const NormalizationPlan& plan, const Tensor& sample, const void* base, size_t stride)
    : elements_(sample),
      base_(const_cast<void*>(base)),
      type_(sample.type),
      stride_of_sample_(stride),
      rows_per_sample_(plan.rows_per_sample),
      row_length_(plan.row_length) {
  const size_t prefix = contiguous_prefix(sample);
  const size_t span = plan.by_columns || !plan.batch_sets ? plan.row_length : plan.plane;
  dense_ = prefix == sample.count;
  direct_ = type_ == BNNSDataTypeFloat32 && prefix % span == 0;
  if (rows_per_sample_ == 1) {
    uniform_ = direct_;
    stride_ = stride;
  } else {
    uniform_ = direct_ && dense_ && stride == sample.count;
    stride_ = plan.row_length;
  }
  // Sets of the whole batch lie side by side in every sample, others also behind each other: no gap between samples.
  joined_ = dense_ && uniform_ && (plan.batch_sets || stride == sample.count);
}

void MatrixView::gather(const Rectangle& r, float* buffer) const {
  for (size_t i = 0; i < r.rows; ++i) {
    const size_t row = r.row + i, first = row % rows_per_sample_ * row_length_ + r.column;
    const void* sample = element_at(static_cast<const void*>(base_), type_, row / rows_per_sample_ * stride_of_sample_);
    float* to = buffer + i * r.columns;
    const float* from = elements_.read(sample, first, r.columns, to);
    if (from != to) std::copy_n(from, r.columns, to);
  }
}

void MatrixView::bring(const Rectangle& r, const float* buffer, bool add) const {
  if (!add && direct(r)) return;
  for (size_t i = 0; i < r.rows; ++i) {
    const size_t row = r.row + i, first = row % rows_per_sample_ * row_length_ + r.column;
    void* sample = element_at(base_, type_, row / rows_per_sample_ * stride_of_sample_);
    const float* from = buffer + i * r.columns;
    if (add) {
      elements_.accumulate(sample, first, r.columns, from);
    } else if (elements_.direct()) {
      std::copy_n(from, r.columns, static_cast<float*>(sample) + first);
    } else {
      elements_.write(sample, first, r.columns, from);
    }
  }
}

size_t Affine::buffer_floats(const NormalizationPlan& plan, const NormalizationParameters& parameters) {
  const Tensor &g = parameters.gamma(), &b = parameters.beta();
  if (plan.per_element && !g.data && !b.data) return 0;
  const size_t length = plan.affine_length;
  return (is_read_in_place(g, length) ? 0 : length) + (is_read_in_place(b, length) ? 0 : length);
}

Affine::Affine(const NormalizationPlan& plan, const NormalizationParameters& parameters, float* buffer) {
  const Tensor &g = parameters.gamma(), &b = parameters.beta();
  if (plan.per_element && !g.data && !b.data) return;
  const auto values = [&](const Tensor& t, float absent) -> const float* {
    if (is_read_in_place(t, plan.affine_length)) return static_cast<const float*>(t.data);
    float* to = buffer;
    fill_affine(t, absent, plan.affine_length, to);
    buffer += plan.affine_length;
    return to;
  };
  gamma = values(g, 1);
  beta = values(b, 0);
}

Schedule::Schedule(const NormalizationPlan& plan, size_t n_threads, size_t bytes, size_t operands) {
  threads = threads_for(n_threads, plan.sets * plan.segments, bytes);
  split = plan.segments > 1 && threads > 1 && plan.sets < 2 * threads;
  // Bundles give batch sets longer runs of each sample; other sets are runs already and only share calls.
  const size_t fit = (plan.batch_sets ? kBundleValues : kMomentBlock * 8) / operands / plan.set_count();
  const size_t fair = std::max<size_t>(1, plan.sets / (4 * threads));  // tasks end together
  bundle = plan.side_by_side() ? std::clamp<size_t>(fit, 1, std::min(kMostSets, div_up(fair, 2))) : 1;
  const size_t whole = kLine / std::gcd(plan.plane, kLine);  // sets whose runs are whole lines, where samples are
  if (bundle > whole) bundle = bundle / whole * whole;
  sets_per_task = fair / bundle * bundle;
  tasks = div_up(plan.sets, sets_per_task);
}

}  // namespace bnns
