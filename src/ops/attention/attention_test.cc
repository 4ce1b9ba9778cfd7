// Multi-head attention: the reference by hand and by differences, the kernels against it, and what must always hold.
#include <functional>

#include "src/ops/attention/attention_testing.h"
#include "src/ops/dropout/dropout_ref.h"

namespace bnns::testing {
namespace {

// ---- the reference --------------------------------------------------------------------------------------------------

// Two keys, one head: q' = 1, k' = {0, ln 3}: p = {1/4, 3/4}; v' = {4, 8}: head = 7; wo = 2, bo = 1: y = 15.
// dy = 1: dwo = 7, dhead = 2, dv' = {1/2, 3/2}; dp = {8, 16}, dp.p = 14, dr = {-3/2, 3/2}; dq' = 1.5 ln 3, dk' = dr.
TEST(AttentionReference, WorkedByHand) {
  ref::Attention a;
  a.keys = 2;
  a.q = {1}, a.k = {0, std::log(3.0)}, a.v = {4, 8};
  a.wq = a.wk = a.wv = {1}, a.wo = {2}, a.bo = {1};
  const ref::AttentionResults f = ref::attention_forward(a);
  EXPECT_NEAR(f.p[0], 0.25, 1e-15);
  EXPECT_NEAR(f.y[0], 15, 1e-14);
  const ref::AttentionDeltas g = ref::attention_backward(a, f, {1});
  EXPECT_NEAR(g.wo[0], 7, 1e-14);
  EXPECT_NEAR(g.v[0], 0.5, 1e-15);
  EXPECT_NEAR(g.v[1], 1.5, 1e-15);
  EXPECT_NEAR(g.q[0], 1.5 * std::log(3.0), 1e-14);
  EXPECT_NEAR(g.k[0], -1.5, 1e-14);
  EXPECT_NEAR(g.k[1], 1.5, 1e-14);
}

void check_differences(const AttentionOptions& o) {
  SCOPED_TRACE(o.text());
  AttentionSetup s(o, 3);
  if (o.dropout > 0) {
    Random random(5);
    s.a.keep.resize(o.batch * o.heads * o.queries * s.a.rows());
    for (double& x : s.a.keep) x = random.below(3) == 0 ? 0 : 1.5;
  }
  const ref::AttentionDeltas g = ref::attention_backward(s.a, ref::attention_forward(s.a), s.dy_values);
  const std::pair<Values ref::Attention::*, const Values*> tensors[] = {{&ref::Attention::q, &g.q},
                                                                        {&ref::Attention::k, &g.k},
                                                                        {&ref::Attention::v, &g.v},
                                                                        {&ref::Attention::wq, &g.wq},
                                                                        {&ref::Attention::wk, &g.wk},
                                                                        {&ref::Attention::wv, &g.wv},
                                                                        {&ref::Attention::wo, &g.wo},
                                                                        {&ref::Attention::bq, &g.bq},
                                                                        {&ref::Attention::bk, &g.bk},
                                                                        {&ref::Attention::bv, &g.bv},
                                                                        {&ref::Attention::bo, &g.bo},
                                                                        {&ref::Attention::key_row, &g.key_row},
                                                                        {&ref::Attention::value_row, &g.value_row}};
  // A key bias shifts all logits of a row alike and has no gradient without extra rows: measure against them all.
  double largest = 0;
  for (const auto& [member, gradient] : tensors) {
    for (double x : *gradient) largest = std::max(largest, std::fabs(x));
  }
  for (const auto& [member, gradient] : tensors) {
    ref::Attention moved = s.a;
    if ((moved.*member).empty()) continue;
    const auto loss = [&, member = member](const Values& x) {
      moved.*member = x;
      const Values y = ref::attention_forward(moved).y;
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * s.dy_values[i];
      return sum;
    };
    const Values numeric = central_differences(s.a.*member, loss, 1e-5);
    for (size_t i = 0; i < numeric.size(); ++i) EXPECT_LE(std::fabs(numeric[i] - (*gradient)[i]), 1e-6 * largest);
  }
}

TEST(AttentionReference, GradientByDifferences) {
  AttentionOptions o;
  check_differences(o);
  o.rows = o.zero_row = true, o.dropout = 0.3f;
  check_differences(o);
  o.key_mask = true, o.rows = o.zero_row = false, o.add = 4;
  check_differences(o);
  o.add_bool = true, o.add = 3, o.zero_row = true;
  check_differences(o);
}

// ---- the kernels ----------------------------------------------------------------------------------------------------

// Section 6 of the specification: v = 3.5, Wv = 2, Wo = 3 gives 21; dv = 6, dWv = 10.5, dWo = 7, nothing for q and k.
TEST(Attention, ScalarVector) {
  AttentionOptions o;
  o.batch = o.queries = o.keys = o.heads = o.key_size = o.value_size = o.model = o.key_model = o.value_model = 1;
  o.bias = false;
  AttentionSetup s(o, 1);
  s.q.set({0.5}), s.k.set({-2}), s.v.set({3.5}), s.wq.set({1.5}), s.wk.set({0.75}), s.wv.set({2}), s.wo.set({3});
  s.dy_values = {1};
  FilterHandle filter = s.make();
  std::vector<char> cache(s.cache_bytes(filter.get()));
  size_t bytes = cache.size();
  ASSERT_EQ(s.forward(filter.get(), &bytes, cache.data()), 0) << BNNSExtLastError();
  EXPECT_EQ(s.y.get(), Values{21});
  for (void* given : {static_cast<void*>(cache.data()), static_cast<void*>(nullptr)}) {
    AttentionOutputs d(s);
    ASSERT_EQ(d.backward(s, filter.get(), bytes, given), 0) << BNNSExtLastError();
    EXPECT_EQ(d.v.get(), Values{6});
    EXPECT_EQ(d.wv.get(), Values{10.5});
    EXPECT_EQ(d.wo.get(), Values{7});
    for (AttentionTensor* t : {&d.q, &d.k, &d.wq, &d.wk, &d.bq, &d.bk}) EXPECT_EQ(t->get(), Values{0});
  }
}

using Bytes = std::vector<unsigned char>;

// Forward and both kinds of backward against the reference, for every ISA; the bits must not depend on the threads.
void check_kernels(AttentionOptions o, uint64_t seed, bool isas = true) {
  SCOPED_TRACE(o.text());
  AttentionSetup s(o, seed);
  { AttentionOutputs rounded(s); }  // stores dy, so that the reference sees what the type holds
  const AttentionExpected expected(s);
  const auto body = [&] {
    std::vector<Bytes> first;
    for (size_t threads : kThreadCounts) {
      s.o.threads = threads;
      FilterHandle filter = s.make();
      ASSERT_EQ(s.forward(filter.get()), 0) << BNNSExtLastError();
      const Bytes without_cache = s.y.snapshot();
      std::vector<char> cache(s.cache_bytes(filter.get()) + 1, 'c'), workspace;
      size_t bytes = cache.size() - 1, workspace_bytes = 0;
      ASSERT_EQ(s.forward(filter.get(), &bytes, cache.data()), 0) << BNNSExtLastError();
      EXPECT_EQ(cache.back(), 'c');
      EXPECT_EQ(s.y.snapshot(), without_cache);
      EXPECT_TRUE(s.y.gaps_untouched());
      std::vector<Bytes> results = {without_cache};
      for (const bool cached : {true, false}) {
        AttentionOutputs d(s);
        if (cached) {
          ASSERT_EQ(d.backward(s, filter.get(), bytes, cache.data()), 0) << BNNSExtLastError();
        } else {  // and with the caller's workspace
          ASSERT_EQ(d.backward(s, filter.get(), 0, nullptr, &workspace_bytes), 0) << BNNSExtLastError();
          workspace.assign(workspace_bytes + 1, 'w');
          ASSERT_EQ(d.backward(s, filter.get(), 0, nullptr, &workspace_bytes, workspace.data()), 0)
              << BNNSExtLastError();
          EXPECT_EQ(workspace.back(), 'w');
        }
        for (AttentionTensor* t : d.all()) results.push_back(t->snapshot());
        if (first.empty()) expected.check_backward(s, d);
      }
      if (first.empty()) {
        expected.check_forward(s);
        first = results;
        if (::testing::Test::HasFailure()) return;
      } else {
        EXPECT_EQ(results, first) << threads << " threads";
      }
    }
  };
  if (isas) {
    for_each_isa(body);
  } else {
    body();
  }
}

TEST(Attention, KernelsMatchReference) {
  AttentionOptions o;
  check_kernels(o, 11);
  o.rows = true;
  check_kernels(o, 12);
  o.zero_row = true, o.bias = false;
  check_kernels(o, 13);
  o.rows = false, o.key_mask = true;
  check_kernels(o, 14);
  o.zero_row = false;
  check_kernels(o, 15);  // a sample whose keys are all masked
  for (int rank : {2, 3, 4}) {
    for (bool boolean : {false, true}) {
      o.add = rank, o.add_bool = boolean, o.key_mask = rank == 3;
      check_kernels(o, 16);
    }
  }
}

// Sizes around vectors and tiles; several tiles per head, several groups, keys beyond a dropout block.
TEST(Attention, KernelsMatchReferenceOnLargerShapes) {
  AttentionOptions o;
  o.batch = 2, o.queries = 270, o.keys = 33, o.heads = 3, o.key_size = 17, o.value_size = 9, o.model = 16;
  o.key_model = 31, o.value_model = 8, o.key_mask = true, o.add = 3;
  check_kernels(o, 21);
  o.batch = 2, o.queries = 40, o.keys = 530, o.heads = 2, o.key_size = 8, o.value_size = 16, o.rows = true;
  check_kernels(o, 22);
  o.batch = 2, o.queries = 600, o.keys = 20, o.heads = 3, o.key_size = 4,
  o.value_size = 3;  // groups of 2, 2 and 1 tile
  check_kernels(o, 24);
  o.batch = 5, o.queries = 31, o.keys = 32, o.heads = 4, o.model = o.key_model = o.value_model = 33, o.add = 0;
  check_kernels(o, 23);
}

TEST(Attention, BC14_AccumulateAddsOnce) {
  AttentionOptions o;
  o.rows = true;
  AttentionSetup s(o, 31);
  { AttentionOutputs rounded(s); }
  const AttentionExpected expected(s);
  FilterHandle filter = s.make();
  AttentionOutputs d(s, true, 0.25);
  ASSERT_EQ(d.backward(s, filter.get()), 0) << BNNSExtLastError();
  expected.check_backward(s, d, 0.25);
}

// The three targets may be one tensor, as in self-attention: it gets the sum.
TEST(Attention, EqualTargetsGetTheSum) {
  for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16}) {
    for (const bool accumulate : {false, true}) {
      for (const bool rows : {false, true}) {
        AttentionOptions o;
        o.keys = o.queries, o.key_model = o.value_model = o.model, o.self = true, o.rows = rows, o.memory.type = type;
        AttentionSetup s(o, 41);
        AttentionOutputs d(s, accumulate);
        AttentionExpected expected(s);
        d.key.target_desc = d.value.target_desc = d.query.target_desc;
        FilterHandle filter = s.make();
        ASSERT_EQ(d.backward(s, filter.get()), 0) << BNNSExtLastError();
        Values sum = expected.g.q;
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += expected.g.k[i] + expected.g.v[i];
        const double scale = expected.largest_of({&expected.g.q, &expected.g.k, &expected.g.v});
        EXPECT_TRUE(expected.matches(d.q.get(), sum, 3 * scale, accumulate ? 0.25 : 0));
      }
    }
  }
}

// Every gradient alone has the bits that it has among all; nothing else is needed of the caller.
TEST(Attention, EachGradientAlone) {
  AttentionOptions o;
  o.rows = true, o.key_mask = true;
  AttentionSetup s(o, 51);
  FilterHandle filter = s.make();
  std::vector<char> cache(s.cache_bytes(filter.get()));
  size_t bytes = cache.size();
  ASSERT_EQ(s.forward(filter.get(), &bytes, cache.data()), 0);
  for (const bool cached : {true, false}) {
    AttentionOutputs whole(s);
    ASSERT_EQ(whole.backward(s, filter.get(), cached ? bytes : 0, cached ? cache.data() : nullptr), 0);
    for (size_t i = 0; i < whole.all().size(); ++i) {
      AttentionOutputs d(s);
      BNNSNDArrayDescriptor* descriptors[] = {
          &d.query.target_desc, &d.key.target_desc, &d.value.target_desc, &d.query.weights, &d.key.weights,
          &d.value.weights,     &d.output.weights,  &d.query.bias,        &d.key.bias,      &d.value.bias,
          &d.output.bias,       &d.key_row_d,       &d.value_row_d};
      for (size_t j = 0; j < std::size(descriptors); ++j) {
        if (j != i) descriptors[j]->data = nullptr;
      }
      ASSERT_EQ(d.backward(s, filter.get(), cached ? bytes : 0, cached ? cache.data() : nullptr), 0)
          << BNNSExtLastError();
      for (size_t j = 0; j < std::size(descriptors); ++j) {
        if (j == i) {
          EXPECT_EQ(d.all()[j]->snapshot(), whole.all()[j]->snapshot()) << "gradient " << j;
        } else {
          for (double x : d.all()[j]->get()) EXPECT_TRUE(std::isnan(x)) << "gradient " << j << " beside " << i;
        }
      }
    }
  }
}

// ---- dropout --------------------------------------------------------------------------------------------------------

Values keep_of(const AttentionOptions& o, size_t rows, uint64_t pass) {
  Values keep(o.batch * o.heads * o.queries * rows);
  for (size_t i = 0; i < keep.size(); ++i) {
    keep[i] = ref::dropout_word(o.seed, pass, i) < double(o.dropout) * 4294967296.0 ? 0 : 1 / (1 - double(o.dropout));
  }
  return keep;
}

TEST(Attention, BC28_DropoutUsesOneMaskBothWays) {
  AttentionOptions o;
  o.dropout = 0.4f, o.zero_row = true, o.queries = 20, o.keys = 515;
  for_each_isa([&] {
    std::vector<Bytes> first;
    for (size_t threads : kThreadCounts) {
      o.threads = threads;
      AttentionSetup s(o, 61);
      FilterHandle filter = s.make();
      ASSERT_EQ(s.forward(filter.get()), 0);  // pass 1
      const Bytes pass1 = s.y.snapshot();
      std::vector<char> cache(s.cache_bytes(filter.get()));
      size_t bytes = cache.size();
      ASSERT_EQ(s.forward(filter.get(), &bytes, cache.data()), 0);  // pass 2
      EXPECT_NE(s.y.snapshot(), pass1) << "every call draws again";
      AttentionOutputs d(s);
      s.a.keep = keep_of(o, s.a.rows(), 2);
      const AttentionExpected expected(s);
      expected.check_forward(s);
      ASSERT_EQ(d.backward(s, filter.get(), bytes, cache.data()), 0) << BNNSExtLastError();
      expected.check_backward(s, d);
      std::vector<Bytes> results = {pass1, s.y.snapshot()};
      for (AttentionTensor* t : d.all()) results.push_back(t->snapshot());
      if (first.empty()) first = results;
      EXPECT_EQ(results, first) << threads << " threads";
    }
  });
}

TEST(Attention, BC28_DropoutOutsideZeroToOneIsNone) {
  AttentionOptions o;
  Bytes none;
  for (float rate : {0.0f, -0.5f, 1.0f, 2.0f, NAN}) {
    o.dropout = rate;
    AttentionSetup s(o, 62);
    FilterHandle filter = s.make();
    ASSERT_EQ(s.forward(filter.get()), 0);
    if (none.empty()) none = s.y.snapshot();
    EXPECT_EQ(s.y.snapshot(), none) << rate;
    AttentionOutputs d(s);
    EXPECT_EQ(d.backward(s, filter.get()), 0) << "no cache is needed";
  }
}

// ---- properties -----------------------------------------------------------------------------------------------------

// With Q and K fixed the output is linear in V: <F v, g> = <v, F' g>.
TEST(Attention, AdjointIdentity) {
  AttentionOptions o;
  o.bias = false, o.queries = 19, o.keys = 23, o.key_size = 8, o.value_size = 7, o.model = 11;
  AttentionSetup s(o, 71);
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  AttentionOutputs d(s);
  ASSERT_EQ(d.backward(s, filter.get()), 0);
  const Values y = s.y.get(), dv = d.v.get();
  double left = 0, right = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) left += y[i] * s.dy_values[i], size += std::fabs(y[i] * s.dy_values[i]);
  for (size_t i = 0; i < dv.size(); ++i) right += s.a.v[i] * dv[i], size += std::fabs(s.a.v[i] * dv[i]);
  EXPECT_NEAR(left, right, AttentionExpected(s).relative * size);
}

// Equal values of all keys: probabilities sum to 1, so every query gets the same output, whatever Q, K and X are.
TEST(Attention, EqualValuesGiveEqualOutputs) {
  AttentionOptions o;
  o.add = 2, o.queries = 17, o.keys = 45;
  AttentionSetup s(o, 72);
  Values v;
  for (size_t i = 0; i < s.v.count(); ++i) v.push_back(0.25 * double(i % o.value_model) - 0.5);
  s.a.v = s.v.set(v);
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  const Values y = s.y.get();
  const AttentionExpected expected(s);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], y[i % o.model], 2 * expected.relative * expected.largest_of({&expected.f.y}));
  }
}

// A masked key may hold anything: NaN in it reaches nothing but its own value's row, which has probability 0.
TEST(Attention, BC26_MaskedKeysAndFullyMaskedRows) {
  AttentionOptions o;
  o.key_mask = true, o.bias = false;
  AttentionSetup s(o, 73);
  Values k = s.a.k;
  for (size_t b = 0; b < o.batch; ++b)
    for (size_t j = 0; j < o.keys; ++j)
      for (size_t d = 0; d < o.key_model && s.a.key_mask[b * o.keys + j]; ++d)
        k[(b * o.keys + j) * o.key_model + d] = NAN;
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  const Bytes clean = s.y.snapshot();
  s.k.set(k);
  ASSERT_EQ(s.forward(filter.get()), 0);
  EXPECT_EQ(s.y.snapshot(), clean);
  const Values y = s.y.get();
  for (size_t i = 0; i < o.queries * o.model; ++i) EXPECT_EQ(y[i], 0) << "the first sample sees nothing";
}

// One query full of NaN changes no other row.
TEST(Attention, BC26_OneBadRowStaysAlone) {
  AttentionOptions o;
  o.queries = 37;
  AttentionSetup s(o, 74);
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  const Values clean = s.y.get();
  Values q = s.a.q;
  for (size_t d = 0; d < o.model; ++d) q[5 * o.model + d] = NAN;
  s.q.set(q);
  ASSERT_EQ(s.forward(filter.get()), 0);
  const Values y = s.y.get();
  for (size_t i = 0; i < y.size(); ++i) {
    if (i / o.model == 5) {
      EXPECT_TRUE(std::isnan(y[i]));
    } else {
      EXPECT_EQ(y[i], clean[i]);
    }
  }
}

TEST(Attention, BC26_LargeLogitsDoNotOverflow) {
  AttentionOptions o;
  o.bias = false;
  AttentionSetup s(o, 75);
  Values q = s.a.q;
  for (double& x : q) x *= 1e4;
  s.a.q = s.q.set(q);
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  for (double y : s.y.get()) EXPECT_TRUE(std::isfinite(y));
  AttentionOutputs d(s);
  ASSERT_EQ(d.backward(s, filter.get()), 0);
  for (AttentionTensor* t : {&d.q, &d.k, &d.v, &d.wq, &d.wk, &d.wv}) {
    for (double x : t->get()) EXPECT_TRUE(std::isfinite(x));
  }
}

}  // namespace
}  // namespace bnns::testing
