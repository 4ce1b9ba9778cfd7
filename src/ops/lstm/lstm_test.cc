// LSTM: the reference by hand and by differences, the kernels against it, properties.
#include "src/ops/lstm/lstm_testing.h"

namespace bnns::testing {
namespace {

std::vector<LstmCase> cases() {
  std::vector<LstmCase> list;
  // Sizes that straddle vectors and tiles; layers, directions, peepholes, ragged batches.
  list.push_back({.I = 1, .H = 1});
  list.push_back({.I = 3, .H = 2, .B = 2, .T = 2});
  list.push_back({.I = 5, .H = 7, .B = 3, .L = 2, .T = 5, .D = 2});
  list.push_back({.I = 8, .H = 8, .B = 4, .L = 2, .T = 3});  // I = D H: one tensor for all input weights
  list.push_back({.I = 6, .H = 9, .B = 5, .L = 3, .T = 4, .D = 2, .peephole = 0xf, .ragged = true});
  list.push_back({.I = 4, .H = 17, .B = 2, .L = 2, .T = 3, .peephole = 0x8, .bias = false, .states = false});
  list.push_back(
      {.I = 4, .H = 16, .B = 11, .L = 1, .T = 6, .D = 2, .peephole = 0x5, .ragged = true, .batch_first = true});
  list.push_back({.I = 31, .H = 33, .B = 10, .L = 2, .T = 2, .batch_first = true});
  list.push_back({.I = 64, .H = 64, .B = 16, .L = 2, .T = 3, .D = 2, .unit = 1, .pad = 3});
  list.push_back({.I = 20, .H = 150, .B = 3, .L = 1, .T = 2, .D = 2, .peephole = 0xf});
  list.push_back({.I = 5, .H = 6, .B = 3, .L = 3, .T = 4, .D = 2, .ragged = true, .dropout = 0.4});
  list.push_back({.I = 5, .H = 6, .B = 3, .L = 2, .T = 4, .peephole = 0x7, .unit = 2, .pad = 1});
  // Several blocks of sequences, some of them over early.
  list.push_back({.I = 7, .H = 12, .B = 37, .L = 2, .T = 5, .D = 2, .peephole = 0xf, .ragged = true});
  list.push_back({.I = 7, .H = 12, .B = 18, .L = 1, .T = 2, .batch_first = true});
  LstmCase custom = {.I = 4, .H = 10, .B = 3, .L = 2, .T = 3, .D = 2, .peephole = 0xf, .custom = true};
  const BNNSActivationFunction functions[][5] = {
      {BNNSActivationFunctionHardSigmoid, BNNSActivationFunctionSigmoid, BNNSActivationFunctionSoftsign,
       BNNSActivationFunctionTanh, BNNSActivationFunctionIdentity},
      {BNNSActivationFunctionSiLU, BNNSActivationFunctionSigmoid, BNNSActivationFunctionGELU,  // need pre-activations
       BNNSActivationFunctionErf, BNNSActivationFunctionSiLU},
      {BNNSActivationFunctionSigmoid, BNNSActivationFunctionSigmoid, BNNSActivationFunctionTanh,
       BNNSActivationFunctionSigmoid, BNNSActivationFunctionScaledTanh}};
  for (const auto& five : functions) {
    std::copy(std::begin(five), std::end(five), custom.functions);
    list.push_back(custom);
  }
  return list;
}

BNNSFilterParameters with_threads(size_t n) {
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.n_threads = n;
  return options;
}

// ---- the reference -----------------------------------------------------------------------------------------------

// T = 1, all sizes 1, worked by hand: i = f = o = sigma(0) = 1/2, g = tanh(x w).
//   c = f c0 + i g,  h = o tanh c;  with dy = 1: do = tanh c / 4, dc = (1 - tanh^2 c) / 2, di = dc g / 4, df = dc c0 /
//   4, dg = dc (1 - g^2) / 2,  dc0 = dc / 2,  dx = w dg,  dw_g = x dg
TEST(Lstm, ReferenceOfAScalarCell) {
  constexpr double kFew = 16 * 0x1p-53;  // roundings of values below 1
  const ref::Lstm m{1, 1, 1, 1, 1, 1};
  std::vector<double> in(m.arguments());
  const double x = 0.75, w = 1.2, c0 = -0.4;
  in[m.x(0, 0, 0)] = x, in[m.c0(0, 0, 0, 0)] = c0, in[m.wx(0, 0, 2, 0, 0)] = w;
  const double g = std::tanh(x * w), c = 0.5 * c0 + 0.5 * g, h = 0.5 * std::tanh(c);
  const ref::LstmTrace trace = ref::lstm_forward(m, in);
  EXPECT_NEAR(trace.results[m.y(0, 0, 0)], h, kFew);
  EXPECT_NEAR(trace.results[m.h(0, 0, 0, 0)], h, kFew);
  EXPECT_NEAR(trace.results[m.c(0, 0, 0, 0)], c, kFew);
  const std::vector<double> d = ref::lstm_backward(m, in, trace, {1, 0, 0});
  const double dc = (1 - 4 * h * h) / 2, dg = dc * (1 - g * g) / 2;
  EXPECT_NEAR(d[m.b(0, 0, 0, 0)], dc * g / 4, kFew);
  EXPECT_NEAR(d[m.b(0, 0, 1, 0)], dc * c0 / 4, kFew);
  EXPECT_NEAR(d[m.b(0, 0, 2, 0)], dg, kFew);
  EXPECT_NEAR(d[m.b(0, 0, 3, 0)], 2 * h / 4, kFew);
  EXPECT_NEAR(d[m.c0(0, 0, 0, 0)], dc / 2, kFew);
  EXPECT_NEAR(d[m.x(0, 0, 0)], w * dg, kFew);
  EXPECT_NEAR(d[m.wx(0, 0, 2, 0, 0)], x * dg, kFew);
}

// T of 1, 2 and 5, one and two layers, both directions, first states and gradients of the last ones not 0.
TEST(Lstm, BC31_ReferenceGradientByDifferences) {
  Random random(1);
  for (const size_t T : {1u, 2u, 5u}) {
    for (const size_t L : {1u, 2u}) {
      for (const size_t D : {1u, 2u}) {
        for (const bool ragged : {false, true}) {
          LstmCase c = {.I = 2, .H = 3, .B = 2, .L = L, .T = T, .D = D, .peephole = 0xf, .ragged = ragged};
          c.custom = T == 2;  // smooth functions that need the pre-activation
          c.functions[0] = BNNSActivationFunctionSiLU, c.functions[4] = BNNSActivationFunctionScaledTanh;
          ref::Lstm m = reference(c);
          for (size_t i = 0; i < (L - 1) * T * c.B * D * c.H; ++i) m.mask.push_back(random.below(2) ? 1.6 : 0);
          std::vector<double> in(m.arguments()), up(m.results());
          for (double& v : in) v = 0.6 * random.normal();
          for (double& v : up) v = random.normal();
          const auto loss = [&](const std::vector<double>& at) {
            const std::vector<double> results = ref::lstm_forward(m, at).results;
            double sum = 0;
            for (size_t i = 0; i < results.size(); ++i) sum += up[i] * results[i];
            return sum;
          };
          const std::vector<double> analytic = ref::lstm_backward(m, in, ref::lstm_forward(m, in), up);
          EXPECT_LT(gradient_error(analytic, central_differences(in, loss)), 1e-6) << c.text();
        }
      }
    }
  }
}

// ---- kernels against the reference -------------------------------------------------------------------------------

// Forward with a cache, backward from it; results and gradients within the chain's bound, the same bits for any number
// of threads, nothing touched outside the tensors.
void check_case(const LstmCase& c, uint64_t seed) {
  SCOPED_TRACE(c.text());
  std::vector<std::vector<unsigned char>> expected_bytes;
  for (const size_t threads : kThreadCounts) {
    Random random(seed);
    LstmLayer layer(c), deltas(c);
    std::vector<double> in = layer.fill_arguments(random), up(layer.model().results());
    deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t i) { up[i] = t.set(at, random.normal()); });
    ref::Lstm m = layer.model();
    for (size_t t = 0; t < c.T; ++t) {  // what lies above the end of a sequence is not looked at
      for (size_t b = m.n(t); b < c.B; ++b) {
        for (size_t j = 0; j < c.D * c.H; ++j) up[m.y(t, b, j)] = 0;
      }
    }
    const LstmProblem problem = make_lstm_problem(&layer.parameters);
    const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer.parameters);
    ASSERT_EQ(capacity, lstm_cache_bytes(problem));
    Guarded<unsigned char> cache(capacity);
    Options options;
    options.n_threads = threads;
    lstm_forward(problem, options, cache.data(), capacity, 77);  // the entry point with a seed of ours
    m.mask = mask_of_cache(c, cache.data());
    const ref::LstmTrace trace = ref::lstm_forward(m, in);
    const double bound = chain(c) * 0x1p-24, stored = type_epsilon(c.type);
    std::vector<double> got = trace.results;
    layer.for_results([&](LayoutTensor& t, const Coordinates& at, size_t i) { got[i] = t.get(at); });
    ASSERT_TRUE(within(got, trace.results, got.size(), [&](size_t i) {
      const double size = std::fabs(trace.results[i]);
      return bound * std::max(1.0, size) + stored * size + 0x1p-24 * stored;
    })) << "results";
    const BNNSFilterParameters parameters = with_threads(threads);
    ASSERT_EQ(
        BNNSDirectApplyLSTMBatchBackward(&layer.parameters, &deltas.parameters, &parameters, cache.data(), capacity), 0)
        << BNNSExtLastError();
    const std::vector<double> gradient = ref::lstm_backward(m, in, trace, up);
    double largest = 1;
    for (const double g : gradient) largest = std::max(largest, std::fabs(g));
    got = gradient;
    deltas.for_arguments([&](LayoutTensor& t, const Coordinates& at, size_t i) { got[i] = t.get(at); });
    ASSERT_TRUE(within(got, gradient, got.size(), [&](size_t i) {
      return bound * largest + stored * std::fabs(gradient[i]);
    })) << "gradients";
    EXPECT_TRUE(layer.gaps_untouched() && deltas.gaps_untouched());
    std::vector<std::vector<unsigned char>> bytes;
    for (size_t i = 0; i < layer.slots(); ++i) {
      if (layer.has(i)) bytes.push_back(layer.slot(i).snapshot());
      if (deltas.has(i)) bytes.push_back(deltas.slot(i).snapshot());
    }
    if (expected_bytes.empty()) expected_bytes = bytes;
    EXPECT_TRUE(bytes == expected_bytes) << threads << " threads";
  }
}

TEST(Lstm, BC31_KernelsAgainstReference) {
  for_each_isa([] {
    uint64_t seed = 100;
    for (const LstmCase& c : cases()) check_case(c, ++seed);
  });
}

TEST(Lstm, HalfTypesAgainstReference) {
  for_each_isa([] {
    for (const BNNSDataType type : {BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
      check_case({.I = 5, .H = 9, .B = 3, .L = 2, .T = 3, .D = 2, .peephole = 0xf, .type = type}, 7);
      check_case({.I = 18, .H = 9, .B = 4, .L = 2, .T = 3, .D = 2, .ragged = true, .batch_first = true, .type = type},
                 8);
    }
  });
}

TEST(Lstm, RandomProblems) {
  Random random(2026);
  for (int i = 0; i < 60; ++i) {
    LstmCase c;
    c.I = 1 + random.below(24), c.H = 1 + random.below(24), c.B = 1 + random.below(7), c.T = 1 + random.below(7);
    c.L = 1 + random.below(3), c.D = 1 + random.below(2), c.peephole = unsigned(random.below(16)) * random.below(2);
    c.bias = random.below(4), c.states = random.below(3), c.ragged = random.below(2), c.batch_first = random.below(2);
    c.dropout = random.below(2) ? 0.3 : 0, c.unit = 1 + (random.below(4) == 0), c.pad = random.below(3);
    check_case(c, 5000 + uint64_t(i));
  }
}

// Steps large enough for all threads inside a product, and weights in several pieces.
TEST(Lstm, LargeLayerAgainstReference) {
  for_each_isa([] { check_case({.I = 40, .H = 300, .B = 12, .T = 2}, 9); });
}

// ---- properties --------------------------------------------------------------------------------------------------

struct Plain {  // the results of a layer as one vector of f32
  static std::vector<float> results(LstmLayer& layer) {
    std::vector<float> values(layer.model().results());
    layer.for_results([&](LayoutTensor& t, const Coordinates& at, size_t i) { values[i] = float(t.get(at)); });
    return values;
  }
  static std::vector<float> gradients(LstmLayer& deltas) {
    std::vector<float> values(deltas.model().arguments());
    deltas.for_arguments([&](LayoutTensor& t, const Coordinates& at, size_t i) { values[i] = float(t.get(at)); });
    return values;
  }
};

// A call of T steps is T calls of one step, each from the states of the one before.
TEST(Lstm, BC31_StepsChain) {
  for_each_isa([] {
    const LstmCase whole = {.I = 5, .H = 6, .B = 3, .L = 2, .T = 4, .peephole = 0xf};
    LstmCase one = whole;
    one.T = 1;
    Random random(3);
    LstmLayer layer(whole);
    layer.fill_arguments(random);
    ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), 0) << BNNSExtLastError();
    LstmLayer single(one);
    for (size_t slot = LstmLayer::kFirst; slot < layer.slots(); ++slot) {
      if (layer.has(slot)) std::memcpy(single.slot(slot).data(), layer.slot(slot).data(), layer.slot(slot).bytes());
    }
    std::memcpy(single.slot(LstmLayer::kH0).data(), layer.slot(LstmLayer::kH0).data(),
                layer.slot(LstmLayer::kH0).bytes());
    std::memcpy(single.slot(LstmLayer::kC0).data(), layer.slot(LstmLayer::kC0).data(),
                layer.slot(LstmLayer::kC0).bytes());
    // The last states are written over the first ones.
    single.parameters.output_descriptor.hidden_desc = single.parameters.input_descriptor.hidden_desc;
    single.parameters.output_descriptor.cell_state_desc = single.parameters.input_descriptor.cell_state_desc;
    const double bound = chain(whole) * 0x1p-24;
    for (size_t t = 0; t < whole.T; ++t) {
      for_each_coordinate(single.slot(LstmLayer::kX).size(), [&](const Coordinates& at) {
        single.slot(LstmLayer::kX).set(at, layer.slot(LstmLayer::kX).get({at[0], at[1], t}));
      });
      ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&single.parameters, nullptr, nullptr, 0), 0);
      for_each_coordinate(single.slot(LstmLayer::kY).size(), [&](const Coordinates& at) {
        EXPECT_NEAR(single.slot(LstmLayer::kY).get(at), layer.slot(LstmLayer::kY).get({at[0], at[1], t}), bound);
      });
    }
    for_each_coordinate(layer.slot(LstmLayer::kH).size(), [&](const Coordinates& at) {
      EXPECT_NEAR(single.slot(LstmLayer::kH0).get(at), layer.slot(LstmLayer::kH).get(at), bound);
      EXPECT_NEAR(single.slot(LstmLayer::kC0).get(at), layer.slot(LstmLayer::kC).get(at), bound);
    });
  });
}

// With and without a cache: the same bits, forward and backward; and the usual activations by name are the usual ones.
TEST(Lstm, CacheAndNamesDoNotMatter) {
  for_each_isa([] {
    for (const bool ragged : {false, true}) {
      LstmCase c = {.I = 5, .H = 11, .B = 4, .L = 3, .T = 4, .D = 2, .peephole = 0xf, .ragged = ragged};
      std::vector<float> results[4], gradients[4];
      for (int way = 0; way < 4; ++way) {
        c.custom = way >= 2;
        Random random(4);
        LstmLayer layer(c), deltas(c);
        layer.fill_arguments(random);
        deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t) { t.set(at, random.normal()); });
        const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer.parameters);
        std::vector<double> cache(capacity / 8 + 1);
        void* used = way % 2 ? cache.data() : nullptr;
        ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, used, capacity), 0);
        ASSERT_EQ(BNNSDirectApplyLSTMBatchBackward(&layer.parameters, &deltas.parameters, nullptr, used, capacity), 0);
        results[way] = Plain::results(layer), gradients[way] = Plain::gradients(deltas);
        EXPECT_TRUE(same_bits(results[way], results[0]));
        EXPECT_TRUE(same_bits(gradients[way], gradients[0]));
      }
    }
  });
}

// Dropout is active with a cache only, differs from call to call, and drops about its rate.
TEST(Lstm, DropoutOnlyInTraining) {
  LstmCase c = {.I = 4, .H = 32, .B = 8, .L = 2, .T = 10, .D = 2, .dropout = 0.25};
  Random random(5);
  LstmLayer layer(c);
  layer.fill_arguments(random);
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), 0);
  const std::vector<float> inference = Plain::results(layer);
  layer.parameters.dropout = 0;
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), 0);
  EXPECT_TRUE(same_bits(Plain::results(layer), inference));
  layer.parameters.dropout = 0.25f;
  const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer.parameters);
  std::vector<double> cache(capacity / 8 + 1);
  std::vector<float> before = inference;
  for (int call = 0; call < 2; ++call) {
    ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, cache.data(), capacity), 0);
    EXPECT_FALSE(same_bits(Plain::results(layer), before));
    before = Plain::results(layer);
    const std::vector<double> mask = mask_of_cache(c, cache.data());
    double dropped = 0;
    for (const double m : mask) dropped += m == 0;
    const double n = double(mask.size());  // five standard deviations of a binomial
    EXPECT_NEAR(dropped / n, 0.25, 5 * std::sqrt(0.25 * 0.75 / n));
  }
}

// Direction 1 is direction 0 on the reversed sequence.
TEST(Lstm, DirectionsMirror) {
  LstmCase c = {.I = 4, .H = 5, .B = 3, .L = 1, .T = 6, .D = 2, .states = false};
  Random random(6);
  LstmLayer layer(c), mirrored(c);
  layer.fill_arguments(random);
  for_each_coordinate(layer.slot(LstmLayer::kX).size(), [&](const Coordinates& at) {
    mirrored.slot(LstmLayer::kX).set(at, layer.slot(LstmLayer::kX).get({at[0], at[1], c.T - 1 - at[2]}));
  });
  for (size_t slot = LstmLayer::kFirst; slot < layer.slots(); ++slot) {
    if (!layer.has(slot)) continue;
    // Exchange the directions: axis 1 of iw[0] (FirstMajor), axis 2 of hw, axis 1 of b.
    const size_t axis = layer.slot(slot).size().size() == 3 || (slot - LstmLayer::kFirst) % 5 == 0 ? 1 : 2;
    for_each_coordinate(layer.slot(slot).size(), [&](const Coordinates& at) {
      Coordinates other = at;
      other[axis] = 1 - at[axis];
      mirrored.slot(slot).set(other, layer.slot(slot).get(at));
    });
  }
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), 0);
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&mirrored.parameters, nullptr, nullptr, 0), 0);
  for_each_coordinate(layer.slot(LstmLayer::kY).size(), [&](const Coordinates& at) {
    EXPECT_EQ(layer.slot(LstmLayer::kY).get(at),
              mirrored.slot(LstmLayer::kY).get({(at[0] + c.H) % (2 * c.H), at[1], c.T - 1 - at[2]}));
  });
}

}  // namespace
}  // namespace bnns::testing
