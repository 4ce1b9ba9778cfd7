// The engine under matmul, contraction and Gram, driven through contraction strings: the reference, its gradient, and
// random contractions in every layout and type against it. Data are small integers, so every comparison is exact.

#include "src/engine/product/product.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/engine/product/product_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

BNNSFilterParameters threads_of(size_t n) {
  BNNSFilterParameters p = {};
  p.n_threads = n;
  return p;
}

BNNSFilter make_contraction(const std::string& operation, float alpha, float beta, Samples& a, Samples* b, Samples& c,
                            size_t threads) {
  BNNSLayerParametersTensorContraction layer = {};
  layer.operation = operation.c_str();
  layer.alpha = alpha;
  layer.beta = beta;
  layer.iA_desc = a.descriptor();
  if (b) layer.iB_desc = b->descriptor();
  layer.o_desc = c.descriptor();
  const BNNSFilterParameters parameters = threads_of(threads);
  return BNNSFilterCreateLayerTensorContraction(&layer, &parameters);
}

// [1 2; 3 4] x [5 6; 7 8] = [19 22; 43 50] by rows: 1*5 + 2*7 = 19, 1*6 + 2*8 = 22, 3*5 + 4*7 = 43, 3*6 + 4*8 = 50.
// With dC = C: dA[0,0] = 19*5 + 22*6 = 227, dB[0,0] = 1*19 + 3*43 = 148.
TEST(ProductReference, ByHand) {
  ref::Lettered a("ji", {2, 2}), b("kj", {2, 2}), c("ki", {2, 2}), da = a, db = b;  // last index first: row-major
  a.value = {1, 2, 3, 4}, b.value = {5, 6, 7, 8};
  ref::contract(1, a, b, c);
  EXPECT_EQ(c.value, (std::vector<double>{19, 22, 43, 50}));
  ref::contract_backward(1, a, b, c, da, db);
  EXPECT_EQ(da.value[0], 227);
  EXPECT_EQ(db.value[0], 148);
}

TEST(ProductReference, GradientMatchesDifferences) {
  Random random(1);
  // Broadcast letter j in B, letter s only in A, letter t only in B.
  ref::Lettered a("ijs", {3, 2, 2}), b("jkt", {1, 4, 2}), c("kij", {4, 3, 2}), dc = c, da = a, db = b;
  for (ref::Lettered* t : {&a, &b, &dc}) {
    for (double& x : t->value) x = random.normal();
  }
  ref::contract_backward(0.7, a, b, dc, da, db);
  const auto loss = [&](ref::Lettered& x, ref::Lettered& y) {
    ref::Lettered out("kij", {4, 3, 2});
    ref::contract(0.7, x, y, out);
    return std::inner_product(out.value.begin(), out.value.end(), dc.value.begin(), 0.0);
  };
  const auto numeric_a = central_differences(a.value, [&](const std::vector<double>& v) {
    ref::Lettered x = a;
    x.value = v;
    return loss(x, b);
  });
  const auto numeric_b = central_differences(b.value, [&](const std::vector<double>& v) {
    ref::Lettered y = b;
    y.value = v;
    return loss(a, y);
  });
  EXPECT_LE(gradient_error(da.value, numeric_a), 1e-7);
  EXPECT_LE(gradient_error(db.value, numeric_b), 1e-7);
}

// ---- random contractions ----------------------------------------------------------------------------------------

BNNSDataLayout random_layout(Random& random, size_t rank) {
  const auto generic = BNNSDataLayout((rank << 16) | 0x8000 | random.below(2));
  if (random.below(3) != 0) return generic;
  switch (rank) {
    case 1:
      return BNNSDataLayoutVector;
    case 2:
      return random.below(2) ? BNNSDataLayoutRowMajorMatrix : BNNSDataLayoutColumnMajorMatrix;
    case 3: {
      const BNNSDataLayout special[] = {BNNSDataLayoutImageCHW, BNNSDataLayoutSNE, BNNSDataLayoutNSE,
                                        BNNSDataLayoutMHA_DHK};
      return special[random.below(4)];
    }
    default:
      return generic;
  }
}

struct RandomContraction {
  std::string operation, letters[3];
  std::vector<size_t> size[3];
  bool has_b, self;
  int weights;
  float alpha, beta;
  size_t batch;

  std::string text() const {
    std::string t = operation + " batch " + std::to_string(batch) + " alpha " + std::to_string(alpha) + " beta " +
                    std::to_string(beta);
    for (int s = 0; s < 3; ++s) {
      t += " [";
      for (size_t x : size[s]) t += std::to_string(x) + " ";
      t += "]";
    }
    return t;
  }
};

RandomContraction random_contraction(Random& random, bool large) {
  RandomContraction r;
  const size_t kind = random.below(8);
  r.has_b = kind != 0;
  r.self = kind == 1;
  r.weights = kind == 2 ? 0 : kind == 3 ? 1 : -1;
  r.alpha = random.below(2) ? 1.0f : float(random.integer(-3, 3));
  r.beta = float(random.below(2));
  r.batch = 1 + random.below(3);
  const std::string alphabet = "ijklMNopq";
  const size_t n = 1 + random.below(6);
  size_t extent[9], total = 1;
  bool in[3][9] = {};
  for (size_t i = 0; i < n; ++i) {
    extent[i] = 1 + random.below(large ? 40 : 6);
    if (r.self) extent[i] = 3;  // any axis may meet any letter
    while (extent[i] > 1 && total * extent[i] > (large ? 60000u : 3000u)) extent[i] /= 2;
    total *= extent[i];
    const size_t where = random.below(r.has_b ? 7 : 2);  // which sides
    const unsigned sides[] = {1, 5, 2, 3, 6, 7, 7};
    const unsigned bits = r.has_b ? sides[where] : (where ? 5u : 1u);
    for (int s = 0; s < 3; ++s) in[s][i] = bits >> s & 1;
  }
  for (int s = 0; s < 3; ++s) {
    std::vector<size_t> order;
    for (size_t i = 0; i < n; ++i) {
      if (in[s][i]) order.push_back(i);
    }
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    if (order.size() > 6) order.resize(6);
    for (size_t i : order) {
      r.letters[s] += alphabet[i];
      r.size[s].push_back(s < 2 && !r.self && random.below(8) == 0 ? 1 : extent[i]);
    }
  }
  if (r.self) {  // B is A under other letters: the same number of indices
    std::string more = alphabet;
    while (r.letters[1].size() < r.letters[0].size()) {
      for (char letter : more) {
        if (r.letters[1].find(letter) == std::string::npos) {
          r.letters[1] += letter;
          break;
        }
      }
    }
    r.letters[1].resize(r.letters[0].size());
    if (r.letters[0].size() > 4) r.letters[0].resize(4), r.letters[1].resize(4);
    r.size[0].assign(r.letters[0].size(), 3);
    r.size[1] = r.size[0];
    // What the letters of C are must be on the left.
    std::string kept;
    for (char letter : r.letters[2]) {
      if ((r.letters[0] + r.letters[1]).find(letter) != std::string::npos) kept += letter;
    }
    r.letters[2] = kept;
    r.size[2].assign(kept.size(), 3);
  }
  const char* second = r.self ? "a" : r.weights == 1 ? "weights" : "b";
  r.operation = std::string(r.weights == 0 ? "w" : "a") + "_" + r.letters[0];
  if (r.has_b) r.operation += std::string(random.below(2) ? ", " : ",") + second + "_" + r.letters[1];
  r.operation += " -> out_" + r.letters[2];
  return r;
}

void run_random(const RandomContraction& r, Random& random, bool all_threads) {
  SCOPED_TRACE(r.text());
  const BNNSDataType floats[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  const BNNSDataType inputs[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16,
                                 BNNSDataTypeInt8};
  const bool plain = random.below(2);
  std::unique_ptr<Samples> x[3], d[3];
  for (int s = 0; s < 3; ++s) {
    if (s == 1 && (!r.has_b || r.self)) continue;
    std::vector<size_t> size = r.size[s];
    if (size.empty()) size = {1};
    const BNNSDataLayout layout = random_layout(random, size.size());
    const size_t unit = random.below(4) == 0 ? 2 : 1, pad = random.below(3) == 0 ? 3 : 0, gap = random.below(2) * 5;
    const size_t batch = r.weights == s ? 1 : r.batch;
    const BNNSDataType type = plain ? BNNSDataTypeFloat32 : s == 2 ? floats[random.below(4)] : inputs[random.below(5)];
    x[s] = std::make_unique<Samples>(layout, size, type, unit, pad, batch, gap);
    x[s]->fill_integers(random, 2);
    d[s] = std::make_unique<Samples>(layout, size, plain ? BNNSDataTypeFloat32 : floats[random.below(4)], 1,
                                     random.below(2) * 2, batch, random.below(2) * 3);
  }
  d[2]->fill_integers(random, 2);
  const bool accumulate = random.below(2);
  for (const size_t threads : kThreadCounts) {
    if (!all_threads && threads != 1 && threads != 3) continue;
    SCOPED_TRACE(threads);
    BNNSFilter filter = make_contraction(r.operation, r.alpha, r.beta, *x[0], x[1].get(), *x[2], threads);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    const ProductCase p{{r.letters[0], r.letters[1], r.letters[2]},
                        x[0].get(),
                        x[1].get(),
                        x[2].get(),
                        r.self,
                        r.weights,
                        r.alpha,
                        r.beta};
    EXPECT_TRUE(forward_equals(filter, p));
    EXPECT_TRUE(backward_equals(filter, p, *d[2], *d[0], d[1].get(), accumulate));
    BNNSFilterDestroy(filter);
  }
}

TEST(Product, BC15_BC18_RandomContractionsInEveryLayoutAndType) {
  for_each_isa([] {
    Random random(20);
    for (int i = 0; i < 600 && !::testing::Test::HasFailure(); ++i) {
      run_random(random_contraction(random, false), random, i % 10 == 0);
    }
  });
}

TEST(Product, RandomLargerContractions) {
  for_each_isa([] {
    Random random(21);
    for (int i = 0; i < 24 && !::testing::Test::HasFailure(); ++i) {
      run_random(random_contraction(random, true), random, i % 5 == 0);
    }
  });
}

// Products that take each of the engine's ways, by name: what is fused, repeated, flattened, staged.
TEST(Product, EachWayOfTheEngine) {
  struct Named {
    const char *what, *a, *b, *c;
    std::vector<size_t> size_a, size_b, size_c;
  };
  const Named cases[] = {
      {"matrix product", "ik", "kj", "ij", {37, 70}, {70, 45}, {37, 45}},
      {"rows of two axes that fuse", "ijk", "kl", "ijl", {5, 9, 33}, {33, 40}, {5, 9, 40}},
      {"rows that do not fuse", "ijk", "kl", "jil", {40, 9, 33}, {33, 40}, {9, 40, 40}},
      {"slivers, flattened", "ijk", "kl", "jil", {7, 9, 33}, {33, 40}, {9, 7, 40}},
      {"slivers, in more than one block", "ijk", "kl", "jil", {15, 21, 2}, {2, 1030}, {21, 15, 1030}},
      {"columns flattened", "ik", "kjl", "ilj", {40, 33}, {33, 5, 6}, {40, 6, 5}},
      {"depth of two axes", "iabj", "bka", "ikj", {9, 12, 20, 3}, {20, 17, 12}, {9, 17, 3}},
      {"repetition outside", "nik", "nkj", "nij", {11, 20, 30}, {11, 30, 24}, {11, 20, 24}},
      {"repetition fastest", "ikn", "kjn", "ijn", {13, 11, 66}, {11, 9, 66}, {13, 9, 66}},
      {"element-wise", "ij", "ij", "ij", {30, 70}, {30, 70}, {30, 70}},
      {"dot products", "ni", "ni", "n", {300, 5}, {300, 5}, {300}},
      {"scaled rows", "ij", "i", "ij", {30, 70}, {30}, {30, 70}},
      {"outer product", "i", "j", "ij", {130}, {70}, {130, 70}},
      {"summed alone", "iks", "kjt", "ij", {9, 8, 6}, {8, 7, 5}, {9, 7}},
      {"long sum", "k", "k", "", {20000}, {20000}, {1}},
      {"long depth, few rows", "mk", "nk", "mn", {5, 2000}, {33, 2000}, {5, 33}},
  };
  for_each_isa([&] {
    for (const Named& n : cases) {
      SCOPED_TRACE(n.what);
      Random random(3);
      for (const bool first_major : {true, false}) {
        const float alpha = first_major ? 1 : 2;
        const auto layout = [&](size_t rank) { return BNNSDataLayout((rank << 16) | 0x8000 | (first_major ? 1 : 0)); };
        const std::string c_letters = n.c;
        const std::vector<size_t>& c_size = n.size_c;
        Samples a(layout(n.size_a.size()), n.size_a, BNNSDataTypeFloat32, 1, 0, 2, 0);
        Samples b(layout(n.size_b.size()), n.size_b, BNNSDataTypeFloat32, 1, 0, 2, 0);
        Samples c(layout(c_size.size()), c_size, BNNSDataTypeFloat32, 1, 0, 2, 0);
        Samples dc(layout(c_size.size()), c_size, BNNSDataTypeFloat32, 1, 0, 2, 0);
        Samples da(layout(n.size_a.size()), n.size_a, BNNSDataTypeFloat32, 1, 0, 2, 0);
        Samples db(layout(n.size_b.size()), n.size_b, BNNSDataTypeFloat32, 1, 0, 2, 0);
        for (Samples* s : {&a, &b, &dc}) s->fill_integers(random, 2);
        const std::string operation = std::string("a_") + n.a + ",b_" + n.b + "->c_" + c_letters;
        for (const size_t threads : {1, 7}) {
          BNNSFilter filter = make_contraction(operation, alpha, 0, a, &b, c, threads);
          ASSERT_NE(filter, nullptr) << BNNSExtLastError();
          const ProductCase p{{n.a, n.b, c_letters}, &a, &b, &c, false, -1, alpha, 0};
          EXPECT_TRUE(forward_equals(filter, p));
          EXPECT_TRUE(backward_equals(filter, p, dc, da, &db, false));
          BNNSFilterDestroy(filter);
        }
      }
    }
  });
}

// Real data: within 2 eps k sum|a||b| of the reference, and the same bits for any number of threads.
TEST(Product, BC53_RealDataWithinTheBoundAndSameBitsOnAnyThreads) {
  Random random(4);
  const size_t m = 70, k = 200, n = 90, batch = 3;
  const std::vector<float> a = random.normals(batch * m * k), b = random.normals(batch * k * n);
  std::vector<float> c(batch * m * n);
  ref::Lettered ra("kmn", {k, m, batch}), rb("jkn", {n, k, batch}), rc("jmn", {n, m, batch}), bound = rc;
  std::copy(a.begin(), a.end(), ra.value.begin());
  std::copy(b.begin(), b.end(), rb.value.begin());
  ref::contract(double(0.3f), ra, rb, rc);
  for (ref::Lettered* t : {&ra, &rb}) {
    for (double& x : t->value) x = std::fabs(x);
  }
  ref::contract(double(0.3f), ra, rb, bound);
  for_each_isa([&] {
    std::vector<float> first;
    for (const size_t threads : kThreadCounts) {
      BNNSLayerParametersTensorContraction layer = {};
      layer.operation = "a_mk, b_kj -> c_mj";
      layer.alpha = 0.3f;
      layer.iA_desc = descriptor(BNNSDataLayout2DFirstMajor, {m, k}, nullptr);
      layer.iB_desc = descriptor(BNNSDataLayout2DFirstMajor, {k, n}, nullptr);
      layer.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {m, n}, nullptr);
      const BNNSFilterParameters parameters = threads_of(threads);
      BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, &parameters);
      ASSERT_NE(filter, nullptr);
      ASSERT_EQ(BNNSFilterApplyTwoInputBatch(filter, batch, a.data(), 0, b.data(), 0, c.data(), 0), 0);
      BNNSFilterDestroy(filter);
      EXPECT_TRUE(
          within(c, rc.value, c.size(), [&](size_t i) { return 2 * 0x1p-24 * (double(k) + 3) * bound.value[i]; }));
      if (first.empty()) first = c;
      EXPECT_TRUE(same_bits(first, c));
    }
  });
}

// <C(A, B), G> = <A, dA> = <B, dB>: exact on integers.
TEST(Product, AdjointIdentity) {
  Random random(9);
  for (int round = 0; round < 60; ++round) {
    RandomContraction r = random_contraction(random, false);
    if (!r.has_b || r.self || r.weights >= 0) continue;
    SCOPED_TRACE(r.text());
    std::unique_ptr<Samples> x[3], d[3];
    for (int s = 0; s < 3; ++s) {
      const std::vector<size_t> size = r.size[s].empty() ? std::vector<size_t>{1} : r.size[s];
      const BNNSDataLayout layout = random_layout(random, size.size());
      x[s] = std::make_unique<Samples>(layout, size, BNNSDataTypeFloat32, 1, 0, 1, 0);
      d[s] = std::make_unique<Samples>(layout, size, BNNSDataTypeFloat32, 1, 1, 1, 0);
      x[s]->fill_integers(random, 2);
      d[s]->fill_integers(random, 2);
    }
    BNNSFilter filter = make_contraction(r.operation, 1, 0, *x[0], x[1].get(), *x[2], 2);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    ASSERT_EQ(BNNSFilterApplyTwoInput(filter, x[0]->data(), x[1]->data(), x[2]->data()), 0) << BNNSExtLastError();
    BNNSNDArrayDescriptor g = d[2]->descriptor(), da = d[0]->descriptor(), db = d[1]->descriptor();
    ASSERT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter, 1, x[0]->data(), 0, &da, 0, x[1]->data(), 0, &db, 0, nullptr,
                                                   0, &g, 0, nullptr, nullptr),
              0)
        << BNNSExtLastError();
    double product[3] = {};
    for (int s = 0; s < 3; ++s) {
      x[s]->for_each([&](size_t n, const Coordinates& at) { product[s] += x[s]->get(n, at) * d[s]->get(n, at); });
    }
    EXPECT_EQ(product[2], product[0]);
    EXPECT_EQ(product[2], product[1]);
    BNNSFilterDestroy(filter);
  }
}

// ---- memory -----------------------------------------------------------------------------------------------------

// Fails the N-th request, poisons what it hands out, counts what lives.
struct FailingAllocator {
  static inline int requests = 0, fail_at = 0, live = 0;
  static int allocate(void** out, size_t alignment, size_t size) {
    if (++requests == fail_at) return 12;
    if (posix_memalign(out, alignment, size) != 0) return 12;
    std::memset(*out, 0xff, size);  // NaN in every float type
    ++live;
    return 0;
  }
  static void release(void* p) {
    if (p) --live;
    std::free(p);
  }
};

TEST(Product, BC39_BC42_FailingAllocationsLeaveNothingBehind) {
  Random random(2);
  Samples a(BNNSDataLayout3DFirstMajor, {9, 40, 20}, BNNSDataTypeInt8, 1, 0, 2, 0);
  Samples w(BNNSDataLayout2DFirstMajor, {20, 33}, BNNSDataTypeFloat16, 1, 0, 1, 0);
  Samples c(BNNSDataLayout3DFirstMajor, {40, 9, 33}, BNNSDataTypeFloat16, 1, 0, 2, 0);
  Samples dc(BNNSDataLayout3DFirstMajor, {40, 9, 33}, BNNSDataTypeFloat16, 1, 0, 2, 0);
  Samples da(BNNSDataLayout3DFirstMajor, {9, 40, 20}, BNNSDataTypeBFloat16, 1, 0, 2, 0);
  Samples dw(BNNSDataLayout2DFirstMajor, {20, 33}, BNNSDataTypeFloat32, 1, 0, 1, 0);
  for (Samples* s : {&a, &w, &dc}) s->fill_integers(random, 1);
  const ProductCase p{{"ijk", "kl", "jil"}, &a, &w, &c, false, 1, 2, 0};
  int failures = 0;
  for (int n = 1; n < 40; ++n) {
    FailingAllocator::requests = 0, FailingAllocator::fail_at = n;
    BNNSLayerParametersTensorContraction layer = {};
    layer.operation = "a_ijk, w_kl -> c_jil";
    layer.alpha = 2;
    layer.iA_desc = a.descriptor(), layer.iB_desc = w.descriptor(), layer.o_desc = c.descriptor();
    BNNSFilterParameters parameters = {};
    parameters.alloc_memory = FailingAllocator::allocate, parameters.free_memory = FailingAllocator::release;
    BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, &parameters);
    bool failed = filter == nullptr;
    if (filter) {
      const auto before = c.snapshot();
      if (BNNSFilterApplyBatch(filter, 2, a.data(), 0, c.data(), 0) != 0) {
        failed = true;
        EXPECT_EQ(c.snapshot(), before);
      }
      const auto da_before = da.snapshot(), dw_before = dw.snapshot();
      BNNSNDArrayDescriptor g = dc.descriptor(), ga = da.descriptor(), gw = dw.descriptor();
      if (BNNSFilterApplyBackwardBatch(filter, 2, a.data(), 0, &ga, 0, nullptr, 0, &g, 0, &gw, nullptr) != 0) {
        failed = true;
        EXPECT_EQ(da.snapshot(), da_before);
        EXPECT_EQ(dw.snapshot(), dw_before);
      }
      // The filter is as good as before.
      EXPECT_TRUE(forward_equals(filter, p));
      EXPECT_TRUE(backward_equals(filter, p, dc, da, &dw, false));
      BNNSFilterDestroy(filter);
    }
    EXPECT_EQ(FailingAllocator::live, 0);
    failures += failed;
    if (!failed) break;
  }
  EXPECT_GE(failures, 3);  // the filter, the weights, the scratch
}

}  // namespace
}  // namespace bnns
