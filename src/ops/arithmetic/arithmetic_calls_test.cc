// Arithmetic: aliasing, empty batches, memory that runs out, and every way to call it wrongly: -1 or NULL, a reason,
// and nothing written.

#include <cstdlib>
#include <functional>

#include "src/ops/arithmetic/arithmetic_testing.h"

namespace bnns::testing {
namespace {

constexpr auto kSample = BNNSSample, kParameter = BNNSParameter, kConstant = BNNSConstant;
const BNNSActivation kIdentity = activation(BNNSActivationFunctionIdentity);

// ---- aliasing and odd but right calls --------------------------------------------------------------------------

TEST(ArithmeticCalls, BC40_AnyElementAlignmentWorks) {
  for_each_isa([] {
    for (const size_t offset : {1, 2, 3}) {
      const size_t n = 70;
      alignas(64) float a[80], b[80], y[80], y0[80];
      for (size_t i = 0; i < 80; ++i) a[i] = float(i) / 3, b[i] = float(i % 7) + 0.5f;
      std::memmove(a + offset, a, n * sizeof(float));
      std::memmove(b + offset, b, n * sizeof(float));
      const auto d = vector_descriptor(n, nullptr);
      Arithmetic filter(BNNSArithmeticDivide, {d, d}, {kSample, kSample}, d);
      ASSERT_EQ(filter.forward(1, {a + offset, b + offset}, {0, 0}, y + offset, 0), 0);
      std::memmove(a, a + offset, n * sizeof(float));
      std::memmove(b, b + offset, n * sizeof(float));
      ASSERT_EQ(filter.forward(1, {a, b}, {0, 0}, y0, 0), 0);
      EXPECT_TRUE(same_bits(y + offset, y0, n));
    }
  });
}

// Input and output are halves of the same rows: no element is shared, so this is no overlap.
TEST(ArithmeticCalls, SlicesOfOneMatrixAreApart) {
  float matrix[3][8];
  for (auto& row : matrix) {
    for (size_t i = 0; i < 8; ++i) row[i] = float(i);
  }
  auto d = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 3}, nullptr);
  d.stride[0] = 1;
  d.stride[1] = 8;
  Arithmetic rows(BNNSArithmeticSquare, {d}, {kSample}, d);
  ASSERT_EQ(rows.forward(1, {matrix[0]}, {0}, matrix[0] + 4, 0), 0) << BNNSExtLastError();
  const auto v = vector_descriptor(4, nullptr);
  Arithmetic batch(BNNSArithmeticNegate, {v}, {kSample}, v);
  for (auto& row : matrix) {
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(row[4 + i], float(i * i));
  }
  ASSERT_EQ(batch.forward(3, {matrix[0]}, {8}, matrix[0] + 4, 8), 0) << BNNSExtLastError();
  for (auto& row : matrix) {
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(row[4 + i], -float(i));
  }
  // Five of eight columns each: the second slice runs into the next row of the first.
  d.size[0] = 5;
  d.size[1] = 2;
  Arithmetic wider(BNNSArithmeticSquare, {d}, {kSample}, d);
  EXPECT_EQ(wider.forward(1, {matrix[0]}, {0}, matrix[0] + 5, 0), -1);
  EXPECT_TRUE(refused_because({"in[0]", "out", "share memory"}));
}

// A gradient may come as a Vector with gaps for an image of as many elements.
TEST(ArithmeticCalls, VectorGradientForAnImage) {
  const auto image = descriptor(BNNSDataLayoutImageCHW, {2, 3, 4}, nullptr),
             bias = descriptor(BNNSDataLayoutImageCHW, {1, 1, 4}, nullptr);
  std::vector<float> x(24, 1.0f), g(24), dx(48, poison()), db(12, poison()), w(4, 2.0f);
  for (size_t i = 0; i < 24; ++i) g[i] = float(i);
  auto delta_x = vector_descriptor(24, dx.data()), delta_b = vector_descriptor(4, db.data()),
       dy = vector_descriptor(24, g.data());
  delta_x.stride[0] = 2;
  delta_b.stride[0] = 3;
  Arithmetic filter(BNNSArithmeticMultiply, {image, bias}, {kSample, kParameter}, image);
  ASSERT_EQ(filter.backward(1, {x.data(), w.data()}, {0, 0}, {&delta_x, &delta_b}, {0, 0}, nullptr, 0, &dy, 0), 0)
      << BNNSExtLastError();
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(dx[2 * i], 2 * g[i]);
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(db[3 * c], 36 * c + 15);  // 6c + ... + 6c + 5
  for (size_t i = 0; i + 1 < 24; ++i) EXPECT_TRUE(is_poison(dx[2 * i + 1]));
  EXPECT_TRUE(is_poison(db[1]) && is_poison(db[2]));
}

TEST(ArithmeticCalls, BC38_EmptyBatchZeroesParameterGradientsOnly) {
  const auto d = vector_descriptor(4, nullptr);
  std::vector<float> da(4, 5.0f), db(4, 5.0f), dc(4, 5.0f), y(4, 5.0f), g(4);
  auto delta_a = vector_descriptor(4, da.data()), delta_b = vector_descriptor(4, db.data()),
       delta_c = vector_descriptor(4, dc.data());
  auto dy = vector_descriptor(4, g.data());
  Arithmetic filter(BNNSArithmeticMultiplyAdd, {d, d, d}, {kSample, kParameter, kParameter}, d);
  EXPECT_EQ(filter.forward(0, {nullptr, nullptr, nullptr}, {0, 0, 0}, y.data(), 0), 0) << BNNSExtLastError();
  delta_c.flags = BNNSNDArrayFlagBackpropAccumulate;
  EXPECT_EQ(filter.backward(0, {}, {}, {&delta_a, &delta_b, &delta_c}, {0, 0, 0}, nullptr, 0, &dy, 0), 0)
      << BNNSExtLastError();
  EXPECT_EQ(y, std::vector<float>(4, 5.0f));
  EXPECT_EQ(da, std::vector<float>(4, 5.0f));
  EXPECT_EQ(db, std::vector<float>(4, 0.0f));
  EXPECT_EQ(dc, std::vector<float>(4, 5.0f));
}

// ---- memory ----------------------------------------------------------------------------------------------------

int live_blocks = 0, requests = 0, fail_from = 0, fail_once = 0;

int counting_alloc(void** block, size_t alignment, size_t bytes) {
  ++requests;
  if ((fail_from && requests >= fail_from) || (fail_once && requests == fail_once)) return 12;
  if (posix_memalign(block, alignment, bytes) != 0) return 12;
  std::memset(*block, 0xff, bytes);  // NaN: scratch that is used before it is written shows (BC39)
  ++live_blocks;
  return 0;
}
void counting_free(void* block) {
  if (block) --live_blocks;
  std::free(block);
}

// Request n, or every request from n on, fails: the call says so and writes nothing, and works once there is memory
// again.
TEST(ArithmeticCalls, BC39_BC42_BC45_MemoryThatRunsOut) {
  const size_t columns = 1200, rows = 40;
  const auto full = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, nullptr);
  const auto row = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, 1}, nullptr);
  BNNSFilterParameters parameters;
  std::memset(&parameters, 0, sizeof parameters);
  parameters.alloc_memory = counting_alloc;
  parameters.free_memory = counting_free;
  std::vector<float> x(columns * rows, 1.0f), w(columns, 1.0f), g(x.size(), 1.0f), y(x.size()), dx(x.size()),
      dw(columns);
  auto delta_x = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, dx.data());
  auto delta_w = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, 1}, dw.data());
  auto dy = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, g.data());

  int failures = 0;
  const auto until_it_works = [&](std::vector<std::vector<float>*> outputs, const std::function<int()>& call) {
    for (auto* v : outputs) std::fill(v->begin(), v->end(), poison());
    if (call() == 0) return;
    ++failures;
    EXPECT_TRUE(refused_because({"memory"}));
    for (auto* v : outputs) {
      for (float element : *v) ASSERT_TRUE(is_poison(element));
    }
    fail_once = fail_from = 0;
    EXPECT_EQ(call(), 0) << BNNSExtLastError();
  };
  for (const bool softmax : {false, true}) {
    for (const bool once : {false, true}) {
      bool reached = true;
      failures = 0;
      for (int n = 1; reached; ++n) {
        requests = 0;
        (once ? fail_once : fail_from) = n;
        {
          Arithmetic filter(BNNSArithmeticMultiply, {full, row}, {kSample, kParameter}, full,
                            softmax ? activation(BNNSActivationFunctionSoftmax) : kIdentity, &parameters);
          if (!filter.handle()) {
            ++failures;
            EXPECT_TRUE(refused_because({"BNNSFilterCreateLayerArithmetic", "memory"}));
          } else {
            until_it_works({&y}, [&] { return filter.forward(1, {x.data(), w.data()}, {0, 0}, y.data(), 0); });
            until_it_works({&dx, &dw}, [&] {
              return filter.backward(1, {x.data(), w.data()}, {0, 0}, {&delta_x, &delta_w}, {0, 0}, y.data(), 0, &dy,
                                     0);
            });
            // g = 1 everywhere: the gradient of softmax is 0 up to a rounding per row, that of the product the sum of
            // x.
            for (float v : dw) ASSERT_NEAR(v, softmax ? 0 : rows, softmax ? rows * columns * kUnit / columns : 0);
          }
          reached = requests >= n;
          fail_once = fail_from = 0;
        }
        EXPECT_EQ(live_blocks, 0);
      }
      EXPECT_GE(failures, 2);  // creation and backward, at least
    }
  }
}

// ---- misuse ----------------------------------------------------------------------------------------------------

struct Refusal {
  const char* name;
  std::function<void(BNNSLayerParametersArithmetic&, BNNSArithmeticBinary&, BNNSFilterParameters&)> spoil;
  std::initializer_list<const char*> words;
};

TEST(ArithmeticCalls, BC37_CreationRefusals) {
  const Refusal table[] = {
      {"unknown function",
       [](auto& l, auto&, auto&) { l.arithmetic_function = static_cast<BNNSArithmeticFunction>(41); },
       {"arithmetic_function", "41"}},
      {"no fields",
       [](auto& l, auto&, auto&) { l.arithmetic_function_fields = nullptr; },
       {"arithmetic_function_fields", "NULL"}},
      {"layouts differ",
       [](auto&, auto& b, auto&) { b.in2.layout = BNNSDataLayoutColumnMajorMatrix; },
       {"in2.layout", "one layout"}},
      {"extents differ",
       [](auto&, auto& b, auto&) { b.in2.size[1] = 2; },
       {"in2.size[1]", "2", "out.size[1] = 3", "or 1"}},
      {"input larger than output", [](auto&, auto& b, auto&) { b.out.size[0] = 1; }, {"in1.size[0]", "4"}},
      {"extent 0", [](auto&, auto& b, auto&) { b.in1.size[0] = 0; }, {"in1.size[0]", "0"}},
      {"extent that wraps",
       [](auto&, auto& b, auto&) { b.out.size[0] = b.out.size[1] = SIZE_MAX / 2; },
       {"out.size[0] is", "does not fit"}},
      {"shared addresses",
       [](auto&, auto& b, auto&) { b.out.stride[0] = b.out.stride[1] = 1; },
       {"out is f32", "share an address"}},
      {"role", [](auto&, auto& b, auto&) { b.in2_type = static_cast<BNNSDescriptorType>(3); }, {"in2_type", "3"}},
      {"role of out",
       [](auto&, auto& b, auto&) { b.out_type = static_cast<BNNSDescriptorType>(9); },
       {"out_type", "9"}},
      {"no type", [](auto&, auto& b, auto&) { b.in1.data_type = static_cast<BNNSDataType>(7); }, {"in1.data_type"}},
      {"indexed input",
       [](auto&, auto& b, auto&) { b.in1.data_type = BNNSDataTypeIndexed8; },
       {"in1.data_type", "not offered"}},
      {"sub-byte input",
       [](auto&, auto& b, auto&) { b.in1.data_type = BNNSDataTypeInt4; },
       {"in1.data_type", "not offered"}},
      {"integer output",
       [](auto&, auto& b, auto&) { b.out.data_type = BNNSDataTypeInt32; },
       {"out.data_type", "f32, f16 or bf16"}},
      {"no layout", [](auto&, auto& b, auto&) { b.out.layout = static_cast<BNNSDataLayout>(5); }, {"out.layout"}},
      {"activation",
       [](auto& l, auto&, auto&) { l.activation.function = static_cast<BNNSActivationFunction>(999); },
       {"activation"}},
      {"one callback", [](auto&, auto&, auto& p) { p.alloc_memory = counting_alloc; }, {"both or neither"}},
  };
  for (const Refusal& r : table) {
    SCOPED_TRACE(r.name);
    const auto d = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 3}, nullptr);
    BNNSArithmeticBinary b{d, kSample, d, kSample, d, kSample};
    BNNSLayerParametersArithmetic layer;
    BNNSFilterParameters parameters;
    std::memset(&layer, 0, sizeof layer);
    std::memset(&parameters, 0, sizeof parameters);
    layer.arithmetic_function = BNNSArithmeticMultiply;
    layer.arithmetic_function_fields = &b;
    BNNSFilter good = BNNSFilterCreateLayerArithmetic(&layer, &parameters);
    EXPECT_TRUE(good);
    BNNSFilterDestroy(good);
    r.spoil(layer, b, parameters);
    EXPECT_FALSE(BNNSFilterCreateLayerArithmetic(&layer, &parameters));
    EXPECT_TRUE(refused_because(r.words));
  }
  const BNNSLayerParametersArithmetic* none = nullptr;
  EXPECT_FALSE(BNNSFilterCreateLayerArithmetic(none, nullptr));
  EXPECT_TRUE(refused_because({"layer_params", "NULL"}));
}

// A call of a binary filter on 4 x 3 matrices, batch 2, with every argument open to be spoiled.
struct OpenCall {
  Stored a{BNNSDataLayoutRowMajorMatrix, {4, 3}, BNNSDataTypeFloat32, 2},
      b{BNNSDataLayoutRowMajorMatrix, {4, 3}, BNNSDataTypeFloat32, 2};
  Stored y{BNNSDataLayoutRowMajorMatrix, {4, 3}, BNNSDataTypeFloat32, 2},
      dy{BNNSDataLayoutRowMajorMatrix, {4, 3}, BNNSDataTypeFloat32, 2};
  Stored da{BNNSDataLayoutRowMajorMatrix, {4, 3}, BNNSDataTypeFloat32, 2},
      db{BNNSDataLayoutRowMajorMatrix, {4, 3}, BNNSDataTypeFloat32, 2};
  BNNSNDArrayDescriptor delta[2], out_delta;
  BNNSArithmeticFunction function = BNNSArithmeticMultiply;
  BNNSActivation act = kIdentity;
  BNNSDescriptorType role[2] = {kSample, kSample};
  size_t inputs = 2;
  const void* in_entries[2];
  size_t in_strides[2] = {0, 0}, delta_strides[2] = {0, 0};
  BNNSNDArrayDescriptor* delta_entries[2];
  const void** in = in_entries;
  const size_t* in_stride = in_strides;
  BNNSNDArrayDescriptor** in_delta = delta_entries;
  const size_t* in_delta_stride = delta_strides;
  void* out;
  size_t out_stride = 0, out_delta_stride = 0;
  BNNSNDArrayDescriptor* dy_pointer = &out_delta;

  OpenCall() {
    const Values ones(24, 1.0);
    for (Stored* s : {&a, &b, &dy}) s->fill(ones);
    delta[0] = *da.delta();
    delta[1] = *db.delta();
    out_delta = *dy.delta();
    in_entries[0] = a.data();
    in_entries[1] = b.data();
    delta_entries[0] = &delta[0];
    delta_entries[1] = &delta[1];
    out = y.data();
  }
  std::unique_ptr<Arithmetic> filter() const {
    const std::vector<BNNSNDArrayDescriptor> d(arithmetic_function(function)->inputs, a.descriptor());
    return std::make_unique<Arithmetic>(function, d, std::vector(role, role + d.size()), a.descriptor(), act);
  }
  int forward(BNNSFilter f) { return BNNSArithmeticFilterApplyBatch(f, 2, inputs, in, in_stride, out, out_stride); }
  int backward(BNNSFilter f) {
    return BNNSArithmeticFilterApplyBackwardBatch(f, 2, inputs, in, in_stride, in_delta, in_delta_stride, out,
                                                  out_stride, dy_pointer, out_delta_stride);
  }
  bool untouched() const { return y.all_poison() && da.all_poison() && db.all_poison(); }
};

struct CallRefusal {
  const char* name;
  bool forward, backward;  // which of the two must refuse
  std::function<void(OpenCall&)> spoil;
  std::initializer_list<const char*> words;
};

TEST(ArithmeticCalls, BC37_BC41_CallRefusals) {
  static float strange[64];
  const CallRefusal table[] = {
      {"too few inputs", true, true, [](OpenCall& c) { c.inputs = 1; }, {"number_of_inputs", "1", "expected 2"}},
      {"too many inputs", true, true, [](OpenCall& c) { c.inputs = 3; }, {"number_of_inputs", "3", "expected 2"}},
      {"in NULL", true, true, [](OpenCall& c) { c.in = nullptr; }, {"in", "NULL"}},
      {"in[1] NULL", true, true, [](OpenCall& c) { c.in_entries[1] = nullptr; }, {"in[1]", "NULL"}},
      {"in_stride NULL", true, false, [](OpenCall& c) { c.in_stride = nullptr; }, {"in_stride", "NULL"}},
      {"in[0] unaligned",
       true,
       true,
       [](OpenCall& c) { c.in_entries[0] = static_cast<const char*>(c.in_entries[0]) + 1; },
       {"in[0]", "multiple of 4"}},
      {"in_stride wraps", true, true, [](OpenCall& c) { c.in_strides[0] = SIZE_MAX; }, {"in_stride[0]"}},
      {"out_stride too small", true, false, [](OpenCall& c) { c.out_stride = 11; }, {"out_stride", "11", "12"}},
      {"out NULL", true, false, [](OpenCall& c) { c.out = nullptr; }, {"out", "NULL"}},
      {"out over half an input",
       true,
       false,
       [](OpenCall& c) { c.out = c.a.floats() + 4; },
       {"in[0]", "out", "share memory"}},
      {"out over a parameter",
       true,
       false,
       [](OpenCall& c) {
         c.role[0] = kParameter;
         c.out = c.a.data();
       },
       {"in[0]", "out", "share memory"}},
      {"in_delta NULL", false, true, [](OpenCall& c) { c.in_delta = nullptr; }, {"in_delta", "NULL"}},
      {"in_delta[1] NULL",
       false,
       true,
       [](OpenCall& c) { c.delta_entries[1] = nullptr; },
       {"in_delta[1]", "NULL", "Constant"}},
      {"in_delta[1].data NULL",
       false,
       true,
       [](OpenCall& c) { c.delta[1].data = nullptr; },
       {"in_delta[1].data", "NULL"}},
      {"in_delta_stride NULL",
       false,
       true,
       [](OpenCall& c) { c.in_delta_stride = nullptr; },
       {"in_delta_stride", "NULL"}},
      {"in_delta_stride too small",
       false,
       true,
       [](OpenCall& c) { c.delta_strides[0] = 5; },
       {"in_delta_stride[0]", "5"}},
      {"in_delta of another shape",
       false,
       true,
       [](OpenCall& c) { c.delta[0].size[0] = 2; },
       {"in_delta[0]", "elements"}},
      {"in_delta transposed",
       false,
       true,
       [](OpenCall& c) {
         c.delta[0].size[0] = 3;
         c.delta[0].size[1] = 4;
       },
       {"in_delta[0]", "expected"}},
      {"integer in_delta",
       false,
       true,
       [](OpenCall& c) { c.delta[1].data_type = BNNSDataTypeInt32; },
       {"in_delta[1]", "type"}},
      {"out_delta NULL", false, true, [](OpenCall& c) { c.dy_pointer = nullptr; }, {"out_delta", "NULL"}},
      {"out_delta.data NULL", false, true, [](OpenCall& c) { c.out_delta.data = nullptr; }, {"out_delta.data", "NULL"}},
      {"out_delta of another shape",
       false,
       true,
       [](OpenCall& c) { c.out_delta.size[1] = 2; },
       {"out_delta", "elements"}},
      {"gradient in place where it does not work",
       false,
       true,
       [](OpenCall& c) { c.out_delta.data = c.delta[0].data; },
       {"in_delta[0]", "out_delta", "multiply", "in place"}},
      {"gradient half in place",
       false,
       true,
       [](OpenCall& c) {
         c.function = BNNSArithmeticAdd;
         c.out_delta.data = strange;
         c.delta[0].data = strange + 4;
       },
       {"in_delta[0]", "out_delta", "same shape"}},
      {"gradient in place, added",
       false,
       true,
       [](OpenCall& c) {
         c.function = BNNSArithmeticAdd;
         c.delta[0].data = c.out_delta.data = strange;
         c.delta[0].flags = BNNSNDArrayFlagBackpropAccumulate;
       },
       {"in_delta[0]", "out_delta", "overwriting"}},
      {"parameter gradient in place",
       false,
       true,
       [](OpenCall& c) {
         c.function = BNNSArithmeticAdd;
         c.role[1] = kParameter;
         c.delta[1].data = c.out_delta.data = strange;
       },
       {"in_delta[1]", "out_delta", "share memory"}},
      {"gradients of two tensors in one buffer",
       false,
       true,
       [](OpenCall& c) { c.delta[1].data = c.delta[0].data; },
       {"in_delta[0]", "in_delta[1]", "share memory", "different tensors"}},
      {"one tensor, two buffers",
       false,
       true,
       [](OpenCall& c) { c.in_entries[1] = c.in_entries[0]; },
       {"in[0]", "in[1]", "one tensor", "one buffer"}},
      {"one tensor, two flags",
       false,
       true,
       [](OpenCall& c) {
         c.in_entries[1] = c.in_entries[0];
         c.delta[1] = c.delta[0];
         c.delta[1].flags = BNNSNDArrayFlagBackpropAccumulate;
       },
       {"one tensor", "one buffer"}},
      {"one tensor, two roles",
       false,
       true,
       [](OpenCall& c) {
         c.in_entries[1] = c.in_entries[0];
         c.role[1] = kParameter;
       },
       {"in[0]", "in[1]", "same data"}},
      {"gradient over an input that is read",
       false,
       true,
       [](OpenCall& c) { c.delta[0].data = const_cast<void*>(c.in_entries[1]); },
       {"in_delta[0]", "in[1]", "share memory"}},
      {"input overwritten by the forward pass",
       false,
       true,
       [](OpenCall& c) { c.in_entries[0] = c.out; },
       {"in[0]", "out", "overwrote"}},
      {"activation without out",
       false,
       true,
       [](OpenCall& c) {
         c.act = activation(BNNSActivationFunctionSigmoid);
         c.out = nullptr;
       },
       {"out", "NULL", "sigmoid"}},
      {"softmax without out",
       false,
       true,
       [](OpenCall& c) {
         c.act = activation(BNNSActivationFunctionSoftmax);
         c.out = nullptr;
       },
       {"out", "NULL", "softmax"}},
      {"activation that needs in",
       false,
       true,
       [](OpenCall& c) {
         c.function = BNNSArithmeticAdd;
         c.act = activation(BNNSActivationFunctionSiLU);
         c.in = nullptr;
       },
       {"in[0]", "NULL", "silu"}},
      {"no gradient",
       false,
       true,
       [](OpenCall& c) { c.function = BNNSArithmeticFloorDivide; },
       {"floor_divide", "no gradient"}},
      {"no gradient",
       false,
       true,
       [](OpenCall& c) { c.function = BNNSArithmeticTruncDivide; },
       {"trunc_divide", "no gradient"}},
      {"no gradient",
       false,
       true,
       [](OpenCall& c) { c.function = BNNSArithmeticTruncRemainder; },
       {"trunc_remainder", "no gradient"}},
      {"neither in nor out",
       false,
       true,
       [](OpenCall& c) {
         c.function = BNNSArithmeticExp;
         c.inputs = 1;
         c.in = nullptr;
         c.out = nullptr;
       },
       {"in[0]", "or out", "exp"}},
      {"in place with an activation",
       false,
       true,
       [](OpenCall& c) {
         c.function = BNNSArithmeticExp;
         c.inputs = 1;
         c.act = activation(BNNSActivationFunctionSigmoid);
         c.delta[0].data = c.out_delta.data = strange;
       },
       {"in_delta[0]", "exp", "with an activation"}},
  };
  for (const CallRefusal& r : table) {
    SCOPED_TRACE(r.name);
    OpenCall call;
    r.spoil(call);
    const auto filter = call.filter();
    ASSERT_TRUE(filter->handle()) << BNNSExtLastError();
    std::fill(std::begin(strange), std::end(strange), poison());
    if (r.forward) {
      EXPECT_EQ(call.forward(filter->handle()), -1);
      EXPECT_TRUE(refused_because(r.words));
    }
    if (r.backward) {
      EXPECT_EQ(call.backward(filter->handle()), -1);
      EXPECT_TRUE(refused_because(r.words));
    }
    EXPECT_TRUE(call.untouched());
    for (float v : strange) EXPECT_TRUE(is_poison(v));
  }
  OpenCall good;
  good.in_stride = nullptr;  // nullable in backward: dense samples
  EXPECT_EQ(good.backward(good.filter()->handle()), 0) << BNNSExtLastError();
  good.in_stride = good.in_strides;
  EXPECT_EQ(good.forward(good.filter()->handle()), 0);
  EXPECT_EQ(good.backward(good.filter()->handle()), 0);
  EXPECT_EQ(good.backward(nullptr), -1);
  EXPECT_TRUE(refused_because({"filter", "NULL"}));
}

// Constant inputs: no descriptor is needed, and one that is there is not written.
TEST(ArithmeticCalls, ConstantGradientsAreNeverWritten) {
  OpenCall call;
  call.role[1] = kConstant;
  const auto filter = call.filter();
  EXPECT_EQ(call.backward(filter->handle()), 0) << BNNSExtLastError();
  EXPECT_TRUE(call.db.all_poison());
  EXPECT_FALSE(call.da.all_poison());
  call.delta_entries[1] = nullptr;
  EXPECT_EQ(call.backward(filter->handle()), 0) << BNNSExtLastError();
}

// As the first stage of a fused filter: a NULL gradient is one that is not wanted.
TEST(ArithmeticCalls, MissingGradientsCanBeSkipped) {
  OpenCall call;
  const auto filter = call.filter();
  ArithmeticBackward backward;
  backward.batch = 2;
  backward.inputs = 2;
  backward.in = call.in;
  backward.in_delta = call.in_delta;
  backward.in_delta_stride = call.in_delta_stride;
  backward.out_delta = call.dy_pointer;
  backward.skip_missing_deltas = true;
  call.delta_entries[0] = nullptr;
  from_handle<ArithmeticFilter>(filter->handle(), FilterKind::arithmetic).backward(backward);
  EXPECT_TRUE(call.da.all_poison());
  EXPECT_EQ(call.db.values(), Values(24, 1.0));
}

TEST(ArithmeticCalls, ProblemSaysWhatItIs) {
  const auto d = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 3}, nullptr),
             row = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 1}, nullptr);
  Arithmetic filter(BNNSArithmeticMultiply, {d, row}, {kSample, kParameter}, d,
                    activation(BNNSActivationFunctionRectifiedLinear));
  EXPECT_EQ(from_handle(filter.handle()).text(),
            "arithmetic multiply(sample f32 4x3, parameter f32 4x1) -> f32 4x3 relu");
}

// What forward ran over in place still serves gradients that are computed from y.
TEST(ArithmeticCalls, GradientFromOutputAfterForwardInPlace) {
  const size_t n = 9;
  const auto d = vector_descriptor(n, nullptr);
  std::vector<float> x(n), g(n, 1.0f), dx(n);
  for (size_t i = 0; i < n; ++i) x[i] = float(i) / 4;
  const std::vector<float> before = x;
  auto delta = vector_descriptor(n, dx.data()), dy = vector_descriptor(n, g.data());
  Arithmetic filter(BNNSArithmeticExp, {d}, {kSample}, d);
  ASSERT_EQ(filter.forward(1, {x.data()}, {0}, x.data(), 0), 0);
  ASSERT_EQ(filter.backward(1, {x.data()}, {0}, {&delta}, {0}, x.data(), 0, &dy, 0), 0) << BNNSExtLastError();
  for (size_t i = 0; i < n; ++i) EXPECT_NEAR(dx[i], std::exp(double(before[i])), 5 * kUnit * dx[i]);
}

TEST(ArithmeticCalls, GenericCallsNameTheRightOne) {
  OpenCall call;
  const auto filter = call.filter();
  EXPECT_EQ(BNNSFilterApply(filter->handle(), call.a.data(), call.out), -1);
  EXPECT_TRUE(refused_because({"arithmetic", "BNNSArithmeticFilterApplyBatch"}));
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter->handle(), 1, call.a.data(), 0, &call.delta[0], 0, nullptr, 0,
                                         &call.out_delta, 0, nullptr, nullptr),
            -1);
  EXPECT_TRUE(refused_because({"arithmetic", "BNNSArithmeticFilterApplyBackwardBatch"}));
  EXPECT_TRUE(call.untouched());
}

}  // namespace
}  // namespace bnns::testing
