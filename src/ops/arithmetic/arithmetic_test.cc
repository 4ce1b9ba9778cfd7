// Arithmetic: the reference against its definition and its own differences, the kernels against the reference on every
// instruction set, layout, type, broadcast and thread count, and what holds for all inputs.

#include <thread>

#include "src/ops/arithmetic/arithmetic_testing.h"

namespace bnns::testing {
namespace {

constexpr auto kSample = BNNSSample, kParameter = BNNSParameter, kConstant = BNNSConstant;
constexpr size_t kLengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 511, 512, 513, 1000};

size_t inputs_of(BNNSArithmeticFunction f) {
  return arithmetic_function(f)->inputs;
}
bool has_gradient(BNNSArithmeticFunction f) {
  return arithmetic_function(f)->has_gradient;
}

BNNSFilterParameters threads(size_t n) {
  BNNSFilterParameters p;
  std::memset(&p, 0, sizeof p);
  p.n_threads = n;
  return p;
}

Values uniform(Random& random, size_t n, double low, double high) {
  Values v(n);
  for (double& x : v) x = static_cast<float>(random.uniform(low, high));
  return v;
}

// Away from the kinks of step functions, extrema and signs.
Values smooth(Random& random, size_t n, double low, double high) {
  Values v = uniform(random, n, low, high);
  for (double& x : v) {
    if (std::fabs(2 * x - std::nearbyint(2 * x)) < 0.02) x += 0.02;
  }
  return v;
}

// ---- 1. the reference ------------------------------------------------------------------------------------------

// Two rows of three times a row of weights: y = {1 4 9, 4 10 18}. With dy = {1 1 1, 2 2 2}: dx = dy w = {1 2 3, 2 4 6},
// dw = sum over rows of dy x = {1 + 8, 2 + 10, 3 + 12}.
TEST(Arithmetic, HandWorkedReference) {
  ArithmeticShape shape;
  shape.out = shape.in[0] = {3, 2};
  shape.in[1] = {3, 1};
  const Values x[3] = {{1, 2, 3, 4, 5, 6}, {1, 2, 3}}, g = {1, 1, 1, 2, 2, 2};
  EXPECT_EQ(ref::arithmetic_forward(BNNSArithmeticMultiply, 2, shape, x), (Values{1, 4, 9, 4, 10, 18}));
  Values dx[3];
  ref::arithmetic_backward(BNNSArithmeticMultiply, 2, shape, x, g, dx);
  EXPECT_EQ(dx[0], (Values{1, 2, 3, 2, 4, 6}));
  EXPECT_EQ(dx[1], (Values{9, 12, 15}));
}

TEST(Arithmetic, HandWorkedKernel) {
  for_each_isa([] {
    Stored x(BNNSDataLayoutRowMajorMatrix, {3, 2}), w(BNNSDataLayoutRowMajorMatrix, {3, 1});
    Stored y(BNNSDataLayoutRowMajorMatrix, {3, 2}), dy(BNNSDataLayoutRowMajorMatrix, {3, 2});
    Stored dx(BNNSDataLayoutRowMajorMatrix, {3, 2}), dw(BNNSDataLayoutRowMajorMatrix, {3, 1});
    x.fill({1, 2, 3, 4, 5, 6});
    w.fill({1, 2, 3});
    dy.fill({1, 1, 1, 2, 2, 2});
    Arithmetic filter(BNNSArithmeticMultiply, {x.descriptor(), w.descriptor()}, {kSample, kParameter}, y.descriptor());
    ASSERT_TRUE(filter.handle()) << BNNSExtLastError();
    ASSERT_EQ(filter.forward(1, {x.data(), w.data()}, {0, 0}, y.data(), 0), 0) << BNNSExtLastError();
    EXPECT_EQ(y.values(), (Values{1, 4, 9, 4, 10, 18}));
    ASSERT_EQ(
        filter.backward(1, {x.data(), w.data()}, {0, 0}, {dx.delta(), dw.delta()}, {0, 0}, nullptr, 0, dy.delta(), 0),
        0)
        << BNNSExtLastError();
    EXPECT_EQ(dx.values(), (Values{1, 2, 3, 2, 4, 6}));
    EXPECT_EQ(dw.values(), (Values{9, 12, 15}));
  });
}

// Reported from the original: the gradient of a sum goes to both inputs, and `in` may be NULL.
TEST(Arithmetic, AddBackwardNeedsNoInputs) {
  Stored x(BNNSDataLayoutVector, {3}), da(BNNSDataLayoutVector, {3}), db(BNNSDataLayoutVector, {3});
  Stored dy(BNNSDataLayoutVector, {3});
  dy.fill({1, 2, 3});
  Arithmetic filter(BNNSArithmeticAdd, {x.descriptor(), x.descriptor()}, {kSample, kSample}, x.descriptor());
  ASSERT_EQ(filter.backward(1, {}, {}, {da.delta(), db.delta()}, {0, 0}, nullptr, 0, dy.delta(), 0), 0);
  EXPECT_EQ(da.values(), (Values{1, 2, 3}));
  EXPECT_EQ(db.values(), (Values{1, 2, 3}));
}

// ---- 2. kernels against the reference --------------------------------------------------------------------------

class ArithmeticFunctionTest : public ::testing::TestWithParam<FunctionCase> {};

std::string case_name(const ::testing::TestParamInfo<FunctionCase>& info) {
  return arithmetic_function(info.param.function)->name;
}
INSTANTIATE_TEST_SUITE_P(All, ArithmeticFunctionTest, ::testing::ValuesIn(function_cases()), case_name);

TEST_P(ArithmeticFunctionTest, ForwardAndBackwardMatchReference) {
  const FunctionCase& c = GetParam();
  const size_t inputs = inputs_of(c.function);
  for_each_isa([&] {
    for (const size_t n : kLengths) {
      Random random(n);
      ArithmeticShape shape;
      Values x[3], dx[3];
      std::vector<std::unique_ptr<Stored>> in, delta;
      std::vector<BNNSNDArrayDescriptor> descriptors;
      std::vector<const void*> pointers;
      std::vector<BNNSNDArrayDescriptor*> deltas;
      shape.out = {n};
      for (size_t k = 0; k < inputs; ++k) {
        shape.in[k] = {n};
        x[k] = uniform(random, n, c.low[k], c.high[k]);
        in.push_back(std::make_unique<Stored>(BNNSDataLayoutVector, Sizes{n}));
        in[k]->fill(x[k]);
        delta.push_back(std::make_unique<Stored>(BNNSDataLayoutVector, Sizes{n}));
        descriptors.push_back(in[k]->descriptor());
        pointers.push_back(in[k]->data());
        deltas.push_back(delta[k]->delta());
      }
      Stored y(BNNSDataLayoutVector, {n}), dy(BNNSDataLayoutVector, {n});
      Arithmetic filter(c.function, descriptors, std::vector(inputs, kSample), y.descriptor());
      ASSERT_TRUE(filter.handle()) << BNNSExtLastError();
      const std::vector<size_t> dense(inputs, 0);
      ASSERT_EQ(filter.forward(1, pointers, dense, y.data(), 0), 0) << BNNSExtLastError();
      const Values want = ref::arithmetic_forward(c.function, inputs, shape, x);
      const auto bound = [&](size_t i) { return forward_bound(c, want[i], x[0][i], inputs > 1 ? x[1][i] : 0); };
      if (c.forward_units == 0) {
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(y.floats()[i], static_cast<float>(want[i])) << i << " of " << n;
      } else {
        ASSERT_TRUE(within(y.floats(), want, n, bound)) << n;
      }
      if (!has_gradient(c.function)) continue;

      const Values g = uniform(random, n, -2, 2);
      dy.fill(g);
      ref::arithmetic_backward(c.function, inputs, shape, x, g, dx);
      // From the inputs alone, then with `out` to help.
      for (const void* out : {static_cast<const void*>(nullptr), static_cast<const void*>(y.data())}) {
        for (auto& d : delta) d->poison_all();
        ASSERT_EQ(filter.backward(1, pointers, dense, deltas, dense, out, 0, dy.delta(), 0), 0) << BNNSExtLastError();
        for (size_t k = 0; k < inputs; ++k) {
          const auto limit = [&](size_t i) { return backward_bound(c, k, dx[k][i], g[i]); };
          if (c.backward_units[k] == 0) {
            for (size_t i = 0; i < n; ++i)
              ASSERT_EQ(delta[k]->floats()[i], static_cast<float>(dx[k][i])) << k << " " << i;
          } else {
            ASSERT_TRUE(within(delta[k]->floats(), dx[k], n, limit)) << "input " << k << " of " << n;
          }
        }
      }
    }
  });
}

// ---- 3. gradient -----------------------------------------------------------------------------------------------

TEST_P(ArithmeticFunctionTest, ReferenceGradientMatchesDifferences) {
  const FunctionCase& c = GetParam();
  if (!has_gradient(c.function)) return;
  const size_t inputs = inputs_of(c.function);
  Random random(7);
  ArithmeticShape shape;  // two samples; the second input is a row that rows and samples share, the third a column
  shape.out = shape.in[0] = {3, 2};
  shape.in[1] = {3, 1};
  shape.in[2] = {1, 2};
  shape.batched[1] = false;
  shape.batch = 2;
  Values x[3], dx[3];
  for (size_t k = 0; k < inputs; ++k) {
    const size_t n = ArithmeticShape::product(shape.in[k]) * (shape.batched[k] ? 2 : 1);
    x[k] = smooth(random, n, c.low[k], c.high[k]);
  }
  const Values g = uniform(random, 12, -2, 2);
  ref::arithmetic_backward(c.function, inputs, shape, x, g, dx);
  for (size_t k = 0; k < inputs; ++k) {
    const auto loss = [&](const Values& moved) {
      Values at[3] = {x[0], x[1], x[2]};
      at[k] = moved;
      const Values y = ref::arithmetic_forward(c.function, inputs, shape, at);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * g[i];
      return sum;
    };
    const Values numeric = central_differences(x[k], loss);
    double largest = 0;
    for (double v : dx[k]) largest = std::max(largest, std::fabs(v));
    if (largest == 0) {  // steps and conditions: no slope at all
      for (double v : numeric) EXPECT_EQ(v, 0);
    } else {
      EXPECT_LE(gradient_error(dx[k], numeric), 1e-7) << "input " << k;
    }
  }
}

// ---- every layout, stride, type, broadcast, role, flag and activation at once, exact ---------------------------

// Small integers: all results are exact, so a kernel equals the reference bit for bit whatever its order of operations.
struct RandomCase {
  BNNSArithmeticFunction function;
  BNNSActivation act;
  BNNSDataLayout layout;
  ArithmeticShape shape;
  BNNSDescriptorType role[3];
  BNNSDataType in_type[3], out_type, dy_type, delta_type[3];
  size_t gap[3], out_gap, dy_gap, delta_gap[3];
  bool accumulate[3], null_in;
  size_t inputs;

  explicit RandomCase(uint64_t seed) {
    Random random(seed);
    constexpr BNNSArithmeticFunction functions[] = {
        BNNSArithmeticAdd,     BNNSArithmeticSubtract, BNNSArithmeticMultiply,     BNNSArithmeticMultiplyAdd,
        BNNSArithmeticMaximum, BNNSArithmeticMinimum,  BNNSArithmeticSelect,       BNNSArithmeticSquare,
        BNNSArithmeticNegate,  BNNSArithmeticAbs,      BNNSArithmeticMultiplyNoNaN};
    constexpr BNNSDataLayout layouts[] = {
        BNNSDataLayoutVector,       BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix,
        BNNSDataLayout2DFirstMajor, BNNSDataLayout2DLastMajor,    BNNSDataLayoutImageCHW,
        BNNSDataLayout3DFirstMajor, BNNSDataLayout4DLastMajor,    BNNSDataLayout4DFirstMajor,
        BNNSDataLayout5DFirstMajor, BNNSDataLayout8DFirstMajor,   BNNSDataLayout8DLastMajor};
    constexpr BNNSDataType floats[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat32, BNNSDataTypeFloat16,
                                       BNNSDataTypeBFloat16};
    constexpr size_t gaps[] = {0, 0, 1, 3};
    constexpr size_t extents[] = {1, 1, 2, 3, 4, 5};
    constexpr size_t long_extents[] = {17, 63, 64, 70, 130, 520};
    const auto any = [&](const auto& list) { return list[random.below(sizeof list / sizeof list[0])]; };

    function = any(functions);
    inputs = inputs_of(function);
    layout = any(layouts);
    act = random.below(2)   ? activation(BNNSActivationFunctionIdentity)
          : random.below(2) ? activation(BNNSActivationFunctionRectifiedLinear)
          : random.below(2) ? activation(BNNSActivationFunctionLeakyRectifiedLinear, 0.5f)
                            : activation(BNNSActivationFunctionAbs);
    const size_t rank = static_cast<unsigned>(layout) >> 16;
    size_t count = 1;
    for (size_t axis = 0; axis < rank; ++axis) {
      const size_t extent = random.below(rank) == 0 && count < 64 ? any(long_extents) : any(extents);
      shape.out.push_back(count * extent > 4000 ? 1 : extent);
      count *= shape.out.back();
    }
    shape.batch = 1 + random.below(4);
    const size_t repeats = random.below(3);  // none, some, many
    for (size_t k = 0; k < inputs; ++k) {
      for (size_t extent : shape.out) shape.in[k].push_back(random.below(4) < repeats ? 1 : extent);
      constexpr BNNSDescriptorType roles[] = {kSample, kSample, kParameter, kConstant};
      role[k] = any(roles);
      shape.batched[k] = role[k] == kSample;
      in_type[k] = any(floats);
      if (random.below(8) == 0) in_type[k] = random.below(2) ? BNNSDataTypeInt8 : BNNSDataTypeInt32;
      if (function == BNNSArithmeticSelect && k == 0 && random.below(2)) in_type[k] = BNNSDataTypeBoolean;
      delta_type[k] = any(floats);
      gap[k] = any(gaps);
      delta_gap[k] = any(gaps);
      accumulate[k] = random.below(3) == 0;
    }
    out_type = any(floats);
    dy_type = any(floats);
    out_gap = any(gaps);
    dy_gap = any(gaps);
    const bool free =
        function == BNNSArithmeticAdd || function == BNNSArithmeticSubtract || function == BNNSArithmeticNegate;
    null_in = free && act.function != BNNSActivationFunctionAbs && random.below(2);
  }
};

double act_value(const BNNSActivation& a, double z) {
  if (a.function == BNNSActivationFunctionRectifiedLinear) return z > 0 ? z : 0;
  if (a.function == BNNSActivationFunctionLeakyRectifiedLinear) return z >= 0 ? z : a.alpha * z;
  if (a.function == BNNSActivationFunctionAbs) return std::fabs(z);
  return z;
}
double act_slope(const BNNSActivation& a, double z) {
  if (a.function == BNNSActivationFunctionRectifiedLinear) return z > 0;
  if (a.function == BNNSActivationFunctionLeakyRectifiedLinear) return z >= 0 ? 1 : a.alpha;
  if (a.function == BNNSActivationFunctionAbs) return ref::sign(z);
  return 1;
}

void run_random_case(uint64_t seed) {
  const RandomCase c(seed);
  Random random(seed + 1000000);
  const auto integers = [&](size_t n, int bound) {
    Values v(n);
    for (double& x : v) x = random.integer(-bound, bound);
    return v;
  };
  Values x[3], old[3];
  std::vector<std::unique_ptr<Stored>> in, delta;
  std::vector<BNNSNDArrayDescriptor> descriptors;
  std::vector<const void*> pointers;
  std::vector<size_t> strides, delta_strides;
  std::vector<BNNSNDArrayDescriptor*> deltas;
  const auto side = seed % 2 ? Guarded<char>::Side::end : Guarded<char>::Side::begin;
  for (size_t k = 0; k < c.inputs; ++k) {
    const size_t batch = c.shape.batched[k] ? c.shape.batch : 1, n = batch * ArithmeticShape::product(c.shape.in[k]);
    in.push_back(std::make_unique<Stored>(c.layout, c.shape.in[k], c.in_type[k], batch, c.gap[k], side));
    in[k]->fill(integers(n, 4));
    x[k] = in[k]->values();
    old[k] = integers(n, 4);
    delta.push_back(std::make_unique<Stored>(c.layout, c.shape.in[k], c.delta_type[k], batch, c.delta_gap[k], side));
    descriptors.push_back(in[k]->descriptor());
    pointers.push_back(in[k]->data());
    strides.push_back(in[k]->batch_stride());
    delta_strides.push_back(delta[k]->batch_stride());
    deltas.push_back(c.role[k] == kConstant ? nullptr : delta[k]->delta(c.accumulate[k]));
  }
  Stored out(c.layout, c.shape.out, c.out_type, c.shape.batch, c.out_gap, side);
  Stored dy(c.layout, c.shape.out, c.dy_type, c.shape.batch, c.dy_gap, side);
  const Values g_out = integers(c.shape.batch * c.shape.out_count(), 3);
  dy.fill(g_out);

  Values y = ref::arithmetic_forward(c.function, c.inputs, c.shape, x), g = g_out, dx[3];
  for (size_t i = 0; i < y.size(); ++i) {
    g[i] *= act_slope(c.act, y[i]);
    y[i] = act_value(c.act, y[i]);
  }
  ref::arithmetic_backward(c.function, c.inputs, c.shape, x, g, dx);

  for (const size_t n_threads : kThreadCounts) {
    const BNNSFilterParameters parameters = threads(n_threads);
    Arithmetic filter(c.function, descriptors, {c.role, c.role + c.inputs}, out.descriptor(), c.act, &parameters);
    ASSERT_TRUE(filter.handle()) << BNNSExtLastError();
    out.poison_all();
    ASSERT_EQ(filter.forward(c.shape.batch, pointers, strides, out.data(), out.batch_stride()), 0)
        << BNNSExtLastError();
    ASSERT_TRUE(out.gaps_untouched());
    const Values got = out.values();
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(got[i], stored(c.out_type, y[i])) << "y " << i;

    for (size_t k = 0; k < c.inputs; ++k) {
      delta[k]->poison_all();
      if (c.accumulate[k]) delta[k]->fill(old[k]);
    }
    ASSERT_EQ(filter.backward(c.shape.batch, c.null_in ? std::vector<const void*>() : pointers, strides, deltas,
                              delta_strides, out.data(), out.batch_stride(), dy.delta(), dy.batch_stride()),
              0)
        << BNNSExtLastError();
    for (size_t k = 0; k < c.inputs; ++k) {
      ASSERT_TRUE(delta[k]->gaps_untouched()) << "input " << k;
      if (c.role[k] == kConstant) continue;
      const Values dk = delta[k]->values();
      for (size_t i = 0; i < dk.size(); ++i) {
        const double want = stored(c.delta_type[k], c.accumulate[k] ? old[k][i] + dx[k][i] : dx[k][i]);
        ASSERT_EQ(dk[i], want) << "dx[" << k << "] " << i;
      }
    }
  }
}

TEST(Arithmetic, BC14_BC15_BC33_RandomLayoutsTypesAndBroadcastsAreExact) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    for_each_isa([&] { run_random_case(seed); });
    if (::testing::Test::HasFailure()) return;
  }
}

// ---- sums: every way to split them -----------------------------------------------------------------------------

struct SumCase {
  const char* name;
  BNNSDataLayout layout;
  Sizes out, in;
  BNNSDescriptorType role;
  size_t batch;
};
const SumCase kSumCases[] = {
    {"bias, slabs", BNNSDataLayoutRowMajorMatrix, {1000, 300}, {1000, 1}, kSample, 1},
    {"narrow bias, slabs", BNNSDataLayoutRowMajorMatrix, {10, 9000}, {10, 1}, kParameter, 2},
    {"wide bias, columns", BNNSDataLayoutRowMajorMatrix, {20003, 7}, {20003, 1}, kSample, 2},
    {"whole sample as a parameter, columns", BNNSDataLayoutImageCHW, {37, 41, 11}, {37, 41, 11}, kParameter, 5},
    {"scalar, slabs", BNNSDataLayoutVector, {70001}, {1}, kParameter, 3},
    {"bias per channel, slabs", BNNSDataLayoutImageCHW, {29, 31, 5}, {1, 1, 5}, kParameter, 17},
    {"many channels, columns", BNNSDataLayoutImageCHW, {3, 2, 9001}, {1, 1, 9001}, kParameter, 2},
    {"row sums, whole", BNNSDataLayoutRowMajorMatrix, {33, 2000}, {1, 2000}, kSample, 1},
    {"long row sums, slabs", BNNSDataLayoutRowMajorMatrix, {50001, 3}, {1, 3}, kSample, 1},
    {"middle axis, columns", BNNSDataLayoutImageCHW, {700, 40, 3}, {700, 1, 3}, kSample, 1},
    {"alternating axes", BNNSDataLayout4DLastMajor, {9, 7, 11, 30}, {9, 1, 11, 1}, kParameter, 4},
    {"alternating, first summed", BNNSDataLayout5DLastMajor, {6, 5, 7, 11, 13}, {1, 5, 1, 11, 1}, kSample, 3},
    {"samples of a small scalar, whole", BNNSDataLayoutVector, {37}, {1}, kSample, 1000},
};

// BC53: sums do not depend on the number of threads, and their error is that of the terms and one final rounding.
TEST(Arithmetic, BC53_SumsHaveTheSameBitsForAnyThreadCount) {
  for (const SumCase& c : kSumCases) {
    SCOPED_TRACE(c.name);
    Random random(3);
    ArithmeticShape shape;
    shape.out = shape.in[0] = c.out;
    shape.in[1] = c.in;
    shape.batched[1] = c.role == kSample;
    shape.batch = c.batch;
    const size_t total = c.batch * shape.out_count(),
                 sums = ArithmeticShape::product(c.in) * (shape.batched[1] ? c.batch : 1);
    const std::vector<float> a = random.normals(total), b = random.normals(sums), g = random.normals(total);
    const Values x[3] = {Values(a.begin(), a.end()), Values(b.begin(), b.end()), {}};
    Values dx[3], magnitude[3];
    ref::arithmetic_backward(BNNSArithmeticMultiply, 2, shape, x, Values(g.begin(), g.end()), dx, magnitude);
    std::vector<float> da(total), db(sums), first_db;
    const auto out = descriptor(c.layout, c.out, nullptr), in = descriptor(c.layout, c.in, nullptr);
    for_each_isa([&] {
      first_db.clear();
      for (const size_t n_threads : {1, 2, 3, 7, 2, 7}) {
        const BNNSFilterParameters parameters = threads(n_threads);
        Arithmetic filter(BNNSArithmeticMultiply, {out, in}, {kSample, c.role}, out,
                          activation(BNNSActivationFunctionIdentity), &parameters);
        auto delta_a = descriptor(c.layout, c.out, da.data()), delta_b = descriptor(c.layout, c.in, db.data());
        auto delta_y = descriptor(c.layout, c.out, const_cast<float*>(g.data()));
        std::fill(db.begin(), db.end(), poison());
        ASSERT_EQ(filter.backward(c.batch, {a.data(), b.data()}, {0, 0}, {&delta_a, &delta_b}, {0, 0}, nullptr, 0,
                                  &delta_y, 0),
                  0)
            << BNNSExtLastError();
        if (first_db.empty()) first_db = db;
        ASSERT_TRUE(same_bits(db, first_db)) << n_threads << " threads";
        // Each product is rounded to f32, the sum in double, and once more at the end.
        ASSERT_TRUE(
            within(db, dx[1], sums, [&](size_t i) { return kUnit * (1.01 * magnitude[1][i] + std::fabs(dx[1][i])); }));
        ASSERT_TRUE(within(da, dx[0], total, [&](size_t i) { return kUnit * std::fabs(dx[0][i]); }));
      }
    });
  }
}

// ---- 4. properties ---------------------------------------------------------------------------------------------

TEST_P(ArithmeticFunctionTest, BC41_InPlaceGivesTheSameBits) {
  const FunctionCase& c = GetParam();
  const size_t inputs = inputs_of(c.function);
  for_each_isa([&] {
    for (size_t n = 1; n <= 67; ++n) {
      Random random(n);
      std::vector<std::vector<float>> x(inputs);
      std::vector<const void*> pointers;
      const auto d = vector_descriptor(n, nullptr);
      for (size_t k = 0; k < inputs; ++k) {
        for (size_t i = 0; i < n; ++i) x[k].push_back(static_cast<float>(random.uniform(c.low[k], c.high[k])));
        pointers.push_back(x[k].data());
      }
      Arithmetic filter(c.function, std::vector(inputs, d), std::vector(inputs, kSample), d);
      const std::vector<size_t> dense(inputs, 0);
      std::vector<float> y(n);
      ASSERT_EQ(filter.forward(1, pointers, dense, y.data(), 0), 0);
      for (size_t k = 0; k < inputs; ++k) {
        std::vector<float> both = x[k];
        std::vector<const void*> in = pointers;
        in[k] = both.data();
        ASSERT_EQ(filter.forward(1, in, dense, both.data(), 0), 0) << BNNSExtLastError();
        ASSERT_TRUE(same_bits(both, y)) << "over input " << k;
      }
      if (arithmetic_function(c.function)->gradient_in_place == ArithmeticFunction::InPlace::never) continue;

      const std::vector<float> dy = random.normals(n);
      std::vector<std::vector<float>> dx(inputs, std::vector<float>(n));
      auto delta_y = vector_descriptor(n, const_cast<float*>(dy.data()));
      std::vector<BNNSNDArrayDescriptor> deltas(inputs);
      std::vector<BNNSNDArrayDescriptor*> delta(inputs);
      for (size_t k = 0; k < inputs; ++k) deltas[k] = vector_descriptor(n, dx[k].data()), delta[k] = &deltas[k];
      ASSERT_EQ(filter.backward(1, {}, {}, delta, dense, y.data(), 0, &delta_y, 0), 0) << BNNSExtLastError();
      for (size_t k = 0; k < inputs; ++k) {
        std::vector<float> both = dy;
        std::vector<std::vector<float>> other = dx;
        auto delta_both = vector_descriptor(n, both.data());
        for (size_t j = 0; j < inputs; ++j) deltas[j] = vector_descriptor(n, j == k ? both.data() : other[j].data());
        ASSERT_EQ(filter.backward(1, {}, {}, delta, dense, y.data(), 0, &delta_both, 0), 0) << BNNSExtLastError();
        ASSERT_TRUE(same_bits(both, dx[k])) << "gradient " << k << " over out_delta";
        for (size_t j = 0; j < inputs; ++j) {
          if (j == k) continue;
          ASSERT_TRUE(same_bits(other[j], dx[j])) << "gradient " << j << " beside " << k;
        }
      }
    }
  });
}

// The same tensor twice: one buffer, the sum once. x x has the gradient 2 g x, x - x has 0, x x + x has g (2 x + 1).
TEST(Arithmetic, SameTensorTwiceReceivesTheSum) {
  for_each_isa([] {
    for (const size_t n : {1, 5, 64, 700}) {
      Random random(n);
      const std::vector<float> x = random.integers(n), g = random.integers(n);
      std::vector<float> dx(n);
      const auto d = vector_descriptor(n, nullptr);
      auto delta = vector_descriptor(n, dx.data()), dy = vector_descriptor(n, const_cast<float*>(g.data()));
      for (const bool accumulate : {false, true}) {
        delta.flags = accumulate ? BNNSNDArrayFlagBackpropAccumulate : BNNSNDArrayFlagBackpropSet;
        const auto run = [&](BNNSArithmeticFunction f, size_t inputs, auto slope) {
          Arithmetic filter(f, std::vector(inputs, d), std::vector(inputs, kSample), d);
          std::fill(dx.begin(), dx.end(), 100.0f);
          ASSERT_EQ(filter.backward(1, std::vector<const void*>(inputs, x.data()), std::vector<size_t>(inputs, 0),
                                    std::vector(inputs, &delta), std::vector<size_t>(inputs, 0), nullptr, 0, &dy, 0),
                    0)
              << BNNSExtLastError();
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(dx[i], (accumulate ? 100 : 0) + g[i] * slope(x[i])) << i;
        };
        run(BNNSArithmeticMultiply, 2, [](float v) { return 2 * v; });
        run(BNNSArithmeticSubtract, 2, [](float) { return 0.0f; });
        run(BNNSArithmeticAdd, 2, [](float) { return 2.0f; });
        run(BNNSArithmeticMultiplyAdd, 3, [](float v) { return 2 * v + 1; });
        run(BNNSArithmeticMaximum, 2, [](float) { return 1.0f; });
      }
      // In place: x + x, with in_delta over out_delta, and no `in` to tell that the two are one.
      std::vector<float> both = g;
      auto over = vector_descriptor(n, both.data());
      Arithmetic add(BNNSArithmeticAdd, {d, d}, {kSample, kSample}, d);
      ASSERT_EQ(add.backward(1, {}, {}, {&over, &over}, {0, 0}, nullptr, 0, &over, 0), 0) << BNNSExtLastError();
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(both[i], 2 * g[i]);
      // Repeated: one row twice in a product over rows, so 2 x sum(g).
      const auto tall = descriptor(BNNSDataLayoutRowMajorMatrix, {n, 3}, nullptr);
      const auto row = descriptor(BNNSDataLayoutRowMajorMatrix, {n, 1}, nullptr);
      auto row_delta = descriptor(BNNSDataLayoutRowMajorMatrix, {n, 1}, dx.data());
      std::vector<float> ones(3 * n, 1.0f);
      auto tall_delta = descriptor(BNNSDataLayoutRowMajorMatrix, {n, 3}, ones.data());
      Arithmetic product(BNNSArithmeticMultiply, {row, row}, {kParameter, kParameter}, tall);
      ASSERT_EQ(product.backward(1, {x.data(), x.data()}, {0, 0}, {&row_delta, &row_delta}, {0, 0}, nullptr, 0,
                                 &tall_delta, 0),
                0)
          << BNNSExtLastError();
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(dx[i], 6 * x[i]);
    }
  });
}

TEST(Arithmetic, BatchEqualsItsItemsOneByOne) {
  const size_t batch = 5, n = 77;
  Random random(1);
  const std::vector<float> a = random.normals(batch * n), b = random.normals(batch * n), g = random.normals(batch * n);
  std::vector<float> y(batch * n), da(batch * n), db(batch * n), y1(n), da1(n), db1(n);
  const auto d = vector_descriptor(n, nullptr);
  Arithmetic filter(BNNSArithmeticDivide, {d, d}, {kSample, kSample}, d, activation(BNNSActivationFunctionSigmoid));
  auto all_a = vector_descriptor(n, da.data()), all_b = vector_descriptor(n, db.data());
  auto all_g = vector_descriptor(n, const_cast<float*>(g.data()));
  ASSERT_EQ(filter.forward(batch, {a.data(), b.data()}, {0, 0}, y.data(), 0), 0);
  ASSERT_EQ(filter.backward(batch, {a.data(), b.data()}, {0, 0}, {&all_a, &all_b}, {0, 0}, y.data(), 0, &all_g, 0), 0);
  for (size_t s = 0; s < batch; ++s) {
    const float *as = a.data() + s * n, *bs = b.data() + s * n;
    auto one_a = vector_descriptor(n, da1.data()), one_b = vector_descriptor(n, db1.data());
    auto one_g = vector_descriptor(n, const_cast<float*>(g.data() + s * n));
    ASSERT_EQ(filter.forward(1, {as, bs}, {0, 0}, y1.data(), 0), 0);
    ASSERT_EQ(filter.backward(1, {as, bs}, {0, 0}, {&one_a, &one_b}, {0, 0}, y1.data(), 0, &one_g, 0), 0);
    EXPECT_TRUE(same_bits(y1.data(), y.data() + s * n, n));
    EXPECT_TRUE(same_bits(da1.data(), da.data() + s * n, n));
    EXPECT_TRUE(same_bits(db1.data(), db.data() + s * n, n));
  }
}

// Adjoint identity of what is linear: <M x, g> = <x, M' g> for x -> x b with b repeated, exact on integers.
TEST(Arithmetic, MultiplyIsItsOwnAdjoint) {
  const size_t columns = 130, rows = 40;
  Random random(5);
  const std::vector<float> x = random.integers(columns), b = random.integers(rows), g = random.integers(columns * rows);
  std::vector<float> y(columns * rows), dx(columns), db(rows);
  const auto wide = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, 1}, nullptr);
  const auto tall = descriptor(BNNSDataLayoutRowMajorMatrix, {1, rows}, nullptr);
  const auto full = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, nullptr);
  Arithmetic filter(BNNSArithmeticMultiply, {wide, tall}, {kSample, kParameter}, full);
  auto delta_x = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, 1}, dx.data());
  auto delta_b = vector_descriptor(rows, db.data());  // as many elements: a Vector will do
  auto delta_y = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, const_cast<float*>(g.data()));
  for_each_isa([&] {
    ASSERT_EQ(filter.forward(1, {x.data(), b.data()}, {0, 0}, y.data(), 0), 0) << BNNSExtLastError();
    ASSERT_EQ(filter.backward(1, {x.data(), b.data()}, {0, 0}, {&delta_x, &delta_b}, {0, 0}, nullptr, 0, &delta_y, 0),
              0)
        << BNNSExtLastError();
    double yg = 0, xd = 0, bd = 0;
    for (size_t i = 0; i < y.size(); ++i) yg += double(y[i]) * g[i];
    for (size_t i = 0; i < columns; ++i) xd += double(x[i]) * dx[i];
    for (size_t i = 0; i < rows; ++i) bd += double(b[i]) * db[i];
    EXPECT_EQ(yg, xd);
    EXPECT_EQ(yg, bd);
  });
}

// BC46: one filter, many threads, each with its own buffers.
TEST(Arithmetic, BC46_OneFilterFromManyThreads) {
  const size_t columns = 300, rows = 90;
  const auto row = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, 1}, nullptr);
  const auto full = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, nullptr);
  Arithmetic filter(BNNSArithmeticMultiply, {full, row}, {kSample, kParameter}, full);
  Random random(2);
  const std::vector<float> x = random.normals(columns * rows), w = random.normals(columns),
                           g = random.normals(columns * rows);
  const auto once = [&](std::vector<float>& y, std::vector<float>& dx, std::vector<float>& dw) {
    y.resize(x.size());
    dx.resize(x.size());
    dw.resize(columns);
    auto delta_x = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, dx.data());
    auto delta_w = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, 1}, dw.data());
    auto delta_y = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, const_cast<float*>(g.data()));
    return filter.forward(1, {x.data(), w.data()}, {0, 0}, y.data(), 0) +
           filter.backward(1, {x.data(), w.data()}, {0, 0}, {&delta_x, &delta_w}, {0, 0}, nullptr, 0, &delta_y, 0);
  };
  std::vector<float> y, dx, dw;
  ASSERT_EQ(once(y, dx, dw), 0);
  std::vector<int> wrong(16, 0);
  std::vector<std::thread> users;
  for (int& misses : wrong) {
    users.emplace_back([&, out = &misses] {
      std::vector<float> y1, dx1, dw1;
      for (int i = 0; i < 50; ++i) *out += once(y1, dx1, dw1) != 0 || y1 != y || dx1 != dx || dw1 != dw;
    });
  }
  for (std::thread& user : users) user.join();
  for (int misses : wrong) EXPECT_EQ(misses, 0);
}

}  // namespace
}  // namespace bnns::testing
