// A dropout layer for the tests.
#pragma once

#include <memory>

#include "src/ops/dropout/dropout_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;

struct DropoutLayer {
  BNNSLayerParametersDropout parameters;
  BNNSFilterParameters options;

  DropoutLayer(BNNSDataLayout layout, std::vector<size_t> size, float rate, uint32_t seed, unsigned control = 0) {
    std::memset(&parameters, 0, sizeof parameters);
    std::memset(&options, 0, sizeof options);
    parameters.i_desc = parameters.o_desc = descriptor(layout, size, nullptr);
    parameters.rate = rate;
    parameters.seed = seed;
    parameters.control = uint8_t(control);
  }
  DropoutLayer(size_t n, float rate, uint32_t seed) : DropoutLayer(BNNSDataLayoutVector, {n}, rate, seed) {}
  FilterHandle make() const {
    FilterHandle filter(BNNSFilterCreateLayerDropout(&parameters, &options), &BNNSFilterDestroy);
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }
};

inline int backward(BNNSFilter filter, size_t batch, BNNSNDArrayDescriptor* dx, BNNSNDArrayDescriptor* dy,
                    size_t dx_stride = 0, size_t dy_stride = 0) {
  return BNNSFilterApplyBackwardBatch(filter, batch, nullptr, 0, dx, dx_stride, nullptr, 0, dy, dy_stride, nullptr,
                                      nullptr);
}

}  // namespace bnns::testing
