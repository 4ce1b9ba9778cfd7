// Up by the transpose of Winograd's algorithm: overlapping target tiles, added in order.

#include "src/ops/convolution/winograd/transposed.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/gemm_block.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/few/lanes.h"

namespace bnns {
namespace {

constexpr size_t kDepth = 512;      // of one product
constexpr size_t kFewTiles = 128;   // whose weights are not worth storing: Z is smaller
constexpr size_t kFewDepth = 128;   // then U of 32 columns is 576 KB
constexpr size_t kLeastTiles = 28;  // of a block: U is read from L3 once for each
constexpr size_t kMostTiles = 112;
constexpr size_t kBlockFloats = 144 * 1024;  // Z of a block, if that is not fewer than kLeastTiles
constexpr size_t kBandShare = 8;             // rows of a band for each that it makes once more
constexpr size_t kStreamBytes = 4u << 20;    // phased targets from here on leave by non-temporal stores

class Transposed {
 public:
  explicit Transposed(const PatchMap& p)
      : y_(down_axis(p.map.y)),
        x_(down_axis(p.map.x)),
        large_y_(p.map.y.large),
        large_x_(p.map.x.large),
        channels_(p.channels),
        large_channels_(p.rows),
        taps_(winograd_taps(y_, x_)),
        tile_(winograd_tile(taps_)),
        more_(taps_ - 1),
        halo_(div_up(more_, tile_)),
        first_y_(first_of(y_.pixels)),
        first_x_(first_of(x_.pixels)),
        columns_(winograd_channels(y_, p.rows)),
        column_blocks_(div_up(columns_, kWinogradColumns)),
        target_(p.target),
        isa_(isa()),
        kernels_(tile_kernels(isa_)) {
    const WeightView w = f32_weights(p.weights);
    weights_ = {w.data, w.large, w.small, w.y, w.x};
    weights_.data += static_cast<ptrdiff_t>(y_.kernel_first) * w.y + static_cast<ptrdiff_t>(x_.kernel_first) * w.x;
    weights_.step = step(), weights_.taps_y = y_.taps, weights_.taps_x = x_.taps, weights_.phased_rows = step() == 2;
    z_stride_ = odd_lines(channels_);
    cut(p.batch, p.threads);
    pixels_ = tile_ * width_ + more_;
    z_point_ = odd_lines(block_tiles_ * z_stride_);
    m_point_ = odd_lines(block_tiles_ * kWinogradColumns);
    u_point_ = odd_lines(depth_step_ * kWinogradColumns);
    u_block_ = kWinogradPoints * u_point_;
    u_floats_ = few_tiles_ ? 0 : checked_mul(column_blocks_ * depth_blocks(), u_block_, "scratch");
    own_u_floats_ = few_tiles_ ? u_block_ : 0;
    z_floats_ = few_tiles_ ? kWinogradPoints * z_point_ : 0;
    own_z_floats_ = few_tiles_ ? 0 : kWinogradPoints * z_point_;
    stage_floats_ = stage_floats(tile_ * block_rows_, tile_ * width_);
    above_floats_ = (6 - first_y_) * pixels_ * kWinogradGroup;
    rows_floats_ = tile_ * pixels_ * kWinogradGroup;
    const size_t groups = div_up(column_blocks_, parts_) * (kWinogradColumns / kWinogradGroup);
    thread_floats_ = round_up(own_u_floats_ + own_z_floats_ + kWinogradPoints * m_point_ + stage_floats_ +
                                  groups * above_floats_ + rows_floats_ + kWinogradGroup * pixels_,
                              16);
    const bool plain = target_.in_place() && target_.activation.is_identity() && !target_.bias;
    direct_ = plain && step() == 1;
    streams_ = plain && !direct_ && p.batch * p.rows * large_y_ * large_x_ * sizeof(float) >= kStreamBytes;
  }

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, u_floats_ + z_floats_); }

  void run(const ImageSource& source, void* workspace) const {
    float *const u = static_cast<float*>(workspace), *const shared_z = u + u_floats_;
    float* const scratch = shared_z + z_floats_;
    if (few_tiles_) {
      parallel_for(div_up(channels_, kWinogradGroup), threads_, [&](size_t group, size_t worker) {
        transform_source(source, bands_.at(0), group * kWinogradGroup, scratch + worker * thread_floats_, shared_z);
      });
    } else {
      parallel_for(column_blocks_ * depth_blocks(), threads_, [&](size_t task, size_t) {
        transform_weights(task / depth_blocks(), task % depth_blocks(), u + task * u_block_);
      });
    }
    parallel_for(bands_.count() * parts_, threads_, [&](size_t task, size_t worker) {
      Buffers buffer;
      buffer.stage = scratch + worker * thread_floats_;
      buffer.u = few_tiles_ ? buffer.stage + stage_floats_ : u;
      buffer.z = few_tiles_ ? shared_z : buffer.stage + stage_floats_;
      buffer.m = buffer.stage + stage_floats_ + own_u_floats_ + own_z_floats_;
      buffer.rows = buffer.m + kWinogradPoints * m_point_;
      buffer.values = buffer.rows + rows_floats_;
      buffer.above = buffer.values + kWinogradGroup * pixels_;
      const size_t part_blocks = div_up(column_blocks_, parts_), first = task % parts_ * part_blocks;
      run_band(source, bands_.at(task / parts_), first, std::min(column_blocks_, first + part_blocks), buffer);
      if (streams_) stream_end();
    });
  }

 private:
  // A thread's own memory, but for what all share: u, or, for few tiles, z.
  struct Buffers {
    float *stage, *u, *z, *m;
    float *above, *rows, *values;  // rows of pixels: see winograd_scatter_row; values: before they are stored
  };

  size_t step() const { return static_cast<size_t>(y_.step); }
  size_t depth_blocks() const { return div_up(channels_, depth_step_); }

  // The last tile ends with the image, and the first has fewer pixels, then zeros: a pixel of the target's border that
  // has the terms of few taps would have the error of a whole tile inside of one, and has none of that at its ends.
  size_t first_of(size_t pixels) const { return pixels - (div_up(pixels, tile_) - 1) * tile_; }
  size_t begin_of(size_t tile, size_t first) const { return tile == 0 ? 0 : first + (tile - 1) * tile_; }
  // The tile to begin with, so that all pixels from this one on are complete.
  size_t start_of(size_t tile) const { return tile <= halo_ + 1 ? 0 : tile - halo_; }

  // Tasks are bands of rows of tiles, or pieces of them, or whole samples. Bits do not depend on the cut.
  void cut(size_t batch, size_t threads) {
    const size_t height = div_up(y_.pixels, tile_), length = div_up(x_.pixels, tile_);
    const size_t tiles = checked_mul(batch, height * length, "scratch");
    // The sum over depth is cut, so this follows from the shape alone.
    few_tiles_ = tiles <= kFewTiles && batch <= kWinogradMostSamples && column_blocks_ > 1;
    depth_step_ = div_up(channels_, div_up(channels_, few_tiles_ ? kFewDepth : kDepth));
    const size_t wanted = std::clamp(kBlockFloats / (kWinogradPoints * z_stride_), kLeastTiles, kMostTiles);
    bands_ = make_tile_blocks(taps_, y_, x_, batch, few_tiles_ ? 2 * tiles : wanted);
    threads_ = threads_for(threads, tiles * column_blocks_, kWinogradPoints * columns_ * channels_ * tiles / 2);
    parts_ = few_tiles_ ? column_blocks_ : 1;
    block_rows_ = bands_.rows, bands_.rows = height;
    if (!few_tiles_ && threads_ > 1) {
      bands_.samples = std::min(bands_.samples, div_up(batch, threads_));
      const size_t tasks = bands_.count();
      const auto divide = [&](size_t share) {
        const size_t bands = std::min(div_up(2 * threads_, tasks), std::max<size_t>(1, height / (share * halo_)));
        bands_.rows = div_up(height, bands);
      };
      if (tasks < 2 * threads_) divide(kBandShare);
      if (bands_.count() < threads_) parts_ = std::min(column_blocks_, div_up(threads_, bands_.count()));
      if (bands_.count() * parts_ < threads_) divide(2);
      parts_ = div_up(column_blocks_, div_up(column_blocks_, parts_));
    }
    threads_ = std::min(threads_, std::max(bands_.count() * parts_, div_up(channels_, kWinogradGroup)));
    width_ = std::min(length, bands_.width + halo_ + 1);
    block_rows_ = std::min(block_rows_, bands_.rows + halo_ + 1);
    block_tiles_ = bands_.samples * block_rows_ * width_;
  }

  void transform_weights(size_t column, size_t depth_block, float* u) const {
    const size_t row = column * kWinogradColumns, channel = depth_block * depth_step_;
    WinogradWeights w = weights_;
    w.data += static_cast<ptrdiff_t>(row / (step() * step())) * w.row + static_cast<ptrdiff_t>(channel) * w.depth;
    winograd_weight_block(isa_, taps_, w, columns_ - row, std::min(depth_step_, channels_ - channel), u, u_point_);
  }

  // Z of 16 channels of a block of tiles. z is that of the block.
  void transform_source(const ImageSource& source, const PixelBlock& tiles, size_t channel, float* stage,
                        float* z) const {
    const size_t zeros_y = tile_ - first_y_, zeros_x = tile_ - first_x_;
    const WinogradStage window{static_cast<ptrdiff_t>(tile_ * tiles.u0) - static_cast<ptrdiff_t>(zeros_y),
                               static_cast<ptrdiff_t>(tile_ * tiles.v0) - static_cast<ptrdiff_t>(zeros_x),
                               tile_ * tiles.rows(), tile_ * tiles.width()};
    const size_t stage_row = window.width * kWinogradGroup;
    // The zeros of the first tile follow its pixels.
    const auto turn = [](float* values, size_t zeros, size_t count) {
      std::memmove(values, values + zeros, count * sizeof(float));
      std::memset(values + count, 0, zeros * sizeof(float));
    };
    z += channel;
    for (size_t n = tiles.n0; n < tiles.n1; ++n) {
      gather_stage(source, n, channel, std::min(kWinogradGroup, channels_ - channel), window, stage);
      if (tiles.u0 == 0 && zeros_y > 0) turn(stage, zeros_y * stage_row, first_y_ * stage_row);
      for (size_t r = 0; tiles.v0 == 0 && zeros_x > 0 && r < window.height; ++r) {
        turn(stage + r * stage_row, zeros_x * kWinogradGroup, first_x_ * kWinogradGroup);
      }
      for (size_t v = 0; v < tiles.rows(); ++v, z += tiles.width() * z_stride_) {
        winograd_gradient_row(taps_, stage + tile_ * v * stage_row, stage_row, tiles.width(), z, z_stride_, z_point_);
      }
    }
  }

  // Some target channels of a band. It begins with the tiles before it that share pixels with its own.
  void run_band(const ImageSource& source, const PixelBlock& band, size_t first, size_t end,
                const Buffers& buffer) const {
    PixelBlock tiles = band;
    tiles.u0 = start_of(band.u0), tiles.v0 = start_of(band.v0);
    for (const size_t top = tiles.u0; tiles.u0 < band.u1; tiles.u0 = tiles.u1) {
      tiles.u1 = std::min(band.u1, tiles.u0 + block_rows_);
      for (size_t c = 0; c < channels_ && !few_tiles_; c += kWinogradGroup) {
        transform_source(source, tiles, c, buffer.stage, buffer.z);
      }
      for (size_t column = first; column < end; ++column) {
        const size_t count = std::min(kWinogradColumns, columns_ - column * kWinogradColumns);
        multiply(tiles.pixels(), column, count, buffer);
        for (size_t c = 0; c < count; c += kWinogradGroup) {
          const size_t group = ((column - first) * kWinogradColumns + c) / kWinogradGroup;
          float* const above = buffer.above + group * above_floats_;
          const float* m = buffer.m + c;
          for (size_t n = tiles.n0; n < tiles.n1; ++n, m += tiles.rows() * tiles.width() * kWinogradColumns) {
            store_tiles(band, tiles, top, n, column * kWinogradColumns + c, m, above, buffer);
          }
        }
      }
    }
  }

  void multiply(size_t tiles, size_t column, size_t columns, const Buffers& buffer) const {
    GemmBlock g;
    g.rows = tiles;
    g.columns = round_up(columns, kWinogradGroup);
    set_a_rows(&g, even_tile_rows(tiles, kernels_), static_cast<ptrdiff_t>(z_stride_));
    g.c_stride = kWinogradColumns;
    for (size_t d = 0; d < depth_blocks(); ++d) {
      const size_t channel = d * depth_step_;
      const size_t depth = std::min(depth_step_, channels_ - channel);
      set_b_panels(&g, kernels_.columns, depth * kernels_.columns);
      g.accumulate = d > 0;
      if (few_tiles_) transform_weights(column, d, buffer.u);
      const float* const u = few_tiles_ ? buffer.u : buffer.u + (column * depth_blocks() + d) * u_block_;
      for (size_t k = 0; k < kWinogradPoints; ++k) {
        g.a = buffer.z + k * z_point_ + channel, g.b = u + k * u_point_, g.c = buffer.m + k * m_point_;
        multiply_point(kernels_, g, depth);
      }
    }
  }

  // The rows of 16 channels that are complete with these rows of tiles go to the target. top: the first row of tiles.
  void store_tiles(const PixelBlock& band, const PixelBlock& tiles, size_t top, size_t n, size_t channel,
                   const float* m, float* above, const Buffers& buffer) const {
    const size_t first = tiles.v0 == 0 ? first_x_ : tile_;
    const size_t row_floats = (first + tile_ * (tiles.width() - 1) + more_) * kWinogradGroup;
    const auto store = [&](size_t v, const float* rows, size_t count) {
      for (size_t r = 0; r < count; ++r) {
        const ptrdiff_t y = static_cast<ptrdiff_t>((begin_of(v, first_y_) + r) * step()) + y_.offset;
        if (y + static_cast<ptrdiff_t>(step()) <= 0 || y >= static_cast<ptrdiff_t>(large_y_)) continue;
        store_row(band, tiles, n, channel, y, rows + r * row_floats, buffer.values);
      }
    };
    for (size_t v = tiles.u0; v < tiles.u1; ++v, m += tiles.width() * kWinogradColumns) {
      const size_t finished = v == 0 ? first_y_ : tile_;
      const size_t above_rows = v == top ? 0 : v == 1 ? 6 - first_y_ : more_;
      winograd_scatter_row(taps_, m, kWinogradColumns, m_point_, tiles.width(), first,
                           {above_rows, finished, above, buffer.rows});
      if (v >= band.u0) store(v, buffer.rows, finished);
    }
    if (tiles.u1 == bands_.height) store(tiles.u1, above, more_);
  }

  // A row of pixels of 16 channels, or two rows of four where they are phases; those of the band.
  void store_row(const PixelBlock& band, const PixelBlock& tiles, size_t n, size_t channel, ptrdiff_t row,
                 const float* pixels, float* values) const {
    const auto place = [&](size_t tile) {  // in the target
      return static_cast<ptrdiff_t>(begin_of(tile, first_x_) * step()) + x_.offset;
    };
    // A piece may begin, or lie, in the padding.
    const ptrdiff_t left = place(tiles.v0), begin = band.v0 == 0 ? 0 : std::max<ptrdiff_t>(0, place(band.v0));
    ptrdiff_t end = static_cast<ptrdiff_t>(large_x_);
    if (band.v1 < bands_.length) end = std::min(end, place(band.v1));
    if (begin >= end) return;
    const auto x = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin),
               before = static_cast<size_t>(begin - left);
    if (step() == 1) {
      const size_t some = std::min(kWinogradGroup, columns_ - channel), y = static_cast<size_t>(row);
      const float* from = pixels + before * kWinogradGroup;
      if (direct_) {
        return lanes_transpose(from, kWinogradGroup, count, some, target_.at(n, channel, y, x),
                               target_.tensor->stride[2]);
      }
      lanes_transpose(from, kWinogradGroup, count, some, values, count);
      for (size_t c = 0; c < some; ++c) store(n, channel + c, y, x, values + c * count, count);
      return;
    }
    const size_t length = 2 * ((tiles.v0 == 0 ? first_x_ : tile_) + tile_ * (tiles.width() - 1) + more_);
    winograd_scatter_phases(pixels, length / 2, values, length);
    for (size_t i = 0; i < 2 * std::min<size_t>(4, large_channels_ - channel / 4); ++i) {
      const ptrdiff_t y = row + static_cast<ptrdiff_t>(i % 2);
      if (y < 0 || y >= static_cast<ptrdiff_t>(large_y_)) continue;
      store(n, channel / 4 + i / 2, static_cast<size_t>(y), x, values + i * length + before, count);
    }
  }

  void store(size_t n, size_t channel, size_t y, size_t x, float* values, size_t count) const {
    if (streams_) return stream_values(values, count, target_.at(n, channel, y, x));
    finish_values(target_, channel, values, count);
    store_run(target_, n, channel, y, x, 1, values, count);
  }

  PatchAxis y_, x_;  // of the transposed map: down
  size_t large_y_, large_x_, channels_, large_channels_;
  size_t taps_, tile_, more_;       // r, m, r - 1
  size_t halo_;                     // tiles before one that share pixels with it
  size_t first_y_, first_x_;        // pixels of the first tile
  size_t columns_, column_blocks_;  // large channels, phases count; 32 of them
  WinogradWeights weights_;
  ImageTarget target_;
  Isa isa_;
  TileKernels kernels_;
  PixelBlocks bands_;                        // of tiles: tasks
  size_t parts_, threads_;                   // of the columns, for each band
  size_t block_rows_, width_, block_tiles_;  // of a product, halo included
  bool few_tiles_;                           // Z for all of them first; weights are transformed where they are used
  size_t depth_step_, pixels_;               // of a product; of a row that tiles make
  size_t z_stride_, z_point_, m_point_, u_point_, u_block_;
  size_t u_floats_, own_u_floats_, z_floats_, own_z_floats_, stage_floats_, above_floats_, rows_floats_, thread_floats_;
  bool direct_, streams_;
};

}  // namespace

void run_winograd_transposed(const PatchMap& p, CallScratch& scratch) {
  const Transposed product(p);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.source, workspace.data());
}

}  // namespace bnns
