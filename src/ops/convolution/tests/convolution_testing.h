// A convolution layer for the tests: dense f32 OIHW; tests change what they need before make().
#pragma once

#include <memory>
#include <string>

#include "src/ops/convolution/convolution_ref.h"
#include "src/ops/convolution/winograd/dw.h"
#include "src/ops/convolution/winograd/transposed.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using ref::ConvolutionShape;
using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;

inline std::vector<double> widen(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

// Sets the output extent that just fits (convolution), or that all contributions fit in (transposed).
inline ConvolutionShape fitted(ConvolutionShape s, size_t bottom = SIZE_MAX, size_t right = SIZE_MAX) {
  const size_t ky = (s.kh - 1) * s.dy + 1, kx = (s.kw - 1) * s.dx + 1;
  if (bottom == SIZE_MAX) bottom = s.top;
  if (right == SIZE_MAX) right = s.left;
  if (s.transposed) {
    s.oh = (s.ih - 1) * s.sy + ky - s.top - bottom;
    s.ow = (s.iw - 1) * s.sx + kx - s.left - right;
  } else {
    s.oh = (s.ih + s.top + bottom - ky) / s.sy + 1;
    s.ow = (s.iw + s.left + right - kx) / s.sx + 1;
  }
  return s;
}

struct NamedShape {
  const char* name;
  ConvolutionShape shape;
};

inline ConvolutionShape make_shape(size_t n, size_t i, size_t ih, size_t iw, size_t o, size_t k, size_t stride,
                                   size_t pad, size_t groups = 1, size_t dilation = 1, bool transposed = false) {
  ConvolutionShape s;
  s.transposed = transposed;
  s.n = n, s.i = i, s.ih = ih, s.iw = iw, s.o = o, s.kh = s.kw = k, s.sy = s.sx = stride, s.top = s.left = pad;
  s.groups = groups, s.dy = s.dx = dilation;
  return fitted(s);
}

// The geometry as the maps see it.
inline ConvolutionMap map_of(const ConvolutionShape& s) {
  ConvolutionMap map;
  map.y = {s.transposed ? s.ih : s.oh, s.transposed ? s.oh : s.ih, s.kh, s.sy, s.dy, s.top};
  map.x = {s.transposed ? s.iw : s.ow, s.transposed ? s.ow : s.iw, s.kw, s.sx, s.dx, s.left};
  map.groups = s.groups;
  map.small_channels = (s.transposed ? s.i : s.o) / s.groups;
  map.large_channels = (s.transposed ? s.o : s.i) / s.groups;
  return map;
}

// Whether the map up is made by winograd/transposed.
inline bool takes_transposed(const ConvolutionMap& map, size_t batch) {
  return accepts_winograd_transposed(make_patch_map(map, true, batch));
}

// Whether dW of small integers is exact: not where Winograd's algorithm makes it
// (convolution_winograd_weights_test.cc).
inline bool has_exact_weights(const ConvolutionShape& s) {
  return !accepts_winograd_dw(make_weight_map(map_of(s), s.n));
}

inline const auto kExact = [](size_t) { return 0.0; };  // a bound for within

inline std::string text(const ConvolutionShape& s) {
  const auto n = [](size_t v) { return std::to_string(v); };
  return std::string(s.transposed ? "transposed " : "") + "n" + n(s.n) + " " + n(s.i) + "x" + n(s.ih) + "x" + n(s.iw) +
         " > " + n(s.o) + "x" + n(s.oh) + "x" + n(s.ow) + " k" + n(s.kh) + "x" + n(s.kw) + " s" + n(s.sy) + "x" +
         n(s.sx) + " d" + n(s.dy) + "x" + n(s.dx) + " top" + n(s.top) + " left" + n(s.left) + " g" + n(s.groups);
}

inline BNNSNDArrayDescriptor image(size_t width, size_t height, size_t channels, void* data,
                                   BNNSDataType type = BNNSDataTypeFloat32) {
  return descriptor(BNNSDataLayoutImageCHW, {width, height, channels}, data, type);
}

struct ConvolutionLayer {
  ConvolutionShape shape;
  BNNSLayerParametersConvolution parameters;
  BNNSFilterParameters options;

  ConvolutionLayer(const ConvolutionShape& s, const float* w, const float* b,
                   BNNSActivationFunction activation = BNNSActivationFunctionIdentity)
      : shape(s) {
    std::memset(&parameters, 0, sizeof parameters);
    std::memset(&options, 0, sizeof options);
    parameters.i_desc = image(s.iw, s.ih, s.i, nullptr);
    parameters.o_desc = image(s.ow, s.oh, s.o, nullptr);
    parameters.w_desc =
        descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {s.kw, s.kh, s.i / s.groups, s.o}, const_cast<float*>(w));
    if (b) parameters.bias = vector_descriptor(s.o, const_cast<float*>(b));
    parameters.activation.function = activation;
    parameters.activation.alpha = 0.5f;
    parameters.x_stride = s.sx, parameters.y_stride = s.sy;
    parameters.x_dilation_stride = s.dx, parameters.y_dilation_stride = s.dy;
    // Padding on the far sides: as much as the windows reach beyond the image.
    const size_t wy = s.transposed ? s.ih : s.oh, wx = s.transposed ? s.iw : s.ow;
    const size_t ly = s.transposed ? s.oh : s.ih, lx = s.transposed ? s.ow : s.iw;
    const size_t need_y = s.sy * (wy - 1) + (s.kh - 1) * s.dy + 1, need_x = s.sx * (wx - 1) + (s.kw - 1) * s.dx + 1;
    parameters.pad[0] = s.left;
    parameters.pad[1] = need_x > lx + s.left ? need_x - lx - s.left : 0;
    parameters.pad[2] = s.top;
    parameters.pad[3] = need_y > ly + s.top ? need_y - ly - s.top : 0;
    parameters.groups = s.groups;
  }
  FilterHandle make() const {
    FilterHandle filter(shape.transposed ? BNNSFilterCreateLayerTransposedConvolution(&parameters, &options)
                                         : BNNSFilterCreateLayerConvolution(&parameters, &options),
                        &BNNSFilterDestroy);
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }
};

struct ConvolutionResults {
  std::vector<float> y, dx, dw, db;
};

// Forward and backward of one layer on guarded, poisoned memory; NaN marks what was not written.
inline ConvolutionResults run_convolution(const ConvolutionShape& s, const std::vector<float>& xs,
                                          const std::vector<float>& ws, const std::vector<float>& bs,
                                          const std::vector<float>& dys, size_t threads = 0,
                                          BNNSActivationFunction activation = BNNSActivationFunctionIdentity) {
  Guarded<float> x(xs), w(ws), b(bs), dy(dys), y(s.y_count()), dx(s.x_count()), dw(s.w_count()), db(s.o);
  for (auto* v : {&y, &dx, &dw, &db}) std::fill_n(v->data(), v->size(), poison());
  ConvolutionLayer layer(s, w.data(), bs.empty() ? nullptr : b.data(), activation);
  layer.options.n_threads = threads;
  const auto filter = layer.make();
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
  auto dx_desc = image(s.iw, s.ih, s.i, dx.data()), dy_desc = image(s.ow, s.oh, s.o, dy.data());
  auto dw_desc = layer.parameters.w_desc;
  dw_desc.data = dw.data();
  auto db_desc = vector_descriptor(s.o, db.data());
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                         &dw_desc, &db_desc),
            0)
      << BNNSExtLastError();
  const auto copy = [](Guarded<float>& v) { return std::vector<float>(v.data(), v.data() + v.size()); };
  return {copy(y), copy(dx), copy(dw), copy(db)};
}

// A random small problem; every field of the geometry varies.
inline ConvolutionShape random_shape(Random& random, bool transposed) {
  for (;;) {
    ConvolutionShape s;
    s.transposed = transposed;
    s.n = 1 + random.below(3);
    s.groups = random.below(3) == 0 ? 1 + random.below(3) : 1;
    if (transposed) s.groups = 1;
    s.i = s.groups * (1 + random.below(4)), s.o = s.groups * (1 + random.below(5));
    s.kh = 1 + random.below(4), s.kw = 1 + random.below(4);
    s.sy = 1 + random.below(3), s.sx = 1 + random.below(3);
    s.dy = 1 + random.below(3), s.dx = 1 + random.below(3);
    s.top = random.below(4), s.left = random.below(4);
    const size_t bottom = random.below(4), right = random.below(4);
    s.ih = 1 + random.below(9), s.iw = 1 + random.below(12);
    const size_t ky = (s.kh - 1) * s.dy + 1, kx = (s.kw - 1) * s.dx + 1;
    if (transposed) {
      if ((s.ih - 1) * s.sy + ky <= s.top + bottom || (s.iw - 1) * s.sx + kx <= s.left + right) continue;
    } else if (s.ih + s.top + bottom < ky || s.iw + s.left + right < kx) {
      continue;
    }
    s = fitted(s, bottom, right);
    // Now and then fewer outputs than fit (surplus input pixels), or a larger transposed output.
    if (random.below(4) == 0) {
      if (transposed) {
        s.oh += random.below(3), s.ow += random.below(3);
      } else {
        s.oh = 1 + random.below(s.oh), s.ow = 1 + random.below(s.ow);
      }
    }
    return s;
  }
}

}  // namespace bnns::testing
