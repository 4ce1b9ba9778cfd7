// Fused layers for the tests: a first stage and a normalization, dense f32, with their reference in double.
#pragma once

#include <memory>

#include "src/ops/convolution/convolution_ref.h"
#include "src/ops/normalization/normalization_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;
using ref::ConvolutionShape;
using ref::Norm;
using ref::NormCase;
using Doubles = std::vector<double>;

inline Doubles widen(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

enum class First { convolution, fully_connected, arithmetic };

// Convolution and fully connected (a convolution of one pixel) take one input; arithmetic takes one (square), two
// (multiply) or three (multiply-add).
struct FusedCase {
  const char* name;
  First first;
  ConvolutionShape s;  // arithmetic: i = o, the image, nothing else
  size_t inputs = 1;
  Norm norm = Norm::batch;
  size_t groups = 1, axis = 0;

  size_t n() const { return s.n; }
  size_t x_count() const { return first == First::arithmetic ? s.y_count() : s.x_count(); }
  NormCase norm_case() const {
    NormCase c;
    c.kind = norm, c.N = s.n, c.C = s.o, c.H = s.oh, c.W = s.ow, c.groups = groups, c.axis = axis, c.epsilon = 1e-3;
    return c;
  }
};

// All that a pass reads.
struct FusedData {
  std::vector<float> x[3], w, b, gamma, beta, dy;
  FusedData(const FusedCase& c, uint64_t seed) {
    Random random(seed);
    for (size_t k = 0; k < c.inputs; ++k) x[k] = random.normals(c.x_count());
    w = random.normals(c.s.w_count()), b = random.normals(c.s.o);
    gamma = random.normals(c.norm_case().parameters()), beta = random.normals(c.norm_case().parameters());
    dy = random.normals(c.s.y_count());
  }
};

// ---- the reference: the first stage's formula, then the normalization's -------------------------------------------

inline Doubles fused_middle(const FusedCase& c, const Doubles* x, const Doubles& w, const Doubles& b) {
  if (c.first != First::arithmetic) return ref::convolution_forward(c.s, x[0], w, b);
  Doubles y(x[0].size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = c.inputs == 1 ? x[0][i] * x[0][i] : c.inputs == 2 ? x[0][i] * x[1][i] : x[0][i] * x[1][i] + x[2][i];
  }
  return y;
}

struct FusedGradients {
  Doubles dx[3], dw, db, dbeta, dgamma;
  Doubles dw_size, db_size;  // sums of the absolute terms
};

inline FusedGradients fused_backward(const FusedCase& c, const Doubles* x, const Doubles& w, const Doubles& b,
                                     const Doubles& gamma, const Doubles& beta, const Doubles& dy) {
  const NormCase norm = c.norm_case();
  const auto forward = ref::normalization_forward(norm, fused_middle(c, x, w, b), gamma, beta);
  const auto back = ref::normalization_backward(norm, forward, gamma, dy);
  FusedGradients r;
  r.dbeta = back.dbeta, r.dgamma = back.dgamma;
  if (c.first != First::arithmetic) {
    const auto first = ref::convolution_backward(c.s, x[0], w, back.dx);
    r.dx[0] = first.dx, r.dw = first.dw, r.db = first.db;
    const auto absolute = [](Doubles v) {
      for (double& e : v) e = std::fabs(e);
      return v;
    };
    const auto size = ref::convolution_backward(c.s, absolute(x[0]), absolute(w), absolute(back.dx));
    r.dw_size = size.dw, r.db_size = size.db;
    return r;
  }
  for (size_t k = 0; k < c.inputs; ++k) {
    r.dx[k] = back.dx;
    for (size_t i = 0; i < back.dx.size(); ++i) {
      r.dx[k][i] *= c.inputs == 1 ? 2 * x[0][i] : k == 2 ? 1 : x[1 - k][i];
    }
  }
  return r;
}

// ---- the filter ---------------------------------------------------------------------------------------------------

struct FusedLayer {
  FusedCase c;
  BNNSLayerParametersConvolution convolution;
  BNNSLayerParametersFullyConnected fully_connected;
  BNNSLayerParametersArithmetic arithmetic;
  BNNSArithmeticUnary unary;
  BNNSArithmeticBinary binary;
  BNNSArithmeticTernary ternary;
  BNNSLayerParametersNormalization normalization;
  BNNSFilterParameters options;
  std::vector<float> moving_mean, moving_variance;

  FusedLayer(const FusedCase& fused, const FusedData& d) : c(fused) {
    for (auto [pointer, size] : {std::pair<void*, size_t>{&convolution, sizeof convolution},
                                 {&fully_connected, sizeof fully_connected},
                                 {&arithmetic, sizeof arithmetic},
                                 {&unary, sizeof unary},
                                 {&binary, sizeof binary},
                                 {&ternary, sizeof ternary},
                                 {&normalization, sizeof normalization},
                                 {&options, sizeof options}}) {
      std::memset(pointer, 0, size);
    }
    options.flags = BNNSFlagsUseClientPtr;
    const ConvolutionShape& s = c.s;
    const auto data = [](const std::vector<float>& v) { return const_cast<float*>(v.data()); };
    convolution.i_desc = x_descriptor(nullptr);
    convolution.o_desc = y_descriptor(nullptr);
    convolution.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {s.kw, s.kh, s.i / s.groups, s.o}, data(d.w));
    convolution.bias = vector_descriptor(s.o, data(d.b));
    convolution.x_stride = s.sx, convolution.y_stride = s.sy;
    convolution.x_dilation_stride = s.dx, convolution.y_dilation_stride = s.dy;
    convolution.pad[0] = convolution.pad[1] = s.left, convolution.pad[2] = convolution.pad[3] = s.top;
    convolution.groups = s.groups;
    fully_connected.i_desc = x_descriptor(nullptr), fully_connected.o_desc = y_descriptor(nullptr);
    fully_connected.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {s.i, s.o}, data(d.w));
    fully_connected.bias = vector_descriptor(s.o, data(d.b));
    for (BNNSNDArrayDescriptor* t : {&unary.in, &unary.out, &binary.in1, &binary.in2, &binary.out, &ternary.in1,
                                     &ternary.in2, &ternary.in3, &ternary.out}) {
      *t = y_descriptor(nullptr);
    }
    for (BNNSDescriptorType* t : {&unary.in_type, &unary.out_type, &binary.in1_type, &binary.in2_type, &binary.out_type,
                                  &ternary.in1_type, &ternary.in2_type, &ternary.in3_type, &ternary.out_type}) {
      *t = BNNSSample;
    }
    arithmetic.arithmetic_function = c.inputs == 1   ? BNNSArithmeticSquare
                                     : c.inputs == 2 ? BNNSArithmeticMultiply
                                                     : BNNSArithmeticMultiplyAdd;
    arithmetic.arithmetic_function_fields = c.inputs == 1   ? static_cast<void*>(&unary)
                                            : c.inputs == 2 ? static_cast<void*>(&binary)
                                                            : static_cast<void*>(&ternary);
    normalization.i_desc = normalization.o_desc = y_descriptor(nullptr);
    normalization.gamma_desc = affine_descriptor(data(d.gamma));
    normalization.beta_desc = affine_descriptor(data(d.beta));
    if (c.norm == Norm::batch || c.norm == Norm::instance) {
      moving_mean.assign(s.o, 0.25f), moving_variance.assign(s.o, 2.0f);
      normalization.moving_mean_desc = vector_descriptor(s.o, moving_mean.data());
      normalization.moving_variance_desc = vector_descriptor(s.o, moving_variance.data());
    }
    normalization.momentum = 0.9f, normalization.epsilon = 1e-3f;
    normalization.num_groups = c.groups, normalization.normalization_axis = c.axis;
  }
  FusedLayer(const FusedLayer&) = delete;

  BNNSNDArrayDescriptor x_descriptor(void* data) const {
    if (c.first == First::fully_connected) return vector_descriptor(c.s.i, data);
    if (c.first == First::arithmetic) return y_descriptor(data);
    return descriptor(BNNSDataLayoutImageCHW, {c.s.iw, c.s.ih, c.s.i}, data);
  }
  BNNSNDArrayDescriptor y_descriptor(void* data) const {
    if (c.first == First::fully_connected) return vector_descriptor(c.s.o, data);
    return descriptor(BNNSDataLayoutImageCHW, {c.s.ow, c.s.oh, c.s.o}, data);
  }
  BNNSNDArrayDescriptor affine_descriptor(void* data) const {
    return vector_descriptor(c.norm_case().parameters(), data);
  }
  BNNSFilterType first_type() const {
    return c.first == First::arithmetic        ? BNNSArithmetic
           : c.first == First::fully_connected ? BNNSFullyConnected
           : c.s.transposed                    ? BNNSTransposedConvolution
                                               : BNNSConvolution;
  }
  BNNSFilterType norm_type() const {
    return c.norm == Norm::batch      ? BNNSBatchNorm
           : c.norm == Norm::instance ? BNNSInstanceNorm
           : c.norm == Norm::layer    ? BNNSLayerNorm
                                      : BNNSGroupNorm;
  }
  const void* first_layer() const {
    return c.first == First::arithmetic        ? static_cast<const void*>(&arithmetic)
           : c.first == First::fully_connected ? static_cast<const void*>(&fully_connected)
                                               : static_cast<const void*>(&convolution);
  }
  FilterHandle try_make() const {
    const BNNSFilterType types[] = {first_type(), norm_type()};
    const void* layers[] = {first_layer(), &normalization};
    return FilterHandle(BNNSFilterCreateFusedLayer(2, types, layers, &options), &BNNSFilterDestroy);
  }
  FilterHandle make() const {
    FilterHandle filter = try_make();
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }
};

// A quantizer of the layer's output; scale and bias go along the channels (vectors of s.o), NULL: absent.
inline BNNSLayerParametersQuantization quantizer(const FusedLayer& layer, BNNSDataType type, float* scale,
                                                 float* bias) {
  BNNSLayerParametersQuantization q;
  std::memset(&q, 0, sizeof q);
  q.function = BNNSQuantizerFunctionQuantize;
  q.i_desc = layer.y_descriptor(nullptr);
  q.o_desc = layer.y_descriptor(nullptr);
  q.o_desc.data_type = type;
  if (scale || bias) q.axis_mask = layer.c.first == First::fully_connected ? 1 : 4;
  if (scale) q.scale = vector_descriptor(layer.c.s.o, scale);
  if (bias) q.bias = vector_descriptor(layer.c.s.o, bias);
  return q;
}

struct FusedResults {
  std::vector<float> y, dx[3], dw, db, dbeta, dgamma;
};

inline int apply_fused(BNNSFilter filter, const FusedCase& c, const FusedData& d, float* y, bool training) {
  if (c.inputs == 1) return BNNSFusedFilterApplyBatch(filter, c.n(), d.x[0].data(), 0, y, 0, training);
  const void* in[] = {d.x[0].data(), d.x[1].data(), d.x[2].data()};
  const size_t strides[] = {0, 0, 0};
  return BNNSFusedFilterApplyMultiInputBatch(filter, c.n(), c.inputs, in, strides, y, 0, training);
}

// A training pass and all gradients, into poisoned memory.
inline FusedResults train_fused(const FusedLayer& layer, const FusedData& d) {
  const FusedCase& c = layer.c;
  FusedResults r;
  const auto fresh = [](size_t n) { return std::vector<float>(n, poison()); };
  r.y = fresh(c.s.y_count()), r.dw = fresh(c.s.w_count()), r.db = fresh(c.s.o);
  r.dbeta = fresh(c.norm_case().parameters()), r.dgamma = fresh(c.norm_case().parameters());
  for (size_t k = 0; k < c.inputs; ++k) r.dx[k] = fresh(c.x_count());
  const auto filter = layer.make();
  EXPECT_EQ(apply_fused(filter.get(), c, d, r.y.data(), true), 0) << BNNSExtLastError();
  BNNSNDArrayDescriptor dx[3], dw = layer.convolution.w_desc, db = vector_descriptor(c.s.o, r.db.data());
  if (c.first == First::fully_connected) dw = layer.fully_connected.w_desc;
  dw.data = r.dw.data();
  for (size_t k = 0; k < 3; ++k) dx[k] = layer.x_descriptor(r.dx[k].data());
  auto dbeta = layer.affine_descriptor(r.dbeta.data()), dgamma = layer.affine_descriptor(r.dgamma.data());
  auto dy = layer.y_descriptor(const_cast<float*>(d.dy.data()));
  BNNSNDArrayDescriptor *all[] = {&dw, &db, &dbeta, &dgamma}, *norm_only[] = {&dbeta, &dgamma};
  BNNSNDArrayDescriptor** parameters = c.first == First::arithmetic ? norm_only : all;
  if (c.inputs == 1) {
    EXPECT_EQ(BNNSFusedFilterApplyBackwardBatch(filter.get(), c.n(), d.x[0].data(), 0, &dx[0], 0, r.y.data(), 0, &dy, 0,
                                                parameters),
              0)
        << BNNSExtLastError();
    return r;
  }
  const void* in[] = {d.x[0].data(), d.x[1].data(), d.x[2].data()};
  const size_t strides[] = {0, 0, 0};
  BNNSNDArrayDescriptor* deltas[] = {&dx[0], &dx[1], &dx[2]};
  EXPECT_EQ(BNNSFusedFilterApplyBackwardMultiInputBatch(filter.get(), c.n(), c.inputs, in, strides, deltas, strides,
                                                        r.y.data(), 0, &dy, 0, parameters),
            0)
      << BNNSExtLastError();
  return r;
}

}  // namespace bnns::testing
