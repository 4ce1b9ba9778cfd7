// A pooling layer for the tests, made from the reference's shape; tests change what they need before make().
#pragma once

#include <memory>
#include <string>

#include "src/ops/pooling/pooling_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;
using ref::Pool;
using ref::PoolShape;

inline BNNSPoolingFunction bnns_function(Pool function) {
  switch (function) {
    case Pool::max:
      return BNNSPoolingFunctionMax;
    case Pool::average_include:
      return BNNSPoolingFunctionAverageCountIncludePadding;
    case Pool::average_exclude:
      return BNNSPoolingFunctionAverageCountExcludePadding;
    default:
      return BNNSPoolingFunctionL2Norm;
  }
}
inline constexpr Pool kPools[] = {Pool::max, Pool::average_include, Pool::average_exclude, Pool::l2};

inline std::string text(const PoolShape& s) {
  char line[200];
  std::snprintf(line, sizeof line, "c%ld h%ldx%ld w%ldx%ld k%ldx%ld s%ldx%ld d%ldx%ld p%ld,%ld,%ld,%ld", s.C, s.H, s.OH,
                s.W, s.OW, s.kw, s.kh, s.sx, s.sy, s.dx, s.dy, s.left, s.right, s.top, s.bottom);
  return line;
}

// A square problem: kernel k, stride s, padding p on every side, as many windows as fit the padded image.
inline PoolShape square(long C, long size, long k, long s, long p = 0) {
  PoolShape shape;
  shape.C = C, shape.H = shape.W = size;
  shape.kw = shape.kh = k, shape.sx = shape.sy = s;
  shape.left = shape.right = shape.top = shape.bottom = p;
  shape.OH = shape.OW = (size + 2 * p - k) / s + 1;
  return shape;
}

// The shape with as many windows as the size rule allows: the last ones hang over the edge.
inline PoolShape overhanging(PoolShape s) {
  s.OW = (s.W + s.left + s.right - 1) / s.sx + 1;
  s.OH = (s.H + s.top + s.bottom - 1) / s.sy + 1;
  return s;
}
// One shape for each kernel of the implementation table in README.md.
inline std::vector<PoolShape> one_of_each_kernel(long C, long size) {
  PoolShape dilated = square(C, size + 4, 2, 1);
  dilated.dx = dilated.dy = 3, dilated.OW = dilated.OH = size + 1;
  return {square(C, size, 2, 2),
          square(C, size, 3, 1, 1),
          square(C, size, 3, 2, 1),
          square(C, size, 2, 1),
          square(C, size, 3, 3, 1),
          square(C, size, size, 1),
          overhanging(square(C, size, 2, 2)),
          overhanging(square(C, size, 3, 2, 1)),
          dilated};
}

// Anything the size rule allows: overhanging and empty windows, surplus pixels, dilation, uneven padding.
inline PoolShape random_shape(Random& random, long largest) {
  const auto pick = [&](long low, long high) { return long(random.integer(int(low), int(high))); };
  PoolShape s;
  s.C = pick(1, 3);
  s.H = pick(1, largest), s.W = pick(1, largest);
  s.kw = pick(1, 5), s.kh = pick(1, 5);
  s.sx = pick(1, random.below(3) ? 2 : 4), s.sy = pick(1, random.below(3) ? 2 : 4);
  if (random.below(4) == 0) s.dx = pick(1, 3), s.dy = pick(1, 3);
  if (random.below(3)) s.left = pick(0, 4), s.right = pick(0, 4), s.top = pick(0, 4), s.bottom = pick(0, 4);
  const long most_x = (s.W + s.left + s.right - 1) / s.sx + 1, most_y = (s.H + s.top + s.bottom - 1) / s.sy + 1;
  s.OW = random.below(3) ? most_x : pick(1, most_x);
  s.OH = random.below(3) ? most_y : pick(1, most_y);
  if (random.below(12) == 0) s.kw = s.W + s.left, s.kh = s.H + s.top, s.OW = s.OH = 1, s.dx = s.dy = 1;  // global
  return s;
}

struct PoolLayer {
  BNNSLayerParametersPooling parameters;
  BNNSFilterParameters options;

  PoolLayer(BNNSPoolingFunction function, const PoolShape& s) {
    std::memset(&parameters, 0, sizeof parameters);
    std::memset(&options, 0, sizeof options);
    const bool unmax = function == BNNSPoolingFunctionUnMax;
    const auto large = descriptor(BNNSDataLayoutImageCHW, {size_t(s.W), size_t(s.H), size_t(s.C)}, nullptr);
    const auto small = descriptor(BNNSDataLayoutImageCHW, {size_t(s.OW), size_t(s.OH), size_t(s.C)}, nullptr);
    parameters.i_desc = unmax ? small : large;
    parameters.o_desc = unmax ? large : small;
    parameters.pooling_function = function;
    parameters.k_width = size_t(s.kw), parameters.k_height = size_t(s.kh);
    parameters.x_stride = size_t(s.sx), parameters.y_stride = size_t(s.sy);
    parameters.x_dilation_stride = size_t(s.dx), parameters.y_dilation_stride = size_t(s.dy);
    if (s.left == s.right && s.top == s.bottom) {
      parameters.x_padding = size_t(s.left), parameters.y_padding = size_t(s.top);
    } else {
      const long pad[] = {s.left, s.right, s.top, s.bottom};
      for (int k = 0; k < 4; ++k) parameters.pad[k] = size_t(pad[k]);
    }
  }
  PoolLayer(Pool function, const PoolShape& s) : PoolLayer(bnns_function(function), s) {}

  FilterHandle make() const {
    FilterHandle filter(BNNSFilterCreateLayerPooling(&parameters, &options), &BNNSFilterDestroy);
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }
};

inline BNNSNDArrayDescriptor large_descriptor(const PoolShape& s, void* data, BNNSDataType type = BNNSDataTypeFloat32) {
  return descriptor(BNNSDataLayoutImageCHW, {size_t(s.W), size_t(s.H), size_t(s.C)}, data, type);
}
inline BNNSNDArrayDescriptor small_descriptor(const PoolShape& s, void* data, BNNSDataType type = BNNSDataTypeFloat32) {
  return descriptor(BNNSDataLayoutImageCHW, {size_t(s.OW), size_t(s.OH), size_t(s.C)}, data, type);
}

inline std::vector<double> widen(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

// Gradients in multiples of every divisor up to 5 x 5 taps, so that quotients are exact.
inline std::vector<float> exact_gradients(Random& random, size_t n) {
  std::vector<float> v(n);
  for (float& x : v) x = float(3600 * random.integer(-3, 3));  // 3600 = (3 * 4 * 5)^2
  return v;
}

// Both directions of one layer.
struct Results {
  std::vector<float> y, dx, dx_by_index;
  std::vector<size_t> index;
};

// Runs both directions on buffers that end at a page that faults; outputs are poisoned first.
inline Results run(Pool f, const PoolShape& s, size_t N, const std::vector<float>& x, const std::vector<float>& g,
                   size_t threads, Guarded<float>::Side side = Guarded<float>::Side::end) {
  PoolLayer layer(f, s);
  layer.options.n_threads = threads;
  const auto filter = layer.make();
  Guarded<float> xs(x, side), gs(g, side), ys(N * s.small(), side), dxs(N * s.large(), side);
  Guarded<size_t> index(N * s.small(), Guarded<size_t>::Side::end);
  std::fill_n(ys.data(), ys.size(), poison());
  std::fill_n(dxs.data(), dxs.size(), poison());
  Results r;
  EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), N, xs.data(), 0, ys.data(), 0, index.data(), 0), 0)
      << BNNSExtLastError();
  r.y.assign(ys.data(), ys.data() + ys.size());
  r.index.assign(index.data(), index.data() + index.size());
  auto dx = large_descriptor(s, dxs.data()), dy = small_descriptor(s, gs.data());
  EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, xs.data(), 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                                nullptr, 0),
            0)
      << BNNSExtLastError();
  r.dx.assign(dxs.data(), dxs.data() + dxs.size());
  if (f == Pool::max) {
    std::fill_n(dxs.data(), dxs.size(), poison());
    EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, nullptr, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                                  index.data(), 0),
              0)
        << BNNSExtLastError();
    r.dx_by_index.assign(dxs.data(), dxs.data() + dxs.size());
    // Without indices the values are the same.
    EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), N, xs.data(), 0, ys.data(), 0), 0);
    EXPECT_TRUE(same_bits(r.y.data(), ys.data(), r.y.size()));
  }
  return r;
}

inline constexpr double kEpsilon = 0x1p-23;

// exact: integer data, on which sums have no rounding and quotients one.
inline void expect_reference(Pool f, const PoolShape& s, size_t N, const std::vector<float>& x,
                             const std::vector<float>& g, bool exact, const Results& r) {
  const auto want = ref::pool_forward(f, s, N, widen(x));
  std::vector<double> magnitude;
  const auto dx = ref::pool_backward(f, s, N, widen(x), widen(g), &magnitude);
  const double taps = double(s.kw * s.kh),
               windows = double(((s.kw - 1) * s.dx / s.sx + 1) * ((s.kh - 1) * s.dy / s.sy + 1));
  const auto y_bound = [&](size_t i) {
    if (f == Pool::max) return 0.0;
    if (f == Pool::l2) return (taps + 3) * kEpsilon * want.y[i];
    if (exact) return std::fabs(double(float(want.y[i])) - want.y[i]);  // the correctly rounded quotient
    return want.count[i] == 0 ? 0 : (taps + 2) * kEpsilon * want.magnitude[i] / want.count[i];
  };
  const auto dx_bound = [&](size_t i) {
    if (exact && f != Pool::l2) return 0.0;
    if (f == Pool::max) return windows * kEpsilon * magnitude[i];
    return (windows + taps + 6) * kEpsilon * magnitude[i];
  };
  EXPECT_TRUE(within(r.y, want.y, r.y.size(), y_bound));
  EXPECT_TRUE(within(r.dx, dx, r.dx.size(), dx_bound));
  if (f != Pool::max) return;
  EXPECT_EQ(r.index, want.index);
  EXPECT_TRUE(within(r.dx_by_index, dx, r.dx_by_index.size(), dx_bound));
}

}  // namespace bnns::testing
