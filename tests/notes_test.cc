// Calls that are legal and surely wrong: each gets its note, once per filter, and the right call next to it none.

#include "src/core/notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Floats = std::vector<float>;
using Array = BNNSNDArrayDescriptor;

// The notes while it lives.
class Listener {
 public:
  Listener() {
    BNNSExtSetLogCallback(
        [](BNNSExtLogLevel level, const char* message, void* user) {
          if (level == BNNSExtLogNote) static_cast<Listener*>(user)->notes.push_back(message);
        },
        this);
  }
  ~Listener() { BNNSExtSetLogCallback(nullptr, nullptr); }
  size_t about(const std::string& text) const {
    return static_cast<size_t>(std::count_if(
        notes.begin(), notes.end(), [&](const std::string& note) { return note.find(text) != std::string::npos; }));
  }
  std::vector<std::string> notes;
};

Array image(size_t width, size_t height, size_t channels) {
  return descriptor(BNNSDataLayoutImageCHW, {width, height, channels}, nullptr);
}

size_t notes_of_convolution(size_t in, size_t out, size_t stride, size_t padding) {
  Floats weights(9);
  BNNSLayerParametersConvolution layer = {};
  layer.i_desc = image(in, in, 1);
  layer.o_desc = image(out, out, 1);
  layer.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 1, 1}, weights.data());
  layer.x_stride = layer.y_stride = stride;
  layer.x_padding = layer.y_padding = padding;
  const Listener listener;
  own(BNNSFilterCreateLayerConvolution(&layer, nullptr));
  EXPECT_EQ(listener.about("padding are not read"), listener.notes.size());
  return listener.notes.size();
}

TEST(Notes, StrideForgottenInConvolution) {
  EXPECT_EQ(notes_of_convolution(28, 14, 1, 1), 1u);
  EXPECT_EQ(notes_of_convolution(28, 14, 0, 1), 1u);  // 0 means 1
  EXPECT_EQ(notes_of_convolution(28, 14, 2, 1), 0u);  // one column is left over, as with every stride of 2
  EXPECT_EQ(notes_of_convolution(28, 28, 1, 1), 0u);
  EXPECT_EQ(notes_of_convolution(28, 26, 1, 0), 0u);
}

size_t notes_of_pooling(size_t in, size_t out, size_t stride) {
  BNNSLayerParametersPooling layer = {};
  layer.i_desc = image(in, in, 1);
  layer.o_desc = image(out, out, 1);
  layer.k_width = layer.k_height = 2;
  layer.x_stride = layer.y_stride = stride;
  const Listener listener;
  own(BNNSFilterCreateLayerPooling(&layer, nullptr));
  EXPECT_EQ(listener.about("padding are not read"), listener.notes.size());
  return listener.notes.size();
}

TEST(Notes, StrideForgottenInPooling) {
  EXPECT_EQ(notes_of_pooling(28, 14, 1), 1u);
  EXPECT_EQ(notes_of_pooling(28, 14, 0), 1u);
  EXPECT_EQ(notes_of_pooling(28, 14, 2), 0u);
  EXPECT_EQ(notes_of_pooling(29, 14, 2), 0u);  // floor
  EXPECT_EQ(notes_of_pooling(29, 15, 2), 0u);  // ceil
}

void sgd_step(Floats& w, float gradient_scale) {
  Floats gradient(w.size(), 0.5f);
  Array parameter = vector_descriptor(w.size(), w.data());
  const Array delta = vector_descriptor(gradient.size(), gradient.data());
  Array* parameters[] = {&parameter};
  const Array* gradients[] = {&delta};
  BNNSOptimizerSGDMomentumFields fields = {};
  fields.learning_rate = 0.1f;
  fields.gradient_scale = gradient_scale;
  ASSERT_EQ(BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 1, parameters, gradients, nullptr, nullptr), 0)
      << BNNSExtLastError();
}

TEST(Notes, GradientScaleZeroLearnsNothing) {
  Floats w(4, 1);
  const Listener listener;
  sgd_step(w, 1);
  EXPECT_EQ(listener.about("gradient_scale"), 0u);
  sgd_step(w, 0);
  sgd_step(w, 0);
  EXPECT_EQ(listener.about("gradient_scale is 0"), 1u);
}

FilterHandle dense(Floats& weights, bool client) {
  BNNSLayerParametersFullyConnected layer = {};
  layer.i_desc = vector_descriptor(2, nullptr);
  layer.o_desc = vector_descriptor(2, nullptr);
  layer.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, weights.data());
  BNNSFilterParameters parameters = {};
  if (client) parameters.flags = BNNSFlagsUseClientPtr;
  return own(BNNSFilterCreateLayerFullyConnected(&layer, &parameters));
}

TEST(Notes, OptimizerChangesWeightsThatAFilterCopied) {
  Floats weights(4, 1), other(4, 1);
  const Listener listener;
  {
    const FilterHandle client = dense(weights, true), unrelated = dense(other, false);
    sgd_step(weights, 1);
    EXPECT_EQ(listener.about("BNNSFlagsUseClientPtr"), 0u);
    const FilterHandle copied = dense(weights, false);
    sgd_step(weights, 1);
    sgd_step(weights, 1);
    EXPECT_EQ(listener.about("parameters[0] was copied when a filter was created (the weights)"), 1u);
    const FilterHandle again = dense(weights, false);  // once per filter
    sgd_step(weights, 1);
    EXPECT_EQ(listener.about("BNNSFlagsUseClientPtr"), 2u);
  }
  EXPECT_EQ(detail::remembered_copies.load(), 0u);  // a filter that is gone has no copy
  sgd_step(weights, 1);
  EXPECT_EQ(listener.about("BNNSFlagsUseClientPtr"), 2u);
}

TEST(Notes, NothingIsRememberedWithoutAListener) {
  Floats weights(4, 1);
  const FilterHandle copied = dense(weights, false);
  EXPECT_EQ(detail::remembered_copies.load(), 0u);
}

struct Loss {
  FilterHandle filter;
  Floats dx = Floats(4);
  float value = 0;

  explicit Loss(BNNSLossFunction function) : filter(nullptr, &BNNSFilterDestroy) {
    BNNSLayerParametersLossBase layer = {};
    layer.function = function;
    layer.i_desc = vector_descriptor(2, nullptr);
    layer.o_desc = vector_descriptor(1, nullptr);
    layer.reduction = BNNSLossReductionSum;
    filter = own(BNNSFilterCreateLayerLoss(&layer, nullptr));
  }
  void forward(const Floats& x, const Floats& weights, bool gradient) {
    const Floats labels = {1, 0, 0, 1};
    Array delta = vector_descriptor(2, dx.data());
    ASSERT_EQ(BNNSLossFilterApplyBatch(filter.get(), 2, x.data(), 2, labels.data(), 2,
                                       weights.empty() ? nullptr : weights.data(), weights.size(), &value,
                                       gradient ? &delta : nullptr, 2),
              0)
        << BNNSExtLastError();
  }
  void backward(const Floats& x, const Floats& weights) {
    const Floats labels = {1, 0, 0, 1};
    float one = 1;
    Array delta = vector_descriptor(2, dx.data());
    const Array dy = vector_descriptor(1, &one);
    ASSERT_EQ(BNNSLossFilterApplyBackwardBatch(filter.get(), 2, x.data(), 2, &delta, 2, labels.data(), 2,
                                               weights.empty() ? nullptr : weights.data(), weights.size(), &dy, 1),
              0)
        << BNNSExtLastError();
  }
};

TEST(Notes, CosineOfVectorsThatAreNotOfUnitLength) {
  const Listener listener;
  Loss loss(BNNSLossFunctionCosineDistance);
  loss.forward({1, 0, 0.6f, 0.8f}, {}, true);
  loss.forward({1, 0, 3, 4}, {}, false);  // no gradient is asked for
  EXPECT_TRUE(listener.notes.empty());
  loss.backward({1, 0, 3, 4}, {});
  loss.forward({1, 0, 3, 4}, {}, true);
  EXPECT_EQ(listener.notes.size(), 1u);
  EXPECT_EQ(listener.about("sample 1 of in has length 5"), 1u);
}

TEST(Notes, CategoricalCrossEntropyWithWeights) {
  const Listener listener;
  Loss loss(BNNSLossFunctionCategoricalCrossEntropy);
  loss.forward({1, 0, 3, 4}, {}, true);
  loss.forward({1, 0, 3, 4}, {1, 1}, true);
  EXPECT_TRUE(listener.notes.empty());
  loss.forward({1, 0, 3, 4}, {1, 2}, true);
  loss.backward({1, 0, 3, 4}, {1, 2});
  EXPECT_EQ(listener.about("weights are other than 1"), 1u);
}

TEST(Notes, YoloDoesNotUseWeights) {
  const Floats anchors = {1, 1}, x(6, 0.1f), labels(6, 0.2f), weights = {2};
  BNNSLayerParametersLossYolo layer = {};
  layer.function = BNNSLossFunctionYolo;
  layer.i_desc = vector_descriptor(6, nullptr);
  layer.o_desc = vector_descriptor(1, nullptr);
  layer.reduction = BNNSLossReductionSum;
  layer.number_of_grid_rows = layer.number_of_grid_columns = layer.number_of_anchor_boxes = 1;
  layer.anchor_box_size = 6;
  layer.anchors_data = const_cast<float*>(anchors.data());
  float value = 0;
  const Listener listener;
  const FilterHandle filter = own(BNNSFilterCreateLayerLoss(&layer, nullptr));
  const auto apply = [&](const float* w, size_t n) {
    ASSERT_EQ(BNNSLossFilterApplyBatch(filter.get(), 1, x.data(), 6, labels.data(), 6, w, n, &value, nullptr, 0), 0)
        << BNNSExtLastError();
  };
  apply(nullptr, 0);
  EXPECT_TRUE(listener.notes.empty());
  apply(weights.data(), 1);
  apply(weights.data(), 1);
  EXPECT_EQ(listener.about("weights are not used"), 1u);
}

}  // namespace
}  // namespace bnns::testing
