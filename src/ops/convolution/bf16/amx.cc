// PairStepProduct: a convolution on AMX that reads its patches straight from the slab of words.
//
// A tile of B is 16 pairs of channels by 16 pixels. Pixels side by side in the slab stay side by side under every tap,
// so the tile of a tap is the same place in the slab plus the tap's offset: nothing is copied per tap, where packed
// patches write and read the slab once for each. The weights are packed as tiles of A, step by step, once per call.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/common/weights.h"

namespace bnns {
namespace {

constexpr size_t kSide = 16;                 // of a tile: pairs of a step, the granule of rows and columns
constexpr size_t kTileRows = 2 * kSide;      // rows of A at a time
constexpr size_t kStep = kTileRows * kSide;  // words of A in a step
constexpr size_t kSteps = 64;                // of a pass at most
constexpr size_t kPassSteps = 9;             // wanted: 18 KB of A
constexpr size_t kPixels = 512;              // of a block
constexpr size_t kStagedFloats = 1 << 17;    // sums of a task: half a megabyte, else fewer rows
constexpr size_t kGather = 16;               // taps that gather_taps can take

// Between channels of the slab: an odd multiple of four cache lines, so that the 16 rows of a tile spread over the sets
// of the first cache.
size_t spread(size_t words) {
  return round_up(words + 64, 128) - 64;
}

// Blocks of 16 pairs in a pass, at most.
size_t pass_blocks(size_t taps) {
  return std::max<size_t>(1, kPassSteps / taps);
}

}  // namespace

// Pairs fill their steps, and pixels their tiles, by half or better; the slab of a pass and of one tile is no larger
// than slabs are elsewhere, however far apart the taps.
bool PairStepProduct::accepts(const PatchMap& p) {
  const PatchAxis &y = p.y, &x = p.x;
  const size_t pairs = pairs_of(p.channels), taps = p.taps();
  const bool single = taps == 1 && y.step == 1 && x.step == 1;  // panels without a slab are better
  if (single || taps > kSteps || 2 * pairs < round_up(pairs, kSide)) return false;
  if (2 * x.pixels * std::min<size_t>(y.pixels, 4) < kSide) return false;
  const PixelBlock tile{0, 1, 0, 1, 0, std::min(x.pixels, kTileRows)};
  return slab_floats(y, x, tile, 1) <= kSlabFloats / (pass_blocks(taps) * kSide);
}

bool accepts_bf16_amx(const PatchMap& p) {
  return p.bf16 && p.has_taps() && !p.target.sink && pair_steps_kernel(isa()) && PairStepProduct::accepts(p);
}

void run_bf16_amx(const PatchMap& p, CallScratch& scratch) {
  const PairStepProduct product(p, p.weights->bf16(), pair_steps_kernel(Isa::amx));
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.source, workspace.data());
}

PairStepProduct::PairStepProduct(const PatchMap& p, const Bf16Weights& weights, PairStepsKernel kernel)
    : y_(p.y),
      x_(p.x),
      groups_(p.groups()),
      rows_(p.rows),
      channels_(p.channels),
      weights_(weights),
      row_stride_(p.row_stride(weights)),
      channel_stride_(p.channel_stride(weights)),
      target_(p.target),
      kernel_(kernel),
      taps_(p.taps()),
      pairs_(pairs_of(p.channels)) {
  const PatchAxis &y = y_, &x = x_;
  const size_t groups = groups_, rows = rows_, batch = p.batch;
  const size_t blocks_of_pairs = div_up(pairs_, kSide);
  passes_ = div_up(blocks_of_pairs, pass_blocks(taps_));
  pass_pairs_ = div_up(blocks_of_pairs, passes_) * kSide;
  passes_ = div_up(pairs_, pass_pairs_);
  pixels_ = make_pixel_blocks(y, x, batch, kPixels, kTileRows, false, kSlabFloats / pass_pairs_);
  if (batch) pixels_.samples = div_up(batch, div_up(batch, pixels_.samples));
  tiles_ = div_up(rows, kTileRows);
  a_tile_ = pass_pairs_ / kSide * taps_ * kStep;
  packed_floats_ = groups * passes_ * tiles_ * a_tile_;

  // The first block is the largest.
  const Layout largest = layout(pixels_.at(0));
  slab_floats_ = largest.slab_floats;
  c_stride_ = (pixels_.samples * largest.sample_c / kSide | 1) * kSide;
  const size_t blocks = pixels_.count(), work = groups * rows * pairs_ * taps_ * y.pixels * x.pixels * batch;
  threads_ = threads_for(p.threads, groups * blocks * tiles_, work / 8);
  row_blocks_ = div_up(tiles_ * kTileRows * c_stride_, kStagedFloats);
  if (threads_ > 1) row_blocks_ = std::max(row_blocks_, div_up(2 * threads_, groups * blocks));
  tiles_per_task_ = div_up(tiles_, std::min(tiles_, row_blocks_));
  row_blocks_ = div_up(tiles_, tiles_per_task_);
  thread_floats_ = slab_floats_ + tiles_per_task_ * kTileRows * c_stride_;
}

PairStepProduct::Layout PairStepProduct::layout(const PixelBlock& block) const {
  Layout l;
  const SlabShape shape(y_, x_, block);
  l.slab = shape.slab(y_, x_, pass_pairs_);
  l.slab.channel_stride = spread(l.slab.channel_stride);
  l.slab.sample_stride = pass_pairs_ * l.slab.channel_stride;
  // Behind it one row, or what a tile reads beyond its line.
  l.slab_floats = round_up(block.samples() * l.slab.sample_stride + l.slab.row_stride + 2 * kSide, kSide);
  const size_t width = block.width(), pitch = static_cast<size_t>(l.slab.target_row_stride);
  const size_t joined = (block.rows() - 1) * pitch + width, apart = block.rows() * round_up(width, kSide);
  l.joined = round_up(joined, kSide) <= apart;
  l.lines = l.joined ? 1 : block.rows();
  l.columns = l.joined ? joined : width;
  l.line_c = l.joined ? pitch : round_up(width, kSide);
  l.sample_c = l.joined ? round_up(joined, kSide) : apart;
  return l;
}

// [step = (16 pairs, tap)][row][pair]: tiles of A as the kernel takes them. Pairs that there are not are zero.
void PairStepProduct::pack_weight_tile(size_t group, size_t pass, size_t first_row, float* to) const {
  const size_t rows = std::min(kTileRows, rows_ - first_row), end = std::min(pairs_, (pass + 1) * pass_pairs_);
  const uint16_t* base =
      weights_.data + static_cast<ptrdiff_t>(group) * weights_.group + static_cast<ptrdiff_t>(first_row) * row_stride_ +
      static_cast<ptrdiff_t>(y_.kernel_first) * weights_.y + static_cast<ptrdiff_t>(x_.kernel_first) * weights_.x;
  const ptrdiff_t y_step = static_cast<ptrdiff_t>(y_.kernel_step) * weights_.y;
  const ptrdiff_t x_step = static_cast<ptrdiff_t>(x_.kernel_step) * weights_.x;
  const bool in_order =
      taps_ <= kGather && (x_.taps == 1 || x_step == 1) && (y_.taps == 1 || y_step == static_cast<ptrdiff_t>(x_.taps));
  for (size_t pair = pass * pass_pairs_; pair < end; pair += kSide, to += taps_ * kStep) {
    const uint16_t* from = base + static_cast<ptrdiff_t>(2 * pair) * channel_stride_;
    const size_t channels = std::min(2 * kSide, channels_ - 2 * pair);
    for (size_t r = 0; r < rows; ++r, from += row_stride_) {
      float* const words = to + r * kSide;
      if (in_order) {
        gather_taps(from, channel_stride_, channels, taps_, words, kStep);
        continue;
      }
      for (size_t t = 0; t < taps_; ++t) {
        const uint16_t* at =
            from + static_cast<ptrdiff_t>(t / x_.taps) * y_step + static_cast<ptrdiff_t>(t % x_.taps) * x_step;
        uint16_t halves[2 * kSide] = {};
        for (size_t c = 0; c < channels; ++c) halves[c] = at[static_cast<ptrdiff_t>(c) * channel_stride_];
        std::memcpy(words + t * kStep, halves, sizeof(halves));
      }
    }
  }
}

// What the given pass reads of a block.
Ahead PairStepProduct::ahead(const ImageSource& source, size_t group, size_t pass, size_t block) const {
  if (block >= pixels_.count()) return {};
  const size_t first = 2 * pass * pass_pairs_, channels = std::min(channels_ - first, 2 * pass_pairs_);
  return source_ahead(source, pixels_.at(block), y_, x_, group * channels_ + first, channels);
}

void PairStepProduct::run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const {
  const size_t blocks = pixels_.count(), part = task % row_blocks_, index = task / row_blocks_ % blocks;
  const size_t group = task / row_blocks_ / blocks, tile0 = part * tiles_per_task_, row0 = tile0 * kTileRows;
  const PixelBlock block = pixels_.at(index);
  const Layout l = layout(block);
  float *buffer = scratch, *staged = buffer + slab_floats_;

  ptrdiff_t offsets[kSteps];
  PairSteps g;
  g.rows = std::min(rows_ - row0, tiles_per_task_ * kTileRows);
  g.a_tile_stride = a_tile_;
  g.b = buffer, g.b_stride = l.slab.channel_stride;
  g.offsets = offsets;
  g.samples = block.samples(), g.lines = l.lines, g.columns = l.columns;
  g.sample_b = l.slab.sample_stride, g.sample_c = l.sample_c;
  g.line_b = static_cast<size_t>(l.slab.target_row_stride), g.line_c = l.line_c;
  g.c = staged, g.c_stride = c_stride_;
  for (size_t pass = 0; pass < passes_; ++pass) {
    const size_t begin = pass * pass_pairs_, pairs = std::min(pass_pairs_, pairs_ - begin);
    fill_word_slab(source, y_, x_, block, {group * channels_, channels_, begin, begin + pairs}, l.slab, pass == 0,
                   buffer);
    // Pairs that fill up the last step: their weights are zero, and no infinity of another pass may meet them.
    const size_t slots = round_up(pairs, kSide), stride = l.slab.channel_stride;
    for (size_t n = 0; n < block.samples() && slots > pairs; ++n) {
      std::fill_n(buffer + n * l.slab.sample_stride + pairs * stride, (slots - pairs) * stride, 0.0f);
    }
    g.steps = slots / kSide * taps_;
    for (size_t s = 0; s < g.steps; ++s) {
      offsets[s] = static_cast<ptrdiff_t>(s / taps_ * kSide * stride) + l.slab.tap_offset(s % taps_);
    }
    g.a = packed + ((group * passes_ + pass) * tiles_ + tile0) * a_tile_;
    const bool last = pass + 1 == passes_;
    g.next_a = last ? nullptr : g.a + tiles_ * a_tile_;
    g.ahead = ahead(source, group, last ? 0 : pass + 1, last ? index + 1 : index);
    kernel_(g);
    g.accumulate = true;
  }
  for (size_t r = 0; r < g.rows; ++r) finish(block, l, group * rows_ + row0 + r, staged + r * c_stride_);
}

// Bias and activation on one channel of a finished block, then to the target.
void PairStepProduct::finish(const PixelBlock& block, const Layout& l, size_t channel, float* values) const {
  if (target_.bias || !target_.activation.is_identity()) {
    for (size_t line = 0; line < block.samples() * l.lines; ++line) {
      finish_values(target_, channel, values + line / l.lines * l.sample_c + line % l.lines * l.line_c, l.columns);
    }
  }
  const Tensor& t = *target_.tensor;
  const bool plain = t.type == BNNSDataTypeBFloat16 && !target_.accumulate && t.stride[0] == 1 && x_.target_step == 1 &&
                     y_.target_step == 1;
  for (size_t n = block.n0; n < block.n1; ++n, values += l.sample_c) {
    if (plain) {
      round_rows(values, l.line_c, block.rows(), block.width(),
                 static_cast<uint16_t*>(target_.data) + n * target_.batch_stride + channel * t.stride[2] +
                     block.u0 * t.stride[1] + block.v0,
                 t.stride[1]);
      continue;
    }
    for (size_t u = block.u0; u < block.u1; ++u) {
      store_run(target_, n, channel, y_.target_first + u * y_.target_step, x_.target_first + block.v0 * x_.target_step,
                x_.target_step, values + (u - block.u0) * l.line_c, block.width());
    }
  }
}

void PairStepProduct::run(const ImageSource& source, void* workspace) const {
  float* packed = static_cast<float*>(workspace);
  float* scratch = packed + packed_floats_;
  const size_t tasks = groups_ * passes_ * tiles_;
  parallel_for(tasks, threads_for(threads_, tasks, tasks * a_tile_), [&](size_t task, size_t) {
    const size_t tile = task % tiles_, pass = task / tiles_ % passes_, group = task / tiles_ / passes_;
    pack_weight_tile(group, pass, tile * kTileRows, packed + task * a_tile_);
  });
  parallel_for(groups_ * pixels_.count() * row_blocks_, threads_,
               [&](size_t task, size_t worker) { run_task(source, task, packed, scratch + worker * thread_floats_); });
}

}  // namespace bnns
