// Copies that turn source rows into slabs and slabs into patches. Each is a run of neighbouring floats, so a vector
// load and store, masked at the end of a run; the inner loop runs over channels, where the length and all offsets stay
// the same.

#include <cstdint>
#include <cstring>

#include "src/ops/convolution/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/common/rows_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "src/ops/convolution/common/split-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void SplitRowOf(const float* from, size_t lead, size_t count, size_t step, size_t phases, size_t length, float* row) {
  SplitRow(from, lead, count, step, phases, length, row);
}

void Interleave(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t count, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreInterleaved2(hn::LoadU(d, a + i), hn::LoadU(d, b + i), d, to + 2 * i);
  if (i == count) return;
  if (count >= lanes) {  // once more, up to the end
    i = count - lanes;
    return hn::StoreInterleaved2(hn::LoadU(d, a + i), hn::LoadU(d, b + i), d, to + 2 * i);
  }
  for (; i < count; ++i) to[2 * i] = a[i], to[2 * i + 1] = b[i];
}

// to[2 i] = or += values[i]. The lanes between are left alone: other threads may be writing them.
void StoreEverySecond(const float* HWY_RESTRICT values, size_t count, bool accumulate, float* HWY_RESTRICT to) {
  size_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  const auto lane = hn::Iota(di, 0), half = hn::ShiftRight<1>(lane);
  const auto low = hn::IndicesFromVec(d, half);
  const auto high = hn::IndicesFromVec(d, hn::Add(half, hn::Set(di, static_cast<int>(lanes / 2))));
  const auto even = hn::RebindMask(d, hn::Eq(hn::And(lane, hn::Set(di, 1)), hn::Zero(di)));
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, values + i);
    auto a = hn::TableLookupLanes(v, low), b = hn::TableLookupLanes(v, high);
    float* at = to + 2 * i;
    if (accumulate) {
      a = hn::Add(hn::MaskedLoad(even, d, at), a);
      b = hn::Add(hn::MaskedLoad(even, d, at + lanes), b);
    }
    hn::BlendedStore(a, even, d, at);
    hn::BlendedStore(b, even, d, at + lanes);
  }
#endif
  for (; i < count; ++i) to[2 * i] = accumulate ? to[2 * i] + values[i] : values[i];
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

void StreamValues(const float* HWY_RESTRICT from, size_t n, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), off = reinterpret_cast<uintptr_t>(to) % 64 / sizeof(float);
  const size_t head = HWY_MIN(n, off == 0 ? 0 : 16 - off), lines = (n - head) / 16 * 16;
  if (head) std::memcpy(to, from, head * sizeof(float));
  from += head, to += head;
  for (size_t i = 0; i < lines; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  if (head + lines < n) std::memcpy(to + lines, from + lines, (n - head - lines) * sizeof(float));
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void split_row(const float* from, size_t lead, size_t count, size_t step, size_t phases, size_t length,
               float* row) noexcept {
  BNNS_DISPATCH(SplitRowOf)(from, lead, count, step, phases, length, row);
}
void interleave(const float* a, const float* b, size_t count, float* to) noexcept {
  BNNS_DISPATCH(Interleave)(a, b, count, to);
}
void store_every_second(const float* values, size_t count, bool accumulate, float* to) noexcept {
  BNNS_DISPATCH(StoreEverySecond)(values, count, accumulate, to);
}
void pack_patches(const PatchRange& range, size_t panel, float* out) noexcept {
  BNNS_DISPATCH(PackPatches)(range, panel, out);
}
void stream_values(const float* from, size_t n, float* to) noexcept {
  BNNS_DISPATCH(StreamValues)(from, n, to);
}
void stream_end() noexcept {
  hwy::FlushStream();
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
