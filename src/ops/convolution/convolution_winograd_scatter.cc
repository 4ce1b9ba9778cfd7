#include "src/ops/convolution/convolution_winograd_scatter.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/convolution_kernels.h"
#include "src/ops/convolution/convolution_lanes.h"

namespace bnns {
namespace {

constexpr size_t kLeastBatch = 8;          // tasks are samples
constexpr size_t kLeastDepth = 32;         // small channels
constexpr size_t kLeastColumns = 12;       // large ones, phases count
constexpr size_t kLeast3x3 = 32;           // large ones of 3x3
constexpr size_t kMostColumns = 64;        // their sums are kept for a row of tiles
constexpr size_t kMostDepth = 512;         // one product
constexpr size_t kBlockTiles = 56;         // of a product, about
constexpr size_t kMostRowTiles = 112;      // a block has whole rows: Z of 512 channels is 8 MB
constexpr size_t kStreamBytes = 4u << 20;  // targets from here on go around the caches

class Scatter {
 public:
  Scatter(const ConvolutionMap& map, size_t batch, const ImageTarget& target, const WeightView& w, size_t threads)
      : y_(down_axis(map.y)),
        x_(down_axis(map.x)),
        large_y_(map.y.large),
        large_x_(map.x.large),
        channels_(map.small_channels),
        large_channels_(map.large_channels),
        taps_(winograd_taps(y_, x_)),
        tile_(winograd_tile(taps_)),
        columns_(winograd_channels(y_, map.large_channels)),
        target_(target),
        isa_(isa()),
        kernels_(tile_kernels(isa_)) {
    weights_ = {w.data, w.large, w.small, w.y, w.x};
    weights_.data += static_cast<ptrdiff_t>(y_.kernel_first) * w.y + static_cast<ptrdiff_t>(x_.kernel_first) * w.x;
    weights_.step = step(), weights_.taps_y = y_.taps, weights_.taps_x = x_.taps, weights_.phased_rows = step() == 2;
    blocks_ = make_tile_blocks(taps_, y_, x_, batch, kBlockTiles);
    blocks_.width = blocks_.length;
    groups_ = div_up(columns_, kWinogradGroup);
    pixels_ = tile_ * blocks_.width + taps_ - 1;
    z_stride_ = odd_lines(channels_);
    z_point_ = odd_lines(blocks_.pixels() * z_stride_);
    m_point_ = odd_lines(blocks_.pixels() * kWinogradColumns);
    u_point_ = odd_lines(channels_ * kWinogradColumns);
    row_floats_ = 6 * blocks_.width * kWinogradGroup;
    stage_floats_ = stage_floats(tile_ * blocks_.rows, tile_ * blocks_.width);
    rows_floats_ = (tile_ * blocks_.rows + taps_ - 1) * row_floats_;
    room_floats_ = std::max(kWinogradGroup * large_x_, 8 * 2 * pixels_);
    thread_floats_ = stage_floats_ + kWinogradPoints * (z_point_ + m_point_) + groups_ * rows_floats_ +
                     pixels_ * kWinogradGroup + round_up(room_floats_, 16);
    const size_t all = batch * blocks_.height * blocks_.length;
    threads_ = threads_for(threads, div_up(batch, blocks_.samples), kWinogradPoints * columns_ * channels_ * all / 2);
    const bool plain = target.plain() && !target.accumulate && target.activation.is_identity() && !target.bias;
    direct_ = plain && step() == 1;
    streams_ = plain && batch * map.large_channels * large_y_ * large_x_ * sizeof(float) >= kStreamBytes;
  }

  size_t workspace_bytes() const {
    return scratch_bytes(threads_, thread_floats_, div_up(columns_, kWinogradColumns) * kWinogradPoints * u_point_);
  }

  void run(const ImageSource& source, void* workspace) const {
    float* const u = static_cast<float*>(workspace);
    const size_t column_blocks = div_up(columns_, kWinogradColumns), u_block = kWinogradPoints * u_point_;
    for (size_t b = 0; b < column_blocks; ++b) {
      WinogradWeights w = weights_;
      w.data += static_cast<ptrdiff_t>(b * kWinogradColumns / (step() * step())) * w.row;
      winograd_weight_block(isa_, taps_, w, columns_ - b * kWinogradColumns, channels_, u + b * u_block, u_point_);
    }
    parallel_for(div_up(blocks_.batch, blocks_.samples), threads_, [&](size_t task, size_t worker) {
      float* const own = u + column_blocks * u_block + worker * thread_floats_;
      PixelBlock tiles{task * blocks_.samples, std::min(blocks_.batch, (task + 1) * blocks_.samples), 0, 0, 0,
                       blocks_.length};
      for (; tiles.u0 < blocks_.height; tiles.u0 = tiles.u1) {
        tiles.u1 = std::min(blocks_.height, tiles.u0 + blocks_.rows);
        run_block(source, tiles, u, own);
      }
      if (streams_) stream_end();
    });
  }

 private:
  size_t step() const { return static_cast<size_t>(y_.step); }

  // Some rows of tiles of one sample, or some whole samples.
  void run_block(const ImageSource& source, const PixelBlock& tiles, const float* u, float* own) const {
    float *const stage = own, *const z = stage + stage_floats_, *const m = z + kWinogradPoints * z_point_;
    float* const rows = m + kWinogradPoints * m_point_;
    transform_source(source, tiles, stage, z);
    for (size_t column = 0; column < columns_; column += kWinogradColumns) {
      const size_t count = std::min(kWinogradColumns, columns_ - column);
      multiply(tiles.pixels(), count, z, u + column / kWinogradColumns * kWinogradPoints * u_point_, m);
      for (size_t c = 0; c < count; c += kWinogradGroup) {
        float* const group_rows = rows + (column + c) / kWinogradGroup * rows_floats_;
        float* const pixels = rows + groups_ * rows_floats_;
        for (size_t n = tiles.n0; n < tiles.n1; ++n) {
          const float* from = m + c + (n - tiles.n0) * tiles.rows() * tiles.width() * kWinogradColumns;
          add_rows_of_tiles(tiles, n, column + c, from, group_rows, pixels);
        }
      }
    }
  }

  void transform_source(const ImageSource& source, const PixelBlock& tiles, float* stage, float* z) const {
    const WinogradStage window{static_cast<ptrdiff_t>(tile_ * tiles.u0), 0, tile_ * tiles.rows(),
                               tile_ * tiles.width()};
    const size_t stage_row = window.width * kWinogradGroup;
    for (size_t c = 0; c < channels_; c += kWinogradGroup) {
      float* to = z + c;
      for (size_t n = tiles.n0; n < tiles.n1; ++n) {
        gather_stage(source, n, c, std::min(kWinogradGroup, channels_ - c), window, stage);
        for (size_t v = 0; v < tiles.rows(); ++v, to += tiles.width() * z_stride_) {
          winograd_gradient_row(taps_, stage + tile_ * v * stage_row, stage_row, tiles.width(), to, z_stride_,
                                z_point_);
        }
      }
    }
  }

  void multiply(size_t tiles, size_t columns, const float* z, const float* u, float* m) const {
    GemmBlock g;
    g.rows = tiles;
    g.columns = round_up(columns, kWinogradGroup);
    g.depth = channels_;
    g.tile_rows = div_up(tiles, div_up(tiles, kernels_.rows));
    g.a_depth_contiguous = true;
    g.a_stride = static_cast<ptrdiff_t>(z_stride_);
    g.a_tile_stride = static_cast<ptrdiff_t>(g.tile_rows * z_stride_);
    g.b_stride = static_cast<ptrdiff_t>(kernels_.columns);
    g.b_panel_stride = static_cast<ptrdiff_t>(channels_ * kernels_.columns);
    g.c_stride = kWinogradColumns;
    for (size_t k = 0; k < kWinogradPoints; ++k) {
      g.a = z + k * z_point_, g.b = u + k * u_point_, g.c = m + k * m_point_;
      kernels_.block(g);
    }
  }

  // The rows of 16 channels that are complete with these rows of tiles go to the target; what the next ones add to
  // stays, at the top of `rows`.
  void add_rows_of_tiles(const PixelBlock& tiles, size_t n, size_t channel, const float* m, float* rows,
                         float* pixels) const {
    const size_t more = taps_ - 1, done = tile_ * tiles.rows();
    if (tiles.u0 == 0) std::memset(rows, 0, more * row_floats_ * sizeof(float));
    for (size_t v = 0; v < tiles.rows(); ++v) {
      winograd_scatter_tiles(taps_, m + v * tiles.width() * kWinogradColumns, kWinogradColumns, m_point_, tiles.width(),
                             rows + tile_ * v * row_floats_, row_floats_);
    }
    const size_t count = tiles.u1 == blocks_.height ? done + more : done;
    for (size_t r = 0; r < count; ++r) {
      const ptrdiff_t row = static_cast<ptrdiff_t>((tile_ * tiles.u0 + r) * step()) + y_.offset;
      if (row + static_cast<ptrdiff_t>(step()) <= 0 || row >= static_cast<ptrdiff_t>(large_y_)) continue;
      winograd_scatter_row(taps_, rows + r * row_floats_, tiles.width(), pixels);
      store_row(n, channel, row, pixels);
    }
    std::memmove(rows, rows + done * row_floats_, more * row_floats_ * sizeof(float));
  }

  // A row of pixels of 16 channels, or two rows of four where they are phases.
  void store_row(size_t n, size_t channel, ptrdiff_t row, float* pixels) const {
    float* const room = pixels + pixels_ * kWinogradGroup;
    const auto before = static_cast<size_t>(-x_.offset);
    if (step() == 1) {
      const size_t some = std::min(kWinogradGroup, columns_ - channel), y = static_cast<size_t>(row);
      const float* from = pixels + before * kWinogradGroup;
      if (direct_) {
        const Tensor& t = *target_.tensor;
        float* to =
            static_cast<float*>(target_.data) + n * target_.batch_stride + channel * t.stride[2] + y * t.stride[1];
        return lanes_transpose(from, kWinogradGroup, large_x_, some, to, t.stride[2]);
      }
      lanes_transpose(from, kWinogradGroup, large_x_, some, room, large_x_);
      for (size_t c = 0; c < some; ++c) store(n, channel + c, y, room + c * large_x_);
      return;
    }
    winograd_scatter_phases(pixels, pixels_, room, 2 * pixels_);
    for (size_t i = 0; i < 2 * std::min<size_t>(4, large_channels_ - channel / 4); ++i) {
      const ptrdiff_t y = row + static_cast<ptrdiff_t>(i % 2);
      if (y < 0 || y >= static_cast<ptrdiff_t>(large_y_)) continue;
      store(n, channel / 4 + i / 2, static_cast<size_t>(y), room + i * 2 * pixels_ + before);
    }
  }

  void store(size_t n, size_t channel, size_t y, float* values) const {
    const Tensor& t = *target_.tensor;
    if (streams_) {
      float* to =
          static_cast<float*>(target_.data) + n * target_.batch_stride + channel * t.stride[2] + y * t.stride[1];
      return stream_values(values, large_x_, to);
    }
    finish_values(target_, channel, values, large_x_);
    store_run(target_, n, channel, y, 0, 1, values, large_x_);
  }

  PatchAxis y_, x_;  // of the transposed map: down
  size_t large_y_, large_x_, channels_, large_channels_;
  size_t taps_, tile_, columns_, groups_;  // columns: large channels, phases count
  WinogradWeights weights_;
  ImageTarget target_;
  Isa isa_;
  TileKernels kernels_;
  PixelBlocks blocks_;  // of tiles
  size_t pixels_;       // of a row that tiles make
  size_t z_stride_, z_point_, m_point_, u_point_, row_floats_, rows_floats_, stage_floats_, room_floats_;
  size_t thread_floats_, threads_;
  bool direct_, streams_;
};

}  // namespace

bool winograd_scatter_accepts(const ConvolutionMap& map, size_t batch) {
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t taps = winograd_taps(y, x);
  if (taps == 0 || map.groups != 1 || batch < kLeastBatch) return false;
  if (taps == 3 && map.large_channels < kLeast3x3) return false;
  if (y.step == 1 &&
      is_winograd(up_axis(map.y, 0), up_axis(map.x, 0), 1, map.large_channels, map.small_channels, batch)) {
    return false;
  }
  const size_t columns = winograd_channels(y, map.large_channels), phases = winograd_channels(y, 1);
  if (map.small_channels < kLeastDepth || map.small_channels > kMostDepth || columns < kLeastColumns ||
      columns > kMostColumns) {
    return false;
  }
  // Every pixel of the large image is reached.
  const auto covers = [](const ConvolutionAxis& a, const PatchAxis& p) {
    return static_cast<ptrdiff_t>(p.pixels - 1) * p.step + static_cast<ptrdiff_t>(p.taps) + p.offset >=
           static_cast<ptrdiff_t>(a.large);
  };
  const size_t tile = winograd_tile(taps), tiles = div_up(y.pixels, tile) * div_up(x.pixels, tile);
  return div_up(x.pixels, tile) <= kMostRowTiles && covers(map.y, y) && covers(map.x, x) &&
         2 * kWinogradPoints * phases * tiles <= y.taps * x.taps * y.pixels * x.pixels;
}

void winograd_scatter(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                      const WeightView& w, ScratchShelf& scratch, size_t threads) {
  const Scatter map_up(map, batch, target, w, threads);
  ScratchShelf::Lease workspace(scratch, map_up.workspace_bytes());
  map_up.run(source, workspace.data());
}

}  // namespace bnns
