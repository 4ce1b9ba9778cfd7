// What the tests of scale and shift share: a problem with its data, run through the C interface between guard pages.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "examples/operator_skeleton/scale_shift_ext.h"
#include "examples/operator_skeleton/scale_shift_ref.h"
#include "src/core/implementation.h"
#include "tests/support/layers.h"

namespace bnns::testing {

struct ScaleShiftResults {
  std::vector<float> y, dx, da, db;
  std::string forward, backward;  // the algorithms that ran
};

// The algorithms of a call.
template <class Call>
std::string name_of(Call&& call) {
  const CallRecord record;
  call();
  char text[128];
  record.join(text, sizeof text);
  return text;
}

// Dense f32 images.
struct ScaleShiftCase {
  size_t batch, width, height, channels;
  std::vector<float> x, a, b, dy;

  size_t plane() const { return width * height; }
  std::string text() const {
    return std::to_string(batch) + " samples of " + std::to_string(width) + "x" + std::to_string(height) + "x" +
           std::to_string(channels);
  }

  // Small integers: every sum is exact, so a kernel must equal its reference bit for bit.
  void fill_integers(uint64_t seed) {
    Random random(seed);
    const size_t count = batch * channels * plane();
    x = random.integers(count), dy = random.integers(count);
    a = random.integers(channels), b = random.integers(channels);
  }
  void fill_normals(uint64_t seed) {
    Random random(seed);
    const size_t count = batch * channels * plane();
    x = random.normals(count), dy = random.normals(count);
    a = random.normals(channels), b = random.normals(channels);
  }

  BNNSExtLayerParametersScaleShift layer(void* scale, void* shift) const {
    BNNSExtLayerParametersScaleShift parameters;
    std::memset(&parameters, 0, sizeof parameters);
    parameters.i_desc = descriptor(BNNSDataLayoutImageCHW, {width, height, channels}, nullptr);
    parameters.o_desc = parameters.i_desc;
    parameters.scale = vector_descriptor(channels, scale);
    parameters.shift = vector_descriptor(channels, shift);
    parameters.axis = 2;
    return parameters;
  }

  // Forward and backward. Every tensor ends at a page that faults, or begins behind one.
  ScaleShiftResults run(size_t threads, Guarded<float>::Side side = Guarded<float>::Side::end) const {
    Guarded<float> xs(x, side), as(a, side), bs(b, side), dys(dy, side), ys(x.size(), side), dxs(x.size(), side),
        das(channels, side), dbs(channels, side);
    const BNNSExtLayerParametersScaleShift parameters = layer(as.data(), bs.data());
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    const FilterHandle filter = own(BNNSExtFilterCreateLayerScaleShift(&parameters, &options));
    BNNSNDArrayDescriptor dx_desc = parameters.i_desc, dy_desc = parameters.o_desc;
    dx_desc.data = dxs.data(), dy_desc.data = dys.data();
    BNNSNDArrayDescriptor da_desc = vector_descriptor(channels, das.data()),
                          db_desc = vector_descriptor(channels, dbs.data());
    const std::string forward = name_of([&] {
      EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), batch, xs.data(), 0, ys.data(), 0), 0) << BNNSExtLastError();
    });
    const std::string backward = name_of([&] {
      EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), batch, xs.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                             &da_desc, &db_desc),
                0)
          << BNNSExtLastError();
    });
    const auto copy = [](Guarded<float>& from) { return std::vector<float>(from.data(), from.data() + from.size()); };
    return {copy(ys), copy(dxs), copy(das), copy(dbs), forward, backward};
  }

  // rounding: 0 for integers, else 1 for the bounds of README.md.
  void expect_reference(const ScaleShiftResults& got, double rounding) const {
    const auto A = to_double(a), B = to_double(b), X = to_double(x), DY = to_double(dy);
    const auto want = ref::scale_shift(batch, channels, plane(), A, B, X);
    const auto gradients = ref::scale_shift_backward(batch, channels, plane(), A, X, DY);
    const auto channel = [&](size_t i) { return i / plane() % channels; };
    const double eps = rounding * 0x1p-24;
    EXPECT_TRUE(within(got.y, want, want.size(), [&](size_t i) {
      return eps * (2 * std::fabs(A[channel(i)] * X[i]) + std::fabs(B[channel(i)]));
    }));
    EXPECT_TRUE(within(got.dx, gradients.dx, X.size(), [&](size_t i) { return eps * std::fabs(gradients.dx[i]); }));
    // A chunk of 2048 terms goes to 16 or more f32 sums.
    std::vector<double> x_dy(channels), sum(channels);
    for (size_t i = 0; i < X.size(); ++i) {
      x_dy[channel(i)] += std::fabs(X[i] * DY[i]), sum[channel(i)] += std::fabs(DY[i]);
    }
    EXPECT_TRUE(within(got.da, gradients.da, channels, [&](size_t c) { return eps * (2048 / 16 + 8) * x_dy[c]; }));
    EXPECT_TRUE(within(got.db, gradients.db, channels, [&](size_t c) { return eps * (2048 / 16 + 8) * sum[c]; }));
  }
};

// Planes on both sides of a vector and of a chunk, one element, one channel, many samples; the last one is long enough
// for seven threads.
inline std::vector<ScaleShiftCase> scale_shift_cases() {
  std::vector<ScaleShiftCase> cases;
  for (size_t width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64}) cases.push_back({2, width, 1, 3, {}, {}, {}, {}});
  cases.push_back({1, 1, 1, 1, {}, {}, {}, {}});
  cases.push_back({3, 2047, 1, 1, {}, {}, {}, {}});
  cases.push_back({1, 683, 3, 2, {}, {}, {}, {}});
  cases.push_back({4, 40, 25, 40, {}, {}, {}, {}});
  return cases;
}

}  // namespace bnns::testing
