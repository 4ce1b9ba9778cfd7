// Quantization: wrong calls get the failure value and a reason, and nothing is written; memory and threads.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "src/ops/quantization/quantization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;
using P = BNNSLayerParametersQuantization;

struct Layer {
  std::vector<float> x = std::vector<float>(24, 1), scale = {1, 2, 3, 4}, bias = {5, 6, 7, 8};
  std::vector<int8_t> y = std::vector<int8_t>(96, 99);
  P p;
  // Two samples of 4 columns and 3 rows, scale and bias along the columns.
  Layer() {
    std::memset(&p, 0, sizeof p);
    p.axis_mask = 1;
    p.i_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 3}, x.data());
    p.o_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 3}, y.data(), BNNSDataTypeInt8);
    p.scale = vector_descriptor(4, scale.data()), p.bias = vector_descriptor(4, bias.data());
  }
};

TEST(QuantizationMisuse, BC34_BC35_BC37_SaysWhyAndWritesNothing) {
  const auto refused = [](auto change, std::initializer_list<const char*> words, size_t batch = 2, size_t in_stride = 0,
                          size_t out_stride = 0) {
    Layer layer;
    change(layer.p, layer);
    EXPECT_EQ(BNNSDirectApplyQuantizer(&layer.p, nullptr, batch, in_stride, out_stride), -1);
    EXPECT_TRUE(refused_because(words));
    for (int8_t v : layer.y) EXPECT_EQ(v, 99);
    for (float v : layer.x) EXPECT_EQ(v, 1);
  };
  refused([](P& p, Layer&) { p.function = BNNSQuantizerFunction(2); },
          {"quantization", "function is 2, which is no BNNSQuantizerFunction"});
  refused([](P& p, Layer&) { p.axis_mask = 3; }, {"axis_mask is 0x3, expected 0 or one of the bits 0 to 2"});
  refused([](P& p, Layer&) { p.axis_mask = 8; }, {"axis_mask is 0x8", "i_desc has rank 2, bit 2 is the batch"});
  refused([](P& p, Layer&) { p.axis_mask = SIZE_MAX; }, {"axis_mask is 0xffffffffffffffff"});
  refused([](P& p, Layer&) { p.axis_mask = size_t{1} << 63; }, {"axis_mask is 0x8000000000000000"});
  refused([](P& p, Layer&) { p.axis_mask = 0; }, {"scale.size[0] is 4, expected 1: axis_mask is 0"});
  refused([](P& p, Layer&) { p.axis_mask = 0, p.scale.size[0] = 1; }, {"bias.size[0] is 4, expected 1"});
  refused([](P& p, Layer&) { p.axis_mask = 2; }, {"scale.size[0] is 4, expected 3: i_desc's size along axis_mask"});
  refused([](P& p, Layer&) { p.bias.size[0] = 3; }, {"bias.size[0] is 3, expected 4"});
  refused([](P& p, Layer&) { p.axis_mask = 4; }, {"scale.size[0] is 4, expected 2: axis_mask selects the batch"});
  refused([](P& p, Layer&) { p.axis_mask = 4, p.scale.size[0] = 2; },
          {"bias.size[0] is 4, expected 2: scale has as many"});
  refused([](P& p, Layer&) { p.axis_mask = 4, p.scale.data = nullptr; }, {"bias.size[0] is 4, expected 2"});
  refused([](P& p, Layer&) { p.scale.layout = BNNSDataLayoutRowMajorMatrix, p.scale.size[1] = 1; },
          {"scale.layout has rank 2, expected a Vector"});
  refused([](P& p, Layer&) { p.scale.size[0] = 0; }, {"scale.size[0] is 0"});
  refused([](P& p, Layer&) { p.scale.data_type = BNNSDataTypeBoolean; }, {"scale has type bool"});
  refused([](P& p, Layer& l) { p.bias.data = reinterpret_cast<char*>(l.bias.data()) + 1; },
          {"bias.data is", "expected a multiple of 4"});
  refused([](P& p, Layer&) { p.i_desc.size[0] = 0; }, {"i_desc.size[0] is 0"});
  refused([](P& p, Layer&) { p.i_desc.size[1] = SIZE_MAX; }, {"i_desc", "does not fit"});
  refused([](P& p, Layer&) { p.o_desc.size[0] = 3, p.o_desc.size[1] = 4; },
          {"o_desc is i8 3x4, expected the sizes of i_desc, f32 4x3"});
  refused([](P& p, Layer& l) { p.o_desc = vector_descriptor(11, l.y.data(), BNNSDataTypeInt8); }, {"o_desc is i8 11"});
  refused([](P& p, Layer&) { p.o_desc.data_type = BNNSDataTypeInt4; },
          {"o_desc has type i4; expected a float or an integer of 8"});
  refused([](P& p, Layer&) { p.o_desc.data_type = BNNSDataTypeBoolean; }, {"o_desc has type bool"});
  refused(
      [](P& p, Layer& l) {
        p.i_desc.data_type = BNNSDataTypeIndexed8, p.i_desc.table_data = l.x.data(),
        p.i_desc.table_data_type = BNNSDataTypeFloat32;
      },
      {"i_desc has type indexed8"});
  refused([](P& p, Layer&) { p.i_desc.data_type = BNNSDataType(3); }, {"i_desc.data_type is 0x3"});
  refused([](P& p, Layer&) { p.i_desc.layout = BNNSDataLayout(3); }, {"i_desc.layout is 0x3"});
  refused([](P& p, Layer&) { p.o_desc.stride[0] = 2, p.o_desc.stride[1] = 1; },
          {"o_desc is i8 4x3: elements (1, 0) and (0, 2) share an address"});
  refused(
      [](P& p, Layer&) {
        p.i_desc.layout = BNNSDataLayoutConvolutionWeightsOIHW_Pack32, p.i_desc.size[2] = p.i_desc.size[3] = 1;
      },
      {"i_desc.layout is OIHW_Pack32: quantize before packing"});
  refused([](P& p, Layer&) { p.i_desc.data = nullptr; }, {"i_desc.data is NULL"});
  refused([](P& p, Layer&) { p.o_desc.data = nullptr; }, {"o_desc.data is NULL"});
  refused([](P&, Layer&) {}, {"output_stride is 11, expected 0 or at least 12"}, 2, 0, 11);
  refused([](P&, Layer&) {}, {"samples do not fit in memory"}, SIZE_MAX);
  refused([](P&, Layer&) {}, {"samples do not fit in memory"}, 2, SIZE_MAX / 4);
  // Overlaps: narrower results over their own source, and results over the parameters.
  refused([](P& p, Layer& l) { p.o_desc.data = l.x.data(); }, {"o_desc.data and i_desc.data overlap"});
  refused([](P& p, Layer& l) { p.scale.data = l.y.data(); }, {"scale and o_desc.data overlap"});
  refused([](P& p, Layer& l) { p.bias.data = l.y.data() + 20; }, {"bias and o_desc.data overlap"});
  EXPECT_EQ(BNNSDirectApplyQuantizer(nullptr, nullptr, 1, 0, 0), -1);
  EXPECT_TRUE(refused_because({"BNNSDirectApplyQuantizer", "layer_params is NULL"}));
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.flags = 64;
  Layer layer;
  EXPECT_EQ(BNNSDirectApplyQuantizer(&layer.p, &options, 2, 0, 0), -1);
  EXPECT_TRUE(refused_because({"filter_params.flags is 0x40"}));
}

// An optional slot that is not used is not looked at.
TEST(QuantizationMisuse, AbsentParametersAreNotChecked) {
  Layer layer;
  std::memset(&layer.p.scale, 0xff, sizeof layer.p.scale), std::memset(&layer.p.bias, 0xff, sizeof layer.p.bias);
  layer.p.scale.data = layer.p.bias.data = nullptr;
  for (size_t mask : {0, 1, 2, 4}) {
    layer.p.axis_mask = mask;
    ASSERT_EQ(BNNSDirectApplyQuantizer(&layer.p, nullptr, 2, 0, 0), 0) << BNNSExtLastError();
    for (size_t i = 0; i < 24; ++i) EXPECT_EQ(layer.y[i], 1);
  }
}

// BC38: an empty batch succeeds and touches nothing, whatever the pointers.
TEST(QuantizationMisuse, BC38_EmptyBatch) {
  Layer layer;
  layer.p.i_desc.data = layer.p.o_desc.data = nullptr;
  EXPECT_EQ(BNNSDirectApplyQuantizer(&layer.p, nullptr, 0, 0, 0), 0) << BNNSExtLastError();
  layer.p.axis_mask = 4;
  EXPECT_EQ(BNNSDirectApplyQuantizer(&layer.p, nullptr, 0, 0, 0), 0) << BNNSExtLastError();
}

// BC42, BC43: nothing is allocated, so nothing can fail.
TEST(QuantizationMisuse, BC42_BC43_NoAllocation) {
  QuantizationCase c(BNNSDataLayoutImageCHW, {40, 40, 40}, 2, 2, false, BNNSDataTypeFloat32, BNNSDataTypeInt8, 1, 3);
  c.scale.make(40, BNNSDataTypeInt16, 2);
  Random random(1);
  c.fill(random);
  static std::atomic<int> requests;
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.alloc_memory = [](void**, size_t, size_t) { return ++requests; };
  options.free_memory = [](void*) {};
  const P p = c.layer();
  ASSERT_EQ(BNNSDirectApplyQuantizer(&p, &options, 2, c.x.stride(), c.y.stride()), 0) << BNNSExtLastError();
  EXPECT_EQ(requests, 0);
  EXPECT_TRUE(c.check());
}

// BC46: 16 threads at once, each with its own output.
TEST(QuantizationMisuse, BC46_ManyThreads) {
  Layer layer;
  ASSERT_EQ(BNNSDirectApplyQuantizer(&layer.p, nullptr, 2, 0, 0), 0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < 16; ++t) {
    pool.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::vector<int8_t> y(96, 99);
        P p = layer.p;
        p.o_desc.data = y.data();
        wrong += BNNSDirectApplyQuantizer(&p, nullptr, 2, 0, 0) != 0 || y != layer.y;
      }
    });
  }
  for (auto& t : pool) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace bnns
