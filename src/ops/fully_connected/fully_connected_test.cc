// Fully connected: reference, kernels against it, gradients, properties. Refusals are in
// fully_connected_misuse_test.cc.

#include "src/ops/fully_connected/fully_connected.h"

#include <gtest/gtest.h>

#include <thread>

#include "src/core/float_mode.h"
#include "src/core/half.h"
#include "src/ops/fully_connected/fully_connected_ref.h"
#include "src/ops/fully_connected/fully_connected_testing.h"
#include "tests/support/testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

std::vector<double> widen(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

// Worked by hand (spec section 6): W = {1,2,3; 4,5,6}, b = {.5,-1}, x = 1 gives 6+.5 and 15-1.
TEST(FullyConnectedReference, HandWorkedForward) {
  EXPECT_EQ(ref::fully_connected_forward(1, 3, 2, {1, 1, 1}, {1, 2, 3, 4, 5, 6}, {.5, -1}),
            (std::vector<double>{6.5, 14}));
}

// Spec 3.4: W=[3,4], b=5, x={1,2},{10,20}, dy={1},{2}: dx={3,4},{6,8}, dW={1+20, 2+40}, db=3.
TEST(FullyConnectedReference, HandWorkedBackward) {
  const auto gradients = ref::fully_connected_backward(2, 2, 1, {1, 2, 10, 20}, {3, 4}, {1, 2});
  EXPECT_EQ(gradients.dx, (std::vector<double>{3, 4, 6, 8}));
  EXPECT_EQ(gradients.dw, (std::vector<double>{21, 42}));
  EXPECT_EQ(gradients.db, (std::vector<double>{3}));
}

TEST(FullyConnectedReference, GradientsAreTheDerivatives) {
  const size_t N = 3, I = 5, O = 4;
  Random random(1);
  const auto make = [&](size_t n) { return widen(random.normals(n)); };
  const auto x = make(N * I), w = make(O * I), b = make(O), dy = make(N * O);
  // loss = sum dy * y, whose gradient with respect to y is dy
  const auto loss = [&](const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& b) {
    const auto y = ref::fully_connected_forward(N, I, O, x, w, b);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  const auto gradients = ref::fully_connected_backward(N, I, O, x, w, dy);
  EXPECT_LE(gradient_error(gradients.dx, central_differences(x, [&](auto& v) { return loss(v, w, b); })), 1e-7);
  EXPECT_LE(gradient_error(gradients.dw, central_differences(w, [&](auto& v) { return loss(x, v, b); })), 1e-7);
  EXPECT_LE(gradient_error(gradients.db, central_differences(b, [&](auto& v) { return loss(x, w, v); })), 1e-7);
}

// Section 6 and 3.4 through the public calls.
TEST(FullyConnected, Vectors) {
  const float w[] = {1, 2, 3, 4, 5, 6}, b[] = {.5f, -1}, x[] = {1, 1, 1};
  float y[2] = {};
  ASSERT_EQ(BNNSFilterApply(Layer(3, 2, w, b).make().get(), x, y), 0);
  EXPECT_EQ(y[0], 6.5f);
  EXPECT_EQ(y[1], 14.0f);

  const float w2[] = {3, 4}, b2[] = {5}, x2[] = {1, 2, 10, 20};
  float dy[] = {1, 2}, dx[4], dw[2], db[1];
  auto dx_desc = vector_descriptor(2, dx), dy_desc = vector_descriptor(1, dy), db_desc = vector_descriptor(1, db);
  auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 1}, dw);
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(Layer(2, 1, w2, b2).make().get(), 2, x2, 2, &dx_desc, 2, nullptr, 0, &dy_desc,
                                         1, &dw_desc, &db_desc),
            0);
  EXPECT_EQ(std::vector<float>(dx, dx + 4), (std::vector<float>{3, 4, 6, 8}));
  EXPECT_EQ(std::vector<float>(dw, dw + 2), (std::vector<float>{21, 42}));
  EXPECT_EQ(db[0], 3.0f);
}

struct Case {
  size_t N, I, O;
};
const Case kCases[] = {{1, 1, 1},     {1, 7, 3},    {1, 64, 10},  {2, 3, 5},     {3, 31, 17},   {5, 8, 9},
                       {7, 33, 31},   {8, 100, 64}, {32, 48, 33}, {33, 129, 65}, {64, 15, 1},   {1, 784, 128},
                       {128, 20, 30}, {4, 1000, 3}, {16, 1, 16},  {1, 300, 1},   {31, 257, 130}};

std::string text(const Case& c) {
  return "n" + std::to_string(c.N) + " i" + std::to_string(c.I) + " o" + std::to_string(c.O);
}

// Small integers: every sum is exact, so the kernels must equal the reference. Buffers end at guard pages and results
// are poisoned first.
TEST(FullyConnected, ExactOnIntegers) {
  for_each_isa([&] {
    for (const Case& c : kCases) {
      SCOPED_TRACE(text(c));
      Random random(c.N * 1000003 + c.I * 1009 + c.O);
      const auto xs = random.integers(c.N * c.I), ws = random.integers(c.O * c.I), bs = random.integers(c.O),
                 dys = random.integers(c.N * c.O);
      for (size_t threads : kThreadCounts) {
        Guarded<float> x(xs), w(ws), b(bs), dy(dys), y(c.N * c.O), dx(c.N * c.I), dw(c.O * c.I), db(c.O);
        for (auto* v : {&y, &dx, &dw, &db}) std::fill_n(v->data(), v->size(), poison());
        Layer layer(c.I, c.O, w.data(), b.data());
        layer.options.n_threads = threads;
        const auto filter = layer.make();
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), c.N, x.data(), c.I, y.data(), c.O), 0) << BNNSExtLastError();
        const auto want = ref::fully_connected_forward(c.N, c.I, c.O, widen(xs), widen(ws), widen(bs));
        EXPECT_TRUE(within(y, want, want.size(), [](size_t) { return 0.0; }));
        auto dx_desc = vector_descriptor(c.I, dx.data()), dy_desc = vector_descriptor(c.O, dy.data()),
             db_desc = vector_descriptor(c.O, db.data());
        auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {c.I, c.O}, dw.data());
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), c.N, x.data(), c.I, &dx_desc, c.I, nullptr, 0, &dy_desc,
                                               c.O, &dw_desc, &db_desc),
                  0)
            << BNNSExtLastError();
        const auto gradients = ref::fully_connected_backward(c.N, c.I, c.O, widen(xs), widen(ws), widen(dys));
        const auto exact = [](size_t) { return 0.0; };
        EXPECT_TRUE(within(dx, gradients.dx, dx.size(), exact)) << "dx";
        EXPECT_TRUE(within(dw, gradients.dw, dw.size(), exact)) << "dw";
        EXPECT_TRUE(within(db, gradients.db, db.size(), exact)) << "db";
      }
    }
  });
}

struct Results {
  std::vector<float> y, dx, dw, db;
};

// Runs one layer both ways on ordinary data.
Results run(const Case& c, size_t threads, BNNSActivationFunction activation, uint64_t seed) {
  Random random(seed);
  const auto x = random.normals(c.N * c.I), w = random.normals(c.O * c.I), b = random.normals(c.O);
  auto dy = random.normals(c.N * c.O);
  Results r{std::vector<float>(c.N * c.O), std::vector<float>(c.N * c.I), std::vector<float>(c.O * c.I),
            std::vector<float>(c.O)};
  Layer layer(c.I, c.O, w.data(), b.data(), activation);
  layer.options.n_threads = threads;
  const auto filter = layer.make();
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), c.N, x.data(), 0, r.y.data(), 0), 0) << BNNSExtLastError();
  auto dx_desc = vector_descriptor(c.I, r.dx.data()), dy_desc = vector_descriptor(c.O, dy.data()),
       db_desc = vector_descriptor(c.O, r.db.data());
  auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {c.I, c.O}, r.dw.data());
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), c.N, x.data(), 0, &dx_desc, 0, r.y.data(), 0, &dy_desc, 0,
                                         &dw_desc, &db_desc),
            0)
      << BNNSExtLastError();
  return r;
}

// Normal data, with activations: the error stays inside 2 eps K sum|terms| (BC53: and the bits do not depend on
// threads).
TEST(FullyConnected, WithinBoundAndSameBitsForAnyThreadCount) {
  for_each_isa([&] {
    for (const Case& c : kCases) {
      for (auto activation : {BNNSActivationFunctionIdentity, BNNSActivationFunctionRectifiedLinear,
                              BNNSActivationFunctionSoftmax, BNNSActivationFunctionSiLU}) {
        SCOPED_TRACE(text(c) + " activation " + std::to_string(int(activation)));
        const Results one = run(c, 1, activation, 7);
        for (size_t threads : {2, 3, 7}) {
          const Results many = run(c, threads, activation, 7);
          EXPECT_TRUE(same_bits(one.y, many.y) && same_bits(one.dx, many.dx) && same_bits(one.dw, many.dw) &&
                      same_bits(one.db, many.db))
              << threads << " threads";
        }
        if (activation != BNNSActivationFunctionIdentity) continue;
        Random random(7);
        const auto x = widen(random.normals(c.N * c.I)), w = widen(random.normals(c.O * c.I)),
                   b = widen(random.normals(c.O)), dy = widen(random.normals(c.N * c.O));
        const auto magnitude = [](std::vector<double> v) {
          for (double& e : v) e = std::fabs(e);
          return v;
        };
        const double eps = 0x1p-24;
        const auto want = ref::fully_connected_forward(c.N, c.I, c.O, x, w, b);
        const auto sums = ref::fully_connected_forward(c.N, c.I, c.O, magnitude(x), magnitude(w), magnitude(b));
        EXPECT_TRUE(within(one.y, want, want.size(), [&](size_t i) { return 2 * eps * double(c.I + 1) * sums[i]; }));
        const auto gradients = ref::fully_connected_backward(c.N, c.I, c.O, x, w, dy);
        const auto terms = ref::fully_connected_backward(c.N, c.I, c.O, magnitude(x), magnitude(w), magnitude(dy));
        EXPECT_TRUE(
            within(one.dx, gradients.dx, one.dx.size(), [&](size_t i) { return 2 * eps * double(c.O) * terms.dx[i]; }));
        EXPECT_TRUE(
            within(one.dw, gradients.dw, one.dw.size(), [&](size_t i) { return 2 * eps * double(c.N) * terms.dw[i]; }));
        EXPECT_TRUE(
            within(one.db, gradients.db, one.db.size(), [&](size_t i) { return 2 * eps * double(c.N) * terms.db[i]; }));
      }
    }
  });
}

// The layer with an activation is the layer without it followed by the activation, both ways (K8: SiLU is recomputed).
TEST(FullyConnected, FusedActivationEqualsTwoSteps) {
  const Case c{6, 19, 21};
  Random random(3);
  const auto x = random.normals(c.N * c.I), w = random.normals(c.O * c.I), b = random.normals(c.O);
  auto dy = random.normals(c.N * c.O);
  for (auto function : {BNNSActivationFunctionTanh, BNNSActivationFunctionSigmoid, BNNSActivationFunctionGELU,
                        BNNSActivationFunctionSiLU, BNNSActivationFunctionSoftmax, BNNSActivationFunctionLogSoftmax}) {
    Layer plain(c.I, c.O, w.data(), b.data()), fused(c.I, c.O, w.data(), b.data(), function);
    const Activation activation = make_fused_activation(fused.parameters.activation, "test");
    std::vector<float> z(c.N * c.O), y(c.N * c.O), want(c.N * c.O), g(c.N * c.O);
    ASSERT_EQ(BNNSFilterApplyBatch(plain.make().get(), c.N, x.data(), 0, z.data(), 0), 0);
    ASSERT_EQ(BNNSFilterApplyBatch(fused.make().get(), c.N, x.data(), 0, y.data(), 0), 0);
    const FloatMode mode;  // as inside the calls
    for (size_t n = 0; n < c.N; ++n) {
      activation_forward(activation, &z[n * c.O], &want[n * c.O], c.O);
      if (has_derivative_from_output(activation)) {
        activation_backward_from_output(activation, &want[n * c.O], &dy[n * c.O], &g[n * c.O], c.O);
      } else {
        activation_backward_from_input(activation, &z[n * c.O], &dy[n * c.O], &g[n * c.O], c.O);
      }
    }
    EXPECT_TRUE(same_bits(y, want)) << activation_name(function);
    std::vector<float> dx(c.N * c.I), dx_want(c.N * c.I);
    auto dx_desc = vector_descriptor(c.I, dx.data()), want_desc = vector_descriptor(c.I, dx_want.data());
    auto dy_desc = vector_descriptor(c.O, dy.data()), g_desc = vector_descriptor(c.O, g.data());
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(fused.make().get(), c.N, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                           nullptr, nullptr),
              0)
        << BNNSExtLastError();
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(plain.make().get(), c.N, nullptr, 0, &want_desc, 0, nullptr, 0, &g_desc, 0,
                                           nullptr, nullptr),
              0)
        << BNNSExtLastError();
    EXPECT_TRUE(same_bits(dx, dx_want)) << activation_name(function);
  }
}

// One logical problem in every weight layout, in padded rows and padded batches: equal bits, gaps keep their poison
// (BC15).
TEST(FullyConnected, LayoutsAndStrides) {
  const size_t N = 5, I = 11, O = 7;
  Random random(5);
  const auto x = random.integers(N * I), w = random.integers(O * I), dy = random.integers(N * O);
  const auto want = ref::fully_connected_forward(N, I, O, widen(x), widen(w), {});
  const auto gradients = ref::fully_connected_backward(N, I, O, widen(x), widen(w), widen(dy));
  struct Form {
    BNNSDataLayout layout;
    std::vector<size_t> size;
    size_t stride0, stride1, o_step, i_step;  // element (o,i) at o * o_step + i * i_step
  };
  const Form forms[] = {{BNNSDataLayoutRowMajorMatrix, {I, O}, 0, 0, I, 1},
                        {BNNSDataLayoutRowMajorMatrix, {I, O}, 1, I + 3, I + 3, 1},
                        {BNNSDataLayoutRowMajorMatrix, {I, O}, 2, 2 * I + 1, 2 * I + 1, 2},
                        {BNNSDataLayoutColumnMajorMatrix, {O, I}, 0, 0, 1, O},
                        {BNNSDataLayoutColumnMajorMatrix, {O, I}, 1, O + 2, 1, O + 2},
                        {BNNSDataLayout2DFirstMajor, {O, I}, 0, 0, I, 1},
                        {BNNSDataLayout2DLastMajor, {O, I}, 0, 0, 1, O}};
  const size_t xs = I + 4, ys = O + 5;  // padded batches
  for (const Form& form : forms) {
    const size_t span = (O - 1) * form.o_step + (I - 1) * form.i_step + 1;
    std::vector<float> wm(span, poison()), dwm(span, poison()), xm(N * xs, poison()), ym(N * ys, poison());
    std::vector<float> dym(N * ys, poison()), dxm(N * xs, poison());
    for (size_t o = 0; o < O; ++o)
      for (size_t i = 0; i < I; ++i) wm[o * form.o_step + i * form.i_step] = w[o * I + i];
    for (size_t n = 0; n < N; ++n) std::copy_n(&x[n * I], I, &xm[n * xs]), std::copy_n(&dy[n * O], O, &dym[n * ys]);
    Layer layer(I, O, nullptr, nullptr);
    layer.parameters.w_desc = descriptor(form.layout, form.size, wm.data());
    layer.parameters.w_desc.stride[0] = form.stride0, layer.parameters.w_desc.stride[1] = form.stride1;
    const auto filter = layer.make();
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), N, xm.data(), xs, ym.data(), ys), 0) << BNNSExtLastError();
    auto dw_desc = layer.parameters.w_desc;
    dw_desc.data = dwm.data();
    auto dx_desc = vector_descriptor(I, dxm.data()), dy_desc = vector_descriptor(O, dym.data());
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), N, xm.data(), xs, &dx_desc, xs, nullptr, 0, &dy_desc, ys,
                                           &dw_desc, nullptr),
              0)
        << BNNSExtLastError();
    size_t poisoned = 0;
    for (float v : dwm) poisoned += is_poison(v);
    EXPECT_EQ(poisoned, span - O * I);
    for (size_t o = 0; o < O; ++o) {
      for (size_t i = 0; i < I; ++i) EXPECT_EQ(dwm[o * form.o_step + i * form.i_step], gradients.dw[o * I + i]);
    }
    for (size_t n = 0; n < N; ++n) {
      EXPECT_TRUE(within(&ym[n * ys], &want[n * O], O, [](size_t) { return 0.0; }));
      EXPECT_TRUE(within(&dxm[n * xs], &gradients.dx[n * I], I, [](size_t) { return 0.0; }));
      EXPECT_TRUE(std::all_of(&ym[n * ys + O], &ym[n * ys] + ys, is_poison));
      EXPECT_TRUE(std::all_of(&dxm[n * xs + I], &dxm[n * xs] + xs, is_poison));
    }
  }
}

// f16 and bf16 in every mix of operands; small integers are exact in both.
void expect_exact_half_types(size_t N, size_t I, size_t O) {
  Random random(9);
  const auto x = random.integers(N * I, 1), w = random.integers(O * I, 1), dy = random.integers(N * O, 1);
  const auto want = ref::fully_connected_forward(N, I, O, widen(x), widen(w), {});
  const auto gradients = ref::fully_connected_backward(N, I, O, widen(x), widen(w), widen(dy));
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  const auto store = [](BNNSDataType type, const std::vector<float>& v) {
    std::vector<uint32_t> memory(v.size());
    for (size_t i = 0; i < v.size(); ++i) {
      if (type == BNNSDataTypeFloat32)
        std::memcpy(&memory[i], &v[i], 4);
      else
        reinterpret_cast<uint16_t*>(memory.data())[i] =
            type == BNNSDataTypeFloat16 ? float_to_half(v[i]) : float_to_bfloat16(v[i]);
    }
    return memory;
  };
  const auto load = [](BNNSDataType type, const std::vector<uint32_t>& memory, size_t i) {
    const auto* half = reinterpret_cast<const uint16_t*>(memory.data());
    return type == BNNSDataTypeFloat32   ? std::bit_cast<float>(memory[i])
           : type == BNNSDataTypeFloat16 ? half_to_float(half[i])
                                         : bfloat16_to_float(half[i]);
  };
  for (auto tx : types)
    for (auto tw : types)
      for (auto ty : types) {
        auto xm = store(tx, x), wm = store(tw, w), dym = store(ty, dy);
        std::vector<uint32_t> ym(N * O), dxm(N * I), dwm(O * I);
        Layer layer(I, O, nullptr, nullptr);
        layer.parameters.i_desc.data_type = tx;
        layer.parameters.o_desc.data_type = ty;
        layer.parameters.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {I, O}, wm.data(), tw);
        const auto filter = layer.make();
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), N, xm.data(), 0, ym.data(), 0), 0) << BNNSExtLastError();
        auto dx_desc = vector_descriptor(I, dxm.data(), tx), dy_desc = vector_descriptor(O, dym.data(), ty);
        auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {I, O}, dwm.data(), tw);
        std::vector<float> db(O);
        auto db_desc = vector_descriptor(O, db.data());
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), N, xm.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                               &dw_desc, &db_desc),
                  0)
            << BNNSExtLastError();
        for (size_t i = 0; i < N * O; ++i) EXPECT_EQ(load(ty, ym, i), float(want[i]));
        for (size_t i = 0; i < N * I; ++i) EXPECT_EQ(load(tx, dxm, i), float(gradients.dx[i]));
        for (size_t i = 0; i < O * I; ++i) EXPECT_EQ(load(tw, dwm, i), float(gradients.dw[i]));
        for (size_t i = 0; i < O; ++i) EXPECT_EQ(db[i], float(gradients.db[i]));
      }
}

// A batch that is a few vectors, and one that is tiles; products of two bf16 operands have kernels of their own.
TEST(FullyConnected, HalfTypes) {
  for_each_isa([] {
    expect_exact_half_types(4, 21, 10);
    expect_exact_half_types(37, 70, 90);
    expect_exact_half_types(40, 33, 17);
  });
}

// Weights of 8 bits, read as they are, or unpacked where there is a bias: a few vectors and tiles, both layouts, the
// gradient of x; scales are powers of 2, so that sums stay exact.
void expect_exact_bytes(size_t N, bool is_signed, BNNSDataLayout layout, float bias) {
  const size_t I = 70, O = 45;
  Random random(13);
  const auto x = random.integers(N * I, 3), dy = random.integers(N * O, 3);
  std::vector<uint8_t> bytes(O * I);
  std::vector<double> w(O * I);
  const bool by_rows = layout == BNNSDataLayoutRowMajorMatrix;
  for (size_t o = 0; o < O; ++o) {
    for (size_t i = 0; i < I; ++i) {
      uint8_t& byte = bytes[by_rows ? o * I + i : i * O + o];
      byte = static_cast<uint8_t>(random.integer(0, 255));
      w[o * I + i] = 0.25 * (is_signed ? double(static_cast<int8_t>(byte)) : double(byte)) + double(bias);
    }
  }
  Layer layer(I, O, nullptr, nullptr);
  const std::vector<size_t> sizes = by_rows ? std::vector<size_t>{I, O} : std::vector<size_t>{O, I};
  layer.parameters.w_desc = descriptor(layout, sizes, bytes.data(), is_signed ? BNNSDataTypeInt8 : BNNSDataTypeUInt8);
  layer.parameters.w_desc.data_scale = 0.25f, layer.parameters.w_desc.data_bias = bias;
  const auto filter = layer.make();
  std::vector<float> y(N * O), dx(N * I);
  ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), N, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
  const auto want = ref::fully_connected_forward(N, I, O, widen(x), w, {});
  for (size_t i = 0; i < N * O; ++i) ASSERT_EQ(y[i], float(want[i])) << i;
  auto dx_desc = vector_descriptor(I, dx.data());
  auto dy_desc = vector_descriptor(O, const_cast<float*>(dy.data()));
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), N, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                         nullptr),
            0)
      << BNNSExtLastError();
  const auto gradients = ref::fully_connected_backward(N, I, O, widen(x), w, widen(dy));
  for (size_t i = 0; i < N * I; ++i) ASSERT_EQ(dx[i], float(gradients.dx[i])) << i;
}

TEST(FullyConnected, Bytes) {
  for_each_isa([] {
    for (const size_t N : {1, 5, 33, 50}) {
      for (const bool is_signed : {true, false}) {
        for (const float bias : {0.0f, -2.0f}) {
          expect_exact_bytes(N, is_signed, BNNSDataLayoutRowMajorMatrix, bias);
          expect_exact_bytes(N, is_signed, BNNSDataLayoutColumnMajorMatrix, bias);
        }
      }
    }
  });
}

// Quantised and indexed weights are what scale, bias and table make of them; IntegerLinearSaturate sums exactly.
TEST(FullyConnected, IntegerForms) {
  const int8_t w8[] = {1, -2, 3, -4, 5, -6};
  const float x[] = {1, 2, 3};
  float y[2];
  Layer layer(3, 2, nullptr, nullptr);
  layer.parameters.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {3, 2}, const_cast<int8_t*>(w8), BNNSDataTypeInt8);
  layer.parameters.w_desc.data_scale = 0.5f;
  layer.parameters.w_desc.data_bias = 1;
  ASSERT_EQ(BNNSFilterApply(layer.make().get(), x, y), 0);  // weights {1.5,0,2.5; -1,3.5,-2}
  EXPECT_EQ(y[0], 9.0f);
  EXPECT_EQ(y[1], 0.0f);

  const uint8_t indices[] = {0xe4, 0x01};  // 2-bit indices 0,1,2,3,1,0
  const float table[] = {-1, 0.5f, 2, 4};
  layer.parameters.w_desc =
      descriptor(BNNSDataLayoutRowMajorMatrix, {3, 2}, const_cast<uint8_t*>(indices), BNNSDataTypeIndexed2);
  layer.parameters.w_desc.table_data = const_cast<float*>(table);
  layer.parameters.w_desc.table_data_type = BNNSDataTypeFloat32;
  ASSERT_EQ(BNNSFilterApply(layer.make().get(), x, y), 0);  // weights {-1,.5,2; 4,.5,-1}
  EXPECT_EQ(y[0], 6.0f);
  EXPECT_EQ(y[1], 2.0f);

  const int8_t x8[] = {127, -128, 127}, big[] = {127, -128, 127, -128, 127, -128};
  int8_t y8[2];
  layer.parameters.i_desc.data_type = layer.parameters.o_desc.data_type = BNNSDataTypeInt8;
  layer.parameters.w_desc =
      descriptor(BNNSDataLayoutRowMajorMatrix, {3, 2}, const_cast<int8_t*>(big), BNNSDataTypeInt8);
  layer.parameters.activation.function = BNNSActivationFunctionIntegerLinearSaturate;
  layer.parameters.activation.iscale = 1, layer.parameters.activation.ioffset = 3,
  layer.parameters.activation.ishift = 9;
  ASSERT_EQ(BNNSFilterApply(layer.make().get(), x8, y8), 0) << BNNSExtLastError();
  EXPECT_EQ(y8[0], (127 * 127 + 128 * 128 + 127 * 127 + 3) >> 9);  // 95
  EXPECT_EQ(y8[1], (-3 * 127 * 128 + 3) >> 9);                     // -96, the shift rounds down
}

TEST(FullyConnected, AccumulateAddsAndBatchZeroClears) {
  const float w[] = {1, 2}, x[] = {1, 1};
  float dy[] = {1}, dx[] = {10, 20}, dw[] = {100, 200}, db[] = {1000};
  const auto filter = Layer(2, 1, w, nullptr).make();
  auto dx_desc = vector_descriptor(2, dx), dy_desc = vector_descriptor(1, dy), db_desc = vector_descriptor(1, db);
  auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 1}, dw);
  dx_desc.flags = dw_desc.flags = db_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
  const auto backward = [&](size_t batch) {
    return BNNSFilterApplyBackwardBatch(filter.get(), batch, x, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, &dw_desc,
                                        &db_desc);
  };
  ASSERT_EQ(backward(1), 0);
  EXPECT_EQ(std::vector<float>({dx[0], dx[1], dw[0], dw[1], db[0]}), std::vector<float>({11, 22, 101, 201, 1001}));
  ASSERT_EQ(backward(0), 0);  // BC38: nothing changes when accumulating
  EXPECT_EQ(dw[0], 101);
  dw_desc.flags = db_desc.flags = BNNSNDArrayFlagBackpropSet;
  ASSERT_EQ(backward(0), 0);  // parameter gradients become exactly 0, dx is not touched
  EXPECT_EQ(std::vector<float>({dx[0], dx[1], dw[0], dw[1], db[0]}), std::vector<float>({11, 22, 0, 0, 0}));
}

// <F x, g> = <x, F' g> on exact data, for seeded random shapes.
TEST(FullyConnected, AdjointIdentity) {
  Random shapes(11);
  for (int round = 0; round < 300; ++round) {
    const Case c{1 + shapes.below(20), 1 + shapes.below(70), 1 + shapes.below(70)};
    const auto x = shapes.integers(c.N * c.I, 2), w = shapes.integers(c.O * c.I, 2);
    auto g = shapes.integers(c.N * c.O, 2);
    std::vector<float> y(c.N * c.O), dx(c.N * c.I);
    const auto filter = Layer(c.I, c.O, w.data(), nullptr).make();
    auto dx_desc = vector_descriptor(c.I, dx.data()), g_desc = vector_descriptor(c.O, g.data());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0), 0);
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), c.N, nullptr, 0, &dx_desc, 0, nullptr, 0, &g_desc, 0, nullptr,
                                           nullptr),
              0);
    double left = 0, right = 0;
    for (size_t i = 0; i < y.size(); ++i) left += double(y[i]) * g[i];
    for (size_t i = 0; i < x.size(); ++i) right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << text(c) << " round " << round;
  }
}

// BC57: an optimizer's update is seen through BNNSFlagsUseClientPtr, and only there.
TEST(FullyConnected, ClientPointerSeesNewWeights) {
  float w[] = {1}, x[] = {1}, y[1];
  Layer layer(1, 1, w, nullptr);
  const auto copies = layer.make();
  layer.options.flags = BNNSFlagsUseClientPtr;
  const auto reads = layer.make();
  w[0] = 5;
  BNNSFilterApply(copies.get(), x, y);
  EXPECT_EQ(y[0], 1);
  BNNSFilterApply(reads.get(), x, y);
  EXPECT_EQ(y[0], 5);
}

// BC46: one filter, many threads, forward and backward.
TEST(FullyConnected, ReentrantWithoutLock) {
  const Case c{8, 40, 30};
  Random random(13);
  const auto x = random.normals(c.N * c.I), w = random.normals(c.O * c.I);
  auto dy = random.normals(c.N * c.O);
  const auto filter = Layer(c.I, c.O, w.data(), nullptr, BNNSActivationFunctionTanh).make();
  const auto once = [&](std::vector<float>& y, std::vector<float>& dw) {
    auto dy_desc = vector_descriptor(c.O, dy.data());
    auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {c.I, c.O}, dw.data());
    return BNNSFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0) == 0 &&
           BNNSFilterApplyBackwardBatch(filter.get(), c.N, x.data(), 0, nullptr, 0, y.data(), 0, &dy_desc, 0, &dw_desc,
                                        nullptr) == 0;
  };
  std::vector<float> y(c.N * c.O), dw(c.O * c.I);
  ASSERT_TRUE(once(y, dw));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      std::vector<float> my_y(y.size()), my_dw(dw.size());
      for (int i = 0; i < 200; ++i) wrong += !once(my_y, my_dw) || !same_bits(my_y, y) || !same_bits(my_dw, dw);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(FullyConnectedLegacy, MapsToTheLayer) {
  const float w[] = {1, 2, 3, 4, 5, 6}, b[] = {.5f, -1}, x[] = {1, 1, 1};
  float y[2];
  BNNSVectorDescriptor in = {3, BNNSDataTypeFloat32, 0, 0}, out = {2, BNNSDataTypeFloat32, 0, 0};
  BNNSFullyConnectedLayerParameters parameters;
  std::memset(&parameters, 0, sizeof parameters);
  parameters.in_size = 3, parameters.out_size = 2;
  parameters.weights.data = w, parameters.weights.data_type = BNNSDataTypeFloat32;
  parameters.bias.data = b, parameters.bias.data_type = BNNSDataTypeFloat32;
  FilterHandle filter(BNNSFilterCreateFullyConnectedLayer(&in, &out, &parameters, nullptr), &BNNSFilterDestroy);
  ASSERT_TRUE(filter) << BNNSExtLastError();
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y), 0);
  EXPECT_EQ(y[0], 6.5f);
  EXPECT_EQ(y[1], 14.0f);
  in.size = 4;
  EXPECT_EQ(BNNSFilterCreateFullyConnectedLayer(&in, &out, &parameters, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"3 to 2, expected 4 to 2"}));
}

}  // namespace
}  // namespace bnns
