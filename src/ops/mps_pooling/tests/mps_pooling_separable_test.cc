// The separable kernels of both devices against the plain loops of the CPU device, bit for bit: random windows, clips,
// formats. Of the CUDA device the block (mps_pooling/cuda/separable_block.h) runs on the host: its plan, its phases and
// its arithmetic.

#include <algorithm>
#include <memory>

#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/separable_block.h"
#include "src/ops/mps_pooling/tests/mps_pooling_images.h"

namespace bnns::mps {
namespace {

using testing::Random;
using testing::TestImage;
using testing::Values;

struct HostImages {
  const PoolEncode& e;
  int64_t slices, first;

  Plane plane(const ImageView& v, int64_t image, int64_t channel, int32_t p) const {
    const int64_t n = (first + p) / slices, slice = (first + p) % slices;
    return plane_of(v, image + n, channel / 4 + slice,
                    static_cast<int32_t>(std::min<int64_t>(4, e.channels - 4 * slice)));
  }
  Plane source(int32_t p) const { return plane(e.source, e.source_image, e.source_channel, p); }
  Plane gradient(int32_t p) const { return plane(e.gradient, e.gradient_image, e.gradient_channel, p); }
  Plane target(int32_t p) const { return plane(e.target, e.target_image, e.target_channel, p); }
  Texel read_source(const Plane& plane, int32_t y, int32_t x) const { return plane.read(y, x); }
  Texel read_gradient(const Plane& plane, int32_t y, int32_t x) const { return plane.read(y, x); }
  void write(const Plane& plane, int32_t y, int32_t x, const Texel& t) const { plane.write(y, x, t); }
};

// Threads one after the other, from the last to the first.
struct HostTeam {
  int32_t threads;
  template <class F>
  void each(F&& f) const {
    for (int32_t t = threads - 1; t >= 0; --t) f(t, threads);
  }
};

template <PoolKind kKind, bool kBackward>
void run_kind(const PoolEncode& e, const Separable& plan) {
  for (int64_t b = 0; b < plan.blocks; ++b) {
    const int64_t tiles = int64_t{plan.x.tiles} * plan.y.tiles, first = b / tiles * plan.planes_per_block;
    const auto tile = static_cast<int32_t>(b % tiles);
    // Whatever a block finds in shared memory: NaN, and numbers of columns and taps that nobody has.
    std::vector<Texel> memory(plan.shared / sizeof(Texel) + 1);
    std::memset(static_cast<void*>(memory.data()), 0xff, memory.size() * sizeof(Texel));
    const HostImages images{e, plan.slices, first};
    const auto planes = static_cast<int32_t>(std::min<int64_t>(plan.planes - first, plan.planes_per_block));
    SeparableBlock<kKind, kBackward, HostImages> block(plan, images, reinterpret_cast<char*>(memory.data()),
                                                       tile % plan.x.tiles, tile / plan.x.tiles, planes);
    block.run(HostTeam{plan.threads});
  }
}

void run_blocks(const PoolEncode& e, const Separable& plan) {
  const auto by_kind = [&]<bool kBackward>() {
    if (e.kind == PoolKind::max) return run_kind<PoolKind::max, kBackward>(e, plan);
    if (e.kind == PoolKind::average) return run_kind<PoolKind::average, kBackward>(e, plan);
    return run_kind<PoolKind::l2_norm, kBackward>(e, plan);
  };
  e.backward ? by_kind.template operator()<true>() : by_kind.template operator()<false>();
}

struct Case {
  PoolEncode e;
  Values values = Values::integers;
  std::unique_ptr<TestImage> source, gradient, target;
};

Case random_case(Random& random) {
  Case c;
  PoolEncode& e = c.e;
  const auto pick = [&](int low, int high) { return int64_t{random.integer(low, high)}; };
  e.backward = random.below(3) != 0;
  const size_t v = random.below(8);
  c.values = v < 3 ? Values::integers : v < 6 ? Values::reals : Values::with_nan;
  e.kind = static_cast<PoolKind>(random.below(3)), e.edge = static_cast<PoolEdge>(random.below(2));
  constexpr PixelType kTypes[] = {PixelType::f32, PixelType::f16, PixelType::unorm8};
  const PixelType type = kTypes[random.below(8) == 0 ? 2 : random.below(2)];
  const bool wide = random.below(12) == 0;
  const int64_t w = wide ? pick(200, 400) : pick(1, 40), h = wide ? pick(1, 6) : pick(1, 40);
  const bool single = random.below(12) == 0;
  for (PoolAxis* a : {&e.x, &e.y}) {
    a->kernel = single                 ? 1
                : random.below(6) == 0 ? pick(1, 40)
                                       : pick(1, 8),
    a->stride = pick(1, random.below(4) == 0 ? 16 : 3);
    a->dilation = e.kind == PoolKind::max && random.below(3) == 0 ? pick(1, 3) : 1;
    // Sometimes windows that lie beyond the image.
    a->first_centre = random.below(4) ? a->before() - pick(0, int(a->kernel) - 1) : pick(-12, 12);
    a->zero_pad = pick(0, 2);
  }
  const int64_t wx = pick(1, int(w / e.x.stride) + 2), wy = pick(1, int(h / e.y.stride) + 2);
  e.images = pick(1, 2), e.channels = random.below(3) ? 4 * pick(1, 3) : pick(1, 7);
  e.source_image = pick(0, 1), e.target_channel = e.channels % 4 == 0 ? 4 * pick(0, 1) : 0;
  c.source = std::make_unique<TestImage>(random, type, e.images + e.source_image, e.channels, h, w, c.values);
  e.source = c.source->view;
  e.target_x = random.below(2) ? 0 : pick(0, 3), e.target_y = random.below(2) ? 0 : pick(0, 3);
  e.width = wx, e.height = wy;
  if (e.backward) {
    e.gradient_width = wx, e.gradient_height = wy;
    e.source_x = random.below(3) ? 0 : pick(0, 4), e.source_y = random.below(3) ? 0 : pick(0, 4);
    e.width = random.below(2) ? w : pick(1, int(w) + 3), e.height = random.below(2) ? h : pick(1, int(h) + 3);
    e.gradient_x = pick(0, 2), e.gradient_y = pick(0, 2);
    c.gradient = std::make_unique<TestImage>(random, type, e.images, e.channels, wy + e.gradient_y, wx + e.gradient_x,
                                             c.values == Values::with_nan ? Values::reals : c.values);
    e.gradient = c.gradient->view;
  }
  c.target = std::make_unique<TestImage>(random, type, e.images, e.channels + e.target_channel,
                                         e.height + e.target_y + pick(0, 1), e.width + e.target_x, c.values);
  e.target = c.target->view;
  return c;
}

// The same bits, but for sums that the plain loops add row by row; of a forward pass on the GPU it is left open which
// of -0 and 0 comes out.
void expect_same(const Case& c, const std::vector<unsigned char>& have, const std::vector<unsigned char>& want,
                 bool signs, uint64_t seed) {
  const bool exact = c.e.kind == PoolKind::max || (c.e.kind == PoolKind::average && c.values == Values::integers) ||
                     adds_columns(c.e.x, c.e.y);
  const PixelType type = c.e.target.type;
  const double eps = type == PixelType::f32   ? 0x1p-20 * double(c.e.x.kernel + c.e.y.kernel)
                     : type == PixelType::f16 ? 0x1p-9
                                              : 1.0 / 250;
  for (size_t i = 0; i < c.target->elements; ++i) {
    const double a = c.target->at(have, i), b = c.target->at(want, i);
    if ((a == b && (!signs || std::signbit(a) == std::signbit(b))) || (std::isnan(a) && std::isnan(b))) continue;
    if (!exact && std::fabs(a - b) <= eps * (1 + std::fabs(b))) continue;
    FAIL() << "seed " << seed << ", " << text_of(c.e) << ": element " << i << " is " << a << ", plain " << b;
  }
}

TEST(MpsPoolingSeparable, BlocksOfCudaEqualThePlainLoops) {
  int taken = 0, gradients = 0, strips = 0, chunks = 0, shared = 0, single = 0;
  for (uint64_t seed = 0; seed < 1200; ++seed) {
    Random random(seed);
    Case c = random_case(random);
    Separable plan;
    const PoolEncode e = without_choice(c.e);
    if (!plan_separable(e, &plan)) continue;
    // Chunks of a few rows, as of a large plane.
    if (random.below(2)) {
      plan.y.tile = static_cast<int32_t>(random.integer(1, 20));
      plan.blocks /= plan.y.tiles;
      plan.y.tiles = (plan.y.count + plan.y.tile - 1) / plan.y.tile;
      plan.blocks *= plan.y.tiles;
    }
    const std::vector<unsigned char> before = c.target->bytes();
    run_plain(c.e, 1);
    const std::vector<unsigned char> want = c.target->bytes();
    c.target->restore(before);
    run_blocks(e, plan);
    expect_same(c, c.target->bytes(), want, false, seed);
    if (HasFatalFailure()) return;
    ++taken, gradients += c.e.backward, strips += plan.x.tiles > 1, chunks += plan.y.tiles > 1;
    shared += plan.planes_per_block > 1, single += e.kind != c.e.kind;
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(gradients, 600);
  EXPECT_GT(strips, 25);
  EXPECT_GT(chunks, 250);
  EXPECT_GT(shared, 250);
  EXPECT_GT(single, 10);
}

TEST(MpsPoolingSeparable, TheCpuKernelEqualsThePlainLoops) {
  testing::for_each_isa([] {
    int taken = 0;
    for (uint64_t seed = 10000; seed < 10500; ++seed) {
      Random random(seed);
      Case c = random_case(random);
      const std::vector<unsigned char> before = c.target->bytes();
      run_plain(c.e, 1);
      const std::vector<unsigned char> want = c.target->bytes();
      if (!accepts_separable(c.e)) continue;
      for (const size_t threads : {size_t{1}, size_t{3}}) {
        c.target->restore(before);
        run_separable(c.e, threads);
        expect_same(c, c.target->bytes(), want, true, seed);
        if (HasFatalFailure()) return;
      }
      ++taken;
    }
    EXPECT_GT(taken, 400);
  });
}

}  // namespace
}  // namespace bnns::mps
