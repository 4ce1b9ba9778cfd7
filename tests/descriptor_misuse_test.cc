// BC35, BC36: every numeric field of every descriptor of every filter, set to 0, 1, all ones and friends one at a time.
// The filter is refused with a reason, or made and destroyed; never a signal, never a hang. Data is not copied
// (BNNSFlagsUseClientPtr), so sizes may lie about it.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "tests/support/testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

const size_t kWords[] = {
    0, 1, 2, 3, 7, 0x80000000u, 0xffffffffu, size_t{1} << 32, size_t{1} << 62, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX};

float shared_data[4096];

struct Attempt {
  int refused = 0, made = 0;
};

void try_create(Attempt& attempt, const std::function<BNNSFilter()>& create) {
  BNNSExtClearLastError();
  const auto before = std::chrono::steady_clock::now();
  BNNSFilter filter = create();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  if (filter) {
    ++attempt.made;
    BNNSFilterDestroy(filter);
  } else {
    ++attempt.refused;
    EXPECT_NE(BNNSExtLastError()[0], '\0') << "refused without a reason";
  }
}

// Changes each field of one descriptor in turn, puts it back, and leaves it as it was.
void sweep(Attempt& attempt, BNNSNDArrayDescriptor& d, const std::function<BNNSFilter()>& create) {
  const BNNSNDArrayDescriptor original = d;
  for (size_t word : kWords) {
    for (size_t k = 0; k < 8; ++k) {
      d.size[k] = word;
      try_create(attempt, create);
      d = original;
      d.stride[k] = word;
      try_create(attempt, create);
      d = original;
    }
    // The enums are 32 bits wide; any value may arrive from C.
    for (size_t offset : {offsetof(BNNSNDArrayDescriptor, layout), offsetof(BNNSNDArrayDescriptor, data_type),
                          offsetof(BNNSNDArrayDescriptor, flags), offsetof(BNNSNDArrayDescriptor, table_data_type)}) {
      const uint32_t value = uint32_t(word);
      std::memcpy(reinterpret_cast<char*>(&d) + offset, &value, sizeof value);
      try_create(attempt, create);
      d = original;
    }
  }
  d.data = nullptr;
  try_create(attempt, create);
  d = original;
  for (float scale : {NAN, INFINITY, -1.0f, 1e-40f}) {
    d.data_scale = scale;
    try_create(attempt, create);
    d = original;
  }
}

// A 32-bit field (an enum, mostly) of a parameter struct.
void sweep_word(Attempt& attempt, void* field, const std::function<BNNSFilter()>& create) {
  uint32_t original;
  std::memcpy(&original, field, sizeof original);
  for (size_t word : kWords) {
    const uint32_t value = uint32_t(word);
    std::memcpy(field, &value, sizeof value);
    try_create(attempt, create);
  }
  std::memcpy(field, &original, sizeof original);
}

class DescriptorMisuse : public ::testing::Test {
 protected:
  DescriptorMisuse() {
    std::memset(&options_, 0, sizeof options_);
    options_.flags = BNNSFlagsUseClientPtr;
  }
  void TearDown() override {
    EXPECT_GT(attempt_.refused, 0);
    EXPECT_GT(attempt_.made, 0);  // the original is good, so some changes must be harmless
    RecordProperty("figure", std::to_string(attempt_.refused + attempt_.made) + " changed calls, " +
                                 std::to_string(attempt_.refused) + " refused with a reason");
  }
  BNNSFilterParameters options_;
  Attempt attempt_;
};

TEST_F(DescriptorMisuse, FullyConnected) {
  BNNSLayerParametersFullyConnected layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc = vector_descriptor(6, nullptr);
  layer.o_desc = vector_descriptor(4, nullptr);
  layer.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {6, 4}, shared_data);
  layer.bias = vector_descriptor(4, shared_data);
  const auto create = [&] { return BNNSFilterCreateLayerFullyConnected(&layer, &options_); };
  for (auto* d : {&layer.i_desc, &layer.o_desc, &layer.w_desc, &layer.bias}) sweep(attempt_, *d, create);
  sweep_word(attempt_, &layer.activation.function, create);
  sweep_word(attempt_, &options_.flags, create);
}

TEST_F(DescriptorMisuse, Activation) {
  BNNSLayerParametersActivation layer;
  for (auto function :
       {BNNSActivationFunctionRectifiedLinear, BNNSActivationFunctionSoftmax, BNNSActivationFunctionPReLUPerChannel}) {
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = descriptor(BNNSDataLayoutImageCHW, {3, 4, 2}, nullptr);
    layer.o_desc = layer.i_desc;
    layer.activation.function = function;
    const auto create = [&] { return BNNSFilterCreateLayerActivation(&layer, &options_); };
    sweep(attempt_, layer.i_desc, create);
    sweep(attempt_, layer.o_desc, create);
    sweep_word(attempt_, &layer.activation.function, create);
    sweep_word(attempt_, &layer.axis_flags, create);
  }
}

TEST_F(DescriptorMisuse, Loss) {
  BNNSLayerParametersLossSoftmaxCrossEntropy layer;
  std::memset(&layer, 0, sizeof layer);
  layer.function = BNNSLossFunctionSoftmaxCrossEntropy;
  layer.i_desc = vector_descriptor(10, nullptr);
  layer.o_desc = vector_descriptor(1, nullptr);
  layer.reduction = BNNSLossReductionMean;
  const auto create = [&] { return BNNSFilterCreateLayerLoss(&layer, &options_); };
  sweep(attempt_, layer.i_desc, create);
  sweep(attempt_, layer.o_desc, create);
  sweep_word(attempt_, &layer.reduction, create);
  sweep_word(attempt_, &layer.label_smooth, create);
  for (auto function :
       {0u, 3u, 6u, 7u, 8u, 9u, 10u, 11u, 0xffffffffu}) {  // those with a struct no larger than this one
    std::memcpy(&layer.function, &function, sizeof function);
    try_create(attempt_, create);
  }
}

TEST_F(DescriptorMisuse, Arithmetic) {
  BNNSArithmeticBinary fields;
  std::memset(&fields, 0, sizeof fields);
  fields.in1 = descriptor(BNNSDataLayoutImageCHW, {3, 4, 2}, nullptr);
  fields.in2 = descriptor(BNNSDataLayoutImageCHW, {3, 1, 2}, nullptr);
  fields.out = fields.in1;
  fields.in1_type = fields.out_type = BNNSSample;
  fields.in2_type = BNNSParameter;
  BNNSLayerParametersArithmetic layer;
  std::memset(&layer, 0, sizeof layer);
  layer.arithmetic_function = BNNSArithmeticMultiply;
  layer.arithmetic_function_fields = &fields;
  const auto create = [&] { return BNNSFilterCreateLayerArithmetic(&layer, &options_); };
  for (auto* d : {&fields.in1, &fields.in2, &fields.out}) sweep(attempt_, *d, create);
  sweep_word(attempt_, &fields.in1_type, create);
  sweep_word(attempt_, &fields.out_type, create);
  sweep_word(attempt_, &layer.activation.function, create);
}

// A handle that is no filter is refused by every entry point (BC37), and destroying it twice is harmless for NULL.
TEST(HandleMisuse, EveryEntryPointRefusesStrangers) {
  alignas(64) unsigned char stranger[512] = {};
  float data[16] = {};
  auto d = vector_descriptor(4, data);
  BNNSNDArrayDescriptor* deltas[] = {&d};
  const void* inputs[] = {data};
  const size_t strides[] = {4};
  for (BNNSFilter filter : {BNNSFilter{}, static_cast<BNNSFilter>(stranger), static_cast<BNNSFilter>(stranger + 1)}) {
    const int results[] = {
        BNNSFilterApply(filter, data, data + 8),
        BNNSFilterApplyBatch(filter, 1, data, 4, data + 8, 4),
        BNNSFilterApplyTwoInput(filter, data, data, data + 8),
        BNNSFilterApplyTwoInputBatch(filter, 1, data, 4, data, 4, data + 8, 4),
        BNNSFilterApplyBackwardBatch(filter, 1, data, 4, &d, 4, data, 4, &d, 4, nullptr, nullptr),
        BNNSFilterApplyBackwardTwoInputBatch(filter, 1, data, 4, &d, 4, data, 4, &d, 4, data, 4, &d, 4, nullptr,
                                             nullptr),
        BNNSArithmeticFilterApplyBatch(filter, 1, 1, inputs, strides, data + 8, 4),
        BNNSArithmeticFilterApplyBackwardBatch(filter, 1, 1, inputs, strides, deltas, strides, data, 4, &d, 4),
        BNNSLossFilterApplyBatch(filter, 1, data, 4, data, 4, nullptr, 0, data + 8, nullptr, 0),
        BNNSLossFilterApplyBackwardBatch(filter, 1, data, 4, &d, 4, data, 4, nullptr, 0, &d, 4),
    };
    for (int result : results) EXPECT_EQ(result, -1);
    EXPECT_TRUE(refused_because({"filter"}));
    EXPECT_EQ(BNNSGetPointer(filter, BNNSPointerSpecifierAlpha).data, nullptr);
    BNNSFilterDestroy(filter);
  }
}

TEST(Extensions, ErrorsLogAndSettings) {
  static std::string seen;
  static BNNSExtLogLevel level;
  int calls = 0;
  BNNSExtSetLogCallback(
      [](BNNSExtLogLevel l, const char* message, void* user) { seen = message, level = l, ++*static_cast<int*>(user); },
      &calls);
  EXPECT_EQ(BNNSFilterApply(nullptr, nullptr, nullptr), -1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(level, BNNSExtLogError);
  EXPECT_EQ(seen, BNNSExtLastError());
  BNNSExtSetLogCallback(nullptr, nullptr);
  EXPECT_EQ(BNNSFilterApply(nullptr, nullptr, nullptr), -1);
  EXPECT_EQ(calls, 1);
  BNNSExtClearLastError();
  EXPECT_STREQ(BNNSExtLastError(), "");
  EXPECT_EQ(BNNSExtSetMaxISA("pentium"), -1);
  EXPECT_TRUE(refused_because({"pentium", "sse4, avx2, avx512, avx512_bf16 or amx"}));
  EXPECT_EQ(BNNSExtSetMaxISA("sse4"), 0);
  EXPECT_STREQ(BNNSExtGetISA(), isa_name(Isa::baseline));
  EXPECT_EQ(BNNSExtSetMaxISA("amx"), 0);
  EXPECT_STREQ(BNNSExtGetISA(), isa_name(best_isa()));
  BNNSExtSetNumThreads(3);
  EXPECT_EQ(BNNSExtGetNumThreads(), 3u);
  BNNSExtSetNumThreads(0);
  EXPECT_GE(BNNSExtGetNumThreads(), 1u);
  EXPECT_STRNE(BNNSExtVersion(), "");
}

}  // namespace
}  // namespace bnns
