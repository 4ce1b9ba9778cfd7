// Every refusal: the failure value, the words of the reason, and that nothing was written. Also memory that runs out.

#include <cstdlib>
#include <new>

#include "src/ops/activation/tests/activation_layouts_testing.h"

namespace bnns::testing {
namespace {

// BC44: no exception can leave the C interface.
static_assert(noexcept(BNNSFilterCreateLayerActivation(nullptr, nullptr)));
static_assert(noexcept(BNNSFilterCreateVectorActivationLayer(nullptr, nullptr, nullptr, nullptr)));
static_assert(noexcept(BNNSDirectApplyActivationBatch(nullptr, nullptr, 0, 0, 0)));
static_assert(noexcept(BNNSGetPointer(nullptr, BNNSPointerSpecifierAlpha)));

BNNSNDArrayDescriptor f32(size_t n) {
  return vector_descriptor(n, nullptr);
}

struct BadLayer {
  const char* what;
  BNNSLayerParametersActivation layer;
  std::vector<const char*> words;
};

std::vector<BadLayer> bad_layers() {
  const BNNSNDArrayDescriptor image = descriptor(BNNSDataLayoutImageCHW, {2, 2, 3}, nullptr);
  std::vector<BadLayer> bad;
  const auto add = [&bad](const char* what, const BNNSLayerParametersActivation& layer,
                          std::vector<const char*> words) -> BNNSLayerParametersActivation& {
    bad.push_back({what, layer, words});
    return bad.back().layer;
  };
  add("unknown function", layer_of(f32(4), f32(4), BNNSActivationFunction(36)),
      {"activation.function is 36", "no BNNSActivationFunction"});
  add("count", layer_of(f32(4), f32(5), BNNSActivationFunctionTanh), {"o_desc has 5 elements", "expected 4"});
  add("no elements", layer_of(f32(0), f32(0), BNNSActivationFunctionTanh), {"i_desc.size[0] is 0"});
  add("layout", layer_of(descriptor(BNNSDataLayout(7), {4}, nullptr), f32(4), BNNSActivationFunctionTanh),
      {"i_desc.layout is 0x7"});
  add("type", layer_of(f32(4), vector_descriptor(4, nullptr, BNNSDataType(3)), BNNSActivationFunctionTanh),
      {"o_desc.data_type is 0x3"});
  add("indexed", layer_of(vector_descriptor(4, nullptr, BNNSDataTypeIndexed8), f32(4), BNNSActivationFunctionIdentity),
      {"i_desc", "indexed8"});
  add("packed weights",
      layer_of(descriptor(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, {1, 1, 1, 32}, nullptr), f32(32),
               BNNSActivationFunctionIdentity),
      {"OIHW_Pack32"});
  BNNSNDArrayDescriptor holes = vector_descriptor(4, nullptr, BNNSDataTypeInt4);
  holes.stride[0] = 2;
  add("sub-byte strides", layer_of(holes, f32(4), BNNSActivationFunctionIdentity), {"i_desc", "i4", "contiguous"});
  add("sub-byte softmax",
      layer_of(vector_descriptor(4, nullptr, BNNSDataTypeUInt4), f32(4), BNNSActivationFunctionSoftmax),
      {"softmax", "u4"});
  BNNSNDArrayDescriptor shared = image;
  shared.stride[0] = shared.stride[1] = 1;
  add("shared addresses", layer_of(image, shared, BNNSActivationFunctionTanh),
      {"o_desc is f32", "(0, 1, 0) and (1, 0, 0) share an address"});
  add("huge",
      layer_of(descriptor(BNNSDataLayoutImageCHW, {size_t{1} << 31, size_t{1} << 31, 16}, nullptr), f32(4),
               BNNSActivationFunctionTanh),
      {"does not fit"});
  add("axis of a vector", layer_of(f32(4), f32(4), BNNSActivationFunctionSoftmax, 0, 0, 4),
      {"axis_flags is 0x4", "bits 0 to 1", "batch"});
  add("axis of an image", layer_of(image, image, BNNSActivationFunctionLogSoftmax, 0, 0, 0x10), {"axis_flags is 0x10"});
  add("prelu of a vector", layer_of(f32(4), f32(4), BNNSActivationFunctionPReLUPerChannel, 0.1f),
      {"i_desc.layout", "ImageCHW", "PReLUPerChannel"});
  add("integer function of floats", layer_of(f32(4), f32(4), BNNSActivationFunctionIntegerLinearSaturate),
      {"i_desc has type f32", "integers"});
  const BNNSNDArrayDescriptor i8 = vector_descriptor(4, nullptr, BNNSDataTypeInt8);
  add("shift", layer_of(i8, i8, BNNSActivationFunctionIntegerLinearSaturate), {"ishift is -1"}).activation.ishift = -1;
  add("no arrays", layer_of(i8, i8, BNNSActivationFunctionIntegerLinearSaturatePerChannel),
      {"per_channel is NULL", "expected 4"});
  add("gumbel_max of the same size", layer_of(f32(4), f32(4), BNNSActivationFunctionGumbelMax, 1),
      {"gumbel_max", "index"});
  add("gumbel_max of another size", layer_of(f32(4), f32(2), BNNSActivationFunctionGumbelMax, 1),
      {"o_desc has 2 elements", "expected 1"});
  add("gumbel_max of the batch", layer_of(f32(4), f32(4), BNNSActivationFunctionGumbelMax, 1, 0, 2),
      {"gumbel_max along the batch"});
  return bad;
}

TEST(ActivationMisuse, BadLayersAreRefusedByEveryConstructor) {
  for (const BadLayer& bad : bad_layers()) {
    SCOPED_TRACE(bad.what);
    const auto explained = [&](const char* call) {
      const std::string reason = BNNSExtLastError();
      EXPECT_EQ(reason.find(call), 0u) << reason;
      for (const char* word : bad.words)
        EXPECT_NE(reason.find(word), std::string::npos) << word << " not in: " << reason;
    };
    BNNSExtClearLastError();
    EXPECT_EQ(BNNSFilterCreateLayerActivation(&bad.layer, nullptr), nullptr);
    explained("BNNSFilterCreateLayerActivation");
    std::vector<float> x(64, 1), y(64, poison());
    BNNSLayerParametersActivation direct = bad.layer;
    direct.i_desc.data = x.data();
    direct.o_desc.data = y.data();
    EXPECT_NE(BNNSDirectApplyActivationBatch(&direct, nullptr, 1, 0, 0), 0);
    // An indexed tensor with data is refused earlier, for its missing table.
    if (std::string(bad.what) != "indexed") explained("BNNSDirectApplyActivationBatch");
    for (float v : y) EXPECT_TRUE(is_poison(v));
  }
}

TEST(ActivationMisuse, NullArguments) {
  EXPECT_EQ(BNNSFilterCreateLayerActivation(null<BNNSLayerParametersActivation>(), nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  EXPECT_NE(BNNSDirectApplyActivationBatch(null<BNNSLayerParametersActivation>(), nullptr, 1, 0, 0), 0);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  const BNNSVectorDescriptor v = {4, BNNSDataTypeFloat32, 0, 0};
  const BNNSActivation relu = layer_of(f32(4), f32(4), BNNSActivationFunctionRectifiedLinear).activation;
  EXPECT_EQ(BNNSFilterCreateVectorActivationLayer(null<BNNSVectorDescriptor>(), &v, &relu, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"in_desc is NULL"}));
  EXPECT_EQ(BNNSFilterCreateVectorActivationLayer(&v, null<BNNSVectorDescriptor>(), &relu, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"out_desc is NULL"}));
  EXPECT_EQ(BNNSFilterCreateVectorActivationLayer(&v, &v, null<BNNSActivation>(), nullptr), nullptr);
  EXPECT_TRUE(refused_because({"activation is NULL"}));
  EXPECT_EQ(BNNSGetPointer(nullptr, BNNSPointerSpecifierAlpha).data, nullptr);
  EXPECT_TRUE(refused_because({"BNNSGetPointer", "filter is NULL"}));
  const float x[4] = {};
  float y[4] = {poison(), poison(), poison(), poison()};
  EXPECT_EQ(BNNSFilterApply(nullptr, x, y), -1);
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(nullptr, 1, x, 0, nullptr, 0, nullptr, 0, null<BNNSNDArrayDescriptor>(), 0,
                                         nullptr, nullptr),
            -1);
  TestFilter filter(layer_of(f32(4), f32(4), BNNSActivationFunctionRectifiedLinear));
  EXPECT_EQ(BNNSFilterApply(filter, null<void>(), y), -1);
  EXPECT_TRUE(refused_because({"activation", "in is NULL"}));
  EXPECT_EQ(BNNSFilterApply(filter, x, null<void>()), -1);
  EXPECT_TRUE(refused_because({"out is NULL"}));
  EXPECT_EQ(BNNSFilterApply(filter, reinterpret_cast<const char*>(x) + 1, y), -1);
  EXPECT_TRUE(refused_because({"in is", "multiple of 4"}));
  EXPECT_EQ(BNNSFilterApplyBatch(filter, 2, x, 0, y, 3), -1);
  EXPECT_TRUE(refused_because({"out_stride is 3", "at least 4"}));
  EXPECT_EQ(BNNSFilterApplyBatch(filter, SIZE_MAX / 2, x, 0, y, 0), -1);
  EXPECT_TRUE(refused_because({"do not fit in memory"}));
  for (float v0 : y) EXPECT_TRUE(is_poison(v0));
  EXPECT_EQ(BNNSGetPointer(filter, BNNSPointerSpecifier(9)).data, nullptr);
  EXPECT_TRUE(refused_because({"target is 9"}));
  BNNSLayerParametersActivation layer = layer_of(f32(4), f32(4), BNNSActivationFunctionRectifiedLinear);
  layer.i_desc.data = const_cast<float*>(x);
  EXPECT_NE(BNNSDirectApplyActivationBatch(&layer, nullptr, 1, 0, 0), 0);
  EXPECT_TRUE(refused_because({"BNNSDirectApplyActivationBatch", "out is NULL"}));
}

TEST(ActivationMisuse, BackwardCalls) {
  float x[4] = {1, -2, 3, -4}, y[4] = {1, -2, 3, -4}, dy[4] = {1, 1, 1, 1}, dx[4], dw[4];
  for (float& v : dx) v = poison();
  for (float& v : dw) v = poison();
  BNNSNDArrayDescriptor ddy = vector_descriptor(4, dy), ddx = vector_descriptor(4, dx), one = vector_descriptor(1, dw),
                        two = vector_descriptor(2, dw);
  const auto backward = [&](BNNSFilter filter, const float* in, BNNSNDArrayDescriptor* in_delta, const float* out,
                            const BNNSNDArrayDescriptor* out_delta, BNNSNDArrayDescriptor* weights,
                            BNNSNDArrayDescriptor* bias) {
    BNNSExtClearLastError();
    return BNNSFilterApplyBackwardBatch(filter, 1, in, 0, in_delta, 0, out, 0, out_delta, 0, weights, bias);
  };
  TestFilter tanh(layer_of(f32(4), f32(4), BNNSActivationFunctionTanh));
  TestFilter silu(layer_of(f32(4), f32(4), BNNSActivationFunctionSiLU));
  TestFilter leaky(layer_of(f32(4), f32(4), BNNSActivationFunctionLeakyRectifiedLinear, 0.1f));
  TestFilter reversing(layer_of(f32(4), f32(4), BNNSActivationFunctionLeakyRectifiedLinear, -1));
  EXPECT_EQ(backward(tanh, nullptr, &ddx, nullptr, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"BNNSFilterApplyBackwardBatch", "in and out are NULL", "tanh"}));
  EXPECT_EQ(backward(silu, nullptr, &ddx, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL", "silu", "does not follow from out"}));
  EXPECT_EQ(backward(reversing, nullptr, &ddx, y, &ddy, nullptr, nullptr), -1);  // K8: never guess a branch
  EXPECT_TRUE(refused_because({"leaky_relu (alpha -1)"}));
  EXPECT_EQ(backward(tanh, x, &ddx, y, nullptr, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"out_delta is NULL"}));
  EXPECT_EQ(backward(tanh, x, &ddx, y, &ddy, nullptr, &one), -1);
  EXPECT_TRUE(refused_because({"bias_delta is given"}));
  EXPECT_EQ(backward(tanh, x, &ddx, y, &ddy, &one, nullptr), -1);
  EXPECT_TRUE(refused_because({"weights_delta is given", "tanh has no trained alpha"}));
  EXPECT_EQ(backward(leaky, nullptr, &ddx, y, &ddy, &one, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL", "weights_delta"}));
  EXPECT_EQ(backward(leaky, x, &ddx, y, &ddy, &two, nullptr), -1);
  EXPECT_TRUE(refused_because({"weights_delta has 2 elements", "expected 1"}));
  BNNSNDArrayDescriptor bad = vector_descriptor(3, dx), empty = vector_descriptor(4, nullptr),
                        integers = vector_descriptor(4, dx, BNNSDataTypeInt32);
  EXPECT_EQ(backward(tanh, x, &bad, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta has 3 elements"}));
  EXPECT_EQ(backward(tanh, x, &empty, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta.data is NULL"}));
  EXPECT_EQ(backward(tanh, x, &integers, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta has type i32"}));
  BNNSNDArrayDescriptor shifted = vector_descriptor(4, dx);
  float row[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ddy.data = row;
  shifted.data = row + 1;
  EXPECT_EQ(backward(tanh, x, &shifted, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta and out_delta overlap"}));
  EXPECT_EQ(row[1], 2);
  ddy.data = dy;
  const BNNSNDArrayDescriptor i8 = vector_descriptor(4, nullptr, BNNSDataTypeInt8);
  TestFilter integer(layer_of(i8, i8, BNNSActivationFunctionIntegerLinearSaturate));
  TestFilter gumbel_max(layer_of(f32(4), f32(1), BNNSActivationFunctionGumbelMax, 1));
  EXPECT_EQ(backward(integer, x, &ddx, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"integer_linear_saturate has no gradient"}));
  EXPECT_EQ(backward(gumbel_max, x, &ddx, y, &ddy, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"gumbel_max has no gradient"}));
  for (float v : dx) EXPECT_TRUE(is_poison(v));
  for (float v : dw) EXPECT_TRUE(is_poison(v));
  // What is no mistake: nothing wanted, and derivatives that need no point.
  EXPECT_EQ(backward(tanh, nullptr, nullptr, nullptr, &ddy, nullptr, nullptr), 0);
  TestFilter linear(layer_of(f32(4), f32(4), BNNSActivationFunctionLinear, 3));
  EXPECT_EQ(backward(linear, nullptr, &ddx, nullptr, &ddy, nullptr, nullptr), 0);
  EXPECT_EQ(dx[3], 3);
  TestFilter gumbel(layer_of(f32(4), f32(4), BNNSActivationFunctionGumbel, 1));
  EXPECT_EQ(backward(gumbel, nullptr, &ddx, nullptr, &ddy, nullptr, nullptr), 0);
  EXPECT_EQ(dx[3], 0);
}

// ---- memory -----------------------------------------------------------------------------------------------------

int allowed_blocks = 0, live_blocks = 0;
bool fail_once = false;

int counting_alloc(void** memory, size_t alignment, size_t size) {
  if (allowed_blocks-- == 0 || (allowed_blocks < 0 && !fail_once)) return 12;
  const int status = posix_memalign(memory, alignment, size);
  live_blocks += status == 0;
  return status;
}
void counting_free(void* memory) {
  --live_blocks;
  std::free(memory);
}

// The N-th request fails, once or from then on. Whatever the call, it fails cleanly and leaves no block behind,
// and the filter works when memory is back.
TEST(ActivationMisuse, BC42_BC45_AllocationFailures) {
  const Shape image = {BNNSDataLayoutImageCHW, {9, 2, 4}, {1, 11, 30}};
  BNNSFilterParameters parameters = {};
  parameters.alloc_memory = counting_alloc;
  parameters.free_memory = counting_free;
  for (BNNSActivationFunction function :
       {BNNSActivationFunctionTanh, BNNSActivationFunctionPReLUPerChannel, BNNSActivationFunctionSoftmax}) {
    for (bool once : {false, true}) {
      bool finished = false;
      for (int allowed = 0; !finished && allowed < 20; ++allowed) {
        SCOPED_TRACE(std::string(once ? "once " : "from then on ") + std::to_string(allowed));
        const BNNSLayerParametersActivation layer =
            layer_of(image.descriptor(nullptr), image.descriptor(nullptr), function, 0.5f, 0, 1);
        std::vector<float> x(image.span(), 1), y(image.span(), poison()), dx(image.span(), poison()),
            dy(image.span(), 1), dw(4, poison());
        BNNSNDArrayDescriptor ddx = image.descriptor(dx.data()), ddy = image.descriptor(dy.data()),
                              ddw = vector_descriptor(4, dw.data());
        BNNSNDArrayDescriptor* weights = function == BNNSActivationFunctionPReLUPerChannel ? &ddw : nullptr;
        allowed_blocks = allowed;
        fail_once = once;
        BNNSFilter filter = BNNSFilterCreateLayerActivation(&layer, &parameters);
        if (!filter) {
          EXPECT_TRUE(refused_because({"out of memory"}));
          EXPECT_EQ(live_blocks, 0);
          continue;
        }
        const auto forward = [&] { return BNNSFilterApply(filter, x.data(), y.data()); };
        const auto backward = [&] {
          return BNNSFilterApplyBackwardBatch(filter, 1, x.data(), 0, &ddx, 0, nullptr, 0, &ddy, 0, weights, nullptr);
        };
        const int forward_status = forward();
        if (forward_status != 0) {
          EXPECT_TRUE(is_poison(y[0]));
        }
        const int backward_status = backward();
        if (backward_status != 0) {
          EXPECT_TRUE(is_poison(dx[0]) && is_poison(dw[0]));
        }
        finished = forward_status == 0 && backward_status == 0;
        allowed_blocks = 100;
        EXPECT_EQ(forward(), 0);
        EXPECT_EQ(backward(), 0);
        EXPECT_FALSE(is_poison(dx[0]));
        BNNSFilterDestroy(filter);
        EXPECT_EQ(live_blocks, 0);
        allowed_blocks = allowed;
        BNNSLayerParametersActivation direct = layer;
        direct.i_desc.data = x.data();
        direct.o_desc.data = y.data();
        BNNSDirectApplyActivationBatch(&direct, &parameters, 1, 0, 0);
        EXPECT_EQ(live_blocks, 0);
      }
      EXPECT_TRUE(finished);
    }
  }
}

TEST(ActivationMisuse, OneAllocatorAlone) {
  const BNNSLayerParametersActivation layer = layer_of(f32(4), f32(4), BNNSActivationFunctionTanh);
  BNNSFilterParameters parameters = {};
  parameters.alloc_memory = counting_alloc;
  EXPECT_EQ(BNNSFilterCreateLayerActivation(&layer, &parameters), nullptr);
  EXPECT_TRUE(refused_because({"alloc_memory or free_memory alone"}));
  parameters.alloc_memory = nullptr;
  parameters.free_memory = counting_free;
  EXPECT_EQ(BNNSFilterCreateLayerActivation(&layer, &parameters), nullptr);
  EXPECT_NE(BNNSDirectApplyActivationBatch(&layer, &parameters, 1, 0, 0), 0);
}

}  // namespace
}  // namespace bnns::testing
