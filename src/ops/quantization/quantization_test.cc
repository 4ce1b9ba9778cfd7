// Quantization: hand-worked examples fix the reference; the library equals the reference bit for bit on every
// instruction set and thread count; and what holds for all inputs. There is no gradient to test.

#include "src/ops/quantization/quantization.h"

#include <gtest/gtest.h>

#include "src/ops/quantization/quantization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;
constexpr size_t kNone = QuantizationCase::kNone;

TEST(Quantization, ReferenceByHand) {
  EXPECT_EQ(ref::quantize(1.5, 10, -3), 12);               // 15 - 3
  EXPECT_EQ(ref::dequantize(12, 10, -3), 1.5);             // 15 / 10
  EXPECT_EQ(ref::quantize(0x1p24 + 2, 1, 1), 0x1p24 + 4);  // 2^24 + 3 lies between two floats: to the even one
  const std::pair<double, double> ties[] = {{0.5, 0},   {1.5, 2},   {2.5, 2}, {-0.5, 0},
                                            {-1.5, -2}, {-2.5, -2}, {2.6, 3}, {-2.6, -3}};
  for (auto [value, whole] : ties) EXPECT_EQ(ref::stored(BNNSDataTypeInt8, value), whole) << value;
  EXPECT_EQ(ref::stored(BNNSDataTypeInt8, 127.4), 127);
  EXPECT_EQ(ref::stored(BNNSDataTypeInt8, 127.5), 127);
  EXPECT_EQ(ref::stored(BNNSDataTypeInt8, -129), -128);
  EXPECT_EQ(ref::stored(BNNSDataTypeUInt8, -1), 0);
  EXPECT_EQ(ref::stored(BNNSDataTypeUInt8, INFINITY), 255);
  EXPECT_EQ(ref::stored(BNNSDataTypeInt16, -INFINITY), -32768);
  EXPECT_EQ(ref::stored(BNNSDataTypeInt32, NAN), 0);
}

// Scales 1, 10, 100, 1000 in int16 along axis 0 of a row-major matrix of 4 columns and 2 rows, and along the others.
TEST(Quantization, DocumentedExample) {
  std::vector<int16_t> scale = {1, 10, 100, 1000};
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, back(8, poison());
  std::vector<int16_t> y(8, -1);
  const auto run = [&](size_t mask, size_t entries, bool dequantize, size_t batch) {
    BNNSLayerParametersQuantization p;
    std::memset(&p, 0, sizeof p);
    p.axis_mask = mask;
    const auto data = [&](void* memory, BNNSDataType type) {
      return batch == 1 ? descriptor(BNNSDataLayoutRowMajorMatrix, {4, 2}, memory, type)
                        : vector_descriptor(8 / batch, memory, type);
    };
    p.i_desc = dequantize ? data(y.data(), BNNSDataTypeInt16) : data(x.data(), BNNSDataTypeFloat32);
    p.o_desc = dequantize ? data(back.data(), BNNSDataTypeFloat32) : data(y.data(), BNNSDataTypeInt16);
    p.function = dequantize ? BNNSQuantizerFunctionDequantize : BNNSQuantizerFunctionQuantize;
    p.scale = vector_descriptor(entries, scale.data(), BNNSDataTypeInt16);
    EXPECT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, batch, 0, 0), 0) << BNNSExtLastError();
  };
  using Shorts = std::vector<int16_t>;
  for_each_isa([&] {
    run(1, 4, false, 1);
    EXPECT_EQ(y, (Shorts{1, 20, 300, 4000, 5, 60, 700, 8000}));
    run(1, 4, true, 1);
    EXPECT_EQ(back, x);
    run(2, 2, false, 1);
    EXPECT_EQ(y, (Shorts{1, 2, 3, 4, 50, 60, 70, 80}));
    run(2, 2, true, 1);
    EXPECT_EQ(back, x);
    run(2, 4, false, 4);  // a Vector's batch is bit 1
    EXPECT_EQ(y, (Shorts{1, 2, 30, 40, 500, 600, 7000, 8000}));
    run(2, 4, true, 4);
    EXPECT_EQ(back, x);
    run(0, 1, false, 1);
    EXPECT_EQ(y, (Shorts{1, 2, 3, 4, 5, 6, 7, 8}));
  });
}

// Every type to and from f32, both functions, with the sizes around a vector: rounding, saturation, NaN.
TEST(Quantization, BC17_BC18_TypesAndSizes) {
  for_each_isa([] {
    Random random(1);
    for (BNNSDataType type : kNumberTypes) {
      for (size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64, 67, 512, 513, 1000}) {
        for (int k = 0; k < 8; ++k) {
          const bool back = k & 1, load = k & 2, per_element = k & 4;
          QuantizationCase c(BNNSDataLayoutVector, {n}, 1, per_element ? 0 : kNone, back,
                             load ? type : BNNSDataTypeFloat32, load ? BNNSDataTypeFloat32 : type);
          c.scale.make(c.entries(), BNNSDataTypeFloat32, 1);
          c.bias.make(c.entries(), BNNSDataTypeFloat32, 1);
          c.fill(random);
          ASSERT_EQ(c.apply(), 0) << BNNSExtLastError();
          ASSERT_TRUE(c.check());
        }
      }
    }
  });
}

// All values of 8-bit types, and all ties of 8-bit results.
TEST(Quantization, BC17_EveryByte) {
  for_each_isa([] {
    for (BNNSDataType type : {BNNSDataTypeInt8, BNNSDataTypeUInt8}) {
      QuantizationCase up(BNNSDataLayoutVector, {256}, 1, kNone, true, type, BNNSDataTypeFloat32);
      QuantizationCase down(BNNSDataLayoutVector, {2048}, 1, kNone, false, BNNSDataTypeFloat32, type);
      for (size_t i = 0; i < 2048; ++i) down.x.all().set({i, 0}, (double(i) - 1024) / 2);
      for (size_t i = 0; i < 256; ++i) up.x.all().put_raw({i, 0}, uint8_t(i));
      ASSERT_EQ(up.apply(), 0);
      ASSERT_EQ(down.apply(), 0);
      ASSERT_TRUE(up.check());
      ASSERT_TRUE(down.check());
    }
  });
}

// Large enough for several tasks: every thread count gives the reference's values.
TEST(Quantization, BC53_EveryThreadCount) {
  struct Shape {
    BNNSDataLayout layout;
    std::vector<size_t> size;
    size_t batch;
  };
  const Shape shapes[] = {{BNNSDataLayoutVector, {30011}, 3},
                          {BNNSDataLayoutImageCHW, {37, 29, 17}, 4},
                          {BNNSDataLayout3DFirstMajor, {41, 53, 19}, 2},
                          {BNNSDataLayoutImageCHW, {5, 7, 900}, 2},
                          {BNNSDataLayoutImageCHW, {5, 700, 11}, 2}};
  const std::pair<BNNSDataType, BNNSDataType> types[] = {{BNNSDataTypeFloat32, BNNSDataTypeInt8},
                                                         {BNNSDataTypeUInt8, BNNSDataTypeFloat32},
                                                         {BNNSDataTypeInt16, BNNSDataTypeInt8}};
  for_each_isa([&] {
    Random random(2);
    for (const Shape& s : shapes) {
      for (size_t axis : {kNone, size_t{0}, s.size.size() / 2, s.size.size() - 1, s.size.size()}) {
        const auto [from, to] = types[random.below(std::size(types))];
        QuantizationCase c(s.layout, s.size, s.batch, axis, random.below(2), from, to, 1, random.below(2));
        c.scale.make(c.entries(), BNNSDataTypeFloat32, 1);
        c.bias.make(c.entries(), BNNSDataTypeFloat16, 1);
        c.fill(random);
        std::vector<unsigned char> first;
        for (size_t threads : kThreadCounts) {
          std::memset(c.y.all().data(), 0xcd, c.y.all().bytes());
          ASSERT_EQ(c.apply(threads), 0) << BNNSExtLastError();
          if (threads == 1) {
            ASSERT_TRUE(c.check());
            first = c.y.all().snapshot();
          }
          ASSERT_EQ(c.y.all().snapshot(), first) << threads << " threads, " << c.text();
        }
      }
    }
  });
}

// Quantize, then dequantize: back within half a step and the roundings; never decreasing for a positive scale.
TEST(Quantization, RoundTripAndOrder) {
  for_each_isa([] {
    Random random(3);
    for (int round = 0; round < 200; ++round) {
      const size_t n = 1 + random.below(300);
      const float scale = float(random.uniform(0.5, 40)), bias = float(random.integer(-20, 20));
      std::vector<float> x(n), back(n);
      for (float& v : x) v = float(random.uniform(-100, 100) / scale);  // results stay in range
      std::sort(x.begin(), x.end());
      std::vector<int8_t> q(n);
      BNNSLayerParametersQuantization p;
      std::memset(&p, 0, sizeof p);
      float s = scale, b = bias;
      p.scale = vector_descriptor(1, &s), p.bias = vector_descriptor(1, &b);
      p.i_desc = vector_descriptor(n, x.data()), p.o_desc = vector_descriptor(n, q.data(), BNNSDataTypeInt8);
      ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0), 0) << BNNSExtLastError();
      EXPECT_TRUE(std::is_sorted(q.begin(), q.end()));
      p.function = BNNSQuantizerFunctionDequantize;
      p.i_desc = p.o_desc, p.o_desc = vector_descriptor(n, back.data());
      ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0), 0) << BNNSExtLastError();
      // half a step, two roundings of numbers up to 128 on the way there and two on the way back
      ASSERT_TRUE(within(back, x, n, [&](size_t) { return (0.5 + 4 * 128 * 0x1p-24) / scale; }));
    }
  });
}

// The entry for fused filters: any split into runs gives what the whole call gives, whatever the output's strides.
TEST(Quantization, RunsEqualTheWholeCall) {
  for_each_isa([] {
    Random random(4);
    const size_t plane_sizes[] = {1, 3, 20, 65, 600};
    for (int round = 0; round < 600; ++round) {
      const std::vector<size_t> size = {plane_sizes[random.below(5)], 1 + random.below(4), 1 + random.below(9)};
      const BNNSDataType type = kNumberTypes[random.below(std::size(kNumberTypes))];
      const size_t axes[] = {kNone, 0, 1, 2, 3};
      QuantizationCase c(random.below(2) ? BNNSDataLayoutImageCHW : BNNSDataLayout3DFirstMajor, size,
                         1 + random.below(3), axes[random.below(5)], random.below(2), BNNSDataTypeFloat32, type,
                         1 + random.below(2), random.below(3));
      if (random.below(4)) c.scale.make(c.entries(), random.below(2) ? BNNSDataTypeFloat32 : BNNSDataTypeInt16, 1);
      if (random.below(4)) c.bias.make(c.entries(), random.below(2) ? BNNSDataTypeFloat32 : BNNSDataTypeFloat16, 1);
      c.fill(random);

      BNNSLayerParametersQuantization layer = c.layer();
      layer.i_desc.data_type = BNNSDataTypeFloat16;  // the middle tensor's type plays no part
      layer.i_desc.data = layer.o_desc.data = nullptr;
      const QuantizationProblem problem = make_quantization_problem(&layer);
      Options options;
      options.use_client_pointers = random.below(2);
      const QuantizationParameters parameters(problem, options);
      const size_t count = problem.y.count;
      const size_t out_stride = output_batch_stride(c.y.stride(), c.batch, problem.y, "test", "out_stride");
      check_quantization_call(problem, parameters, c.batch, c.y.all().data(), out_stride);
      for (size_t n = 0; n < c.batch; ++n) {
        Guarded<float> values(count);  // the sample in memory order: its sizes with the fastest axis first
        const bool first_major = c.layout == BNNSDataLayout3DFirstMajor;
        for_each_coordinate(size, [&](const Coordinates& at) {
          const size_t i =
              first_major ? at[2] + size[2] * (at[1] + size[1] * at[0]) : at[0] + size[0] * (at[1] + size[1] * at[2]);
          values[i] = float(c.x.all().get(c.x.at(at, n)));
        });
        for (size_t first = 0, m; first < count; first += m) {
          m = std::min(count - first, 1 + random.below(random.below(2) ? 40 : 2000));
          quantize_run(problem, parameters, n, first, values.data() + first, m, c.y.all().data(), out_stride);
        }
      }
      ASSERT_TRUE(c.check());
    }
  });
}

// Without BNNSFlagsUseClientPtr scale and bias are copied at creation; with it, each call sees the client's memory.
TEST(Quantization, BC57_ParametersOwnedOrTheClients) {
  for (bool clients : {false, true}) {
    float scale = 2, bias = 1, x = 5, y = 0;
    BNNSLayerParametersQuantization layer;
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = layer.o_desc = vector_descriptor(1, nullptr);
    layer.scale = vector_descriptor(1, &scale), layer.bias = vector_descriptor(1, &bias);
    const QuantizationProblem problem = make_quantization_problem(&layer);
    Options options;
    options.use_client_pointers = clients;
    const QuantizationParameters parameters(problem, options);
    scale = 3, bias = 7;
    quantize_run(problem, parameters, 0, 0, &x, 1, &y, 1);
    EXPECT_EQ(y, clients ? 22 : 11);
  }
}

TEST(Quantization, TextNamesTheProblem) {
  QuantizationCase c(BNNSDataLayoutRowMajorMatrix, {4, 2}, 1, 0, false, BNNSDataTypeFloat32, BNNSDataTypeInt8);
  c.scale.make(4, BNNSDataTypeFloat32, 1);
  BNNSLayerParametersQuantization layer = c.layer();
  EXPECT_EQ(make_quantization_problem(&layer).text(), "quantize f32 4x2 to i8 axis 0");
  layer.function = BNNSQuantizerFunctionDequantize, layer.axis_mask = 4;
  EXPECT_EQ(make_quantization_problem(&layer).text(), "dequantize f32 4x2 to i8 axis batch");
}

}  // namespace
}  // namespace bnns
