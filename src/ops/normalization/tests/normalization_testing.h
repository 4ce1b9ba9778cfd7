// A normalization layer for the tests: dense f32 unless a test changes the descriptors before make().
#pragma once

#include <memory>

#include "src/ops/normalization/normalization_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;
using ref::Norm;
using ref::NormCase;

inline BNNSFilterType filter_type(Norm kind) {
  return kind == Norm::batch      ? BNNSBatchNorm
         : kind == Norm::instance ? BNNSInstanceNorm
         : kind == Norm::layer    ? BNNSLayerNorm
                                  : BNNSGroupNorm;
}

inline std::vector<double> widen(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

struct NormLayer {
  NormCase c;
  BNNSLayerParametersNormalization parameters;
  BNNSFilterParameters options;

  explicit NormLayer(const NormCase& shape, const std::vector<float>* gamma = nullptr,
                     const std::vector<float>* beta = nullptr,
                     BNNSActivationFunction activation = BNNSActivationFunctionIdentity)
      : c(shape) {
    std::memset(&parameters, 0, sizeof parameters);
    std::memset(&options, 0, sizeof options);
    parameters.i_desc = data_descriptor(nullptr);
    parameters.o_desc = data_descriptor(nullptr);
    if (gamma) parameters.gamma_desc = affine_descriptor(const_cast<float*>(gamma->data()));
    if (beta) parameters.beta_desc = affine_descriptor(const_cast<float*>(beta->data()));
    parameters.momentum = 0.9f;
    parameters.epsilon = float(shape.epsilon);
    parameters.activation.function = activation;
    parameters.activation.alpha = 0.25f;
    parameters.activation.beta = 0.5f;
    parameters.num_groups = shape.groups;
    parameters.normalization_axis = shape.axis;
  }
  BNNSNDArrayDescriptor data_descriptor(void* data) const {
    return descriptor(BNNSDataLayoutImageCHW, {c.W, c.H, c.C}, data);
  }
  BNNSNDArrayDescriptor affine_descriptor(void* data) const { return vector_descriptor(c.parameters(), data); }

  FilterHandle make() const {
    FilterHandle filter(BNNSFilterCreateLayerNormalization(filter_type(c.kind), &parameters, &options),
                        &BNNSFilterDestroy);
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }
};

// A training pass and its gradients, through the C functions, on dense f32.
struct TrainingResult {
  std::vector<float> y, dx, dbeta, dgamma;
};
inline TrainingResult train(const NormLayer& layer, const std::vector<float>& x, std::vector<float> dy) {
  const NormCase& c = layer.c;
  TrainingResult r{std::vector<float>(c.count(), poison()), std::vector<float>(c.count(), poison()),
                   std::vector<float>(c.parameters(), poison()), std::vector<float>(c.parameters(), poison())};
  const auto filter = layer.make();
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, r.y.data(), 0, true), 0)
      << BNNSExtLastError();
  auto dx = layer.data_descriptor(r.dx.data()), dy_desc = layer.data_descriptor(dy.data());
  auto dbeta = layer.affine_descriptor(r.dbeta.data()), dgamma = layer.affine_descriptor(r.dgamma.data());
  EXPECT_EQ(
      BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx, 0, r.y.data(), 0, &dy_desc, 0, &dbeta, &dgamma),
      0)
      << BNNSExtLastError();
  return r;
}

// The error of x^ is that of the deviation (relative) and of the mean (in deviations). f32 sums of a block of 1024 on
// the narrowest set take 1024 / 16 terms per accumulator and 6 joins, (64 + 6) eps / 2; the shift may cost a factor 5;
// the root halves it: 88 eps. 8 more for the operations of the pass itself.
inline constexpr double kEps = 0x1p-23;
inline constexpr double kForwardUnits = 96 * kEps;

}  // namespace bnns::testing
