// The same layer through any layout, stride, type and flag: what convolution_forms_test.cc and
// convolution_bug_classes_test.cc share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/core/half.h"
#include "src/ops/convolution/tests/convolution_testing.h"
#include "tests/support/layouts.h"

namespace bnns::testing {

// stride[0], and what every further stride has beyond dense; the batch stride is the last of them.
struct Spacing {
  size_t unit = 1, pad = 0;
};

// N samples of a CHW image.
class ImageBatch {
 public:
  ImageBatch(size_t n, size_t c, size_t h, size_t w, BNNSDataType type = BNNSDataTypeFloat32, Spacing s = {})
      : tensor_(BNNSDataLayout4DLastMajor, {w, h, c, n}, type, s.unit, s.pad) {}

  BNNSNDArrayDescriptor descriptor() {
    auto d = tensor_.descriptor();
    d.layout = BNNSDataLayoutImageCHW;
    d.size[3] = d.stride[3] = 0;
    return d;
  }
  size_t batch_stride() { return tensor_.descriptor().stride[3]; }
  void* data() { return tensor_.data(); }
  void fill(const std::vector<double>& dense) {
    size_t j = 0;
    for_each_coordinate(tensor_.size(), [&](const Coordinates& at) { tensor_.set(at, dense[j++]); });
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for_each_coordinate(tensor_.size(), [&](const Coordinates& at) { v.push_back(tensor_.get(at)); });
    return v;
  }
  bool gaps_untouched() const { return tensor_.gaps_untouched(); }

 private:
  LayoutTensor tensor_;
};

// W(o, i, ky, kx) in one of the four weight layouts.
class Weights {
 public:
  Weights(BNNSDataLayout layout, const ConvolutionShape& s, BNNSDataType type = BNNSDataTypeFloat32,
          Spacing spacing = {})
      : layout_(layout), o_(s.o), i_(s.i / s.groups), kh_(s.kh), kw_(s.kw) {
    if (packed()) {
      memory_ = std::make_unique<LayoutTensor>(BNNSDataLayout5DLastMajor,
                                               std::vector<size_t>{32, kw_, kh_, i_, (o_ + 31) / 32}, type);
    } else {
      memory_ = std::make_unique<LayoutTensor>(layout, size(), type, spacing.unit, spacing.pad);
    }
  }
  BNNSNDArrayDescriptor descriptor() {
    if (packed()) return bnns::testing::descriptor(layout_, size(), memory_->data(), memory_->type());
    return memory_->descriptor();
  }
  void fill(const std::vector<double>& dense) {
    size_t j = 0;
    for_each([&](const Coordinates& at) { memory_->set(at, dense[j++]); });
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for_each([&](const Coordinates& at) { v.push_back(memory_->get(at)); });
    return v;
  }
  // Gaps, and the lanes of a last group of 32 that no output channel has, hold what they held.
  bool gaps_untouched() const {
    if (!packed()) return memory_->gaps_untouched();
    for (size_t lane = o_ % 32; lane != 0 && lane < 32; ++lane) {
      for (size_t k = 0; k < kw_ * kh_ * i_; ++k) {
        const Coordinates at = {lane, k % kw_, k / kw_ % kh_, k / kw_ / kh_, o_ / 32};
        const auto bytes = memory_->snapshot();
        if (bytes[memory_->offset(at) * bytes.size() / memory_->count()] != 0xcd) return false;
      }
    }
    return true;
  }

 private:
  bool packed() const { return layout_ == BNNSDataLayoutConvolutionWeightsOIHW_Pack32; }
  std::vector<size_t> size() const {
    if (layout_ == BNNSDataLayoutConvolutionWeightsIOHrWr) return {kw_, kh_, o_, i_};
    return {kw_, kh_, i_, o_};
  }
  // Coordinates in memory_ of every weight, in the order of the dense (O, I, kh, kw).
  template <class F>
  void for_each(F&& f) const {
    for_each_coordinate({kw_, kh_, i_, o_}, [&](const Coordinates& c) {
      if (packed()) {
        f(Coordinates{c[3] % 32, c[0], c[1], c[2], c[3] / 32});
      } else if (layout_ == BNNSDataLayoutConvolutionWeightsIOHrWr) {
        f(Coordinates{c[0], c[1], c[3], c[2]});
      } else {
        f(c);
      }
    });
  }

  BNNSDataLayout layout_;
  size_t o_, i_, kh_, kw_;
  std::unique_ptr<LayoutTensor> memory_;
};

struct Form {
  BNNSDataLayout w_layout = BNNSDataLayoutConvolutionWeightsOIHW;
  BNNSDataType x_type = BNNSDataTypeFloat32, w_type = BNNSDataTypeFloat32, y_type = BNNSDataTypeFloat32;  // and deltas
  Spacing x, w, y, dx, dw, dy;
  bool accumulate = false;  // dx, dw, db, to what `old` says
  double old = 0;           // in dx, dw, db before the call
  bool vectors = false;     // deltas are Vector descriptors
  bool use_dx = true, use_dw = true, use_db = true;
  size_t threads = 0;
  BNNSActivation activation = {};

  Form() = default;
  explicit Form(BNNSActivationFunction function) { activation.function = function; }
};

struct FormResults {
  std::vector<double> y, dx, dw, db;
  bool gaps_untouched = true;
};

inline const double kUntouched = 12345;

// Forward, then backward on that result. Deltas that the form leaves out hold kUntouched.
inline FormResults run_form(const ConvolutionShape& s, const Form& f, const std::vector<float>& x,
                            const std::vector<float>& w, const std::vector<float>& b, const std::vector<float>& dy) {
  ImageBatch xs(s.n, s.i, s.ih, s.iw, f.x_type, f.x), ys(s.n, s.o, s.oh, s.ow, f.y_type, f.y);
  ImageBatch dxs(s.n, s.i, s.ih, s.iw, f.x_type, f.dx), dys(s.n, s.o, s.oh, s.ow, f.y_type, f.dy);
  Weights ws(f.w_layout, s, f.w_type, f.w), dws(f.w_layout, s, f.w_type, f.dw);
  Guarded<float> db(s.o), bias(b);
  xs.fill(widen(x)), ws.fill(widen(w)), dys.fill(widen(dy));
  dxs.fill(std::vector<double>(s.x_count(), f.use_dx ? f.old : kUntouched));
  dws.fill(std::vector<double>(s.w_count(), f.use_dw ? f.old : kUntouched));
  std::fill_n(db.data(), s.o, float(f.use_db ? f.old : kUntouched));

  ConvolutionLayer layer(s, nullptr, b.empty() ? nullptr : bias.data());
  layer.parameters.i_desc = xs.descriptor();
  layer.parameters.o_desc = ys.descriptor();
  layer.parameters.i_desc.data = layer.parameters.o_desc.data = nullptr;
  layer.parameters.w_desc = ws.descriptor();
  layer.parameters.activation = f.activation;
  layer.options.n_threads = f.threads;
  const auto filter = layer.make();
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, xs.data(), xs.batch_stride(), ys.data(), ys.batch_stride()), 0)
      << BNNSExtLastError();

  auto dx_desc = dxs.descriptor(), dy_desc = dys.descriptor(), dw_desc = dws.descriptor();
  auto db_desc = vector_descriptor(s.o, db.data());
  if (f.vectors) {
    dx_desc = vector_descriptor(s.x_count() / s.n, dxs.data());
    dy_desc = vector_descriptor(s.y_count() / s.n, dys.data());
    dw_desc = vector_descriptor(s.w_count(), dw_desc.data);
  }
  if (f.accumulate) dx_desc.flags = dw_desc.flags = db_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, xs.data(), xs.batch_stride(), f.use_dx ? &dx_desc : nullptr,
                                         dxs.batch_stride(), ys.data(), ys.batch_stride(), &dy_desc, dys.batch_stride(),
                                         f.use_dw ? &dw_desc : nullptr, f.use_db ? &db_desc : nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_EQ(dys.values(), widen(dy)) << "out_delta is never modified";
  return {ys.values(),
          dxs.values(),
          dws.values(),
          {db.data(), db.data() + s.o},
          xs.gaps_untouched() && ys.gaps_untouched() && dxs.gaps_untouched() && dys.gaps_untouched() &&
              ws.gaps_untouched() && dws.gaps_untouched()};
}

inline constexpr BNNSDataLayout kWeightLayouts[] = {
    BNNSDataLayoutConvolutionWeightsOIHW, BNNSDataLayoutConvolutionWeightsOIHrWr,
    BNNSDataLayoutConvolutionWeightsIOHrWr, BNNSDataLayoutConvolutionWeightsOIHW_Pack32};

// Small integers and the exact results.
struct IntegerData {
  std::vector<float> x, w, b, dy;
  std::vector<double> y;
  ref::ConvolutionGradients gradients;

  IntegerData(const ConvolutionShape& s, uint64_t seed) {
    Random random(seed);
    x = random.integers(s.x_count()), w = random.integers(s.w_count()), b = random.integers(s.o),
    dy = random.integers(s.y_count());
    y = ref::convolution_forward(s, widen(x), widen(w), widen(b));
    gradients = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
  }
};

// A value as the type holds it.
inline double rounded(BNNSDataType type, double value) {
  switch (type) {
    case BNNSDataTypeFloat16:
      return half_to_float(float_to_half(float(value)));
    case BNNSDataTypeBFloat16:
      return bfloat16_to_float(float_to_bfloat16(float(value)));
    default:
      return float(value);
  }
}
inline std::vector<double> rounded(BNNSDataType type, std::vector<double> v) {
  for (double& e : v) e = rounded(type, e);
  return v;
}

inline void expect_exact(const IntegerData& d, const FormResults& got) {
  EXPECT_TRUE(within(got.y, d.y, d.y.size(), kExact)) << "y";
  EXPECT_TRUE(within(got.dx, d.gradients.dx, got.dx.size(), kExact)) << "dx";
  EXPECT_TRUE(within(got.dw, d.gradients.dw, got.dw.size(), kExact)) << "dw";
  EXPECT_TRUE(within(got.db, d.gradients.db, got.db.size(), kExact)) << "db";
  EXPECT_TRUE(got.gaps_untouched);
}

}  // namespace bnns::testing
