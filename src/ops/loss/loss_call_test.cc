// What loss calls accept and refuse, and that filters can be shared between threads and run out of memory.

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include "src/ops/loss/loss.h"
#include "src/ops/loss/loss_testing.h"

namespace bnns::testing {
namespace {

// ---- refusals -----------------------------------------------------------------------------------------------------

TEST(LossCreate, BC35_RefusesWrongParameters) {
  using Parameters = BNNSLayerParametersLossHuber;
  const struct {
    const char* name;
    BNNSLossFunction function;
    std::function<void(Parameters*)> change;
    std::initializer_list<const char*> words;
  } cases[] = {
      {"function 0",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->function = BNNSLossFunction(0); },
       {"function is 0", "no BNNSLossFunction"}},
      {"function 11",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->function = BNNSLossFunction(11); },
       {"function is 11"}},
      {"reduction 5",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->reduction = BNNSLossReductionFunction(5); },
       {"reduction is 5"}},
      {"layout",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->i_desc.layout = BNNSDataLayout(7); },
       {"i_desc.layout is 0x7"}},
      {"size 0",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->i_desc.size[0] = 0; },
       {"i_desc.size[0] is 0"}},
      {"size max", BNNSLossFunctionMeanSquareError, [](Parameters* p) { p->i_desc.size[0] = SIZE_MAX; }, {"i_desc"}},
      {"size 2^62",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->i_desc.size[0] = size_t{1} << 62; },
       {"i_desc"}},
      {"integers",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->i_desc.data_type = BNNSDataTypeInt8; },
       {"i_desc has type i8", "f32, f16 or bf16"}},
      {"integer output",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->o_desc.data_type = BNNSDataTypeInt32; },
       {"o_desc has type i32"}},
      {"output with gaps",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->o_desc.size[0] = 2, p->o_desc.stride[0] = 2; },
       {"o_desc has gaps"}},
      {"too small an output",
       BNNSLossFunctionMeanSquareError,
       [](Parameters* p) { p->reduction = BNNSLossReductionNone, p->o_desc.size[0] = 3; },
       {"o_desc has 3 elements", "expected 4"}},
      {"delta 0", BNNSLossFunctionHuber, [](Parameters* p) { p->huber_delta = 0; }, {"huber_delta is 0"}},
      {"delta -1", BNNSLossFunctionHuber, [](Parameters* p) { p->huber_delta = -1; }, {"huber_delta is -1"}},
      {"delta inf", BNNSLossFunctionHuber, [](Parameters* p) { p->huber_delta = INFINITY; }, {"huber_delta is inf"}},
      {"delta nan", BNNSLossFunctionHuber, [](Parameters* p) { p->huber_delta = NAN; }, {"huber_delta is nan"}},
      {"smooth -1",
       BNNSLossFunctionSoftmaxCrossEntropy,
       [](Parameters* p) { p->huber_delta = -1; },
       {"label_smooth is -1", "from 0 to 1"}},
      {"smooth 2",
       BNNSLossFunctionSigmoidCrossEntropy,
       [](Parameters* p) { p->huber_delta = 2; },
       {"label_smooth is 2"}},
      {"smooth nan",
       BNNSLossFunctionSigmoidCrossEntropy,
       [](Parameters* p) { p->huber_delta = NAN; },
       {"label_smooth"}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    LossCase c = simple_case(test.function, BNNSLossReductionSum, 1, 4);
    Parameters p = loss_parameters(c);
    BNNSFilter good = BNNSFilterCreateLayerLoss(&p, nullptr);
    EXPECT_NE(good, nullptr) << BNNSExtLastError();
    BNNSFilterDestroy(good);
    test.change(&p);
    BNNSExtClearLastError();
    EXPECT_EQ(BNNSFilterCreateLayerLoss(&p, nullptr), nullptr);
    EXPECT_TRUE(refused_because({"BNNSFilterCreateLayerLoss"}));
    EXPECT_TRUE(refused_because(test.words));
  }
  const void* nothing = nullptr;
  EXPECT_EQ(BNNSFilterCreateLayerLoss(nothing, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

// One table of wrong calls for both entry points; nothing may be written by any of them.
struct Arguments {
  BNNSFilter filter;
  size_t batch;
  const void* in;
  size_t in_stride;
  const void* labels;
  size_t labels_stride;
  const void* weights;
  size_t weights_size;
  void* out;
  BNNSNDArrayDescriptor* in_delta;
  size_t in_delta_stride;
  const BNNSNDArrayDescriptor* out_delta;
};
int call_forward(const Arguments& a) {
  return BNNSLossFilterApplyBatch(a.filter, a.batch, a.in, a.in_stride, a.labels, a.labels_stride, a.weights,
                                  a.weights_size, a.out, a.in_delta, a.in_delta_stride);
}
int call_backward(const Arguments& a) {
  return BNNSLossFilterApplyBackwardBatch(a.filter, a.batch, a.in, a.in_stride, a.in_delta, a.in_delta_stride, a.labels,
                                          a.labels_stride, a.weights, a.weights_size, a.out_delta, 0);
}

TEST(LossCall, BC37_RefusesWrongCalls) {
  constexpr size_t kBatch = 3, kN = 4;
  const auto c = simple_case(BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionSum, kBatch, kN);
  const auto parameters = loss_parameters(c);
  TestFilter filter(&parameters);
  alignas(64) float x[kBatch * kN + 8] = {}, labels[kBatch * kN + 8] = {}, weights[64] = {}, dy[8] = {1, 1, 1};
  float dx[kBatch * kN + 8], out[8];
  BNNSNDArrayDescriptor delta, up;

  enum Which { forward = 1, backward = 2, both = 3 };
  const struct {
    const char* name;
    Which which;
    std::function<void(Arguments*)> change;
    std::initializer_list<const char*> words;
  } cases[] = {
      {"NULL filter", both, [](Arguments* a) { a->filter = nullptr; }, {"filter is NULL"}},
      {"NULL in", both, [](Arguments* a) { a->in = nullptr; }, {"in is NULL"}},
      {"odd in",
       both,
       [](Arguments* a) { a->in = static_cast<const char*>(a->in) + 1; },
       {"loss: in is", "multiple of 4"}},
      {"NULL labels", both, [](Arguments* a) { a->labels = nullptr; }, {"labels is NULL"}},
      {"odd labels", both, [](Arguments* a) { a->labels = static_cast<const char*>(a->labels) + 2; }, {"labels is"}},
      {"NULL weights", both, [](Arguments* a) { a->weights = nullptr, a->weights_size = kBatch; }, {"weights is NULL"}},
      {"weights 2", both, [](Arguments* a) { a->weights_size = 2; }, {"weights_size is 2", "3 = batch_size", "12 ="}},
      {"weights n", both, [](Arguments* a) { a->weights_size = kN; }, {"weights_size is 4"}},
      {"weights max", both, [](Arguments* a) { a->weights_size = SIZE_MAX; }, {"weights_size is"}},
      {"huge batch", both, [](Arguments* a) { a->batch = SIZE_MAX / 2; }, {"loss"}},
      {"huge stride", both, [](Arguments* a) { a->in_stride = SIZE_MAX / 4; }, {"in_stride is", "do not fit"}},
      {"huge labels stride", both, [](Arguments* a) { a->labels_stride = SIZE_MAX; }, {"labels_stride is"}},
      {"NULL out", forward, [](Arguments* a) { a->out = nullptr; }, {"out is NULL"}},
      {"out is in", forward, [&](Arguments* a) { a->out = x + 3; }, {"out and in overlap"}},
      {"out is labels", forward, [&](Arguments* a) { a->out = labels; }, {"out and labels overlap"}},
      {"out is weights", forward, [&](Arguments* a) { a->out = weights; }, {"out and weights overlap"}},
      {"out in dx", forward, [&](Arguments* a) { a->out = dx + 5; }, {"in_delta and out overlap"}},
      {"NULL in_delta", backward, [](Arguments* a) { a->in_delta = nullptr; }, {"in_delta is NULL"}},
      {"in_delta without data", both, [&](Arguments*) { delta.data = nullptr; }, {"in_delta.data is NULL"}},
      {"in_delta too small",
       both,
       [&](Arguments*) { delta.size[0] = kN - 1; },
       {"in_delta has 3 elements", "expected 4"}},
      {"in_delta too large", both, [&](Arguments*) { delta.size[0] = kN + 1; }, {"in_delta has 5 elements"}},
      {"in_delta of integers",
       both,
       [&](Arguments*) { delta.data_type = BNNSDataTypeInt32; },
       {"in_delta has type i32"}},
      {"in_delta layout", both, [&](Arguments*) { delta.layout = BNNSDataLayout(9); }, {"in_delta.layout"}},
      {"in_delta overlaps itself", both, [](Arguments* a) { a->in_delta_stride = 2; }, {"in_delta_stride is 2"}},
      {"in place", both, [&](Arguments*) { delta.data = x; }, {"in_delta and in overlap", "in place"}},
      {"dx in labels", both, [&](Arguments*) { delta.data = labels + 7; }, {"in_delta and labels overlap"}},
      {"dx in weights", both, [&](Arguments*) { delta.data = weights; }, {"in_delta and weights overlap"}},
      {"NULL out_delta", backward, [](Arguments* a) { a->out_delta = nullptr; }, {"out_delta is NULL"}},
      {"out_delta without data", backward, [&](Arguments*) { up.data = nullptr; }, {"out_delta.data is NULL"}},
      {"out_delta of 3", backward, [&](Arguments*) { up.size[0] = 3; }, {"out_delta has 3 elements", "expected 1"}},
      {"out_delta of integers",
       backward,
       [&](Arguments*) { up.data_type = BNNSDataTypeInt8; },
       {"out_delta has type i8"}},
      {"out_delta in dx", backward, [&](Arguments*) { up.data = dx + 1; }, {"in_delta and out_delta overlap"}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    for (float& v : dx) v = poison();
    for (float& v : out) v = poison();
    for (float& v : weights) v = 1;
    delta = vector_descriptor(kN, dx);
    up = vector_descriptor(1, dy);
    Arguments a{filter, kBatch, x, 0, labels, 0, weights, kBatch, out, &delta, 0, &up};
    const Arguments good = a;
    test.change(&a);
    const BNNSNDArrayDescriptor wrong_delta = delta, wrong_up = up;
    for (Which which : {forward, backward}) {
      if (!(test.which & which)) continue;
      delta = wrong_delta;
      up = wrong_up;
      BNNSExtClearLastError();
      EXPECT_EQ(which == forward ? call_forward(a) : call_backward(a), -1);
      EXPECT_TRUE(
          refused_because({which == forward ? "BNNSLossFilterApplyBatch" : "BNNSLossFilterApplyBackwardBatch"}));
      EXPECT_TRUE(refused_because(test.words));
      for (float v : x) EXPECT_EQ(v, 0);
      for (float v : labels) EXPECT_EQ(v, 0);
      for (float v : weights) EXPECT_EQ(v, 1);
      for (float v : dx) EXPECT_TRUE(is_poison(v));
      for (float v : out) EXPECT_TRUE(is_poison(v));
      delta = vector_descriptor(kN, dx);
      up = vector_descriptor(1, dy);
    }
    // The same call, right: it works after a refusal.
    EXPECT_EQ(call_forward(good), 0) << BNNSExtLastError();
    EXPECT_EQ(call_backward(good), 0) << BNNSExtLastError();
  }
}

TEST(LossCall, GenericCallsAndOtherFiltersAreRefused) {
  const auto c = simple_case(BNNSLossFunctionMeanSquareError, BNNSLossReductionSum, 1, 4);
  const auto parameters = loss_parameters(c);
  TestFilter filter(&parameters);
  float x[4] = {}, y[4] = {};
  EXPECT_EQ(BNNSFilterApply(filter, x, y), -1);
  EXPECT_TRUE(refused_because({"BNNSFilterApply", "loss", "BNNSLossFilterApplyBatch"}));
  EXPECT_EQ(BNNSFilterApplyBatch(filter, 1, x, 4, y, 4), -1);
  BNNSNDArrayDescriptor d = vector_descriptor(4, y), up = vector_descriptor(4, x);
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, x, 4, &d, 4, x, 4, &up, 4, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"BNNSLossFilterApplyBackwardBatch"}));

  // A filter of another kind, made here: it must be told apart by its kind, not by what it can do.
  struct Other final : Filter {
    Other() : Filter(FilterKind::activation, Options()) {}
    std::string text() const override { return "other"; }
  } other;
  const BNNSFilter handle = static_cast<Filter*>(&other);
  float out = poison();
  EXPECT_EQ(BNNSLossFilterApplyBatch(handle, 1, x, 4, x, 4, nullptr, 0, &out, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"kind activation", "expected kind loss"}));
  EXPECT_EQ(BNNSLossFilterApplyBackwardBatch(handle, 1, x, 4, &d, 4, x, 4, nullptr, 0, &up, 4), -1);
  EXPECT_TRUE(refused_because({"kind activation", "expected kind loss"}));
  EXPECT_TRUE(is_poison(out));
}

// ---- what is accepted ---------------------------------------------------------------------------------------------

TEST(LossCall, BC38_EmptyBatchDoesNothing) {
  for (BNNSLossFunction function : kFunctions) {
    for (BNNSLossReductionFunction reduction : kReductions) {
      const auto c = simple_case(function, reduction, 1, 3);
      const auto parameters = loss_parameters(c);
      TestFilter filter(&parameters);
      float x[3] = {}, dx[3] = {poison(), poison(), poison()}, out[3] = {poison(), poison(), poison()}, dy[3] = {};
      BNNSNDArrayDescriptor delta = vector_descriptor(3, dx), up = vector_descriptor(1, dy);
      EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 0, x, 0, x, 0, nullptr, 0, out, &delta, 0), 0);
      EXPECT_EQ(BNNSLossFilterApplyBackwardBatch(filter, 0, x, 0, &delta, 0, x, 0, nullptr, 0, &up, 0), 0);
      void* nothing = nullptr;  // an empty vector's data()
      EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 0, nothing, 0, nothing, 0, nullptr, 0, nothing, nullptr, 0), 0);
      for (float v : dx) EXPECT_TRUE(is_poison(v));
      for (float v : out) EXPECT_TRUE(is_poison(v));
    }
  }
}

// o_desc describes one sample's output, or the batch's, or nothing; layouts only say where the n values lie.
TEST(LossCall, LayoutsAndOutputDescriptors) {
  const auto c = simple_case(BNNSLossFunctionMeanSquareError, BNNSLossReductionNone, 2, 24);
  const Result want = run_case(c, {});
  std::vector<float> x(c.x.begin(), c.x.end()), labels(c.labels.begin(), c.labels.end());
  const BNNSNDArrayDescriptor shapes[] = {descriptor(BNNSDataLayoutImageCHW, {4, 3, 2}, nullptr),
                                          descriptor(BNNSDataLayoutRowMajorMatrix, {6, 4}, nullptr),
                                          descriptor(BNNSDataLayout3DFirstMajor, {2, 3, 4}, nullptr),
                                          descriptor(BNNSDataLayout4DLastMajor, {4, 3, 2, 1}, nullptr)};
  std::vector<BNNSNDArrayDescriptor> outputs = {vector_descriptor(24, nullptr), vector_descriptor(48, nullptr),
                                                descriptor(BNNSDataLayoutImageCHW, {4, 3, 2}, nullptr)};
  BNNSNDArrayDescriptor nothing;
  std::memset(&nothing, 0, sizeof nothing);
  outputs.push_back(nothing);
  for (const BNNSNDArrayDescriptor& shape : shapes) {
    for (const BNNSNDArrayDescriptor& output : outputs) {
      auto parameters = loss_parameters(c);
      parameters.i_desc = shape;
      parameters.o_desc = output;
      TestFilter filter(&parameters);
      for (BNNSNDArrayDescriptor delta : {shape, vector_descriptor(24, nullptr)}) {
        std::vector<float> out(48, poison()), dx(48, poison());
        delta.data = dx.data();
        ASSERT_EQ(
            BNNSLossFilterApplyBatch(filter, 2, x.data(), 24, labels.data(), 24, nullptr, 0, out.data(), &delta, 24), 0)
            << BNNSExtLastError();
        EXPECT_EQ(Numbers(out.begin(), out.end()), want.out);
        EXPECT_EQ(Numbers(dx.begin(), dx.end()), want.dx);
      }
    }
  }
}

// Samples of x, labels and dx may alternate in one buffer; a batch stride below n reads overlapping samples.
TEST(LossCall, SharedBuffers) {
  const auto c = simple_case(BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionSum, 3, 5);
  const Result want = run_case(c, {});
  const auto parameters = loss_parameters(c);
  TestFilter filter(&parameters);
  std::vector<float> all(45, poison());
  for (size_t k = 0; k < 15; ++k) {
    all[k / 5 * 15 + k % 5] = float(c.x[k]);
    all[k / 5 * 15 + 5 + k % 5] = float(c.labels[k]);
  }
  BNNSNDArrayDescriptor delta = vector_descriptor(5, all.data() + 10);
  float out;
  ASSERT_EQ(BNNSLossFilterApplyBatch(filter, 3, all.data(), 15, all.data() + 5, 15, nullptr, 0, &out, &delta, 15), 0)
      << BNNSExtLastError();
  EXPECT_EQ(double(out), want.out[0]);
  for (size_t k = 0; k < 15; ++k) EXPECT_EQ(double(all[k / 5 * 15 + 10 + k % 5]), want.dx[k]);
  delta.data = all.data() + 9;  // one element into the labels
  EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 3, all.data(), 15, all.data() + 5, 15, nullptr, 0, &out, &delta, 15), -1);
  EXPECT_TRUE(refused_because({"in_delta and labels overlap"}));

  std::vector<float> series = {1, 2, 3, 4, 5, 6, 7}, zeros(7, 0);
  const auto mse = loss_parameters(simple_case(BNNSLossFunctionMeanSquareError, BNNSLossReductionSum, 1, 3));
  TestFilter sliding(&mse);  // windows 1 2 3, 2 3 4, 3 4 5
  ASSERT_EQ(BNNSLossFilterApplyBatch(sliding, 3, series.data(), 1, zeros.data(), 1, nullptr, 0, &out, nullptr, 0), 0);
  EXPECT_EQ(out, 14 + 29 + 50);
}

// out_delta of a reduced loss is one value, in any float type; its stride is ignored.
TEST(LossCall, OutputGradientOfAReducedLoss) {
  auto c = simple_case(BNNSLossFunctionMeanSquareError, BNNSLossReductionMean, 2, 2);
  c.x = {1, 2, 3, 4};
  c.labels = {0, 0, 0, 0};
  for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    Setting s;
    s.delta_type = type;
    const Numbers dy = {4};
    EXPECT_EQ(run_case(c, s, &dy).dx, (Numbers{2, 4, 6, 8}));  // 4 * 2 x / 4
  }
}

TEST(LossCall, VerboseText) {
  LossCase c = simple_case(BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionMean, 1, 10);
  c.label_smooth = 0.5;
  const auto p = loss_parameters(c);
  EXPECT_EQ(make_loss_problem(&p).text(), "loss softmax_ce f32 10 mean ls0.5");
  c = simple_case(BNNSLossFunctionHuber, BNNSLossReductionNonZeroWeightMean, 1, 3);
  const auto q = loss_parameters(c, BNNSDataTypeBFloat16);
  EXPECT_EQ(make_loss_problem(&q).text(), "loss huber bf16 3 nonzero_weight_mean delta0.75");
}

// ---- memory and threads -------------------------------------------------------------------------------------------

std::atomic<int> live_blocks{0}, allocations{0}, fail_at{0};
int counting_alloc(void** memory, size_t alignment, size_t bytes) {
  if (++allocations == fail_at) return 12;
  ++live_blocks;
  return posix_memalign(memory, alignment, bytes);
}
void counting_free(void* memory) {
  --live_blocks;
  std::free(memory);
}

// The filter is the one block a loss keeps; applying it allocates nothing. Out of memory is a refusal.
TEST(LossMemory, BC42_ClientAllocator) {
  const auto c = simple_case(BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionMean, 64, 1000);
  const auto parameters = loss_parameters(c);
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.alloc_memory = counting_alloc;
  options.free_memory = counting_free;
  allocations = 0;
  fail_at = 1;
  EXPECT_EQ(BNNSFilterCreateLayerLoss(&parameters, &options), nullptr);
  EXPECT_EQ(live_blocks, 0);
  fail_at = 0;
  allocations = 0;
  BNNSFilter filter = BNNSFilterCreateLayerLoss(&parameters, &options);
  ASSERT_NE(filter, nullptr);
  std::vector<float> x(c.x.begin(), c.x.end()), labels(c.labels.begin(), c.labels.end()), dx(x.size());
  BNNSNDArrayDescriptor delta = vector_descriptor(1000, dx.data());
  float out;
  EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 64, x.data(), 0, labels.data(), 0, nullptr, 0, &out, &delta, 0), 0);
  EXPECT_EQ(allocations, 1);
  auto wrong = parameters;
  wrong.i_desc.size[0] = 0;
  EXPECT_EQ(BNNSFilterCreateLayerLoss(&wrong, &options), nullptr);
  EXPECT_EQ(live_blocks, 1);
  BNNSFilterDestroy(filter);
  EXPECT_EQ(live_blocks, 0);
}

// Sixteen threads, one filter, own buffers: every result is the serial one, to the bit.
TEST(LossThreads, BC46_OneFilterManyThreads) {
  for (BNNSLossFunction function : {BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossFunctionHuber}) {
    const auto c = simple_case(function, BNNSLossReductionMean, 32, 10);
    const Numbers half = {0.5};
    const Result want = run_case(c, {}), want_backward = run_case(c, {}, &half);
    const std::vector<float> dx_want(want.dx.begin(), want.dx.end());
    const std::vector<float> dx_backward(want_backward.dx.begin(), want_backward.dx.end());
    const auto parameters = loss_parameters(c);
    TestFilter filter(&parameters, 0);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&] {
        std::vector<float> x(c.x.begin(), c.x.end()), labels(c.labels.begin(), c.labels.end()), dx(x.size());
        BNNSNDArrayDescriptor delta = vector_descriptor(c.n, dx.data());
        float out, dy = 0.5f;
        const BNNSNDArrayDescriptor up = vector_descriptor(1, &dy);
        for (int k = 0; k < 1000; ++k) {
          wrong +=
              BNNSLossFilterApplyBatch(filter, 32, x.data(), 0, labels.data(), 0, nullptr, 0, &out, &delta, 0) != 0;
          wrong += double(out) != want.out[0] || dx != dx_want;
          wrong += BNNSLossFilterApplyBackwardBatch(filter, 32, x.data(), 0, &delta, 0, labels.data(), 0, nullptr, 0,
                                                    &up, 0) != 0;
          wrong += dx != dx_backward;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace bnns::testing
