// A batch of images with strides, types and guard pages of a test's choice.
#pragma once

#include "src/core/half.h"
#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns::testing {

// A batch of CHW samples in guarded memory: element (n,c,h,w) at n batch + c s2 + h s1 + w s0; everything else poison.
class Images {
 public:
  struct Form {
    size_t w_step = 1, h_pad = 0, c_pad = 0, n_pad = 0;
    BNNSDataType type = BNNSDataTypeFloat32;
  };
  Images(const NormCase& c, const Form& form, Guarded<unsigned char>::Side side = Guarded<unsigned char>::Side::end)
      : c_(c),
        form_(form),
        s1_(c.W * form.w_step + form.h_pad),
        s2_(c.H * s1_ + form.c_pad),
        batch_(c.C * s2_ + form.n_pad),
        bytes_(form.type == BNNSDataTypeFloat32 ? 4 : 2),
        span_((c.N - 1) * batch_ + (c.C - 1) * s2_ + (c.H - 1) * s1_ + (c.W - 1) * form.w_step + 1),
        memory_(span_ * bytes_, side) {
    std::memset(memory_.data(), 0xcd, span_ * bytes_);
  }
  Images(const NormCase& c, const Form& form, const std::vector<float>& dense,
         Guarded<unsigned char>::Side side = Guarded<unsigned char>::Side::end)
      : Images(c, form, side) {
    for (size_t e = 0; e < dense.size(); ++e) set(e, dense[e]);
  }
  void* data() { return memory_.data(); }
  size_t batch_stride() const { return batch_; }
  BNNSNDArrayDescriptor descriptor() {
    auto d = bnns::testing::descriptor(BNNSDataLayoutImageCHW, {c_.W, c_.H, c_.C}, data(), form_.type);
    d.stride[0] = form_.w_step, d.stride[1] = s1_, d.stride[2] = s2_;
    return d;
  }
  void set(size_t element, float value) {
    unsigned char* p = memory_.data() + offset(element) * bytes_;
    const uint16_t half = form_.type == BNNSDataTypeFloat16 ? float_to_half(value) : float_to_bfloat16(value);
    bytes_ == 4 ? std::memcpy(p, &value, 4) : std::memcpy(p, &half, 2);
  }
  float get(size_t element) {
    const unsigned char* p = memory_.data() + offset(element) * bytes_;
    float value;
    uint16_t half;
    std::memcpy(&half, p, 2);
    if (bytes_ == 4)
      std::memcpy(&value, p, 4);
    else
      value = form_.type == BNNSDataTypeFloat16 ? half_to_float(half) : bfloat16_to_float(half);
    return value;
  }
  std::vector<float> dense() {
    std::vector<float> v(c_.count());
    for (size_t e = 0; e < v.size(); ++e) v[e] = get(e);
    return v;
  }
  bool gaps_untouched() {
    std::vector<bool> used(span_);
    for (size_t e = 0; e < c_.count(); ++e) used[offset(e)] = true;
    for (size_t i = 0; i < span_ * bytes_; ++i)
      if (!used[i / bytes_] && memory_[i] != 0xcd) return false;
    return true;
  }

 private:
  size_t offset(size_t e) const {
    const size_t w = e % c_.W, h = e / c_.W % c_.H, c = e / (c_.W * c_.H) % c_.C, n = e / (c_.W * c_.H * c_.C);
    return n * batch_ + c * s2_ + h * s1_ + w * form_.w_step;
  }
  NormCase c_;
  Form form_;
  size_t s1_, s2_, batch_, bytes_, span_;
  Guarded<unsigned char> memory_;
};

// The pass on images of any form, `threads` at most.
inline TrainingResult train_images(NormLayer layer, const Images::Form& form, size_t threads,
                                   const std::vector<float>& xs, const std::vector<float>& dys) {
  const NormCase& c = layer.c;
  Images x(c, form, xs), dy(c, form, dys), y(c, form), dx(c, form, Guarded<unsigned char>::Side::begin);
  layer.parameters.i_desc = x.descriptor(), layer.parameters.o_desc = y.descriptor();
  layer.parameters.i_desc.data = layer.parameters.o_desc.data = nullptr;
  layer.options.n_threads = threads;
  const auto filter = layer.make();
  const size_t stride = x.batch_stride();
  TrainingResult r;
  r.dbeta.resize(c.parameters()), r.dgamma.resize(c.parameters());
  auto dx_desc = dx.descriptor(), dy_desc = dy.descriptor();
  auto dbeta = layer.affine_descriptor(r.dbeta.data()), dgamma = layer.affine_descriptor(r.dgamma.data());
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), stride, y.data(), stride, true), 0)
      << BNNSExtLastError();
  EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, stride, y.data(), stride, &dy_desc,
                                                      stride, &dbeta, &dgamma),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(y.gaps_untouched() && dx.gaps_untouched()) << c.text();
  r.y = y.dense(), r.dx = dx.dense();
  return r;
}

}  // namespace bnns::testing
