// Checks of the clipping and norm calls, and what each does with the slices of norm_slices.cc.

#include "src/ops/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/inline_buffer.h"
#include "src/core/parallel.h"
#include "src/tensor/distinct.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

constexpr size_t kChunk = 16 * 1024;   // elements of one task
constexpr size_t kInlineSlices = 128;  // norms kept on the stack
constexpr size_t kInlineTensors = 32;

using SliceValues = InlineBuffer<double, kInlineSlices>;

bool is_generic(BNNSDataLayout layout) {
  return (static_cast<unsigned>(layout) & 0x8000u) != 0;
}

// A float tensor with its data.
Tensor resolve_float(const BNNSNDArrayDescriptor* d, const char* op, const char* field) {
  Tensor t = resolve_with_data(d, op, field);
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; norms and clipping work on f32, f16 and bf16", op, field, type_name(t.type));
  }
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is OIHW_Pack32: not offered here", op, field);
  }
  return t;
}

void check_same_shape(const Tensor& t, const Tensor& like, const char* op, const char* field) {
  const bool comparable = t.layout == like.layout || (is_generic(t.layout) && is_generic(like.layout));
  if (!comparable || t.rank != like.rank || !std::equal(t.size, t.size + t.rank, like.size)) {
    fail_invalid("%s: %s is %s with layout %s, expected the shape %s and layout %s of src", op, field, t.text().c_str(),
                 enum_text(t.layout).text, like.text().c_str(), enum_text(like.layout).text);
  }
}

// The same elements in the same places.
bool is_same_memory(const Tensor& a, const Tensor& b) {
  if (a.data != b.data || a.type != b.type) return false;
  for (size_t k = 0; k < a.rank; ++k) {
    if (a.size[k] > 1 && a.stride[k] != b.stride[k]) return false;
  }
  return true;
}

void check_in_place_or_disjoint(const Tensor& dest, const Tensor& src, const char* op) {
  check_distinct(dest, op, "dest");
  if (!is_same_memory(dest, src)) {
    check_disjoint(dest.data, dest.span_bytes(), "dest", src.data, src.span_bytes(), "src", op);
  }
}

void check_max_norm(float max_norm, const char* op) {
  if (!(max_norm >= 0)) fail_invalid("%s: max_norm is %g, expected a number that is not negative", op, max_norm);
}

void check_norm_type(BNNSNormType type, const char* op) {
  if (type != BNNSL2Norm) fail_invalid("%s: norm_type is %s, expected BNNSL2Norm", op, enum_text(type).text);
}

// y = factor * x over whole tensors of one shape.
void scale_tensor(const Tensor& x, const Tensor& y, double factor) {
  NormProblem whole{x, (1u << x.rank) - 1, 1, x.count};
  slice_scale(whole, x.data, y, &factor);
}

Tensor without_flags(Tensor t) {
  t.accumulate = false;  // the flag belongs to gradients; a clip always overwrites
  return t;
}

// Entry i of a list.
Tensor resolve_entry(const BNNSNDArrayDescriptor* d, const char* op, const char* list, size_t i) {
  char name[48];
  std::snprintf(name, sizeof name, "%s[%zu]", list, i);
  return without_flags(resolve_float(d, op, name));
}

// Kernel axes of these layouts run backwards in memory; norms that keep them would come out in reverse.
void check_not_rotated(const Tensor& t, const char* op, const char* field) {
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHrWr || t.layout == BNNSDataLayoutConvolutionWeightsIOHrWr) {
    fail_unsupported("%s: %s.layout is %s, stored rotated: not offered here", op, field, enum_text(t.layout).text);
  }
}

// dest of compute_norm (or its gradient) seen on the axes of x: the kept axes in size order, reduced ones of extent 1.
Tensor on_axes_of(const Tensor& dest, const NormProblem& p, const char* op, const char* field) {
  check_not_rotated(dest, op, field);
  Tensor view = dest;
  view.rank = p.x.rank;
  std::copy(p.x.axis, p.x.axis + p.x.rank, view.axis);
  size_t j = 0, kept = 0;
  bool fits = true;
  for (size_t k = 0; k < p.x.rank; ++k) {
    view.size[k] = view.stride[k] = 1;
    if (p.axes >> k & 1) continue;
    ++kept;
    if (j < dest.rank && dest.size[j] == p.x.size[k]) {
      view.size[k] = dest.size[j];
      view.stride[k] = dest.stride[j];
    } else {
      fits = false;
    }
    ++j;
  }
  fits = kept == 0 ? dest.count == 1 : fits && dest.rank == kept;
  if (!fits) {
    fail_invalid("%s: %s is %s, expected the %zu axes of %s that axis_flags 0x%x leaves%s", op, field,
                 dest.text().c_str(), kept, p.x.text().c_str(), p.axes, kept ? "" : ", one element");
  }
  return view;
}

}  // namespace

std::string NormProblem::text(const char* name) const {
  char bits[24];
  std::snprintf(bits, sizeof bits, " axes 0x%x", axes);
  return std::string(name) + " " + x.text() + bits;
}

NormProblem make_norm_problem(const BNNSNDArrayDescriptor* x, uint32_t axis_flags, const char* op, const char* field) {
  NormProblem p;
  p.x = resolve_float(x, op, field);
  const uint32_t all = (1u << p.x.rank) - 1;
  if (axis_flags & ~all) {
    fail_invalid("%s: axis_flags is 0x%x, expected bits 0 to %zu for %s of rank %zu", op, axis_flags, p.x.rank - 1,
                 field, p.x.rank);
  }
  p.axes = axis_flags ? axis_flags : all;
  p.length = 1;
  for (size_t k = 0; k < p.x.rank; ++k) (p.axes >> k & 1 ? p.length : p.slices) *= p.x.size[k];
  return p;
}

void clip_by_value(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, float low, float high) {
  constexpr const char* op = "clip_by_value";
  const Tensor x = resolve_float(src, op, "src"), y = resolve_float(dest, op, "dest");
  check_same_shape(y, x, op, "dest");
  if (!(low <= high)) fail_invalid("%s: min_val is %g and max_val is %g, expected min <= max", op, low, high);
  check_in_place_or_disjoint(y, x, op);

  const Elements from(x), to(y, x);
  const size_t tasks = div_up(x.count, kChunk);
  parallel_for(tasks, threads_for(0, tasks, x.count), [&](size_t task, size_t) {
    float x_buffer[kBlock], y_buffer[kBlock];
    const size_t end = std::min(x.count, (task + 1) * kChunk);
    for (size_t at = task * kChunk; at < end; at += kBlock) {
      const size_t m = std::min(kBlock, end - at);
      float* out = to.target(y.data, at, y_buffer);
      clamp_all(from.read(x.data, at, m, x_buffer), low, high, out, m);
      to.write(y.data, at, m, out);
    }
  });
}

void clip_by_norm(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, float max_norm,
                  uint32_t axis_flags) {
  constexpr const char* op = "clip_by_norm";
  const NormProblem p = make_norm_problem(src, axis_flags, op, "src");
  const Tensor y = without_flags(resolve_float(dest, op, "dest"));
  check_same_shape(y, p.x, op, "dest");
  check_max_norm(max_norm, op);
  check_in_place_or_disjoint(y, p.x, op);

  SliceValues factors(Options{}, p.slices, "norms of the slices");
  slice_squares(p, factors.data());
  bool changes = false;
  for (size_t s = 0; s < p.slices; ++s) {
    if (!std::isfinite(factors[s])) {
      fail_invalid("%s: the norm of slice %zu is not finite, so it cannot be clipped; dest is unchanged", op, s);
    }
    factors[s] = clip_factor(std::sqrt(factors[s]), max_norm);
    changes |= factors[s] != 1;
  }
  if (changes || !is_same_memory(y, p.x)) slice_scale(p, p.x.data, y, factors.data());
}

void clip_by_global_norm(BNNSNDArrayDescriptor* const* dest, const BNNSNDArrayDescriptor* const* src, size_t count,
                         float max_norm, float use_norm) {
  constexpr const char* op = "clip_by_global_norm";
  check_max_norm(max_norm, op);
  if (!(use_norm >= 0 && std::isfinite(use_norm))) {
    fail_invalid("%s: use_norm is %g, expected a finite norm, or 0 to compute it", op, use_norm);
  }
  if (count == 0) return;
  if (!dest) fail_invalid("%s: dest is NULL, expected %zu descriptors", op, count);
  if (!src) fail_invalid("%s: src is NULL, expected %zu descriptors", op, count);

  InlineBuffer<Extent, 2 * kInlineTensors> extents(Options{}, checked_mul(count, 2, "clip_by_global_norm: count"),
                                                   "the list of tensors");
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    const Tensor x = resolve_entry(src[i], op, "src", i), y = resolve_entry(dest[i], op, "dest", i);
    check_same_shape(y, x, op, "dest");
    check_distinct(y, op, "dest");
    extents[used++] = Extent(y.data, y.span_bytes(), "dest", i, true);
    if (!is_same_memory(y, x)) extents[used++] = Extent(x.data, x.span_bytes(), "src", i, false);
  }
  check_extents(extents.data(), used, op);

  double norm = use_norm;
  if (use_norm == 0) {
    double squares = 0;
    for (size_t i = 0; i < count; ++i) {
      const Tensor x = resolve_entry(src[i], op, "src", i);
      squares += sum_of_squares(Elements(x), x.data, 0);
    }
    norm = std::sqrt(squares);
    if (!std::isfinite(norm))
      fail_invalid("%s: the norm is not finite, so it cannot be clipped; dest is unchanged", op);
  }
  const double factor = clip_factor(norm, max_norm);
  for (size_t i = 0; i < count; ++i) {
    const Tensor x = resolve_entry(src[i], op, "src", i), y = resolve_entry(dest[i], op, "dest", i);
    if (factor != 1 || !is_same_memory(y, x)) scale_tensor(x, y, factor);
  }
}

void compute_norm(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, BNNSNormType type,
                  uint32_t axis_flags) {
  constexpr const char* op = "compute_norm";
  const NormProblem p = make_norm_problem(src, axis_flags, op, "src");
  check_not_rotated(p.x, op, "src");
  check_norm_type(type, op);
  const Tensor y = on_axes_of(resolve_float(dest, op, "dest"), p, op, "dest");
  check_distinct(y, op, "dest");
  if (y.data != p.x.data) {  // all norms are known before the first is written, so dest may begin where src does
    check_disjoint(y.data, y.span_bytes(), "dest", p.x.data, p.x.span_bytes(), "src", op);
  }

  SliceValues norms(Options{}, p.slices, "norms of the slices");
  slice_squares(p, norms.data());
  const Elements to = SliceLens(y, p.x, p.axes).across;
  float buffer[kBlock];
  for (size_t first = 0; first < p.slices; first += kBlock) {
    const size_t m = std::min(kBlock, p.slices - first);
    for (size_t i = 0; i < m; ++i) buffer[i] = static_cast<float>(std::sqrt(norms[first + i]));
    float* out = to.target(y.data, first, buffer);
    if (out != buffer) std::copy(buffer, buffer + m, out);
    to.write(y.data, first, m, out);
  }
}

void compute_norm_backward(const void* in, const BNNSNDArrayDescriptor* in_delta, const void* out,
                           const BNNSNDArrayDescriptor* out_delta, BNNSNormType type, uint32_t axis_flags) {
  constexpr const char* op = "compute_norm_backward";
  const NormProblem p = make_norm_problem(in_delta, axis_flags, op, "in_delta");
  check_distinct(p.x, op, "in_delta");
  check_not_rotated(p.x, op, "in_delta");
  check_norm_type(type, op);
  check_data(in, p.x.type, op, "in");
  const Tensor dy = on_axes_of(resolve_float(out_delta, op, "out_delta"), p, op, "out_delta");
  check_data(out, dy.type, op, "out");
  const size_t in_bytes = p.x.span_bytes(), out_bytes = dy.span_bytes();
  if (in != p.x.data) check_disjoint(p.x.data, in_bytes, "in_delta", in, in_bytes, "in", op);
  check_disjoint(p.x.data, in_bytes, "in_delta", out, out_bytes, "out", op);
  check_disjoint(p.x.data, in_bytes, "in_delta", dy.data, out_bytes, "out_delta", op);

  SliceValues factors(Options{}, p.slices, "gradients of the slices");
  const Elements lens = SliceLens(dy, p.x, p.axes).across;
  float dy_buffer[kBlock], y_buffer[kBlock];
  for (size_t first = 0; first < p.slices; first += kBlock) {
    const size_t m = std::min(kBlock, p.slices - first);
    const float* dys = lens.read(dy.data, first, m, dy_buffer);
    const float* ys = lens.read(out, first, m, y_buffer);
    for (size_t i = 0; i < m; ++i) {
      factors[first + i] = ys[i] == 0 ? 0 : static_cast<double>(dys[i]) / static_cast<double>(ys[i]);
    }
  }
  slice_scale(p, in, p.x, factors.data());
}

}  // namespace bnns
