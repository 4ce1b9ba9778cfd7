// Pooling: one test for each class of faults that users of other libraries have met. The number in a test's name is the
// class; the comment above it says what went wrong there, and the test asserts that it does not here.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "src/ops/pooling/tests/pooling_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

constexpr size_t kThreads[] = {1, 2, 3, 7, 16};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr auto kNoBound = [](size_t) { return 0.0; };

std::string about(Pool f, const PoolShape& s) {
  return text(s) + " function " + std::to_string(int(f));
}
size_t pixels_of_window(const PoolShape& s, size_t o) {
  size_t n = 0;
  ref::for_each_pixel(s, long(o) / s.OW % s.OH, long(o) % s.OW, [&](size_t) { ++n; });
  return n;
}
// Average's gradient divides by another number than its forward pass, in windows that hang over an edge.
TEST(PoolingBugClasses, BC01_AverageBackwardUsesTheDivisorOfForward) {
  Random random(1);
  const auto check = [&](Pool f, const PoolShape& s) {
    const size_t in = s.large(), out = s.small();
    constexpr float kUnit = 144;  // a multiple of every divisor: quotients are exact
    // Column i of the forward matrix and row o of the backward one, from unit vectors; the last input is all ones.
    std::vector<float> units((in + 1) * in), y((in + 1) * out), co_units(out * out), dx(out * in);
    for (size_t i = 0; i < in; ++i) units[i * in + i] = units[in * in + i] = kUnit;
    for (size_t o = 0; o < out; ++o) co_units[o * out + o] = kUnit;
    const auto filter = PoolLayer(f, s).make();
    auto dx_desc = large_descriptor(s, dx.data()), g_desc = small_descriptor(s, co_units.data());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), in + 1, units.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), out, nullptr, 0, &dx_desc, 0, nullptr, 0, &g_desc, 0, nullptr,
                                           nullptr),
              0)
        << BNNSExtLastError();
    for (size_t o = 0; o < out; ++o) {
      float sum = 0;
      for (size_t i = 0; i < in; ++i) {
        ASSERT_EQ(y[i * out + o], dx[o * in + i]) << about(f, s) << " window " << o << " pixel " << i;
        sum += dx[o * in + i];
      }
      const size_t n = pixels_of_window(s, o),
                   divisor = f == Pool::average_include ? size_t(s.kw * s.kh) : std::max<size_t>(n, 1);
      ASSERT_EQ(sum, y[in * out + o]) << about(f, s) << " window " << o;  // g (pixels / divisor of forward)
      ASSERT_EQ(sum, kUnit * float(n) / float(divisor)) << about(f, s) << " window " << o;
    }
    auto x = random.integers(in), g = random.integers(out);
    for (float& v : x) v *= kUnit;
    for (float& v : g) v *= kUnit;
    const Results r = run(f, s, 1, x, g, 0);
    double left = 0, right = 0;
    for (size_t o = 0; o < out; ++o) left += double(r.y[o]) * g[o];
    for (size_t i = 0; i < in; ++i) right += double(x[i]) * r.dx[i];
    ASSERT_EQ(left, right) << about(f, s);
  };
  for_each_isa([&] {
    for (long in = 1; in <= 9; ++in)
      for (long k = 1; k <= 4; ++k)
        for (long stride = 1; stride <= 4; ++stride) {
          for (long low = 0; low < 4; ++low)
            for (long high = 0; high < 4; ++high) {
              PoolShape s;
              s.W = in, s.kw = k, s.sx = stride, s.left = low, s.right = high;
              s.H = 2, s.kh = 1 + in % 3, s.top = k % 2, s.sy = 1 + low % 2;
              s = overhanging(s);
              for (Pool f : {Pool::average_include, Pool::average_exclude}) check(f, s);
              if (HasFatalFailure()) return;
            }
        }
  });
}

// Padding is counted where it should not be, or the overhang is not where it should.
TEST(PoolingBugClasses, BC02_PaddingIsCountedOrNot) {
  for_each_isa([] {
    Random random(2);
    for (int round = 0; round < 300; ++round) {
      PoolShape s = random_shape(random, 40);
      s.C = 1;
      const auto x = random.integers(s.large()), g = random.integers(s.small());
      // The padded image as an array, large enough for the overhang, and which of its pixels are real.
      const size_t width = size_t((s.OW - 1) * s.sx + (s.kw - 1) * s.dx + 1 + s.W + s.left),
                   height = size_t((s.OH - 1) * s.sy + (s.kh - 1) * s.dy + 1 + s.H + s.top);
      std::vector<float> padded(width * height, 0.0f), real(width * height, 0.0f);
      for (size_t y = 0; y < size_t(s.H); ++y)
        for (size_t i = 0; i < size_t(s.W); ++i) {
          padded[(y + size_t(s.top)) * width + i + size_t(s.left)] = x[y * size_t(s.W) + i];
          real[(y + size_t(s.top)) * width + i + size_t(s.left)] = 1;
        }
      const auto include = run(Pool::average_include, s, 1, x, g, 0).y,
                 exclude = run(Pool::average_exclude, s, 1, x, g, 0).y;
      for (size_t oy = 0; oy < size_t(s.OH); ++oy)
        for (size_t ox = 0; ox < size_t(s.OW); ++ox) {
          float sum = 0, n = 0;
          const float taps = float(s.kw * s.kh);
          for (size_t ky = 0; ky < size_t(s.kh); ++ky)
            for (size_t kx = 0; kx < size_t(s.kw); ++kx) {
              const size_t i = (oy * size_t(s.sy) + ky * size_t(s.dy)) * width + ox * size_t(s.sx) + kx * size_t(s.dx);
              sum += padded[i], n += real[i];
            }
          const size_t o = oy * size_t(s.OW) + ox;
          ASSERT_EQ(include[o], sum / taps) << text(s) << " window " << o;
          ASSERT_EQ(exclude[o], n == 0 ? 0 : sum / n) << text(s) << " window " << o;
          if (n == taps) {
            ASSERT_EQ(bits(include[o]), bits(exclude[o])) << text(s) << " window " << o;
          }
        }
    }
  });
}

// A window of nothing but padding gives 0 / 0 or -inf, and so does its gradient.
TEST(PoolingBugClasses, BC03_EmptyWindowsAreZeroAndHaveNoGradient) {
  for_each_isa([] {
    Random random(3);
    size_t empty = 0;
    for (int round = 0; round < 300; ++round) {
      PoolShape s = random_shape(random, 24);
      s.left += random.integer(0, 6), s.bottom += random.integer(0, 6);
      s = overhanging(s);
      const auto x = random.normals(s.large());
      auto g = random.integers(s.small());
      auto finite = g;
      for (size_t o = 0; o < g.size(); ++o) {  // nothing may come of what is handed to an empty window
        if (pixels_of_window(s, o) == 0) g[o] = poison(), finite[o] = 0, ++empty;
      }
      for (Pool f : kPools) {
        const Results r = run(f, s, 1, x, g, 0), want = run(f, s, 1, x, finite, 0);
        for (size_t o = 0; o < g.size(); ++o) {
          ASSERT_TRUE(std::isfinite(r.y[o])) << about(f, s) << " window " << o;
          if (!is_poison(g[o])) continue;
          ASSERT_EQ(bits(r.y[o]), 0u) << about(f, s) << " window " << o;
          if (f == Pool::max) {
            ASSERT_EQ(r.index[o], 0u) << about(f, s) << " window " << o;
          }
        }
        ASSERT_TRUE(same_bits(r.dx, want.dx)) << about(f, s);
        if (f == Pool::max) {
          ASSERT_TRUE(same_bits(r.dx_by_index, want.dx)) << about(f, s);
        }
        for (const float v : r.dx) ASSERT_TRUE(std::isfinite(v)) << about(f, s);
      }
    }
    EXPECT_GT(empty, 1000u);
  });
}

// A NaN is kept by the vector body and dropped by the tail: equal channels give different results.
TEST(PoolingBugClasses, BC04_NanComesOutWhereverItLies) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto check = [&](Pool f, const PoolShape& s, size_t at) {
    const size_t plane = size_t(s.H * s.W), windows = size_t(s.OH * s.OW);
    std::vector<float> one(plane);
    for (size_t i = 0; i < plane; ++i) one[i] = float(int(i * 7 % 11) - 5);
    std::vector<float> clean_x, x;
    for (long c = 0; c < s.C; ++c) clean_x.insert(clean_x.end(), one.begin(), one.end());
    one[at] = nan;
    for (long c = 0; c < s.C; ++c) x.insert(x.end(), one.begin(), one.end());
    const auto filter = PoolLayer(f, s).make();
    std::vector<float> y(s.small()), clean(s.small());
    std::vector<size_t> index(s.small());
    ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, index.data(), 0), 0);
    ASSERT_EQ(BNNSFilterApply(filter.get(), clean_x.data(), clean.data()), 0);
    for (size_t o = 0; o < y.size(); ++o) {
      bool touched = false;
      ref::for_each_pixel(s, long(o % windows) / s.OW, long(o % windows) % s.OW, [&](size_t i) { touched |= i == at; });
      ASSERT_EQ(bits(y[o]), bits(y[o % windows])) << about(f, s) << " nan at " << at << " window " << o;
      ASSERT_EQ(std::isnan(y[o]), touched) << about(f, s) << " nan at " << at << " window " << o;
      if (touched && f == Pool::max) {
        ASSERT_EQ(index[o], at) << about(f, s);
      }
      if (!touched) {
        ASSERT_EQ(bits(y[o]), bits(clean[o])) << about(f, s) << " nan at " << at << " window " << o;
      }
    }
    if (f != Pool::max) return;
    std::vector<float> g(s.small(), 1.0f), dx(s.large());  // the gradient of these windows goes to the NaN
    const auto want = ref::pool_backward(f, s, 1, widen(x), widen(g));
    auto dx_desc = large_descriptor(s, dx.data()), g_desc = small_descriptor(s, g.data());
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, nullptr, 0, &g_desc, 0, nullptr,
                                           nullptr),
              0);
    ASSERT_TRUE(within(dx, want, dx.size(), kNoBound)) << about(f, s) << " nan at " << at;
  };
  for_each_isa([&] {
    for (long C = 1; C <= 33; ++C) {
      for (const PoolShape& s : one_of_each_kernel(C, 5)) {
        for (Pool f : kPools)
          for (size_t at = 0; at < size_t(s.H * s.W); ++at) {
            check(f, s, at);
            if (HasFatalFailure()) return;
          }
      }
    }
    for (const PoolShape& s : one_of_each_kernel(1, 37)) {  // body and tail of a row
      for (Pool f : kPools)
        for (size_t at = 0; at < size_t(2 * s.W); ++at) {
          check(f, s, at);
          if (HasFatalFailure()) return;
        }
    }
  });
}

// The maximum begins at a finite lowest value, or at the padding's 0.
TEST(PoolingBugClasses, BC05_LowestValuesAreMaximaToo) {
  for_each_isa([] {
    Random random(5);
    for (const long size : {2, 3, 5, 16, 19, 37}) {
      auto shapes = one_of_each_kernel(2, size);
      shapes.push_back(overhanging(square(2, size, 3, 2, 2)));
      for (const PoolShape& s : shapes) {
        constexpr float kLowest = -std::numeric_limits<float>::max();
        for (const auto& values :
             std::vector<std::vector<float>>{{-kInf}, {kLowest}, {-1}, {-3, -2, -1}, {-kInf, kLowest}}) {
          std::vector<float> x(s.large());
          for (float& v : x) v = values[random.below(values.size())];
          const auto g = random.integers(s.small());
          const Results r = run(Pool::max, s, 1, x, g, 0);
          const auto want = ref::pool_forward(Pool::max, s, 1, widen(x));
          const auto dx = ref::pool_backward(Pool::max, s, 1, widen(x), widen(g));
          SCOPED_TRACE(text(s) + " values " + std::to_string(values[0]));
          for (size_t o = 0; o < r.y.size(); ++o) {
            ASSERT_EQ(double(r.y[o]), want.y[o]) << "window " << o;
            ASSERT_TRUE(r.y[o] < 0 || pixels_of_window(s, o) == 0) << "window " << o;  // never the padding's 0
          }
          ASSERT_EQ(r.index, want.index);
          ASSERT_TRUE(within(r.dx, dx, dx.size(), kNoBound));
          ASSERT_TRUE(same_bits(r.dx, r.dx_by_index));
        }
      }
    }
  });
  PoolLayer int8(Pool::max, square(1, 4, 2, 2));  // -128 cannot come out wrong
  int8.parameters.i_desc.data_type = int8.parameters.o_desc.data_type = BNNSDataTypeInt8;
  EXPECT_EQ(BNNSFilterCreateLayerPooling(&int8.parameters, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"type i8", "f32, f16 or bf16"}));
}

// Of equal maxima several get the gradient, or another one on another path.
TEST(PoolingBugClasses, BC06_TheFirstOfEqualMaximaGetsAll) {
  for_each_isa([] {
    Random random(6);
    for (const long size : {4, 7, 18, 32, 33, 64, 150}) {
      auto shapes = one_of_each_kernel(3, size);
      // Planes that fill the vectors of a narrow kernel, and a window that hangs over.
      if (size == 32 || size == 64) shapes = {overhanging(square(3, size, 3, 2, 1))};
      if (size == 150) shapes.push_back(square(3, size, 3, 50));  // far apart: window by window
      for (const PoolShape& s : shapes) {
        const size_t N = 4, plane = size_t(s.H * s.W), windows = size_t(s.OH * s.OW);
        for (const int values : {0, 1}) {  // a constant image, and one of -1, 0 and 1
          const auto x = random.integers(N * s.large(), values), g = random.integers(N * s.small());
          const auto want = ref::pool_forward(Pool::max, s, N, widen(x));
          const auto dx = ref::pool_backward(Pool::max, s, N, widen(x), widen(g));
          for (const size_t threads : kThreads) {
            const Results r = run(Pool::max, s, N, x, g, threads);
            ASSERT_EQ(r.index, want.index) << text(s) << " threads " << threads;
            ASSERT_TRUE(within(r.dx, dx, dx.size(), kNoBound)) << text(s) << " threads " << threads;
            ASSERT_TRUE(same_bits(r.dx, r.dx_by_index)) << text(s) << " threads " << threads;
            for (size_t p = 0; p < N * size_t(s.C); ++p) {  // what went in comes out, exactly
              float in = 0, out = 0;
              for (size_t o = 0; o < windows; ++o) in += pixels_of_window(s, o) ? g[p * windows + o] : 0;
              for (size_t i = 0; i < plane; ++i) out += r.dx[p * plane + i];
              ASSERT_EQ(in, out) << text(s) << " plane " << p;
            }
          }
        }
      }
    }
  });
}

// Windows that overlap add to one pixel from several threads.
TEST(PoolingBugClasses, BC07_OverlappingWindowsGiveTheSameBitsEveryTime) {
  PoolShape scattered = square(6, 96, 5, 3, 2);
  const std::pair<PoolShape, size_t> problems[] = {
      {square(12, 48, 3, 1, 1), 5}, {square(1, 500, 3, 2, 1), 1}, {scattered, 4}};
  Random random(7);
  for (const auto& [s, N] : problems) {
    for (Pool f : kPools) {
      const auto x = random.normals(N * s.large());
      auto g = random.normals(N * s.small());
      std::vector<float> first, dx(N * s.large());
      auto dx_desc = large_descriptor(s, dx.data()), g_desc = small_descriptor(s, g.data());
      for (const size_t threads : kThreads) {
        PoolLayer layer(f, s);
        layer.options.n_threads = threads;
        const auto filter = layer.make();
        for (int repeat = 0; repeat < 100; ++repeat) {
          std::fill(dx.begin(), dx.end(), poison());
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), N, x.data(), 0, &dx_desc, 0, nullptr, 0, &g_desc, 0,
                                                 nullptr, nullptr),
                    0)
              << BNNSExtLastError();
          if (first.empty()) first = dx;
          ASSERT_TRUE(same_bits(first, dx)) << about(f, s) << " threads " << threads << " repeat " << repeat;
        }
      }
    }
  }
}

// Indices mean one thing to the forward kernel and another to the backward one, or do not fit their type.
TEST(PoolingBugClasses, BC08_IndicesOfAnyPathServeAnyOther) {
  PoolShape long_row = square(1, 3, 1, 1);
  long_row.W = 300, long_row.kw = 256, long_row.OW = 45;
  PoolShape tall = square(2, 20, 16, 1);
  tall.kh = 17, tall.OH = 4;
  std::vector<PoolShape> shapes = {
      square(2, 21, 16, 2, 3), tall, long_row, square(1, 258, 257, 1), square(1, 257, 257, 1),
      square(1, 600, 257, 300)};
  for (const PoolShape& s : one_of_each_kernel(2, 19)) shapes.push_back(s);
  Random random(8);
  for (const PoolShape& s : shapes) {
    auto x = random.integers(s.large(), 50);
    auto g = random.integers(s.small());
    // The last window has its maximum at its end: as far from its first pixel as can be.
    size_t last = 0;
    ref::for_each_pixel(s, s.OH - 1, s.OW - 1, [&](size_t i) { last = i; });
    x[last] = 60;
    const auto want = ref::pool_forward(Pool::max, s, 1, widen(x));
    const auto dx_want = ref::pool_backward(Pool::max, s, 1, widen(x), widen(g));
    const auto filter = PoolLayer(Pool::max, s).make();
    for_each_isa([&] {  // forward here ...
      Guarded<uint64_t> wide(s.small());
      Guarded<uint32_t> narrow(s.small());
      std::vector<float> y(s.small()), dx(s.large());
      ASSERT_EQ(
          BNNSPoolingFilterApplyBatchEx(filter.get(), 1, x.data(), 0, y.data(), 0, BNNSDataTypeUInt64, wide.data(), 0),
          0);
      ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), 1, x.data(), 0, y.data(), 0, BNNSDataTypeUInt32,
                                              narrow.data(), 0),
                0);
      for (size_t o = 0; o < y.size(); ++o) {
        ASSERT_EQ(wide[o], want.index[o]) << text(s);
        ASSERT_EQ(narrow[o], want.index[o]) << text(s);
      }
      for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {  // ... and backward there
        if (isa > best_isa()) continue;
        set_max_isa(isa);
        for (const bool is_wide : {true, false}) {
          std::fill(dx.begin(), dx.end(), poison());
          auto dx_desc = large_descriptor(s, dx.data()), g_desc = small_descriptor(s, g.data());
          ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), 1, nullptr, 0, &dx_desc, 0, nullptr, 0, &g_desc,
                                                          0, nullptr, is_wide ? BNNSDataTypeUInt64 : BNNSDataTypeUInt32,
                                                          is_wide ? static_cast<void*>(wide.data()) : narrow.data(), 0),
                    0)
              << BNNSExtLastError();
          ASSERT_TRUE(within(dx, dx_want, dx.size(), kNoBound)) << text(s) << " backward " << isa_name(isa);
        }
      }
    });
  }
}

// Degenerate geometry damages memory. Every buffer lies against a page that faults, once at its end, once at its begin.
TEST(PoolingBugClasses, BC09_DegenerateGeometry) {
  for_each_isa([] {
    Random random(9);
    for (long size = 1; size <= 35; ++size) {
      PoolShape larger = square(2, size, size, 1);  // one window larger than the image, nowhere near its middle
      larger.kw = larger.kh = size + 3, larger.right = larger.bottom = 3;
      PoolShape around = larger;  // and one that hangs over on every side
      around.left = around.top = 2;
      for (const PoolShape& s : {square(2, size, size, 1), larger, around, square(2, size, 1, 2), square(2, size, 1, 1),
                                 square(2, size, 1, 5)}) {
        const auto x = random.integers(s.large()), g = random.integers(s.small());
        for (Pool f : kPools)
          for (const auto side : {Guarded<float>::Side::end, Guarded<float>::Side::begin}) {
            const Results r = run(f, s, 1, x, g, 0, side);
            const auto want = ref::pool_forward(f, s, 1, widen(x));
            std::vector<double> magnitude;
            const auto dx = ref::pool_backward(f, s, 1, widen(x), widen(g), &magnitude);
            // One rounding of exact sums; L2Norm: of the sum, the root and the quotient.
            ASSERT_TRUE(within(r.y, want.y, r.y.size(), [&](size_t i) {
              return f == Pool::max ? 0 : 0x1p-23 * std::fabs(want.y[i]);
            })) << about(f, s);
            ASSERT_TRUE(within(r.dx, dx, dx.size(), [&](size_t i) {
              return f == Pool::max ? 0 : 0x1p-21 * magnitude[i];
            })) << about(f, s);
            if (f == Pool::max) {
              ASSERT_EQ(r.index, want.index) << text(s);
              ASSERT_TRUE(same_bits(r.dx, r.dx_by_index)) << text(s);
            }
          }
      }
    }
  });
}

// The caller's indices are trusted.
struct IndexedCall {
  PoolShape s;
  BNNSPoolingFunction function;
  size_t threads = 0;

  // Runs the call on poisoned memory; what it wrote, and its status in *status.
  template <class Index>
  std::vector<float> operator()(bool backward, const std::vector<float>& values, const std::vector<Index>& index,
                                int* status) const {
    PoolLayer layer(function, s);
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    const bool to_large = backward == (function == BNNSPoolingFunctionMax);
    Guarded<float> in(values), out(to_large ? s.large() : s.small());
    Guarded<Index> indices(index);
    std::fill_n(out.data(), out.size(), poison());
    constexpr auto type = sizeof(Index) == 8 ? BNNSDataTypeUInt64 : BNNSDataTypeUInt32;
    if (backward) {
      auto dx = to_large ? large_descriptor(s, out.data()) : small_descriptor(s, out.data());
      auto dy = to_large ? small_descriptor(s, in.data()) : large_descriptor(s, in.data());
      *status = BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), 1, nullptr, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                                      type, indices.data(), 0);
    } else {
      *status = BNNSPoolingFilterApplyBatchEx(filter.get(), 1, in.data(), 0, out.data(), 0, type, indices.data(), 0);
    }
    return {out.data(), out.data() + out.size()};
  }
};

template <class Index>
void expect_refused(const IndexedCall& call, bool backward, std::vector<Index> index, size_t at, Index wrong) {
  const bool from_large = backward && call.function == BNNSPoolingFunctionUnMax;
  index[at] = wrong;
  int status = 0;
  const auto out =
      call(backward, std::vector<float>(from_large ? call.s.large() : call.s.small(), 1.0f), index, &status);
  ASSERT_EQ(status, -1) << text(call.s) << " index " << at << " is " << wrong;
  ASSERT_TRUE(refused_because({"the index of pixel", std::to_string(wrong).c_str(), "expected less than"}));
  ASSERT_TRUE(std::all_of(out.begin(), out.end(), is_poison)) << text(call.s) << " index " << at << " is " << wrong;
}

TEST(PoolingBugClasses, BC10_IndicesOutsideThePlaneAreRefusedAndNothingIsWritten) {
  for_each_isa([] {
    for (const long size : {3, 9, 35}) {
      auto shapes = one_of_each_kernel(2, size);
      PoolShape empty = square(2, size, 2, 1, 4);  // with rows and columns of windows that have no pixel
      shapes.push_back(overhanging(empty));
      for (const PoolShape& s : shapes) {
        const uint64_t pixels = uint64_t(s.H * s.W);
        const std::vector<uint64_t> wide(s.small(), 0);
        const std::vector<uint32_t> narrow(s.small(), 0);
        const size_t n = s.small(), step = std::max<size_t>(1, n / 23);
        for (size_t at = 0; at < n; at = at + 1 == n ? n : std::min(at + step, n - 1)) {
          for (const auto& [function, backward] :
               {std::pair(BNNSPoolingFunctionMax, true), std::pair(BNNSPoolingFunctionUnMax, false),
                std::pair(BNNSPoolingFunctionUnMax, true)}) {
            const IndexedCall call{s, function};
            for (const uint64_t wrong : {pixels, uint64_t{1} << 31, uint64_t{1} << 32, UINT64_MAX})
              expect_refused(call, backward, wide, at, wrong);
            for (const uint32_t wrong : {uint32_t(pixels), uint32_t{1} << 31, UINT32_MAX})
              expect_refused(call, backward, narrow, at, wrong);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

// Indices anywhere in the rows of their windows, in the plane or in their windows, and all the same one: what arrives
// twice is added.
TEST(PoolingBugClasses, BC10_DuplicateIndicesAccumulate) {
  for_each_isa([] {
    Random random(10);
    std::vector<PoolShape> shapes;
    for (const long size : {1, 2, 3, 8, 9, 31, 35, 66, 67}) {
      for (const PoolShape& s : one_of_each_kernel(2, size))
        if (s.OW > 0 && s.OH > 0) shapes.push_back(s);
    }
    PoolShape wide = square(1, 5, 2, 2);  // rows that are made in several pieces
    wide.W = 2001, wide.OW = 1000;
    shapes.push_back(wide), shapes.push_back(overhanging(wide));
    shapes.push_back(square(1, 300, 2, 2));  // planes that are made by several tasks
    for (const PoolShape& s : shapes) {
      for (const int kind : {0, 1, 2, 3, 4}) {
        const size_t windows = size_t(s.OH * s.OW), pixels = size_t(s.H * s.W);
        std::vector<uint64_t> index(s.small());
        const size_t same = random.below(pixels);
        for (size_t o = 0; o < index.size(); ++o) {
          const long oy = long(o % windows) / s.OW, ox = long(o % windows) % s.OW;
          const long top = std::clamp(oy * s.sy - s.top, 0L, s.H - 1);
          const long bottom = std::clamp(oy * s.sy - s.top + (s.kh - 1) * s.dy, top, s.H - 1);
          const size_t row = size_t(random.integer(int(top), int(bottom))),
                       any = row * size_t(s.W) + random.below(size_t(s.W));
          std::vector<size_t> own;
          ref::for_each_pixel(s, oy, ox, [&](size_t i) { own.push_back(i); });
          if (kind == 0) index[o] = any;
          if (kind == 1) index[o] = random.below(pixels);
          if (kind == 2) index[o] = same;
          // In its window, but for the last one of each row, which has the lower left pixel.
          if (kind == 4) index[o] = own.empty() ? 0 : own[random.below(own.size())];
          if (kind == 3)
            index[o] = ox + 1 == s.OW ? uint64_t(bottom * s.W) : own.empty() ? 0 : own[random.below(own.size())];
        }
        const auto g = random.integers(s.small());
        std::vector<double> want(s.large(), 0);
        for (size_t o = 0; o < g.size(); ++o) {
          if (pixels_of_window(s, o % windows)) want[o / windows * pixels + index[o]] += double(g[o]);
        }
        for (const size_t threads : kThreads) {
          int status = 0;
          const IndexedCall call{s, BNNSPoolingFunctionMax, threads};
          const auto dx = call(true, g, index, &status);
          ASSERT_EQ(status, 0) << BNNSExtLastError();
          ASSERT_TRUE(within(dx, want, dx.size(), kNoBound)) << text(s) << " kind " << kind << " threads " << threads;
          const auto narrow = call(true, g, std::vector<uint32_t>(index.begin(), index.end()), &status);
          ASSERT_TRUE(status == 0 && same_bits(dx, narrow)) << text(s) << " kind " << kind << " threads " << threads;
        }
      }
    }
  });
}

}  // namespace
}  // namespace bnns
