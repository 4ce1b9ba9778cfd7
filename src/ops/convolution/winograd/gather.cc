// Patch maps by Winograd's algorithm: target tiles gathered from the source.

#include "src/ops/convolution/winograd/gather.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/gemm_block.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"

namespace bnns {
namespace {

constexpr size_t kFewTiles = 128;          // whose weights are not worth storing: V is smaller
constexpr size_t kFewDepth = 128;          // then U of 32 columns is 576 KB
constexpr size_t kDepth = 512;             // else
constexpr size_t kStreamBytes = 4u << 20;  // targets from here on leave by non-temporal stores
constexpr size_t kLeastTiles = 28;         // of a block: U is read from L3 once for each
constexpr size_t kMostTiles = 112;
constexpr size_t kBlockFloats = 144 * 1024;  // V of a block, if that is not fewer than kLeastTiles

// A few floats, without the call that a copy of unknown length would be; also to a place a little before them.
void copy_run(const float* from, size_t n, float* to) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) std::memmove(to + i, from + i, 4 * sizeof(float));
  if (n % 4 & 2) std::memmove(to + i, from + i, 2 * sizeof(float)), i += 2;
  if (n % 2) to[i] = from[i];
}

}  // namespace

void run_winograd_gather(const PatchMap& p, CallScratch& scratch) {
  const WinogradProduct product(p);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.source, workspace.data());
}

SinkParts winograd_gather_parts(const PatchMap& p) {
  return WinogradProduct(p).sink_parts();
}

WinogradProduct::WinogradProduct(const PatchMap& p)
    : y_(p.y),
      x_(p.x),
      taps_(winograd_taps(p.y, p.x)),
      tile_(winograd_tile(taps_)),
      rows_(p.rows),
      channels_(winograd_channels(p.y, p.channels)),
      target_(p.target),
      isa_(isa()),
      kernels_(tile_kernels(isa_)) {
  const PatchAxis &y = p.y, &x = p.x;
  const size_t rows = rows_, batch = p.batch;
  const WeightView weights = f32_weights(p.weights);
  // Taps that run backwards (dX) are the flipped kernel.
  const auto flip = [&](PatchAxis* a, ptrdiff_t stride, const float** data) {
    *data += static_cast<ptrdiff_t>(a->kernel_first) * stride;
    if (a->tap == 1) return stride;
    const auto last = static_cast<ptrdiff_t>(a->taps - 1);
    *data += last * stride;
    a->tap = 1, a->offset -= last;
    return -stride;
  };
  weights_ = {weights.data, p.row_stride(weights), p.channel_stride(weights)};
  weights_.step = step(), weights_.taps_y = y.taps, weights_.taps_x = x.taps;
  weights_.y = flip(&y_, weights.y, &weights_.data);
  weights_.x = flip(&x_, weights.x, &weights_.data);

  const size_t all_tiles = checked_mul(batch, div_up(y.pixels, tile_) * div_up(x.pixels, tile_), "scratch");
  few_tiles_ = all_tiles <= kFewTiles && batch <= kWinogradMostSamples;
  v_stride_ = odd_lines(channels_);
  const size_t wanted = std::clamp(kBlockFloats / (kWinogradPoints * v_stride_), kLeastTiles, kMostTiles);
  tiles_ = make_tile_blocks(taps_, y, x, batch, few_tiles_ ? all_tiles * 2 : wanted);
  // A depth block has all phases of its channels.
  depth_step_ = div_up(p.channels, div_up(channels_, few_tiles_ ? kFewDepth : kDepth)) * step() * step();
  columns_ = div_up(rows, kWinogradColumns);
  const size_t block = tiles_.pixels();
  v_point_ = odd_lines(block * v_stride_);
  m_point_ = odd_lines(block * kWinogradColumns);
  u_point_ = odd_lines(depth_step_ * kWinogradColumns);
  u_block_ = kWinogradPoints * u_point_;

  const size_t work = kWinogradPoints * rows * channels_ * all_tiles, blocks = tiles_.count();
  threads_ = threads_for(p.threads, std::max(blocks * columns_, div_up(channels_, kWinogradGroup)), work / 2);
  // Parts of the target channels where blocks are few: each part makes V anew, unless all share it.
  parts_ = few_tiles_ ? columns_ : threads_ == 1 ? 1 : std::min(columns_, div_up(2 * threads_, blocks));
  parts_ = div_up(columns_, div_up(columns_, parts_));

  const size_t v = kWinogradPoints * v_point_;
  v_floats_ = few_tiles_ ? v : 0;
  own_v_floats_ = few_tiles_ ? 0 : v;
  u_floats_ = few_tiles_ ? 0 : checked_mul(columns_ * depth_blocks(), u_block_, "scratch");
  own_u_floats_ = few_tiles_ ? u_block_ : 0;
  m_floats_ = kWinogradPoints * m_point_;
  stage_floats_ = stage_floats(tile_ * tiles_.rows + taps_ - 1, tile_ * tiles_.width + taps_ - 1);
  streams_ = writes_direct() && !target_.sink && tiles_.width == tiles_.length &&
             target_.tensor->stride[1] == x.pixels &&
             batch * rows * y.pixels * x.pixels * sizeof(float) >= kStreamBytes;
  staged_floats_ = writes_direct() ? 0 : block * tile_ * tile_ * kWinogradColumns;
  thread_floats_ = round_up(own_v_floats_ + own_u_floats_ + m_floats_ + stage_floats_ + staged_floats_, 16);
}

// A sink wants whole rows.
bool WinogradProduct::writes_direct() const {
  return target_.sink ? target_.in_place(y_, x_) : target_.in_place();
}

void WinogradProduct::transform_weights(size_t column, size_t depth_block, float* u) const {
  const size_t row = column * kWinogradColumns, channel = depth_block * depth_step_;
  WinogradWeights w = weights_;
  w.data += static_cast<ptrdiff_t>(row) * w.row + static_cast<ptrdiff_t>(channel / (step() * step())) * w.depth;
  winograd_weight_block(isa_, taps_, w, rows_ - row, std::min(depth_step_, channels_ - channel), u, u_point_);
}

// V of 16 channels of a block of tiles. v is that of the block.
void WinogradProduct::transform_source(const ImageSource& source, const PixelBlock& tiles, size_t first_channel,
                                       float* stage, float* v) const {
  const WinogradStage window{static_cast<ptrdiff_t>(tile_ * tiles.u0) * y_.step + y_.offset,
                             static_cast<ptrdiff_t>(tile_ * tiles.v0) * x_.step + x_.offset,
                             tile_ * tiles.rows() + taps_ - 1, tile_ * tiles.width() + taps_ - 1, step()};
  const size_t row_floats = window.width * kWinogradGroup;
  v += first_channel;
  for (size_t n = tiles.n0; n < tiles.n1; ++n) {
    gather_stage(source, n, first_channel, std::min(kWinogradGroup, channels_ - first_channel), window, stage);
    for (size_t u = 0; u < tiles.rows(); ++u, v += tiles.width() * v_stride_) {
      winograd_source_row(taps_, stage + tile_ * u * row_floats, row_floats, tiles.width(), v, v_stride_, v_point_);
    }
  }
}

// The same for a large target with dense planes: a row of tiles at a time, 16 channels of it in L1.
void WinogradProduct::stream(const Block& b, size_t columns, const float* bias, const float* m, float* buffer) const {
  const size_t height = b.pixels.rows(), width = b.pixels.width(), row = tile_ * b.tiles.width();
  for (size_t c = 0; c < columns; c += kWinogradGroup) {
    const float* from = m + c;
    for (size_t n = 0; n < b.pixels.samples(); ++n) {
      for (size_t u = 0; u < height; u += tile_, from += b.tiles.width() * kWinogradColumns) {
        const size_t rows = std::min(tile_, height - u);
        winograd_target_row(taps_, from, kWinogradColumns, m_point_, b.tiles.width(), bias + c, buffer, tile_ * row,
                            row);
        for (size_t i = c; i < std::min(columns, c + kWinogradGroup); ++i) {
          float* run = buffer + (i - c) * tile_ * row;
          for (size_t r = 1; row != width && r < rows; ++r) copy_run(run + r * row, width, run + r * width);
          if (!target_.activation.is_identity()) activation_forward(target_.activation, run, run, rows * width);
          stream_values(run, rows * width, b.data + n * b.sample_stride + i * b.channel_stride + u * width);
        }
      }
    }
  }
}

// Bias, activation and stores of 32 target channels of a block. Tiles that are not all wanted are made
// in `buffer`: a row of them for 16 channels.
void WinogradProduct::finish(const Block& b, size_t column, size_t columns, const float* m, float* buffer) const {
  const size_t first = column * kWinogradColumns, height = b.pixels.rows(), width = b.pixels.width();
  float bias[kWinogradColumns] = {};
  if (target_.bias) std::copy_n(target_.bias + first, columns, bias);
  if (streams_) return stream(b, columns, bias, m, buffer);
  for (size_t c = 0; c < columns; c += kWinogradGroup) {
    const size_t channels = std::min(kWinogradGroup, columns - c);
    const float* from = m + c;
    for (size_t n = 0; n < b.pixels.samples(); ++n) {
      for (size_t u = 0; u < height; u += tile_, from += b.tiles.width() * kWinogradColumns) {
        float* to = b.data + n * b.sample_stride + c * b.channel_stride + u * b.row_stride;
        const size_t rows = std::min(tile_, height - u);
        const size_t whole = channels == kWinogradGroup && rows == tile_ ? width / tile_ : 0;
        winograd_target_row(taps_, from, kWinogradColumns, m_point_, whole, bias + c, to, b.channel_stride,
                            b.row_stride);
        const size_t more = b.tiles.width() - whole, row = tile_ * more, first_pixel = tile_ * whole;
        if (more == 0) continue;
        winograd_target_row(taps_, from + whole * kWinogradColumns, kWinogradColumns, m_point_, more, bias + c, buffer,
                            tile_ * row, row);
        for (size_t i = 0; i < channels * rows; ++i) {
          const float* values = buffer + (i / rows * tile_ + i % rows) * row;
          copy_run(values, width - first_pixel,
                   to + i / rows * b.channel_stride + i % rows * b.row_stride + first_pixel);
        }
      }
    }
  }
  const bool dense = b.row_stride == width, direct = writes_direct();
  const bool stores = !direct && !target_.only_sink();
  if (!target_.activation.is_identity() || stores) {
    for (size_t n = 0; n < b.pixels.samples(); ++n) {
      for (size_t c = 0; c < columns; ++c) {
        float* values = b.data + n * b.sample_stride + c * b.channel_stride;
        if (!target_.activation.is_identity()) {
          for (size_t u = 0; u < (dense ? 1 : height); ++u) {
            float* run = values + u * b.row_stride;
            activation_forward(target_.activation, run, run, dense ? height * width : width);
          }
        }
        for (size_t u = 0; stores && u < height; ++u) {
          store_run(target_, b.pixels.n0 + n, first + c, b.pixels.u0 + u, b.pixels.v0, 1, values + u * b.row_stride,
                    width);
        }
      }
    }
  }
  if (target_.sink) {
    target_.sink->take(target_.sink->context,
                       {b.pixels.n0, b.pixels.n1, first, columns, b.pixels.u0 * x_.pixels + b.pixels.v0, height * width,
                        b.data, b.sample_stride, b.channel_stride});
  }
}

// 32 target channels of a block of tiles. u: of these columns, all depth blocks; null: made here, in own_u.
void WinogradProduct::run_columns(const PixelBlock& tiles, size_t column, const float* u, const float* v, float* own_u,
                                  float* m, float* buffer, float* staged) const {
  const size_t count = tiles.pixels(), columns = std::min(kWinogradColumns, rows_ - column * kWinogradColumns);
  Block b;
  b.tiles = tiles;
  b.pixels = {tiles.n0,         tiles.n1,
              tile_ * tiles.u0, std::min(y_.pixels, tile_ * tiles.u1),
              tile_ * tiles.v0, std::min(x_.pixels, tile_ * tiles.v1)};
  if (writes_direct()) {
    const Tensor& t = *target_.tensor;
    b.sample_stride = target_.batch_stride, b.channel_stride = t.stride[2], b.row_stride = t.stride[1];
    b.data = target_.at(b.pixels.n0, column * kWinogradColumns, b.pixels.u0, b.pixels.v0);
  } else {
    b.row_stride = b.pixels.width(), b.sample_stride = b.pixels.rows() * b.row_stride;
    b.channel_stride = b.pixels.samples() * b.sample_stride;
    b.data = staged;
  }
  // A direct target that fits the caches is prefetched: its lines are far from each other, and are read first.
  const size_t row_lines = div_up(b.pixels.rows() * b.row_stride, 16), planes = columns * b.pixels.samples();
  const size_t lines = u && writes_direct() && !streams_ ? planes * row_lines : 0;
  size_t asked = 0;

  GemmBlock g;
  g.rows = count;
  g.columns = round_up(columns, kWinogradGroup);
  set_a_rows(&g, even_tile_rows(count, kernels_), static_cast<ptrdiff_t>(v_stride_));
  g.c_stride = kWinogradColumns;
  for (size_t d = 0; d < depth_blocks(); ++d) {
    const size_t channel = d * depth_step_;
    const size_t depth = std::min(depth_step_, channels_ - channel);
    set_b_panels(&g, kernels_.columns, depth * kernels_.columns);
    g.accumulate = d > 0;
    if (!u) transform_weights(column, d, own_u);
    for (size_t k = 0; k < kWinogradPoints; ++k) {
      g.a = v + k * v_point_ + channel;
      g.b = (u ? u + d * u_block_ : own_u) + k * u_point_;
      g.c = m + k * m_point_;
      for (; d == 0 && asked < lines * (k + 1) / kWinogradPoints; ++asked) {
        const size_t plane = asked / row_lines;
        __builtin_prefetch(
            b.data + plane / columns * b.sample_stride + plane % columns * b.channel_stride + asked % row_lines * 16,
            1);
      }
      multiply_point(kernels_, g, depth);
    }
  }
  finish(b, column, columns, m, buffer);
}

void WinogradProduct::run(const ImageSource& source, void* workspace) const {
  float* const shared_u = static_cast<float*>(workspace);
  float* const shared_v = shared_u + u_floats_;
  float* const scratch = shared_v + v_floats_;
  const size_t groups = div_up(channels_, kWinogradGroup), blocks = tiles_.count();
  if (few_tiles_) {
    parallel_for(groups, threads_, [&](size_t group, size_t worker) {
      transform_source(source, tiles_.at(0), group * kWinogradGroup, scratch + worker * thread_floats_, shared_v);
    });
  } else {
    const size_t tasks = columns_ * depth_blocks();
    parallel_for(tasks, threads_, [&](size_t task, size_t) {
      transform_weights(task / depth_blocks(), task % depth_blocks(), shared_u + task * u_block_);
    });
  }
  const size_t part_columns = div_up(columns_, parts_);
  parallel_for(blocks * parts_, threads_, [&](size_t task, size_t worker) {
    const PixelBlock tiles = tiles_.at(task / parts_);
    float *stage = scratch + worker * thread_floats_, *own_v = stage + stage_floats_, *own_u = own_v + own_v_floats_;
    float *m = own_u + own_u_floats_, *staged = m + m_floats_;
    if (!few_tiles_) {
      for (size_t group = 0; group < groups; ++group) {
        transform_source(source, tiles, group * kWinogradGroup, stage, own_v);
      }
    }
    const size_t first = task % parts_ * part_columns;
    for (size_t column = first; column < std::min(columns_, first + part_columns); ++column) {
      run_columns(tiles, column, few_tiles_ ? nullptr : shared_u + column * depth_blocks() * u_block_,
                  few_tiles_ ? shared_v : own_v, own_u, m, stage, staged);
    }
    if (streams_) stream_end();
  });
}

SinkParts WinogradProduct::sink_parts() const {
  if (tiles_.width < tiles_.length) return {};
  return {tiles_.samples, std::min(tile_ * tiles_.rows, y_.pixels) * x_.pixels};
}

}  // namespace bnns
