// Copies that turn source rows into slabs and slabs into patches. Each is a run of neighbouring floats, so a vector
// load and store, masked at the end of a run; the inner loop runs over channels, where the length and all offsets stay
// the same.

#include <cstring>

#include "src/ops/convolution/convolution_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/convolution_pack_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void SplitRow(const float* HWY_RESTRICT from, size_t lead, size_t count, size_t step, size_t length,
              float* HWY_RESTRICT row) {
  if (step == 1) {
    std::memset(row, 0, lead * sizeof(float));
    std::memcpy(row + lead, from, count * sizeof(float));
    if (length > lead + count) std::memset(row + lead + count, 0, (length - lead - count) * sizeof(float));
    return;
  }
  std::memset(row, 0, step * length * sizeof(float));
  size_t i = 0;
  if (step == 2) {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    float* even = row + lead % 2 * length + lead / 2;  // where from[0] goes
    float* odd = lead % 2 == 0 ? row + length + lead / 2 : row + (lead + 1) / 2;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, from + i, a, b);
      hn::StoreU(a, d, even + i / 2);
      hn::StoreU(b, d, odd + i / 2);
    }
  }
  size_t phase = (lead + i) % step, at = (lead + i) / step;
  for (; i < count; ++i) {
    row[phase * length + at] = from[i];
    if (++phase == step) phase = 0, ++at;
  }
}

// `channels` runs of `length` floats, from_stride and to_stride apart.
HWY_INLINE void CopyRuns(const float* HWY_RESTRICT from, size_t from_stride, float* HWY_RESTRICT to, size_t to_stride,
                         size_t channels, size_t length) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  if (length == 2 * lanes) {
    for (size_t c = 0; c < channels; ++c, from += from_stride, to += to_stride) {
      hn::StoreU(hn::LoadU(d, from), d, to);
      hn::StoreU(hn::LoadU(d, from + lanes), d, to + lanes);
    }
  } else if (length > lanes && length < 2 * lanes && lanes > 1) {
    // Two vectors that overlap.
    const size_t second = length - lanes;
    for (size_t c = 0; c < channels; ++c, from += from_stride, to += to_stride) {
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + second);
      hn::StoreU(a, d, to);
      hn::StoreU(b, d, to + second);
    }
  } else if (length < lanes) {
    for (size_t c = 0; c < channels; ++c, from += from_stride, to += to_stride) {
      StorePartial(d, LoadPartial(d, from, length), to, length);
    }
  } else {
    for (size_t c = 0; c < channels; ++c, from += from_stride, to += to_stride) {
      size_t i = 0;
      for (; i + lanes <= length; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      if (i < length) hn::StoreU(hn::LoadU(d, from + length - lanes), d, to + length - lanes);
    }
  }
}

void PackPatches(const PatchRange& p, size_t panel, float* HWY_RESTRICT out) {
  const Slab& slab = *p.slab;
  const size_t taps = p.t1 - p.t0;
  for (size_t j = 0; j < p.pixels;) {
    const size_t pixel = p.first + j, v = pixel % p.width, line = pixel / p.width;
    const size_t r = line % p.rows, n = line / p.rows;
    const size_t length = HWY_MIN(p.width - v, p.pixels - j);
    const float* from = slab.data + n * slab.sample_stride + v + static_cast<ptrdiff_t>(r) * slab.target_row_stride;
    for (size_t t = 0; t < taps; ++t) {
      CopyRuns(from + slab.tap_offset(p.t0 + t), slab.channel_stride, out + t * panel + j, taps * panel, p.channels,
               length);
    }
    j += length;
  }
}

void AddConstant(float* y, float b, size_t n) {
  Transform(y, y, n, [b](auto d, auto v) HWY_ATTR { return hn::Add(v, hn::Set(d, b)); });
}
void AddValues(const float* x, float* y, size_t n) {
  Transform2(x, y, y, n, [](auto /*d*/, auto a, auto b) HWY_ATTR { return hn::Add(b, a); });
}
float SumValues(const float* x, size_t n) {
  return Reduce(x, n, SumOp(), [](auto /*d*/, auto v) HWY_ATTR { return v; });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void split_row(const float* from, size_t lead, size_t count, size_t step, size_t length, float* row) noexcept {
  BNNS_DISPATCH(SplitRow)(from, lead, count, step, length, row);
}
void pack_patches(const PatchRange& range, size_t panel, float* out) noexcept {
  BNNS_DISPATCH(PackPatches)(range, panel, out);
}
void add_constant(float* y, float b, size_t n) noexcept {
  BNNS_DISPATCH(AddConstant)(y, b, n);
}
void add_values(const float* x, float* y, size_t n) noexcept {
  BNNS_DISPATCH(AddValues)(x, y, n);
}
float sum_values(const float* x, size_t n) noexcept {
  return BNNS_DISPATCH(SumValues)(x, n);
}

}  // namespace bnns
#endif
