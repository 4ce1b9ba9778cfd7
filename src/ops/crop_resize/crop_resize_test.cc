// Crop and resize: exact crops, the reference for all modes and layouts, the transpose, refusals.

#include "src/ops/crop_resize/crop_resize.h"

#include <functional>
#include <numeric>

#include "src/ops/crop_resize/crop_resize_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

BNNSLayerParametersCropResize layer_of(BNNSLinearSamplingMode mode, unsigned boxes, bool normalized = false) {
  BNNSLayerParametersCropResize layer = {};
  layer.normalized_coordinates = normalized;
  layer.spatial_scale = 1;
  layer.sampling_mode = mode;
  layer.box_coordinate_mode = BNNSBoxCoordinateMode(boxes);
  layer.method = BNNSInterpolationMethodLinear;
  return layer;
}

// A 6 x 5 image, boxes given by centre and size, offset corners: 3 x 3 crops without any interpolation.
TEST(CropResize, DocumentedExactCrops) {
  std::vector<float> x(30), y(18);
  std::iota(x.begin(), x.end(), 0.0f);
  float roi[8] = {1, 1, 3, 3, 4, 3, 3, 3};
  auto x_desc = descriptor(BNNSDataLayout4DLastMajor, {6, 5, 1, 1}, x.data());
  auto roi_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 2}, roi);
  auto y_desc = descriptor(BNNSDataLayout5DLastMajor, {3, 3, 1, 1, 2}, y.data());
  const auto layer = layer_of(BNNSLinearSamplingOffsetCorners, 3);
  ASSERT_EQ(BNNSCropResize(&layer, &x_desc, &roi_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(y, (std::vector<float>{0, 1, 2, 6, 7, 8, 12, 13, 14, 15, 16, 17, 21, 22, 23, 27, 28, 29}));
}

// Worked by hand: columns 0 to 3 of a row {0, 10, 20, 30} at two and one points, for each sampling mode.
TEST(CropResize, SamplingModesByHand) {
  struct Case {
    BNNSLinearSamplingMode mode;
    float two[2], one;
  };
  const Case cases[] = {
      {BNNSLinearSamplingDefault, {0, 20}, 0},               // step (4 - 4 / 2) / 1
      {BNNSLinearSamplingAlignCorners, {0, 30}, 15},         // ends, and the middle
      {BNNSLinearSamplingUnalignCorners, {5, 25}, 15},       // step 2, from 1 - 1/2; step 4, at 2 - 1/2
      {BNNSLinearSamplingStrictAlignCorners, {0, 30}, 0},    // ends, and the start
      {BNNSLinearSamplingOffsetCorners, {7.5f, 22.5f}, 15},  // step 3/2, from 3/4; step 3, at 3/2
  };
  float x[8] = {0, 10, 20, 30, 0, 10, 20, 30};
  float roi[4] = {0, 0, 1, 3};  // h0 w0 h1 w1
  for (const Case& c : cases) {
    for (size_t n : {1, 2}) {
      float y[2];
      auto x_desc = descriptor(BNNSDataLayoutImageCHW, {4, 2, 1}, x), roi_desc = vector_descriptor(4, roi);
      auto y_desc = descriptor(BNNSDataLayout4DLastMajor, {n, 1, 1, 1}, y);
      const auto layer = layer_of(c.mode, 0);
      ASSERT_EQ(BNNSCropResize(&layer, &x_desc, &roi_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
      if (n == 1) {
        EXPECT_EQ(y[0], c.one) << c.mode;
      } else {
        EXPECT_EQ(y[0], c.two[0]) << c.mode;
        EXPECT_EQ(y[1], c.two[1]) << c.mode;
      }
    }
  }
}

struct Random_boxes {
  std::vector<ref::CropBox> boxes;
  std::vector<double> values;  // as in roi
};

// Boxes that reach beyond the image on all sides, in the numbers of a mode.
Random_boxes random_boxes(Random* random, size_t n, size_t width, size_t height, unsigned mode, bool normalized,
                          double scale, bool images, size_t n_images) {
  Random_boxes result;
  for (size_t b = 0; b < n; ++b) {
    double w0 = random->uniform(-1, double(width) - 1), h0 = random->uniform(-1, double(height) - 1);
    double w1 = w0 + random->uniform(0, double(width)), h1 = h0 + random->uniform(0, double(height));
    if (b % 5 == 4) std::swap(w0, w1);  // mirrored
    if (images) result.values.push_back(double(random->below(n_images)));
    const double sw = scale * (normalized ? double(width - 1) : 1), sh = scale * (normalized ? double(height - 1) : 1);
    double w[2] = {w0 / sw, w1 / sw}, h[2] = {h0 / sh, h1 / sh};
    if (mode & 2) {
      w[0] = (w0 + w1) / 2 / sw, w[1] = (w1 - w0) / sw;
      h[0] = (h0 + h1) / 2 / sh, h[1] = (h1 - h0) / sh;
    }
    // roi is f32: the reference starts from what it holds
    double f[4] = {mode & 1 ? w[0] : h[0], mode & 1 ? h[0] : w[0], mode & 1 ? w[1] : h[1], mode & 1 ? h[1] : w[1]};
    for (double& v : f) v = double(float(v)), result.values.push_back(v);
    const double a = (mode & 1 ? f[0] : f[1]) * sw, c = (mode & 1 ? f[2] : f[3]) * sw;
    const double d = (mode & 1 ? f[1] : f[0]) * sh, e = (mode & 1 ? f[3] : f[2]) * sh;
    result.boxes.push_back(mode & 2 ? ref::CropBox{a - c / 2, d - e / 2, a + c / 2, d + e / 2}
                                    : ref::CropBox{a, d, c, e});
  }
  return result;
}

TEST(CropResize, BC15_BC33_ModesLayoutsTypesAndTranspose) {
  Random random(1);
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  for (unsigned round = 0; round < 240; ++round) {
    const unsigned mode = round % 4;
    const auto sampling = BNNSLinearSamplingMode(round % 5);
    const bool normalized = round & 4, images = round & 8, first_major = round & 16, gaps = round & 32;
    const BNNSDataType type = types[round % 3];
    const size_t W = 2 + random.below(9), H = 2 + random.below(9), C = 1 + random.below(3), N = 1 + random.below(3);
    const size_t w = 1 + random.below(9), h = 1 + random.below(9), B = 1 + random.below(6);
    SCOPED_TRACE("round " + std::to_string(round));
    auto layer = layer_of(sampling, mode, normalized);
    layer.spatial_scale = round % 7 ? 1.0f : 0.5f;
    layer.extrapolation_value = -3;
    const auto boxes = random_boxes(&random, B, W, H, mode, normalized, double(layer.spatial_scale), images, N);
    const auto tensor = [&](std::vector<size_t> by_stride, BNNSDataType t, bool padded) {
      if (first_major) std::reverse(by_stride.begin(), by_stride.end());
      return LayoutTensor(generic_layout(by_stride.size(), first_major), by_stride, t, padded ? 2 : 1, padded);
    };
    const auto at = [&](Coordinates c) {
      if (first_major) std::reverse(c.begin(), c.end());
      return c;
    };
    LayoutTensor x = tensor({W, H, C, N}, type, gaps), roi = tensor({images ? 5u : 4u, B}, BNNSDataTypeFloat32, gaps);
    LayoutTensor y = images ? tensor({w, h, C, B}, type, gaps) : tensor({w, h, C, N, B}, type, gaps);
    for_each_coordinate(x.size(), [&](const Coordinates& c) { x.set(c, random.integer(-8, 8)); });
    for (size_t b = 0; b < B; ++b) {
      for (size_t v = 0; v < (images ? 5u : 4u); ++v) roi.set(at({v, b}), boxes.values[b * (images ? 5 : 4) + v]);
    }
    auto x_desc = x.descriptor(), roi_desc = roi.descriptor(), y_desc = y.descriptor();
    ASSERT_EQ(BNNSCropResize(&layer, &x_desc, &roi_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
    ASSERT_TRUE(y.gaps_untouched());
    // The transpose, on a gradient of small integers.
    LayoutTensor dy =
        images ? tensor({w, h, C, B}, BNNSDataTypeFloat32, !gaps) : tensor({w, h, C, N, B}, BNNSDataTypeFloat32, !gaps);
    for_each_coordinate(dy.size(), [&](const Coordinates& c) { dy.set(c, random.integer(-4, 4)); });
    LayoutTensor dx = tensor({W, H, C, N}, BNNSDataTypeFloat32, gaps);
    auto dx_desc = dx.descriptor(), dy_desc = dy.descriptor();
    ASSERT_EQ(BNNSCropResizeBackward(&layer, &dx_desc, &roi_desc, &dy_desc, nullptr), 0) << BNNSExtLastError();
    ASSERT_TRUE(dx.gaps_untouched());
    for (size_t n = 0; n < N; ++n) {
      for (size_t c = 0; c < C; ++c) {
        std::vector<double> want_dx(W * H, 0), size(W * H, 0);
        for (size_t b = 0; b < B; ++b) {
          if (images && size_t(boxes.values[b * 5]) != n) continue;
          const auto out = [&](size_t p) {
            return at(images ? Coordinates{p % w, p / w, c, b} : Coordinates{p % w, p / w, c, n, b});
          };
          std::vector<double> want(w * h, 0);
          ref::crop_weights(sampling, boxes.boxes[b], W, H, w, h, [&](size_t p, size_t pixel, double weight) {
            if (pixel == SIZE_MAX) {
              want[p] = -3;
              return;
            }
            want[p] += weight * x.get(at({pixel % W, pixel / W, c, n}));
            want_dx[pixel] += weight * dy.get(out(p));
            size[pixel] += weight * std::fabs(dy.get(out(p)));
          });
          // values up to 8, differences up to 16, a fraction of 24 bits: 64 ulp; then the type
          const double unit = type == BNNSDataTypeFloat32 ? 0 : type == BNNSDataTypeFloat16 ? 0x1p-11 : 0x1p-8;
          for (size_t p = 0; p < w * h; ++p) ASSERT_NEAR(y.get(out(p)), want[p], 64 * 0x1p-24 * 8 + unit * 8);
        }
        for (size_t p = 0; p < W * H; ++p) {
          // fractions are rounded to 2^-24 and every gradient is at most 4, from at most 6 * 81 points
          ASSERT_NEAR(dx.get(at({p % W, p / W, c, n})), want_dx[p], 0x1p-24 * (500 * size[p] + 4000));
        }
      }
    }
    dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;  // BC14
    const auto once = read(dx);
    ASSERT_EQ(BNNSCropResizeBackward(&layer, &dx_desc, &roi_desc, &dy_desc, nullptr), 0);
    const auto twice = read(dx);
    for (size_t i = 0; i < once.size(); ++i) ASSERT_EQ(twice[i], 2 * once[i]);
  }
}

TEST(CropResize, BC53_SameBitsForAnyThreadCount) {
  Random random(3);
  auto x = random.normals(40 * 30 * 9), dy = random.normals(20 * 20 * 9 * 5);
  std::vector<float> roi;
  for (size_t b = 0; b < 5; ++b) {
    for (int v : {random.integer(0, 9), random.integer(0, 9), random.integer(10, 29), random.integer(10, 39)})
      roi.push_back(float(v) + 0.3f);
  }
  std::vector<float> want, want_dx;
  for (size_t threads : kThreadCounts) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    std::vector<float> y(dy.size(), poison()), dx(x.size(), poison());
    auto x_desc = descriptor(BNNSDataLayout3DLastMajor, {40, 30, 9}, x.data()), dx_desc = x_desc;
    auto y_desc = descriptor(BNNSDataLayout4DLastMajor, {20, 20, 9, 5}, y.data()), dy_desc = y_desc;
    dx_desc.data = dx.data(), dy_desc.data = dy.data();
    auto roi_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 5}, roi.data());
    const auto layer = layer_of(BNNSLinearSamplingUnalignCorners, 0);
    ASSERT_EQ(BNNSCropResize(&layer, &x_desc, &roi_desc, &y_desc, &options), 0) << BNNSExtLastError();
    ASSERT_EQ(BNNSCropResizeBackward(&layer, &dx_desc, &roi_desc, &dy_desc, &options), 0) << BNNSExtLastError();
    if (want.empty()) want = y, want_dx = dx;
    ASSERT_TRUE(same_bits(y, want) && same_bits(dx, want_dx));
  }
}

TEST(CropResizeMisuse, BC34_BC37_RefusalsWriteNothing) {
  struct Fixture {
    std::vector<float> x = std::vector<float>(24, 1), y = std::vector<float>(24, 9), roi = {0, 0, 0, 1, 1};
    BNNSLayerParametersCropResize layer = layer_of(BNNSLinearSamplingDefault, 0);
    BNNSNDArrayDescriptor image = descriptor(BNNSDataLayout4DLastMajor, {3, 4, 2, 1}, x.data());
    BNNSNDArrayDescriptor boxes = descriptor(BNNSDataLayout2DLastMajor, {4, 1}, roi.data());
    BNNSNDArrayDescriptor crops = descriptor(BNNSDataLayout5DLastMajor, {2, 2, 2, 1, 1}, y.data());
    const BNNSLayerParametersCropResize* layer_pointer = &layer;
    const BNNSNDArrayDescriptor* boxes_pointer = &boxes;
    void images() {
      boxes.size[0] = 5;
      crops = descriptor(BNNSDataLayout4DLastMajor, {2, 2, 2, 1}, crops.data);
    }
  };
  struct Refusal {
    const char* reason;
    std::function<void(Fixture&)> spoil;
  };
  const Refusal refusals[] = {
      {"layer_params is NULL", [](Fixture& f) { f.layer_pointer = nullptr; }},
      {"roi is NULL", [](Fixture& f) { f.boxes_pointer = nullptr; }},
      {"method is BNNSInterpolationMethodNearest (0)",
       [](Fixture& f) { f.layer.method = BNNSInterpolationMethodNearest; }},
      {"sampling_mode is 5", [](Fixture& f) { f.layer.sampling_mode = BNNSLinearSamplingMode(5); }},
      {"box_coordinate_mode is 4", [](Fixture& f) { f.layer.box_coordinate_mode = BNNSBoxCoordinateMode(4); }},
      {"spatial_scale is 0", [](Fixture& f) { f.layer.spatial_scale = 0; }},
      {"spatial_scale is inf", [](Fixture& f) { f.layer.spatial_scale = INFINITY; }},
      {"roi is f32 3x1", [](Fixture& f) { f.boxes.size[0] = 3; }},
      {"2 boxes", [](Fixture& f) { f.boxes.size[1] = 2; }},
      {"expected rank 5", [](Fixture& f) { f.crops.size[2] = 1; }},
      {"expected rank 5",
       [](Fixture& f) {
         f.crops = descriptor(BNNSDataLayout4DLastMajor, {2, 2, 2, 1}, f.crops.data);
       }},
      {"has type i8", [](Fixture& f) { f.image.data_type = BNNSDataTypeInt8; }},
      {"has rank 1", [](Fixture& f) { f.image = vector_descriptor(24, f.image.data); }},
      {"overlap", [](Fixture& f) { f.crops.data = f.image.data; }},
      {"names image 1", [](Fixture& f) { f.images(), f.roi[0] = 1; }},
      {"names image -1", [](Fixture& f) { f.images(), f.roi[0] = -1; }},
      {"names image 0.5", [](Fixture& f) { f.images(), f.roi[0] = 0.5f; }},
      {"names image nan", [](Fixture& f) { f.images(), f.roi[0] = NAN; }},
  };
  for (const Refusal& refusal : refusals) {
    for (bool backward : {false, true}) {
      SCOPED_TRACE(std::string(refusal.reason) + (backward ? " backward" : ""));
      Fixture f;
      if (backward) std::swap(f.image.data, f.crops.data);
      refusal.spoil(f);
      EXPECT_EQ(backward ? BNNSCropResizeBackward(f.layer_pointer, &f.image, f.boxes_pointer, &f.crops, nullptr)
                         : BNNSCropResize(f.layer_pointer, &f.image, f.boxes_pointer, &f.crops, nullptr),
                -1);
      EXPECT_TRUE(refused_because({refusal.reason}));
      EXPECT_EQ(f.y, std::vector<float>(24, 9));
    }
  }
  Fixture f;  // boxes that are no numbers are outside
  f.roi = {NAN, INFINITY, -INFINITY, NAN, 0};
  f.boxes.data = f.roi.data();
  f.layer.extrapolation_value = 5;
  ASSERT_EQ(BNNSCropResize(&f.layer, &f.image, &f.boxes, &f.crops, nullptr), 0);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(f.y[i], 5);
}

}  // namespace
}  // namespace bnns::testing
