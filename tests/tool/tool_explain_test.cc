// The reason that `bnns explain` gives is the one that the C call leaves.

#include <bnns/bnns.h>
#include <bnns/bnns_extensions.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tools/bnns/explain/explain_command.h"

namespace bnns::tool {
namespace {

// What the command prints for a description, and its exit code.
std::string explained(const std::string& description, int expected_code) {
  const std::string file = testing::TempDir() + "tool_explain_test.json";
  std::ofstream(file) << description;
  testing::internal::CaptureStdout();
  const int code = run_explain({file, "", true});
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, expected_code) << out;
  return out;
}

BNNSNDArrayDescriptor descriptor(BNNSDataLayout layout, std::initializer_list<size_t> size, BNNSDataType type,
                                 void* data = nullptr) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = layout, d.data_type = type, d.data = data;
  std::copy(size.begin(), size.end(), d.size);
  return d;
}

template <class P>
P zeroed() {
  P p;
  std::memset(&p, 0, sizeof p);
  return p;
}

// The reason of the C call, which must have failed, is in the answer.
void expect_same_reason(BNNSFilter filter, const std::string& description) {
  ASSERT_EQ(filter, nullptr);
  const std::string reason = BNNSExtLastError();
  ASSERT_NE(reason, "");
  BNNSExtClearLastError();
  EXPECT_NE(explained(description, 1).find("\"reason\": \"" + reason + "\""), std::string::npos) << reason;
}

TEST(Explain, ReasonOfAConvolution) {
  float w[72] = {};
  auto p = zeroed<BNNSLayerParametersConvolution>();
  p.i_desc = descriptor(BNNSDataLayoutImageCHW, {8, 8, 2}, BNNSDataTypeFloat32);
  p.o_desc = descriptor(BNNSDataLayoutImageCHW, {8, 8, 4}, BNNSDataTypeFloat32);
  p.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 2, 4}, BNNSDataTypeFloat32, w);
  expect_same_reason(BNNSFilterCreateLayerConvolution(&p, nullptr), R"({"layer": "convolution", "parameters": {
    "i_desc": {"layout": "ImageCHW", "size": [8, 8, 2], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [8, 8, 4], "data_type": "Float32"},
    "w_desc": {"layout": "ConvolutionWeightsOIHW", "size": [3, 3, 2, 4], "data_type": "Float32"}}})");
}

TEST(Explain, ReasonOfAFullyConnected) {
  float w[6] = {};
  auto p = zeroed<BNNSLayerParametersFullyConnected>();
  p.i_desc = descriptor(BNNSDataLayoutVector, {4}, BNNSDataTypeFloat32);
  p.o_desc = descriptor(BNNSDataLayoutVector, {2}, BNNSDataTypeFloat32);
  p.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {3, 2}, BNNSDataTypeFloat32, w);
  expect_same_reason(BNNSFilterCreateLayerFullyConnected(&p, nullptr), R"({"layer": "fully_connected", "parameters": {
    "i_desc": {"layout": "BNNSDataLayoutVector", "size": [4], "data_type": "BNNSDataTypeFloat32"},
    "o_desc": {"layout": "Vector", "size": [2], "data_type": "Float32"},
    "w_desc": {"layout": "RowMajorMatrix", "size": [3, 2], "data_type": "Float32"}}})");
}

TEST(Explain, ReasonOfAPooling) {
  auto p = zeroed<BNNSLayerParametersPooling>();
  p.i_desc = descriptor(BNNSDataLayoutImageCHW, {8, 8, 2}, BNNSDataTypeFloat32);
  p.o_desc = descriptor(BNNSDataLayoutImageCHW, {4, 4, 3}, BNNSDataTypeFloat32);
  p.pooling_function = BNNSPoolingFunctionL2Norm;
  p.k_width = p.k_height = p.x_stride = p.y_stride = 2;
  expect_same_reason(BNNSFilterCreateLayerPooling(&p, nullptr), R"({"layer": "pooling", "parameters": {
    "i_desc": {"layout": "ImageCHW", "size": [8, 8, 2], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [4, 4, 3], "data_type": "Float32"},
    "pooling_function": "L2Norm", "k_width": 2, "k_height": 2, "x_stride": 2, "y_stride": 2}})");
}

TEST(Explain, ReasonOfALoss) {
  auto p = zeroed<BNNSLayerParametersLossHuber>();
  p.function = BNNSLossFunctionHuber, p.reduction = BNNSLossReductionMean, p.huber_delta = -2;
  p.i_desc = descriptor(BNNSDataLayoutVector, {4}, BNNSDataTypeFloat32);
  expect_same_reason(BNNSFilterCreateLayerLoss(&p, nullptr), R"({"layer": "loss", "parameters": {
    "function": "Huber", "reduction": "Mean", "huber_delta": -2,
    "i_desc": {"layout": "Vector", "size": [4], "data_type": "Float32"}}})");
}

TEST(Explain, ReasonOfAnArithmetic) {
  auto one = zeroed<BNNSArithmeticUnary>();
  one.in = descriptor(BNNSDataLayoutVector, {4}, BNNSDataTypeFloat32);
  one.out = descriptor(BNNSDataLayoutVector, {5}, BNNSDataTypeFloat32);
  one.in_type = one.out_type = BNNSSample;
  auto p = zeroed<BNNSLayerParametersArithmetic>();
  p.arithmetic_function = BNNSArithmeticSquareRoot, p.arithmetic_function_fields = &one;
  expect_same_reason(BNNSFilterCreateLayerArithmetic(&p, nullptr), R"({"layer": "arithmetic", "parameters": {
    "arithmetic_function": "SquareRoot", "in_type": "Sample", "out_type": "BNNSSample",
    "in": {"layout": "Vector", "size": [4], "data_type": "Float32"},
    "out": {"layout": "Vector", "size": [5], "data_type": "Float32"}}})");
}

}  // namespace
}  // namespace bnns::tool
