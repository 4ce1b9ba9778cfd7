#include "src/ops/pooling/convert/pieces.h"

#include <algorithm>

namespace bnns {
namespace {

// Of all images of a piece: half of L1, so that what a kernel keeps stays there, too. Bands that would have to read
// many rows again may take more.
constexpr int64_t kPieceFloats = 6144, kScratchFloats = PoolingScratch::kConvertedFloats;
constexpr int64_t kLine = PoolingScratch::kLine, kMostImages = PoolingScratch::kMostConverted;

// An image of a call. `small`: a pixel per window.
struct Image {
  const Planes* planes;
  Planes* seen;
  bool small, written;

  bool needs_conversion() const { return planes->data && !planes->has_f32_rows(); }
};
struct Images {
  Image image[kMostImages];
  int count;
  const Image* begin() const { return image; }
  const Image* end() const { return image + count; }
};
Images images_of(const PoolingForward& call, PoolingForward* seen) {
  return {{{&call.x, &seen->x, false, false}, {&call.y, &seen->y, true, true}}, 2};
}
Images images_of(const PoolingBackward& call, PoolingBackward* seen) {
  return {{{&call.x, &seen->x, false, false},
           {&call.y, &seen->y, true, false},
           {&call.dy, &seen->dy, true, false},
           {&call.dx, &seen->dx, false, true}},
          4};
}
// What a kernel that writes a buffer may not do.
void write_plainly(PoolingForward* seen) {
  seen->stream = false;
}
void write_plainly(PoolingBackward* seen) {
  seen->stream = seen->accumulate = false;
}

// Rows of both images that a kernel touches on its way to some rows of the one that it writes.
struct PieceRows {
  Span large, small;
};
Span under(const PoolingAxis& axis, Span windows) {
  return {std::max<int64_t>(0, axis.start(windows.begin)),
          std::min(axis.in, axis.start(windows.end - 1) + axis.reach() + 1)};
}
PieceRows rows_for(const PoolingForward& call, Span rows) {
  return {under(call.problem.geometry.y, rows), rows};
}
// Sums over windows that overlap are made with a row of windows more on either side.
int64_t rows_beside(const PoolingBackward& call) {
  const PoolingAxis& axis = call.problem.geometry.y;
  return call.problem.function != PoolingFunction::max && axis.reach() >= axis.stride ? 1 : 0;
}
PieceRows rows_for(const PoolingBackward& call, Span rows) {
  const PoolingAxis& axis = call.problem.geometry.y;
  Span windows{axis.windows(rows.begin).begin, axis.windows(rows.end - 1).end};
  windows.begin -= rows_beside(call), windows.end += rows_beside(call);
  windows.begin = std::clamp<int64_t>(windows.begin, 0, axis.out);
  windows.end = std::clamp<int64_t>(windows.end, windows.begin, axis.out);
  if (windows.empty()) return {rows, windows};
  const Span large = under(axis, windows);
  return {{std::min(rows.begin, large.begin), std::max(rows.end, large.end)}, windows};
}

int64_t width_of(const PoolingGeometry& g, const Image& image) {
  return image.small ? g.x.out : g.x.in;
}
Span rows_of(const Image& image, const PieceRows& piece, Span written) {
  return image.written ? written : image.small ? piece.small : piece.large;
}

// At most so many rows of both images for some rows of the one that is written, and how many of the large one no other
// piece reads.
struct PieceHeight {
  int64_t large, small, own;
};
PieceHeight height_for(const PoolingForward& call, int64_t rows) {
  const PoolingAxis& axis = call.problem.geometry.y;
  return {std::min(axis.in, (rows - 1) * axis.stride + axis.reach() + 1), rows, rows * axis.stride};
}
PieceHeight height_for(const PoolingBackward& call, int64_t rows) {
  const PoolingAxis& axis = call.problem.geometry.y;
  const int64_t beside = rows_beside(call);
  return {std::min(axis.in, rows + 2 * (axis.reach() + beside * axis.stride)),
          std::min(axis.out, (rows - 1 + axis.reach()) / axis.stride + 1 + 2 * beside), rows};
}
template <class Call>
int64_t floats_for(const Call& call, const Images& images, int64_t rows) {
  const PieceHeight height = height_for(call, rows);
  int64_t floats = 0;
  for (const Image& image : images) {
    const int64_t n = image.written ? rows : image.small ? height.small : height.large;
    if (image.needs_conversion()) floats += n * width_of(call.problem.geometry, image);
  }
  return floats;
}

template <class Call>
ConvertPieces pieces_of(const Call& call, const Images& images, int64_t all, bool bands) {
  const int64_t plane = floats_for(call, images, all);
  if (plane <= kPieceFloats) return {kPieceFloats / plane, all};
  if (!bands) return plane <= kScratchFloats ? ConvertPieces{1, all} : ConvertPieces{};
  for (const int64_t scratch : {kPieceFloats, kScratchFloats}) {
    int64_t rows = 0, more = (all + 3) / 2 * 2;  // rows fit, more need not be tried
    while (more - rows > 2) {
      const int64_t middle = (rows + more) / 4 * 2;
      (floats_for(call, images, middle) <= scratch ? rows : more) = middle;
    }
    if (rows == 0) continue;
    const int64_t parts = (all + rows - 1) / rows;
    rows = (all + 2 * parts - 1) / (2 * parts) * 2;  // of about equal height
    const PieceHeight height = height_for(call, rows);
    if (height.large <= 2 * height.own) return {1, rows};
  }
  return {};
}

template <class Call>
ConvertedCall<Call> convert(const Call& call, int64_t rows, bool bands) {
  ConvertedCall<Call> converted{call, {}};
  const Images images = images_of(call, &converted.seen);
  bool any = false;
  for (const Image& image : images) any |= image.needs_conversion();
  if (any) converted.pieces = pieces_of(call, images, rows, bands);
  if (!converted.in_pieces()) return converted;
  for (const Image& image : images) {
    if (!image.needs_conversion()) continue;
    const PoolingGeometry& g = call.problem.geometry;
    const int64_t width = width_of(g, image), plane = width * (image.small ? g.y.out : g.y.in);
    *image.seen = {image.planes->data, BNNSDataTypeFloat32, 1, width, plane, plane * call.problem.channels};
    if (image.written) write_plainly(&converted.seen);
  }
  return converted;
}

// Rows of some planes to or from a buffer where they follow each other; in as few runs as they are in memory.
template <class Run>
void for_each_run(const Planes& planes, int64_t channels, Range some, Span rows, int64_t width, Run&& run) {
  const int64_t plane = rows.size() * width, count = static_cast<int64_t>(some.end - some.begin);
  const bool packed = planes.column == 1 && planes.row == width;
  PlaneNumber at(some.begin, channels);
  if (packed && (count == 1 || (planes.plane == plane && planes.sample == plane * channels))) {
    return run(planes.at(at.sample, at.channel), rows.begin, count * plane, int64_t{0});
  }
  for (int64_t p = 0; p < count; ++p, at.next()) {
    void* from = planes.at(at.sample, at.channel);
    if (packed) {
      run(from, rows.begin, plane, p * plane);
      continue;
    }
    for (int64_t y = rows.begin; y < rows.end; ++y) run(from, y, width, p * plane + (y - rows.begin) * width);
  }
}

void store_rows(const PoolingForward& call, void* plane, int64_t row, int64_t n, const float* from) {
  if (call.y.column == 1)
    pooling_store_run(call.y, plane, row, n, from, call.stream);
  else
    store_pixels(call.y, plane, 0, row, n, from, false);
}
void store_rows(const PoolingBackward& call, void* plane, int64_t row, int64_t n, const float* from) {
  if (call.dx.column == 1 && !call.accumulate)
    pooling_store_run(call.dx, plane, row, n, from, call.stream);
  else
    store_pixels(call.dx, plane, 0, row, n, from, call.accumulate);
}

template <class Call, class Kernel>
void run_pieces(const Call& call, ConvertPieces pieces, Range planes, Span rows, Kernel kernel) {
  const PoolingGeometry& g = call.problem.geometry;
  const int64_t channels = call.problem.channels;
  float* const scratch = call.scratch->converted;
  Call seen = call;
  const Images images = images_of(call, &seen);
  for (const Image& image : images) {
    if (image.written && image.needs_conversion()) write_plainly(&seen);
  }
  for (size_t p = planes.begin; p < planes.end; p += static_cast<size_t>(pieces.planes)) {
    const Range some{p, std::min(planes.end, p + static_cast<size_t>(pieces.planes))};
    for (int64_t y = rows.begin; y < rows.end; y += pieces.rows) {
      const Span written{y, std::min(rows.end, y + pieces.rows)};
      const PieceRows piece = rows_for(call, written);
      float* free = scratch;
      float* result = nullptr;
      for (const Image& image : images) {
        if (!image.needs_conversion()) continue;
        const int64_t width = width_of(g, image);
        const Span its = rows_of(image, piece, written);
        const int64_t plane = its.size() * width;
        // The buffer as if it were a part of the tensor: plane some.begin and row its.begin are its first.
        const int64_t before = static_cast<int64_t>(some.begin) * plane + its.begin * width;
        void* data =
            reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(free) - static_cast<uintptr_t>(before) * sizeof(float));
        *image.seen = {data, BNNSDataTypeFloat32, 1, width, plane, plane * channels};
        float* to = free;
        free += (plane * static_cast<int64_t>(some.end - some.begin) + kLine - 1) / kLine * kLine;
        if (image.written) {
          result = to;
          continue;
        }
        for_each_run(*image.planes, channels, some, its, width,
                     [&](const void* from, int64_t row, int64_t n, int64_t i) {
                       if (image.planes->column == 1)
                         pooling_load_run(*image.planes, from, row, n, to + i);
                       else
                         load_pixels(*image.planes, from, 0, row, n, to + i);
                     });
      }
      kernel(seen, some, written);
      for (const Image& image : images) {
        if (!image.written || !image.needs_conversion()) continue;
        for_each_run(*image.planes, channels, some, written, width_of(g, image),
                     [&](void* to, int64_t row, int64_t n, int64_t i) { store_rows(call, to, row, n, result + i); });
      }
    }
  }
  if (call.stream) pooling_finish_runs();
}

}  // namespace

ConvertedCall<PoolingForward> pooling_pieces(const PoolingForward& call, bool bands) noexcept {
  return convert(call, call.problem.geometry.y.out, bands);
}
ConvertedCall<PoolingBackward> pooling_pieces(const PoolingBackward& call, bool bands) noexcept {
  return convert(call, call.problem.geometry.y.in, bands);
}
void pooling_in_pieces(const PoolingForward& call, ConvertPieces pieces, Range planes, Span rows,
                       PoolingKernel<PoolingForward> kernel) noexcept {
  run_pieces(call, pieces, planes, rows, kernel);
}
void pooling_in_pieces(const PoolingBackward& call, ConvertPieces pieces, Range planes, Span rows,
                       PoolingKernel<PoolingBackward> kernel) noexcept {
  run_pieces(call, pieces, planes, rows, kernel);
}

}  // namespace bnns
