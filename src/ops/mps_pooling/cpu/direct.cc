// Plans the one-pass kernels (mps_pooling/cpu/direct.h): which encodes they take, and how the work is cut.

#include "src/ops/mps_pooling/cpu/direct.h"

#include <algorithm>

#include "src/core/isa.h"
#include "src/ops/mps_pooling/cpu/cpu.h"

namespace bnns::mps {
namespace {

constexpr int64_t kMostColumns = 2048;      // of a row, so that the rows at work stay in L2
constexpr size_t kTaskBytes = 128 * 1024;   // what is prefetched may be another task's: that must be little
constexpr int64_t kMostSmallTexels = 1024;  // of a plane that is kept in scratch: it stays in L1
constexpr int64_t kFewestPlanes = 8;        // fewer are cut into bands, or threads would have no work

bool make_side(const PoolAxis& a, int64_t size, int64_t windows, DirectSide* out) {
  const int64_t first = a.first_centre - a.before();
  if (a.dilation != 1 || first < -1 || first > 0 || windows < 1 || size < 1 || size > kMostColumns) return false;
  if (windows > kMostColumns || first + (windows - 1) * a.stride >= size) return false;  // every window meets the image
  *out = {first, size, windows, a.zero_pad};
  return true;
}

bool usable(const ImageView& v, PixelType type) {
  return v.type == type && v.lanes == 4 && reinterpret_cast<uintptr_t>(v.data) % (4 * bytes_of(type)) == 0;
}

// Gradients of whole planes; forward any clip.
bool make_plan(const PoolEncode& e, DirectForm form, DirectPlan* p) {
  if (isa() < Isa::avx512) return false;
  const bool backward = e.backward;
  const int64_t k = e.x.kernel, s = e.x.stride;
  if (e.y.kernel != k || e.y.stride != s || !((k == 2 && s == 2) || (k == 3 && (s == 1 || s == 2)))) return false;
  const PixelType type = e.target.type;
  if ((type != PixelType::f32 && type != PixelType::f16) || e.channels % 4 != 0 || !usable(e.target, type))
    return false;
  if (e.images * (e.channels / 4) < kFewestPlanes) return false;
  if ((e.reads_source() && !usable(e.source, type)) || (backward && !usable(e.gradient, type))) return false;
  if (backward && (e.source_x != 0 || e.source_y != 0 || e.width != e.source.width || e.height != e.source.height)) {
    return false;
  }
  if (!make_side(e.x, e.source.width, backward ? e.gradient_width : e.width, &p->x) ||
      !make_side(e.y, e.source.height, backward ? e.gradient_height : e.height, &p->y)) {
    return false;
  }
  // Clamped pixels that count more than once: the plain loops.
  if (e.kind == PoolKind::l2_norm && e.edge == PoolEdge::clamp) {
    for (const DirectSide* side : {&p->x, &p->y}) {
      if (side->first < 0 || side->first + (side->windows - 1) * s + k > side->size) return false;
    }
  }
  p->kind = e.kind, p->edge = e.edge, p->backward = backward;
  p->kernel = static_cast<int>(k), p->stride = static_cast<int>(s);
  const int64_t slots = backward ? (p->x.size - p->x.first + s - 1) / s : p->x.windows;
  p->block = type == PixelType::f32 ? 4 : 8;
  p->blocks = (slots + p->block - 1) / p->block;
  p->source_row = 4 * e.source.width, p->gradient_row = 4 * e.gradient.width, p->target_row = 4 * e.target.width;
  p->stream = target_bytes(e) >= kStreamBytes;
  p->paired = backward && s == 2 && p->target_row * static_cast<int64_t>(bytes_of(type)) % 64 != 0;
  p->form = form;
  if (form == DirectForm::rows) return true;
  if (s != 1 || p->x.size * p->y.size > kMostSmallTexels) return false;
  // The gradient of an f32 average is little arithmetic and mostly writing, which goes better row by row than in
  // bursts.
  if (form == DirectForm::columns) return type == PixelType::f32 && !(backward && e.kind == PoolKind::average);
  return type == PixelType::f16 && p->x.size >= 4 && p->x.windows >= 4;
}

}  // namespace

template <DirectForm kForm>
bool accepts_direct(const PoolEncode& e) noexcept {
  DirectPlan plan;
  return make_plan(e, kForm, &plan);
}

template <DirectForm kForm>
void run_direct(const PoolEncode& e, size_t wanted) noexcept {
  DirectPlan plan;
  make_plan(e, kForm, &plan);
  const DirectKernel kernel = kForm != DirectForm::rows ? small_kernel(plan, e)
                              : e.backward              ? rows_backward_kernel(plan, e)
                                                        : rows_forward_kernel(plan, e);
  const auto planes = static_cast<size_t>(e.images * (e.channels / 4));
  const size_t bytes = static_cast<size_t>(plan.x.size * plan.y.size) * 4 * bytes_of(e.target.type);
  const size_t some = std::max<size_t>(1, kTaskBytes / bytes), tasks = (planes + some - 1) / some;
  const size_t threads = threads_for(wanted, tasks, 2 * planes * bytes);
  const ThreadScratch scratch(threads, plan.scratch_bytes());
  if (!scratch) return run_plain(e, wanted);
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    kernel(plan, e, {task * some, std::min(planes, (task + 1) * some)}, scratch.of(worker));
  });
}

template bool accepts_direct<DirectForm::rows>(const PoolEncode&) noexcept;
template bool accepts_direct<DirectForm::columns>(const PoolEncode&) noexcept;
template bool accepts_direct<DirectForm::bordered>(const PoolEncode&) noexcept;
template void run_direct<DirectForm::rows>(const PoolEncode&, size_t) noexcept;
template void run_direct<DirectForm::columns>(const PoolEncode&, size_t) noexcept;
template void run_direct<DirectForm::bordered>(const PoolEncode&, size_t) noexcept;

}  // namespace bnns::mps
