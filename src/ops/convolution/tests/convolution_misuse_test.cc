// Convolution: wrong calls get the failure value and a reason that names field and rule, and nothing is written.

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// 2 x 5 x 6 to 4 x 5 x 6 by 3 x 3, padding 1.
ConvolutionShape small_shape(bool transposed = false) {
  ConvolutionShape s;
  s.n = 2, s.i = 2, s.o = 4, s.ih = 5, s.iw = 6, s.kh = s.kw = 3, s.top = s.left = 1;
  s.transposed = transposed;
  return fitted(s);
}

BNNSFilter create(const ConvolutionLayer& l) {
  return l.shape.transposed ? BNNSFilterCreateLayerTransposedConvolution(&l.parameters, &l.options)
                            : BNNSFilterCreateLayerConvolution(&l.parameters, &l.options);
}

template <class Change>
void refused(bool transposed, Change&& change, std::initializer_list<const char*> words) {
  alignas(64) static float w[1024] = {}, b[8] = {};
  ConvolutionLayer layer(small_shape(transposed), w, b);
  change(layer.parameters, layer.options);
  EXPECT_EQ(create(layer), nullptr);
  EXPECT_TRUE(refused_because(words));
}

using P = BNNSLayerParametersConvolution;
using O = BNNSFilterParameters;

TEST(ConvolutionMisuse, DescriptorsSayWhy) {
  for (const bool t : {false, true}) {
    const char* op = t ? "transposed_convolution" : "convolution";
    refused(t, [](P& p, O&) { p.i_desc.size[0] = 0; }, {op, "i_desc.size[0] is 0"});
    refused(t, [](P& p, O&) { p.o_desc.size[2] = 0; }, {op, "o_desc.size[2] is 0"});
    refused(t, [](P& p, O&) { p.w_desc.size[1] = 0; }, {op, "w_desc.size[1] is 0"});
    refused(t, [](P& p, O&) { p.i_desc.layout = BNNSDataLayoutVector; },
            {op, "i_desc.layout", "expected BNNSDataLayoutImageCHW"});
    refused(t, [](P& p, O&) { p.o_desc.layout = BNNSDataLayoutSNE; },
            {op, "o_desc.layout", "expected BNNSDataLayoutImageCHW"});
    refused(t, [](P& p, O&) { p.w_desc.layout = BNNSDataLayout4DFirstMajor; }, {op, "w_desc.layout", "four"});
    refused(t, [](P& p, O&) { p.w_desc.layout = BNNSDataLayout(77); }, {"w_desc.layout is 0x4d"});
    refused(t, [](P& p, O&) { p.w_desc.data = nullptr; }, {"w_desc.data is NULL"});
    refused(t, [](P& p, O&) { p.w_desc.data = static_cast<char*>(p.w_desc.data) + 1; },
            {"w_desc.data", "multiple of 4"});
    refused(t, [](P& p, O&) { p.bias.data = static_cast<char*>(p.bias.data) + 2; }, {"bias.data", "multiple of 4"});
    refused(t, [](P& p, O&) { p.o_desc.stride[0] = 2, p.o_desc.stride[1] = 1; },
            {"o_desc is f32", "elements (1, 0, 0) and (0, 2, 0) share an address"});
    refused(t, [](P& p, O&) { p.i_desc.data_type = BNNSDataType(3); }, {"i_desc.data_type is 0x3"});
    refused(t, [](P& p, O&) { p.w_desc.layout = BNNSDataLayoutConvolutionWeightsOIHW_Pack32, p.w_desc.stride[3] = 32; },
            {"w_desc.stride[3] is 32, expected 0", "Pack32"});
  }
  refused(false, [](P& p, O&) { p.i_desc.data_type = BNNSDataTypeInt4; }, {"i_desc", "whole-byte"});
  refused(false, [](P& p, O&) { p.o_desc.data_type = BNNSDataTypeIndexed8; }, {"o_desc", "whole-byte"});
  refused(false, [](P& p, O&) { p.w_desc.data_type = BNNSDataTypeIndexed8; }, {"w_desc.table_data is NULL"});
  refused(true, [](P& p, O&) { p.o_desc.data_type = BNNSDataTypeInt8; }, {"o_desc", "expected f32, f16 or bf16"});
  EXPECT_EQ(BNNSFilterCreateLayerConvolution(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"convolution", "layer_params is NULL"}));
  EXPECT_EQ(BNNSFilterCreateLayerTransposedConvolution(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"transposed_convolution", "layer_params is NULL"}));
}

TEST(ConvolutionMisuse, ShapesSayWhy) {
  refused(false, [](P& p, O&) { p.o_desc.size[0] = 7; },
          {"width", "6 pixels of i_desc and 2 of padding, expected at least 9 = 1 * (7 - 1) + (3 - 1) * 1 + 1"});
  refused(false, [](P& p, O&) { p.y_stride = 2; }, {"height", "5 pixels of i_desc", "expected at least 11"});
  refused(false, [](P& p, O&) { p.x_dilation_stride = 2; }, {"width", "expected at least 10"});
  refused(true, [](P& p, O&) { p.i_desc.size[1] = 6; }, {"height", "5 pixels of o_desc", "expected at least 8"});
  for (const bool t : {false, true}) {
    refused(t, [](P& p, O&) { p.i_desc.size[2] = 3; }, {"w_desc.size[2] is 2, expected 3 = i_desc.size[2] / groups"});
    refused(t, [](P& p, O&) { p.o_desc.size[2] = 5; }, {"w_desc.size[3] is 4, expected 5 = o_desc.size[2]"});
    refused(t, [](P& p, O&) { p.w_desc.layout = BNNSDataLayoutConvolutionWeightsIOHrWr; },
            {"w_desc.size[2] is 2, expected 4 = o_desc.size[2]"});
    refused(t, [](P& p, O&) { p.groups = 3; }, {"groups is 3, expected a divisor of 2 input and 4 output channels"});
    refused(t, [](P& p, O&) { p.groups = 2; }, {"w_desc.size[2] is 2, expected 1 = i_desc.size[2] / groups"});
    refused(t, [](P& p, O&) { p.groups = 2, p.w_desc.layout = BNNSDataLayoutConvolutionWeightsOIHW_Pack32; },
            {"groups is 2", "WeightsOIHW_Pack32 (0x40010)", "WeightsOIHrWr"});
    refused(t, [](P& p, O&) { p.groups = SIZE_MAX; }, {"groups", "divisor"});
    refused(t, [](P& p, O&) { p.bias.size[0] = 3; }, {"bias has 3 elements, expected 4 = o_desc.size[2]"});
    refused(t, [](P& p, O&) { p.activation.function = BNNSActivationFunction(99); }, {"activation.function is 99"});
    refused(t, [](P& p, O&) { p.activation.function = BNNSActivationFunctionGumbel; }, {"gumbel cannot be fused"});
    refused(t, [](P&, O& o) { o.flags = 6; }, {"filter_params.flags is 0x6"});
    refused(t, [](P&, O& o) { o.free_memory = std::free; }, {"both or neither"});
  }
}

// Products of sizes never wrap.
TEST(ConvolutionMisuse, HugeNumbersAreRefused) {
  const size_t huge = size_t{1} << 62;
  for (const bool t : {false, true}) {
    refused(t, [&](P& p, O&) { p.i_desc.size[0] = huge, p.i_desc.size[1] = 8; }, {"does not fit"});
    refused(t, [&](P& p, O&) { p.w_desc.size[0] = huge; }, {"does not fit"});
    refused(t, [&](P& p, O&) { p.x_stride = huge; }, {"does not fit"});
    refused(t, [&](P& p, O&) { p.y_dilation_stride = SIZE_MAX; }, {"does not fit"});
    refused(t, [&](P& p, O&) { p.pad[1] = SIZE_MAX; }, {"x_padding or pad is 18446744073709551615"});
    refused(t, [&](P& p, O&) { p.x_padding = SIZE_MAX / 2; }, {"x_padding or pad is 9223372036854775807"});
    refused(t, [&](P& p, O&) { p.x_padding = huge - 10; }, {"x_padding or pad is", "expected at most"});
    refused(t, [&](P& p, O&) { p.pad[2] = huge; }, {"y_padding or pad is", "expected at most"});
    refused(t, [&](P& p, O&) { p.i_desc.stride[2] = SIZE_MAX; }, {"i_desc", "does not fit"});
  }
  // One-bit weights whose f32 form would not fit; nothing is read, the pointers are the client's.
  refused(false,
          [&](P& p, O& o) {
            p.w_desc.data_type = BNNSDataTypeInt1, o.flags = BNNSFlagsUseClientPtr;
            p.w_desc.size[0] = size_t{1} << 40, p.w_desc.size[1] = size_t{1} << 18;
          },
          {"w_desc has 2305843009213693952 elements, expected at most"});
}

TEST(ConvolutionMisuse, IntegerLayersSayWhy) {
  const auto integer = [](P& p) {
    p.i_desc.data_type = p.w_desc.data_type = p.o_desc.data_type = BNNSDataTypeInt8;
    p.bias.data_type = BNNSDataTypeInt32;
    p.activation.function = BNNSActivationFunctionIntegerLinearSaturate;
  };
  refused(false, [&](P& p, O&) { integer(p), p.activation.ishift = 63; }, {"ishift is 63, expected 0 to 62"});
  refused(false, [&](P& p, O&) { integer(p), p.activation.ishift = -1; }, {"ishift is -1"});
  refused(false, [&](P& p, O&) { integer(p), p.bias.data_type = BNNSDataTypeFloat32; }, {"f32 bias", "integer one"});
  refused(false, [&](P& p, O&) { integer(p), p.o_desc.data_type = BNNSDataTypeFloat32; }, {"f32", "integers"});
  refused(false,
          [&](P& p, O&) { integer(p), p.activation.function = BNNSActivationFunctionIntegerLinearSaturatePerChannel; },
          {"IntegerLinearSaturatePerChannel"});
  refused(true, [&](P& p, O&) { p.activation.function = BNNSActivationFunctionIntegerLinearSaturate; },
          {"transposed_convolution", "takes floats"});
}

// ---- apply --------------------------------------------------------------------------------------------------------

// A layer with everything that its calls need; results are poisoned and must stay so.
struct Calls {
  ConvolutionShape s;
  std::vector<float> x, w, b, dy, y, dx, dw, db;
  ConvolutionLayer layer;
  FilterHandle filter;
  BNNSNDArrayDescriptor dx_desc, dy_desc, dw_desc, db_desc;

  explicit Calls(const ConvolutionShape& shape, BNNSActivationFunction f = BNNSActivationFunctionIdentity)
      : s(shape),
        x(s.x_count()),
        w(s.w_count()),
        b(s.o),
        dy(s.y_count()),
        y(s.y_count(), poison()),
        dx(s.x_count(), poison()),
        dw(s.w_count(), poison()),
        db(s.o, poison()),
        layer(s, w.data(), b.data(), f),
        filter(nullptr, &BNNSFilterDestroy) {
    layer.options.flags = BNNSFlagsUseClientPtr;
    filter = layer.make();
    dx_desc = image(s.iw, s.ih, s.i, dx.data()), dy_desc = image(s.ow, s.oh, s.o, dy.data());
    dw_desc = layer.parameters.w_desc, dw_desc.data = dw.data();
    db_desc = vector_descriptor(s.o, db.data());
  }
  void forward_refused(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                       std::initializer_list<const char*> words) {
    EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), batch, in, in_stride, out, out_stride), -1);
    EXPECT_TRUE(refused_because(words));
    expect_untouched();
  }
  void backward_refused(const void* in, const void* out, std::initializer_list<const char*> words, size_t batch = 2,
                        size_t dx_stride = 0) {
    EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), batch, in, 0, &dx_desc, dx_stride, out, 0, &dy_desc, 0,
                                           &dw_desc, &db_desc),
              -1);
    EXPECT_TRUE(refused_because(words));
    expect_untouched();
  }
  void expect_untouched() {
    for (const auto* v : {&y, &dx, &dw, &db}) {
      for (const float e : *v) ASSERT_TRUE(is_poison(e));
    }
  }
};

TEST(ConvolutionMisuse, ForwardSaysWhyAndWritesNothing) {
  for (const bool t : {false, true}) {
    Calls c(small_shape(t));
    c.forward_refused(2, nullptr, 0, c.y.data(), 0, {"in is NULL"});
    c.forward_refused(2, c.x.data(), 0, nullptr, 0, {"out is NULL"});
    c.forward_refused(2, reinterpret_cast<char*>(c.x.data()) + 1, 0, c.y.data(), 0, {"in is", "multiple of 4"});
    c.forward_refused(2, c.x.data(), 0, c.y.data(), 5, {"out_stride is 5, expected 0 or at least 120"});
    c.forward_refused(SIZE_MAX, c.x.data(), 0, c.y.data(), 0, {"do not fit in memory"});
    c.forward_refused(2, c.x.data(), SIZE_MAX, c.y.data(), 0, {"in_stride", "do not fit in memory"});
    c.forward_refused(2, c.y.data() + 4, 0, c.y.data(), 0, {"in and out overlap"});
    c.forward_refused(2, c.y.data(), 0, c.y.data(), 0, {"in and out overlap"});
  }
}

TEST(ConvolutionMisuse, BackwardSaysWhyAndWritesNothing) {
  for (const bool t : {false, true}) {
    Calls relu(small_shape(t), BNNSActivationFunctionRectifiedLinear), silu(small_shape(t), BNNSActivationFunctionSiLU);
    const std::vector<float> out(relu.s.y_count());
    relu.backward_refused(relu.x.data(), nullptr, {"out is NULL"});
    relu.backward_refused(nullptr, out.data(), {"in is NULL"});
    silu.backward_refused(nullptr, out.data(), {"in is NULL", "silu needs the layer's input"});

    const auto changed = [&](auto change, std::initializer_list<const char*> words) {
      Calls c(small_shape(t));
      change(c);
      c.backward_refused(c.x.data(), nullptr, words);
    };
    changed([](Calls& c) { c.dy_desc.data = nullptr; }, {"out_delta.data is NULL"});
    changed([](Calls& c) { c.dy_desc.size[0] = 3; }, {"out_delta has", "expected"});
    changed([](Calls& c) { std::swap(c.dx_desc.size[0], c.dx_desc.size[1]); }, {"in_delta is", "expected"});
    changed([](Calls& c) { c.dx_desc.data_type = BNNSDataTypeInt8; }, {"in_delta has type", "gradients are"});
    changed([](Calls& c) { c.dw_desc.size[3] = 3; }, {"weights_delta has"});
    changed([](Calls& c) { c.dw_desc.data = static_cast<char*>(c.dw_desc.data) + 2; }, {"weights_delta.data"});
    changed([](Calls& c) { c.dw_desc.layout = BNNSDataLayoutConvolutionWeightsOIHrWr, c.dw_desc.stride[0] = 2; },
            {"weights_delta has another layout", "dense"});
    changed([](Calls& c) { c.db_desc.size[0] = 3; }, {"bias_delta has 3 elements, expected 4"});
    changed([](Calls& c) { c.dx_desc.data = c.dy.data(); }, {"in_delta and out_delta overlap"});
    changed([](Calls& c) { c.dw_desc.data = c.w.data() + 1; }, {"weights_delta and w_desc.data overlap"});
    changed([](Calls& c) { c.dw_desc.data = c.x.data(); }, {"weights_delta and in overlap"});
    changed([](Calls& c) { c.db_desc.data = c.dy.data(); }, {"bias_delta and out_delta overlap"});
    changed([](Calls& c) { c.db_desc.data = c.w.data(); }, {"bias_delta and w_desc.data overlap"});
    changed([](Calls& c) { c.dw_desc.data = c.dx.data(); }, {"weights_delta and in_delta overlap"});
    changed([](Calls& c) { c.db_desc.data = c.dw.data() + 1; }, {"bias_delta and weights_delta overlap"});
    changed([](Calls& c) { c.db_desc.data = c.dx.data() + 1; }, {"bias_delta and in_delta overlap"});
    Calls c(small_shape(t));
    c.backward_refused(c.x.data(), nullptr, {"in_delta_stride is 7, expected 0 or at least 60"}, 2, 7);
    c.backward_refused(c.x.data(), nullptr, {"do not fit in memory"}, SIZE_MAX);
    EXPECT_EQ(BNNSFilterApplyBackwardBatch(c.filter.get(), 2, c.x.data(), 0, &c.dx_desc, 0, nullptr, 0, nullptr, 0,
                                           &c.dw_desc, nullptr),
              -1);
    EXPECT_TRUE(refused_because({"out_delta is NULL"}));
    c.expect_untouched();
  }
  Calls tanh(small_shape(), BNNSActivationFunctionTanh);
  std::vector<float> out(tanh.s.y_count() + tanh.s.x_count(), poison());
  tanh.dx_desc.data = out.data() + 3;
  tanh.backward_refused(tanh.x.data(), out.data(), {"in_delta and out overlap"});
  for (const float v : out) ASSERT_TRUE(is_poison(v));
}

// A Pack32 gradient holds whole groups of 32 channels: a vector of the logical elements has no elements for that.
TEST(ConvolutionMisuse, VectorForPaddedPack32) {
  const ConvolutionShape s = small_shape();
  Weights w(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, s);
  w.fill(std::vector<double>(s.w_count(), 1));
  std::vector<float> x(s.x_count()), dy(s.y_count());
  Guarded<float> dw(s.w_count());
  std::fill_n(dw.data(), dw.size(), poison());
  ConvolutionLayer layer(s, nullptr, nullptr);
  layer.parameters.w_desc = w.descriptor();
  auto dy_desc = image(s.ow, s.oh, s.o, dy.data()), dw_desc = vector_descriptor(s.w_count(), dw.data());
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(layer.make().get(), s.n, x.data(), 0, nullptr, 0, nullptr, 0, &dy_desc, 0,
                                         &dw_desc, nullptr),
            -1);
  EXPECT_TRUE(refused_because({"weights_delta has 72 elements, expected OIHW_Pack32 with room for 576"}));
  for (size_t j = 0; j < dw.size(); ++j) ASSERT_TRUE(is_poison(dw[j]));
}

TEST(ConvolutionMisuse, GradientsThatAreNotOffered) {
  Calls c(small_shape());
  c.layer.parameters.i_desc.data_type = c.layer.parameters.w_desc.data_type = c.layer.parameters.o_desc.data_type =
      BNNSDataTypeInt8;
  c.layer.parameters.bias.data_type = BNNSDataTypeInt32;
  c.layer.parameters.activation.function = BNNSActivationFunctionIntegerLinearSaturate;
  c.filter = c.layer.make();
  c.backward_refused(c.x.data(), nullptr, {"integer layers have no gradient"});
}

// ---- allocation ---------------------------------------------------------------------------------------------------

struct Accountant {
  static inline int live = 0, until_failure = -1;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    if (until_failure == 0) return 12;
    if (until_failure > 0) --until_failure;
    const int status = posix_memalign(memory, alignment, bytes);
    live += status == 0;
    return status;
  }
  static void free(void* memory) {
    live -= memory != nullptr;
    std::free(memory);
  }
};

TEST(ConvolutionMisuse, EveryAllocationMayFail) {
  for (const ConvolutionShape& s : {make_shape(3, 8, 12, 12, 10, 3, 1, 1), make_shape(2, 8, 12, 12, 8, 3, 2, 1, 8)}) {
    Random random(1);
    const auto x = random.normals(s.x_count()), w = random.normals(s.w_count());
    auto dy = random.normals(s.y_count());
    std::vector<float> y(s.y_count()), dx(s.x_count()), dw(s.w_count()), db(s.o);
    ConvolutionLayer layer(s, w.data(), nullptr, BNNSActivationFunctionSiLU);
    layer.options.alloc_memory = Accountant::alloc, layer.options.free_memory = Accountant::free;
    auto dx_desc = image(s.iw, s.ih, s.i, dx.data()), dy_desc = image(s.ow, s.oh, s.o, dy.data());
    auto dw_desc = layer.parameters.w_desc, db_desc = vector_descriptor(s.o, db.data());
    dw_desc.data = dw.data();
    bool done = false;
    for (int n = 0; n < 30 && !done; ++n) {
      Accountant::until_failure = n;
      BNNSFilter filter = create(layer);
      if (filter) {
        const bool applied = BNNSFilterApplyBatch(filter, s.n, x.data(), 0, y.data(), 0) == 0;
        done = applied && BNNSFilterApplyBackwardBatch(filter, s.n, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                                       &dw_desc, &db_desc) == 0;
        EXPECT_TRUE(done || refused_because({"out of memory"}));
        Accountant::until_failure = -1;
        EXPECT_EQ(BNNSFilterApplyBatch(filter, s.n, x.data(), 0, y.data(), 0), 0) << "still usable";
        BNNSFilterDestroy(filter);
      } else {
        EXPECT_TRUE(refused_because({"out of memory"}));
      }
      EXPECT_EQ(Accountant::live, 0) << "after failure " << n;
    }
    EXPECT_TRUE(done);
  }
}

}  // namespace
}  // namespace bnns
