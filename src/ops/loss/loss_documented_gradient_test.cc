// docs/differences.md, "Losses": where in_delta is the derivative of the value in `out`, and where it is the documented
// formula instead. Central differences of the public call; a difference of 0.05 is far above their error.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"

namespace {

using Floats = std::vector<float>;

struct Sample {
  BNNSLossFunction function;
  Floats x, labels, weights;  // no weights, or one for each element

  float value(const Floats& at, Floats* gradient) const {
    BNNSLayerParametersLossSoftmaxCrossEntropy layer = {};  // the base, and no smoothing
    layer.function = function;
    layer.i_desc.layout = BNNSDataLayoutVector, layer.i_desc.size[0] = x.size();
    layer.i_desc.data_type = BNNSDataTypeFloat32;
    layer.reduction = BNNSLossReductionSum;
    BNNSFilter filter = BNNSFilterCreateLayerLoss(&layer, nullptr);
    BNNSNDArrayDescriptor delta = layer.i_desc;
    if (gradient) gradient->resize(x.size()), delta.data = gradient->data();
    float out = NAN;
    EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 1, at.data(), 0, labels.data(), 0, weights.data(), weights.size(), &out,
                                       gradient ? &delta : nullptr, 0),
              0)
        << BNNSExtLastError();
    BNNSFilterDestroy(filter);
    return out;
  }

  // The largest difference between in_delta and the slope of `out`, where f(x) may prepare x first.
  template <class Prepare>
  double error(Prepare&& prepare) const {
    Floats gradient;
    value(prepare(x), &gradient);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      constexpr float step = 1.0f / 64;
      Floats above = x, below = x;
      above[i] += step, below[i] -= step;
      const double slope =
          (double(value(prepare(above), nullptr)) - double(value(prepare(below), nullptr))) / (2 * step);
      worst = std::max(worst, std::fabs(slope - double(gradient[i])));
    }
    return worst;
  }
  double error() const {
    return error([](const Floats& v) { return v; });
  }
};

Floats unit(Floats v) {
  double square = 0;
  for (float x : v) square += double(x) * double(x);
  for (float& x : v) x = float(double(x) / std::sqrt(square));
  return v;
}

constexpr double kSame = 0.005, kOther = 0.05;

TEST(LossDocumentedGradient, CategoricalIsExactForLabelsOfZeroAndOneWithoutWeights) {
  Sample s{BNNSLossFunctionCategoricalCrossEntropy, {0.5f, -1, 0.25f, 1}, {1, 0, 1, 0}, {}};
  EXPECT_LT(s.error(), kSame);
  s.weights = {1, 1, 1, 1};
  EXPECT_LT(s.error(), kSame);
  s.weights = {3, 1, 0.5f, 1};
  EXPECT_GT(s.error(), kOther);
  s.weights = {}, s.labels = {0.25f, 0, 0.75f, 0};
  EXPECT_GT(s.error(), kOther);
  s.function = BNNSLossFunctionSoftmaxCrossEntropy, s.weights = {3, 1, 0.5f, 1};  // exact for any labels and weights
  EXPECT_LT(s.error(), kSame);
}

TEST(LossDocumentedGradient, CosineIsThatOfTheNormalisedVectorAtUnitLength) {
  Sample s{BNNSLossFunctionCosineDistance, unit({0.5f, -1, 0.25f, 1}), unit({1, 1, -1, 0.5f}), {}};
  EXPECT_LT(s.error(unit), kSame);  // of 1 - l x / |x|
  EXPECT_GT(s.error(), kOther);     // of 1 - l x, with x free to change its length
  s.x = {1, -2, 0.5f, 2};
  EXPECT_GT(s.error(), kOther);
}

TEST(LossDocumentedGradient, TheOthersAreExactWithWeights) {
  for (const BNNSLossFunction function : {BNNSLossFunctionMeanSquareError, BNNSLossFunctionLog, BNNSLossFunctionHinge,
                                          BNNSLossFunctionMeanAbsoluteError}) {
    const Sample s{function, {0.5f, 0.25f, 0.75f, 0.4f}, {1, 0, 1, 0}, {3, 1, 0.5f, 2}};
    EXPECT_LT(s.error(), function == BNNSLossFunctionLog ? 0.05 : kSame) << function;
  }
}

}  // namespace
