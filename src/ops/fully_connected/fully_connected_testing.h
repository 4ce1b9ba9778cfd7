// A layer for the tests: dense f32, row-major weights; tests change what they need before make().
#pragma once

#include <memory>

#include "tests/support/testing.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;

struct Layer {
  BNNSLayerParametersFullyConnected parameters;
  BNNSFilterParameters options;

  Layer(size_t inputs, size_t outputs, const float* w, const float* b,
        BNNSActivationFunction activation = BNNSActivationFunctionIdentity) {
    std::memset(&parameters, 0, sizeof parameters);
    std::memset(&options, 0, sizeof options);
    parameters.i_desc = vector_descriptor(inputs, nullptr);
    parameters.o_desc = vector_descriptor(outputs, nullptr);
    parameters.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {inputs, outputs}, const_cast<float*>(w));
    if (b) parameters.bias = vector_descriptor(outputs, const_cast<float*>(b));
    parameters.activation.function = activation;
    parameters.activation.alpha = 0.5f;
  }
  FilterHandle make() const {
    FilterHandle filter(BNNSFilterCreateLayerFullyConnected(&parameters, &options), &BNNSFilterDestroy);
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }
};

}  // namespace bnns::testing
