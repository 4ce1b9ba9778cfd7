// The slab of the direct algorithms: source rows with zeros around, flat or compact.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/ops/convolution/few/few.h"

namespace bnns {
namespace {

constexpr size_t kSampleFlat = 768;  // of a block of several samples
constexpr size_t kSampleBlocks = 8;  // that a batch is cut into at least

ptrdiff_t lowest(const PatchAxis& a) {
  return a.offset + std::min<ptrdiff_t>(0, (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap);
}

}  // namespace

void few_copy_source(const ImageSource& source, size_t n, size_t c, Range rows, size_t first, size_t count, float* to,
                     size_t stride, float* buffer) {
  if (rows.size() == 0 || count == 0) return;
  if (source.plain()) {
    few_copy_rows(source.plain_at(n, c, rows.begin) + first, source.tensor->stride[1], rows.size(), count, nullptr, to,
                  stride);
    return;
  }
  for (size_t r = rows.begin; r < rows.end; ++r, to += stride) {
    std::memcpy(to, source.row(n, c, r, first, count, buffer), count * sizeof(float));
  }
}

FewSlab::FewSlab(const PatchAxis& y, const PatchAxis& x, size_t channels, bool compact, size_t batch) {
  copies = compact ? x.taps : 1;
  padded = x.pixels + few_span(x);
  length = compact ? x.pixels : padded;
  // As many rows as fit, evenly.
  const size_t fit = kFewFloats / channels / copies / length, above = std::min(fit, few_span(y));
  const size_t most = std::clamp<size_t>(kFewFlat / length, 1, std::max<size_t>(1, fit - above));
  rows = div_up(y.pixels, div_up(y.pixels, most));
  source_rows = rows + few_span(y);
  if (copies > 1 && rows == y.pixels) {  // a single copy is filled sample by sample
    samples = std::min({fit / source_rows, kSampleFlat / (rows * length), batch / kSampleBlocks});
    samples = std::max<size_t>(1, samples);
    while (batch % samples != 0) --samples;
    length *= samples;
  }
  channel_stride = copies * source_rows * length;
  flat = flat_of(rows, x.pixels);
}

ptrdiff_t FewSlab::tap_offset(const PatchAxis& y, const PatchAxis& x, size_t tap) const {
  const auto row = static_cast<ptrdiff_t>(length), column = static_cast<ptrdiff_t>(tap % x.taps);
  const ptrdiff_t down = (static_cast<ptrdiff_t>(tap / x.taps) * y.tap - lowest(y) + y.offset) * row;
  if (copies > 1) return down + column * static_cast<ptrdiff_t>(source_rows) * row;
  return down + column * x.tap - lowest(x) + x.offset;
}

void FewSlab::fill(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, size_t n, size_t c0,
                   size_t channels, size_t u0, size_t u1, float* to, float* buffer) const {
  const ptrdiff_t low = lowest(x), extent = static_cast<ptrdiff_t>(x.extent);
  const ptrdiff_t begin = std::clamp<ptrdiff_t>(low, 0, extent);
  const ptrdiff_t end = std::clamp<ptrdiff_t>(low + static_cast<ptrdiff_t>(padded), begin, extent);
  const auto lead = static_cast<size_t>(begin - low), count = static_cast<size_t>(end - begin);
  const ptrdiff_t top = lowest(y) + static_cast<ptrdiff_t>(u0), height = static_cast<ptrdiff_t>(y.extent);
  const size_t all = u1 - u0 + few_span(y);
  const ptrdiff_t first = std::clamp<ptrdiff_t>(top, 0, height);
  const ptrdiff_t last = std::clamp<ptrdiff_t>(top + static_cast<ptrdiff_t>(all), first, height);
  const auto r0 = static_cast<size_t>(first), inside = static_cast<size_t>(last - first);
  float* const rows_buffer = buffer + 2 * x.extent;
  for (size_t p = 0; p < channels * samples; ++p) {
    const size_t c = p / samples, i = p % samples;
    float* plane = copies > 1 ? rows_buffer : to + c * channel_stride;
    const float* rows_from = plane;
    size_t stride = padded;
    if (copies > 1 && source.plain() && inside == all && count == padded) {  // no zeros around: as it lies
      rows_from = source.plain_at(n + i, c0 + c, r0) + begin;
      stride = source.tensor->stride[1];
    } else {
      float* const middle = plane + static_cast<size_t>(first - top) * padded;
      if (source.plain() && inside > 0 && count > 0) {
        std::memset(plane, 0, static_cast<size_t>(middle - plane) * sizeof(float));
        few_pad_rows(source.plain_at(n + i, c0 + c, r0) + begin, source.tensor->stride[1], inside, lead, count, middle,
                     padded);
        float* const below = middle + inside * padded;
        std::memset(below, 0, static_cast<size_t>(plane + all * padded - below) * sizeof(float));
      } else {
        if (inside < all || count < padded) std::memset(plane, 0, all * padded * sizeof(float));
        few_copy_source(source, n + i, c0 + c, {r0, r0 + inside}, static_cast<size_t>(begin), count, middle + lead,
                        padded, buffer);
      }
    }
    for (size_t k = 0; k < copies && copies > 1; ++k) {
      const ptrdiff_t shift = static_cast<ptrdiff_t>(k) * x.tap - low + x.offset;
      few_copy_rows(rows_from + shift, stride, all, x.pixels, nullptr,
                    to + c * channel_stride + k * source_rows * length + i * x.pixels, length);
    }
  }
}

}  // namespace bnns
