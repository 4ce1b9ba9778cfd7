// UnMax: every value of the small image x goes to its index in the large image y, which is zero elsewhere.
//
//   y = act(u + bias),  u = 0, then u[index(i)] = x(i) for i in raster order: of equal indices the last one stays
//   dx(i) = g[index(i)],  g = dy * act'
//
// The large image is made in tiles on the stack. Indices have been checked: each is a pixel of the plane.

#include <algorithm>
#include <cstring>

#include "src/ops/pooling/backward/scatter.h"

namespace bnns {
namespace {

struct UnmaxScratch {
  float tile[ScatterTile::kFloats];
  float x[kChunk];
  float upstream[kChunk], value[kChunk];
};

// Calls f(x, y, n) for every run of small pixels whose indices may lie in the tile.
template <class F>
void for_each_source(const PoolingGeometry& g, const ScatterTile& tile, bool in_rows, F&& f) {
  const WindowsNear near(g, tile, index_range(in_rows));
  for (int64_t wy = near.y.begin; wy < near.y.end; ++wy) {
    for (int64_t first = near.x.begin; first < near.x.end; first += kChunk) {
      f(first, wy, std::min(kChunk, near.x.end - first));
    }
  }
}

// u of a tile, plus the bias.
void place_values(const PoolingGeometry& g, const Planes& x, const void* plane, const IndexPlanes& index,
                  const void* index_plane, bool in_rows, const Tensor* bias, int64_t channel, const ScatterTile& tile,
                  float* scratch) {
  std::fill(tile.data, tile.data + tile.x.size() * tile.y.size(), 0.0f);
  for_each_source(g, tile, in_rows, [&](int64_t first, int64_t wy, int64_t n) {
    const float* values = load_pixels(x, plane, first, wy, n, scratch);
    for (int64_t i = 0; i < n; ++i) {
      float* pixel = tile.find(static_cast<int64_t>(index.load(index_plane, first + i, wy)));
      if (pixel) *pixel = values[i];
    }
  });
  if (!bias) return;
  const float b = pooling_bias(bias, channel);
  for (int64_t i = 0; i < tile.x.size() * tile.y.size(); ++i) tile.data[i] += b;
}

// g of a tile: dy * act', from y or from u + bias.
void gradient_tile(const PoolingBackward& call, int64_t sample, int64_t channel, const ScatterTile& tile,
                   UnmaxScratch* scratch) {
  const bool identity = call.activation.is_identity();
  const bool from_output = !identity && has_derivative_from_output(call.activation);
  if (!identity && !from_output) {
    place_values(call.problem.geometry, call.x, call.x.at(sample, channel), call.index, call.index.at(sample, channel),
                 call.index_in_rows, call.bias, channel, tile, scratch->x);
  }
  for (int64_t y = tile.y.begin; y < tile.y.end; ++y) {
    for (int64_t x = tile.x.begin; x < tile.x.end; x += kChunk) {
      const int64_t n = std::min(kChunk, tile.x.end - x);
      float* g = tile.row(y) + (x - tile.x.begin);
      const float* dy = load_pixels(call.dy, call.dy.at(sample, channel), x, y, n, scratch->upstream);
      if (identity) {
        std::memcpy(g, dy, static_cast<size_t>(n) * sizeof(float));
      } else if (from_output) {
        const float* values = load_pixels(call.y, call.y.at(sample, channel), x, y, n, scratch->value);
        activation_backward_from_output(call.activation, values, dy, g, static_cast<size_t>(n));
      } else {
        activation_backward_from_input(call.activation, g, dy, g, static_cast<size_t>(n));
      }
    }
  }
}

}  // namespace

void pooling_unmax_forward(const PoolingForward& call, Range planes, Span rows) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  UnmaxScratch scratch;
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    const int64_t sample = at.sample, channel = at.channel;
    void* y = call.y.at(sample, channel);
    ScatterTile::for_each(g.x.in, rows, scratch.tile, [&](const ScatterTile& tile) {
      place_values(g, call.x, call.x.at(sample, channel), call.index, call.index.at(sample, channel),
                   call.index_in_rows, call.bias, channel, tile, scratch.x);
      const size_t n = static_cast<size_t>(tile.x.size() * tile.y.size());
      if (!call.activation.is_identity()) activation_forward(call.activation, tile.data, tile.data, n);
      for (int64_t row = tile.y.begin; row < tile.y.end; ++row) {
        store_pixels(call.y, y, tile.x.begin, row, tile.x.size(), tile.row(row), false);
      }
    });
  }
}

void pooling_unmax_backward(const PoolingBackward& call, Range planes, Span /*rows*/) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  const bool direct = call.dx.has_f32_rows() && !call.accumulate;
  UnmaxScratch scratch;
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    const int64_t sample = at.sample, channel = at.channel;
    void* dx = call.dx.at(sample, channel);
    const void* index = call.index.at(sample, channel);
    ScatterTile::for_each(g.x.in, {0, g.y.in}, scratch.tile, [&](const ScatterTile& tile) {
      gradient_tile(call, sample, channel, tile, &scratch);
      for_each_source(g, tile, call.index_in_rows, [&](int64_t first, int64_t wy, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          const float* pixel = tile.find(static_cast<int64_t>(call.index.load(index, first + i, wy)));
          if (!pixel) continue;
          if (direct)
            static_cast<float*>(dx)[wy * call.dx.row + first + i] = *pixel;
          else
            store_pixels(call.dx, dx, first + i, wy, 1, pixel, call.accumulate);
        }
      });
    });
  }
}

double pooling_unmax_bias_gradient(const PoolingBackward& call, int64_t samples, int64_t channel) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  UnmaxScratch scratch;
  double sum = 0;
  for (int64_t n = 0; n < samples; ++n) {
    ScatterTile::for_each(g.x.in, {0, g.y.in}, scratch.tile, [&](const ScatterTile& tile) {
      gradient_tile(call, n, channel, tile, &scratch);
      sum += sum_of(tile.data, tile.x.size() * tile.y.size());
    });
  }
  return sum;
}

}  // namespace bnns
