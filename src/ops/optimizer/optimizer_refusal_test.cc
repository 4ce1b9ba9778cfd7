// Calls that BNNSOptimizerStep refuses: -1, a reason that names the field, and not one byte written.

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "src/ops/optimizer/optimizer_testing.h"

namespace bnns::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr size_t kElements = 5;

// Two tensors of five elements under Adam with clipping (the structure with most fields) and under the two others.
struct Call {
  std::vector<std::vector<float>> memory;
  OptimizerLists lists;
  BNNSOptimizerSGDMomentumWithClippingFields sgd = {};
  BNNSOptimizerAdamWithClippingFields adam = {};
  BNNSOptimizerRMSPropWithClippingFields rmsprop = {};
  BNNSOptimizerFunction function = BNNSOptimizerFunctionAdamWithClipping;
  const void* fields = &adam;
  BNNSFilterParameters options = {};
  size_t n = 2;
  BNNSNDArrayDescriptor** parameters = nullptr;
  const BNNSNDArrayDescriptor** gradients = nullptr;
  BNNSNDArrayDescriptor** accumulators = nullptr;

  Call() : memory(10, std::vector<float>(kElements, 0.5f)), lists(pointers(), {kElements, kElements}) {
    const auto common = [](auto* f) {
      f->learning_rate = 0.1f;
      f->gradient_scale = 1;
      f->regularization_func = BNNSOptimizerRegularizationL2;
      f->clipping_func = BNNSOptimizerClippingByGlobalNorm;
      f->clip_gradients_max_norm = 1;
    };
    common(&sgd);
    common(&adam);
    common(&rmsprop);
    sgd.momentum = 0.9f;
    adam.beta1 = 0.9f;
    adam.beta2 = 0.999f;
    adam.time_step = 1;
    rmsprop.alpha = 0.9f;
    rmsprop.centered = true;
    rmsprop.momentum = 0.5f;
    parameters = lists.parameters.data();
    gradients = lists.gradients.data();
    accumulators = lists.accumulators.data();
  }
  Call(const Call&) = delete;
  std::vector<float*> pointers() {
    std::vector<float*> result;
    for (auto& tensor : memory) result.push_back(tensor.data());
    return result;
  }
  void use_sgd() { function = BNNSOptimizerFunctionSGDMomentumWithClipping, fields = &sgd; }
  void use_rmsprop() { function = BNNSOptimizerFunctionRMSPropWithClipping, fields = &rmsprop; }
  int run() { return BNNSOptimizerStep(function, fields, n, parameters, gradients, accumulators, &options); }
};

struct Refusal {
  const char* name;
  std::function<void(Call&)> spoil;
  std::initializer_list<const char*> words;
};

const Refusal kRefusals[] = {
    {"function 0", [](Call& c) { c.function = BNNSOptimizerFunction(0); }, {"function is 0"}},
    {"function 13", [](Call& c) { c.function = BNNSOptimizerFunction(13); }, {"function is 13"}},
    {"no fields", [](Call& c) { c.fields = nullptr; }, {"OptimizerAlgFields", "NULL"}},
    {"no parameters", [](Call& c) { c.parameters = nullptr; }, {"parameters is NULL"}},
    {"no gradients", [](Call& c) { c.gradients = nullptr; }, {"gradients is NULL"}},
    {"no accumulators", [](Call& c) { c.accumulators = nullptr; }, {"accumulators is NULL", "4 = 2 x 2"}},
    {"parameter NULL", [](Call& c) { c.lists.parameters[1] = nullptr; }, {"parameters[1] is NULL"}},
    {"gradient NULL", [](Call& c) { c.lists.gradients[1] = nullptr; }, {"gradients[1] is NULL"}},
    {"accumulator NULL", [](Call& c) { c.lists.accumulators[3] = nullptr; }, {"accumulators[3] is NULL"}},
    {"parameter data", [](Call& c) { c.lists.descriptors[0].data = nullptr; }, {"parameters[0] is NULL"}},
    {"gradient data", [](Call& c) { c.lists.descriptors[3].data = nullptr; }, {"gradients[1] is NULL"}},
    {"accumulator data", [](Call& c) { c.lists.descriptors[7].data = nullptr; }, {"accumulators[3] is NULL"}},
    {"gradient count", [](Call& c) { c.lists.descriptors[3].size[0] = 4; }, {"gradients[1] has 4", "expected 5"}},
    {"accumulator count",
     [](Call& c) { c.lists.descriptors[6].size[0] = 4; },
     {"accumulators[2] has 4", "parameters[0]"}},
    {"extent 0", [](Call& c) { c.lists.descriptors[0].size[0] = 0; }, {"parameters[0].size[0] is 0"}},
    {"extent max", [](Call& c) { c.lists.descriptors[0].size[0] = SIZE_MAX; }, {"parameters[0]"}},
    {"gap",
     [](Call& c) { c.lists.descriptors[0].stride[0] = 2, c.lists.descriptors[0].size[0] = 2; },
     {"parameters[0]", "gaps"}},
    {"f16", [](Call& c) { c.lists.descriptors[0].data_type = BNNSDataTypeFloat16; }, {"parameters[0]", "f16"}},
    {"bf16 gradient",
     [](Call& c) { c.lists.descriptors[2].data_type = BNNSDataTypeBFloat16; },
     {"gradients[0]", "bf16"}},
    {"no type", [](Call& c) { c.lists.descriptors[0].data_type = BNNSDataType(0); }, {"parameters[0].data_type"}},
    {"no layout", [](Call& c) { c.lists.descriptors[4].layout = BNNSDataLayout(7); }, {"accumulators[0].layout"}},
    {"misaligned",
     [](Call& c) { c.lists.descriptors[0].data = reinterpret_cast<char*>(c.memory[0].data()) + 2; },
     {"parameters[0]", "multiple of 4"}},
    {"gradient is parameter",
     [](Call& c) { c.lists.descriptors[2].data = c.memory[0].data(); },
     {"share memory", "parameters[0]", "gradients[0]"}},
    {"accumulator twice",
     [](Call& c) { c.lists.descriptors[5].data = c.memory[4].data(); },
     {"share memory", "accumulators[0]", "accumulators[1]"}},
    {"learning rate", [](Call& c) { c.adam.learning_rate = NAN; }, {"learning_rate is nan"}},
    {"learning rate inf", [](Call& c) { c.adam.learning_rate = kInf; }, {"learning_rate is inf"}},
    {"gradient scale", [](Call& c) { c.adam.gradient_scale = NAN; }, {"gradient_scale"}},
    {"regularization scale", [](Call& c) { c.adam.regularization_scale = kInf; }, {"regularization_scale"}},
    {"regularization",
     [](Call& c) { c.adam.regularization_func = BNNSOptimizerRegularizationFunction(3); },
     {"regularization_func is 3"}},
    {"clipping", [](Call& c) { c.adam.clipping_func = BNNSOptimizerClippingFunction(4); }, {"clipping_func is 4"}},
    {"max norm", [](Call& c) { c.adam.clip_gradients_max_norm = -1; }, {"clip_gradients_max_norm is -1"}},
    {"max norm nan", [](Call& c) { c.adam.clip_gradients_max_norm = NAN; }, {"clip_gradients_max_norm"}},
    {"use norm", [](Call& c) { c.adam.clip_gradients_use_norm = -2; }, {"clip_gradients_use_norm is -2"}},
    {"use norm inf", [](Call& c) { c.adam.clip_gradients_use_norm = kInf; }, {"clip_gradients_use_norm is inf"}},
    {"clip range",
     [](Call& c) { c.adam.clipping_func = BNNSOptimizerClippingByValue, c.adam.clip_gradients_min = 1; },
     {"clip_gradients_min is 1", "min <= max"}},
    {"beta1", [](Call& c) { c.adam.beta1 = 1; }, {"beta1 is 1"}},
    {"beta2", [](Call& c) { c.adam.beta2 = -0.1f; }, {"beta2 is -0.1"}},
    {"beta2 nan", [](Call& c) { c.adam.beta2 = NAN; }, {"beta2 is nan"}},
    {"epsilon", [](Call& c) { c.adam.epsilon = -1; }, {"epsilon is -1"}},
    {"time step 0", [](Call& c) { c.adam.time_step = 0; }, {"time_step is 0", "at least 1"}},
    {"time step nan", [](Call& c) { c.adam.time_step = NAN; }, {"time_step is nan"}},
    {"sgd momentum", [](Call& c) { c.use_sgd(), c.sgd.momentum = NAN; }, {"momentum is nan"}},
    {"sgd variant",
     [](Call& c) { c.use_sgd(), c.sgd.sgd_momentum_variant = BNNSOptimizerSGDMomentumVariant(3); },
     {"sgd_momentum_variant is 3"}},
    {"sgd accumulators", [](Call& c) { c.use_sgd(), c.accumulators = nullptr; }, {"accumulators is NULL", "2 = 1 x 2"}},
    {"rmsprop alpha", [](Call& c) { c.use_rmsprop(), c.rmsprop.alpha = 1.5f; }, {"alpha is 1.5"}},
    {"rmsprop epsilon", [](Call& c) { c.use_rmsprop(), c.rmsprop.epsilon = NAN; }, {"epsilon is nan"}},
    {"rmsprop accumulators", [](Call& c) { c.use_rmsprop(), c.accumulators = nullptr; }, {"6 = 3 x 2"}},
    {"norm inf", [](Call& c) { c.memory[3][4] = kInf; }, {"norm of gradients[1] is not finite"}},
    {"norm nan", [](Call& c) { c.memory[2][0] = NAN; }, {"norm of gradients[0] is not finite"}},
    {"tensor norm nan",
     [](Call& c) { c.adam.clipping_func = BNNSOptimizerClippingByNorm, c.memory[3][0] = NAN; },
     {"norm of gradients[1] is not finite"}},
    {"alloc alone",
     [](Call& c) { c.options.alloc_memory = [](void**, size_t, size_t) { return 1; }; },
     {"alloc_memory"}},
    {"flags", [](Call& c) { c.options.flags = 8; }, {"flags is 0x8"}},
};

TEST(OptimizerRefusal, TableIsRefusedWithReasonAndNothingWritten) {
  {
    Call good;
    ASSERT_EQ(good.run(), 0) << BNNSExtLastError();  // what the table spoils does work
    good.use_sgd();
    ASSERT_EQ(good.run(), 0) << BNNSExtLastError();
    good.use_rmsprop();
    ASSERT_EQ(good.run(), 0) << BNNSExtLastError();
  }
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    Call call;
    refusal.spoil(call);
    const auto before = call.memory;
    EXPECT_EQ(call.run(), -1);
    EXPECT_TRUE(refused_because({"BNNSOptimizerStep"}));
    EXPECT_TRUE(refused_because(refusal.words));
    for (size_t k = 0; k < before.size(); ++k) EXPECT_TRUE(same_bits(call.memory[k], before[k])) << "tensor " << k;
  }
}

// Fields that a call does not use may hold anything.
TEST(OptimizerRefusal, UnusedFieldsAreNotLookedAt) {
  Call call;
  call.adam.regularization_func = BNNSOptimizerRegularizationNone;
  call.adam.regularization_scale = NAN;
  call.adam.clipping_func = BNNSOptimizerClippingNone;
  call.adam.clip_gradients_max_norm = -1;
  call.adam.clip_gradients_use_norm = NAN;
  call.adam.clip_gradients_min = 5;
  EXPECT_EQ(call.run(), 0) << BNNSExtLastError();
  call.use_sgd();
  call.sgd.momentum = 0;
  call.accumulators = nullptr;
  EXPECT_EQ(call.run(), 0) << BNNSExtLastError();
}

// Gradients shared by two parameters are only read, so they may.
TEST(OptimizerRefusal, SharedGradientsAreAllowed) {
  Call call;
  call.lists.gradients[1] = call.lists.gradients[0];
  EXPECT_EQ(call.run(), 0) << BNNSExtLastError();
}

int live_blocks = 0, allowed_blocks = 0;

int counted_alloc(void** memory, size_t alignment, size_t size) {
  if (allowed_blocks-- <= 0) return 12;
  ++live_blocks;
  return posix_memalign(memory, alignment, size);
}
void counted_free(void* memory) {
  --live_blocks;
  std::free(memory);
}

// Long lists need memory, from the client's callbacks: a failure at any point is a clean refusal.
TEST(OptimizerRefusal, BC42_OutOfMemory) {
  constexpr size_t kTensors = 100;
  std::vector<std::vector<float>> memory(4 * kTensors, std::vector<float>(3, 0.5f));
  std::vector<float*> pointers;
  for (auto& tensor : memory) pointers.push_back(tensor.data());
  OptimizerLists lists(pointers, std::vector<size_t>(kTensors, 3));
  BNNSOptimizerAdamFields adam = {};
  adam.learning_rate = 0.1f;
  adam.gradient_scale = 1;
  adam.time_step = 1;
  BNNSFilterParameters options = {};
  options.alloc_memory = counted_alloc;
  options.free_memory = counted_free;
  int status = -1, failures = 0;
  for (int allowed = 0; status != 0; ++allowed) {
    ASSERT_LT(allowed, 10);
    allowed_blocks = allowed;
    const auto before = memory;
    status = BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, kTensors, lists.parameters.data(),
                               lists.gradients.data(), lists.accumulators.data(), &options);
    EXPECT_EQ(live_blocks, 0);
    if (status == 0) break;
    ++failures;
    EXPECT_TRUE(refused_because({"out of memory"}));
    EXPECT_EQ(memory, before);
  }
  EXPECT_GE(failures, 1);
}

// A short list asks for no memory at all: an allocator that always fails is never called.
TEST(OptimizerRefusal, ShortListsAllocateNothing) {
  Call call;
  call.options.alloc_memory = [](void**, size_t, size_t) { return 12; };
  call.options.free_memory = [](void*) {};
  EXPECT_EQ(call.run(), 0) << BNNSExtLastError();
}

}  // namespace
}  // namespace bnns::testing
