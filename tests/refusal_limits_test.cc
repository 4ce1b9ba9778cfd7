// Sizes without bounds: every refusal takes less than 10 ms of the processor and names operator and field, whatever the
// sizes are. Filters that are made are only destroyed; applies are wrong besides their batch, so that all are refused.

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <regex>
#include <string>

#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Array = BNNSNDArrayDescriptor;

constexpr size_t kSizes[] = {(size_t{1} << 31) + 1, size_t{1} << 32,        size_t{1} << 40, (size_t{1} << 59) + 3,
                             size_t{1} << 62,       (size_t{1} << 63) + 36, SIZE_MAX - 7,    SIZE_MAX};

alignas(64) float data[8192];

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

struct Counter {
  size_t refused = 0, accepted = 0;
};

// A reason has the form "function: operator: field ..." and a sum or product comes with the name of its factors.
void check_reason() {
  const std::string reason = BNNSExtLastError();
  static const std::regex form(R"(^BNNS\w+: ([a-z_]+: \w|out of memory: ))");
  static const std::regex bare(R"(^BNNS\w+: ([a-z_]+: )?\d+ [*+] \d+ does not fit)");
  EXPECT_TRUE(std::regex_search(reason, form)) << reason;
  EXPECT_FALSE(std::regex_search(reason, bare)) << reason;
}

template <class Call>
bool refused_in_time(Counter* counter, Call&& call) {
  BNNSExtClearLastError();
  const double before = processor_seconds();
  const bool refused = call();
  const double seconds = processor_seconds() - before;
  EXPECT_LT(seconds, 0.01) << BNNSExtLastError();
  ++(refused ? counter->refused : counter->accepted);
  if (refused) check_reason();
  return refused;
}

// ---- creation -------------------------------------------------------------------------------------------------------

using Create = std::function<BNNSFilter()>;

void sweep_number(Counter* counter, size_t* field, const Create& create) {
  const size_t original = *field;
  for (size_t size : kSizes) {
    *field = size;
    refused_in_time(counter, [&] {
      BNNSFilter filter = create();
      BNNSFilterDestroy(filter);
      return filter == nullptr;
    });
    const std::string reason = BNNSExtLastError();
    if (reason.find("too large") != std::string::npos) {
      EXPECT_NE(reason.find(" is " + std::to_string(size)), std::string::npos) << reason;  // the caller's value
    }
  }
  *field = original;
}

void sweep(Counter* counter, std::initializer_list<Array*> arrays, std::initializer_list<size_t*> numbers,
           const Create& create) {
  const FilterHandle good = own(create());
  for (Array* array : arrays) {
    for (size_t k = 0; k < 4; ++k) {
      sweep_number(counter, &array->size[k], create);
      sweep_number(counter, &array->stride[k], create);
    }
  }
  for (size_t* number : numbers) sweep_number(counter, number, create);
  EXPECT_GT(counter->refused, 0u);
}

Array image(size_t width, size_t height, size_t channels, void* at = nullptr) {
  return descriptor(BNNSDataLayoutImageCHW, {width, height, channels}, at);
}
Array matrix(size_t columns, size_t rows, void* at = nullptr) {
  return descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, at);
}

class RefusalLimits : public ::testing::Test {
 protected:
  RefusalLimits() {
    options_.flags = BNNSFlagsUseClientPtr;                                      // sizes lie about the data
    options_.alloc_memory = [](void** memory, size_t alignment, size_t bytes) {  // tables of large axes are refused
      return bytes > size_t{1} << 26 ? 12 : posix_memalign(memory, alignment, bytes);
    };
    options_.free_memory = [](void* memory) { std::free(memory); };
    convolution_.i_desc = image(8, 8, 2);
    convolution_.o_desc = image(6, 6, 4);
    convolution_.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 2, 4}, data);
    convolution_.bias = vector_descriptor(4, data);
    pooling_.i_desc = image(8, 8, 2);
    pooling_.o_desc = image(4, 4, 2);
    pooling_.k_width = pooling_.k_height = pooling_.x_stride = pooling_.y_stride = 2;
    dense_.i_desc = vector_descriptor(6, nullptr);
    dense_.o_desc = vector_descriptor(4, nullptr);
    dense_.w_desc = matrix(6, 4, data);
    dense_.bias = vector_descriptor(4, data);
    normalization_.i_desc = normalization_.o_desc = image(4, 4, 2);
    normalization_.beta_desc = normalization_.gamma_desc = vector_descriptor(2, data);
    normalization_.moving_mean_desc = normalization_.moving_variance_desc = vector_descriptor(2, data);
    normalization_.momentum = 0.9f;
    normalization_.num_groups = 2;
    loss_.function = BNNSLossFunctionMeanSquareError;
    loss_.i_desc = vector_descriptor(10, nullptr);
    loss_.o_desc = vector_descriptor(1, nullptr);
    loss_.reduction = BNNSLossReductionMean;
    activation_.i_desc = activation_.o_desc = image(3, 4, 2);
    activation_.activation.function = BNNSActivationFunctionSoftmax;
    activation_.axis_flags = 1;
    operands_.in1 = operands_.out = image(3, 4, 2);
    operands_.in2 = image(3, 1, 2);
    operands_.in1_type = operands_.in2_type = operands_.out_type = BNNSSample;
    arithmetic_.arithmetic_function = BNNSArithmeticMultiply;
    arithmetic_.arithmetic_function_fields = &operands_;
    matmul_.alpha = 1;
    matmul_.iA_desc = matmul_.iB_desc = matmul_.o_desc = matrix(3, 3);
    padding_.i_desc = image(3, 4, 2);
    padding_.o_desc = image(5, 4, 2);
    padding_.padding_size[0][0] = padding_.padding_size[0][1] = 1;
    permute_.i_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, nullptr);
    permute_.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, nullptr);
    permute_.permutation[0] = 1;
    reduction_.i_desc = image(3, 4, 2);
    reduction_.o_desc = image(1, 4, 2);
    reduction_.reduce_func = BNNSReduceFunctionSum;
    resize_.method = BNNSInterpolationMethodLinear;
    resize_.i_desc = image(3, 4, 2);
    resize_.o_desc = image(6, 8, 2);
    dropout_.i_desc = dropout_.o_desc = image(3, 4, 2);
    dropout_.rate = 0.5f;
    gram_.alpha = 1;
    gram_.i_desc = image(3, 4, 2);
    gram_.o_desc = matrix(2, 2);
  }

  BNNSFilterParameters options_ = {};
  BNNSLayerParametersConvolution convolution_ = {};
  BNNSLayerParametersPooling pooling_ = {};
  BNNSLayerParametersFullyConnected dense_ = {};
  BNNSLayerParametersNormalization normalization_ = {};
  BNNSLayerParametersLossBase loss_ = {};
  BNNSLayerParametersActivation activation_ = {};
  BNNSArithmeticBinary operands_ = {};
  BNNSLayerParametersArithmetic arithmetic_ = {};
  BNNSLayerParametersBroadcastMatMul matmul_ = {};
  BNNSLayerParametersPadding padding_ = {};
  BNNSLayerParametersPermute permute_ = {};
  BNNSLayerParametersReduction reduction_ = {};
  BNNSLayerParametersResize resize_ = {};
  BNNSLayerParametersDropout dropout_ = {};
  BNNSLayerParametersGram gram_ = {};
  Counter counter_;
};

TEST_F(RefusalLimits, Convolution) {
  auto& l = convolution_;
  for (const auto make : {BNNSFilterCreateLayerConvolution, BNNSFilterCreateLayerTransposedConvolution}) {
    sweep(&counter_, {&l.i_desc, &l.o_desc, &l.w_desc, &l.bias},
          {&l.x_stride, &l.y_stride, &l.x_dilation_stride, &l.y_dilation_stride, &l.x_padding, &l.y_padding, &l.groups,
           &l.pad[0], &l.pad[1], &l.pad[2], &l.pad[3]},
          [&] { return make(&l, &options_); });
    std::swap(l.i_desc, l.o_desc);  // the transposed one takes the small image and gives the large one
    l.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 4, 2}, data);
    l.bias = vector_descriptor(2, data);
  }
}

TEST_F(RefusalLimits, Pooling) {
  auto& l = pooling_;
  sweep(&counter_, {&l.i_desc, &l.o_desc},
        {&l.k_width, &l.k_height, &l.x_stride, &l.y_stride, &l.x_dilation_stride, &l.y_dilation_stride, &l.x_padding,
         &l.y_padding, &l.pad[0], &l.pad[1], &l.pad[2], &l.pad[3]},
        [&] { return BNNSFilterCreateLayerPooling(&l, &options_); });
}

TEST_F(RefusalLimits, FullyConnected) {
  auto& l = dense_;
  sweep(&counter_, {&l.i_desc, &l.o_desc, &l.w_desc, &l.bias}, {},
        [&] { return BNNSFilterCreateLayerFullyConnected(&l, &options_); });
}

TEST_F(RefusalLimits, Normalization) {
  auto& l = normalization_;
  for (const BNNSFilterType type : {BNNSBatchNorm, BNNSGroupNorm}) {
    sweep(&counter_, {&l.i_desc, &l.o_desc, &l.beta_desc, &l.gamma_desc, &l.moving_mean_desc},
          {&l.num_groups, &l.normalization_axis},
          [&] { return BNNSFilterCreateLayerNormalization(type, &l, &options_); });
  }
}

TEST_F(RefusalLimits, LayersWithoutWeights) {
  sweep(&counter_, {&loss_.i_desc, &loss_.o_desc}, {}, [&] { return BNNSFilterCreateLayerLoss(&loss_, &options_); });
  sweep(&counter_, {&activation_.i_desc, &activation_.o_desc}, {},
        [&] { return BNNSFilterCreateLayerActivation(&activation_, &options_); });
  sweep(&counter_, {&operands_.in1, &operands_.in2, &operands_.out}, {},
        [&] { return BNNSFilterCreateLayerArithmetic(&arithmetic_, &options_); });
  sweep(&counter_, {&matmul_.iA_desc, &matmul_.iB_desc, &matmul_.o_desc}, {},
        [&] { return BNNSFilterCreateLayerBroadcastMatMul(&matmul_, &options_); });
  sweep(&counter_, {&padding_.i_desc, &padding_.o_desc},
        {&padding_.padding_size[0][0], &padding_.padding_size[0][1], &padding_.padding_size[2][0]},
        [&] { return BNNSFilterCreateLayerPadding(&padding_, &options_); });
  sweep(&counter_, {&permute_.i_desc, &permute_.o_desc}, {&permute_.permutation[0]},
        [&] { return BNNSFilterCreateLayerPermute(&permute_, &options_); });
  sweep(&counter_, {&reduction_.i_desc, &reduction_.o_desc}, {},
        [&] { return BNNSFilterCreateLayerReduction(&reduction_, &options_); });
  sweep(&counter_, {&resize_.i_desc, &resize_.o_desc}, {},
        [&] { return BNNSFilterCreateLayerResize(&resize_, &options_); });
  sweep(&counter_, {&dropout_.i_desc, &dropout_.o_desc}, {},
        [&] { return BNNSFilterCreateLayerDropout(&dropout_, &options_); });
  sweep(&counter_, {&gram_.i_desc, &gram_.o_desc}, {}, [&] { return BNNSFilterCreateLayerGram(&gram_, &options_); });
}

TEST_F(RefusalLimits, SizesWithoutFilters) {
  BNNSLayerParametersLSTM lstm = {};
  for (size_t* field : {&lstm.input_size, &lstm.hidden_size, &lstm.batch_size, &lstm.num_layers, &lstm.seq_len}) {
    lstm.input_size = lstm.hidden_size = lstm.batch_size = lstm.num_layers = lstm.seq_len = 3;
    for (size_t size : kSizes) {
      *field = size;
      refused_in_time(&counter_, [&] { return BNNSComputeLSTMTrainingCacheCapacity(&lstm) == SIZE_MAX; });
    }
  }
  for (size_t size : kSizes) {
    const auto make = [&](unsigned samples, unsigned features) {
      return BNNSCreateNearestNeighbors(samples, features, 1, BNNSDataTypeFloat32, &options_);
    };
    BNNSNearestNeighbors made = nullptr;
    refused_in_time(&counter_, [&] { return (made = make(1 << 30, unsigned(size))) == nullptr; });
    BNNSDestroyNearestNeighbors(made);
  }
  EXPECT_GT(counter_.refused, 20u);
}

// ---- applies --------------------------------------------------------------------------------------------------------

// In and out share memory but are not the same, or one of them is missing. Every batch is refused.
template <class Apply>
void sweep_batches(Counter* counter, Apply&& apply) {
  for (size_t batch : kSizes) {
    for (size_t stride : {size_t{0}, size_t{129}}) {
      EXPECT_TRUE(refused_in_time(counter, [&] { return apply(batch, data, data + 1, stride) != 0; })) << batch;
      EXPECT_TRUE(refused_in_time(counter, [&] { return apply(batch, nullptr, data, stride) != 0; })) << batch;
      EXPECT_TRUE(refused_in_time(counter, [&] { return apply(batch, data, nullptr, stride) != 0; })) << batch;
    }
  }
}

TEST_F(RefusalLimits, BatchesOfFilters) {
  const BNNSFilter filters[] = {
      BNNSFilterCreateLayerConvolution(&convolution_, nullptr), BNNSFilterCreateLayerPooling(&pooling_, nullptr),
      BNNSFilterCreateLayerFullyConnected(&dense_, nullptr),    BNNSFilterCreateLayerActivation(&activation_, nullptr),
      BNNSFilterCreateLayerPadding(&padding_, nullptr),         BNNSFilterCreateLayerPermute(&permute_, nullptr),
      BNNSFilterCreateLayerReduction(&reduction_, nullptr),     BNNSFilterCreateLayerResize(&resize_, nullptr),
      BNNSFilterCreateLayerDropout(&dropout_, nullptr),         BNNSFilterCreateLayerGram(&gram_, nullptr)};
  const BNNSNDArrayDescriptor* inputs[] = {
      &convolution_.i_desc, &pooling_.i_desc,   &dense_.i_desc,  &activation_.i_desc, &padding_.i_desc,
      &permute_.i_desc,     &reduction_.i_desc, &resize_.i_desc, &dropout_.i_desc,    &gram_.i_desc};
  const BNNSNDArrayDescriptor* outputs[] = {
      &convolution_.o_desc, &pooling_.o_desc,   &dense_.o_desc,  &activation_.o_desc, &padding_.o_desc,
      &permute_.o_desc,     &reduction_.o_desc, &resize_.o_desc, &dropout_.o_desc,    &gram_.o_desc};
  for (size_t k = 0; k < std::size(filters); ++k) {
    SCOPED_TRACE(k);
    const FilterHandle filter = own(filters[k]);
    sweep_batches(&counter_, [&](size_t batch, float* in, float* out, size_t stride) {
      return BNNSFilterApplyBatch(filter.get(), batch, in, stride, out, stride);
    });
    sweep_batches(&counter_, [&](size_t batch, float* dy, float* dx, size_t stride) {
      Array in_delta = *inputs[k], out_delta = *outputs[k];
      in_delta.data = dx, out_delta.data = dy;
      return BNNSFilterApplyBackwardBatch(filter.get(), batch, data + 4096, stride, &in_delta, stride, data + 6000,
                                          stride, &out_delta, stride, nullptr, nullptr);
    });
  }
}

TEST_F(RefusalLimits, BatchesOfOtherEntryPoints) {
  for (const BNNSFilterType type : {BNNSBatchNorm, BNNSLayerNorm}) {
    normalization_.beta_desc = normalization_.gamma_desc = {};
    const FilterHandle filter = own(BNNSFilterCreateLayerNormalization(type, &normalization_, &options_));
    for (const bool training : {false, true}) {
      sweep_batches(&counter_, [&](size_t batch, float* in, float* out, size_t stride) {
        return BNNSNormalizationFilterApplyBatch(filter.get(), batch, in, stride, out, stride, training);
      });
      // Samples of in and out that alternate: nothing is wrong, but the training state does not fit in memory.
      for (size_t batch : kSizes) {
        if (!training) continue;
        EXPECT_TRUE(refused_in_time(&counter_, [&] {
          return BNNSNormalizationFilterApplyBatch(filter.get(), batch, data, 64, data + 32, 64, true) != 0;
        }));
      }
    }
  }
  const FilterHandle arithmetic = own(BNNSFilterCreateLayerArithmetic(&arithmetic_, nullptr));
  sweep_batches(&counter_, [&](size_t batch, float* in, float* out, size_t stride) {
    const void* in2[] = {in, data + 4096};
    const size_t strides[] = {stride, stride};
    return BNNSArithmeticFilterApplyBatch(arithmetic.get(), batch, 2, in2, strides, out, stride);
  });
  const FilterHandle loss = own(BNNSFilterCreateLayerLoss(&loss_, nullptr));
  sweep_batches(&counter_, [&](size_t batch, float* in, float* out, size_t stride) {
    return BNNSLossFilterApplyBatch(loss.get(), batch, in, stride, data + 4096, stride, nullptr, 0, out, nullptr, 0);
  });
  const FilterHandle matmul = own(BNNSFilterCreateLayerBroadcastMatMul(&matmul_, nullptr));
  sweep_batches(&counter_, [&](size_t batch, float* in, float* out, size_t stride) {
    return BNNSFilterApplyTwoInputBatch(matmul.get(), batch, in, stride, data + 4096, stride, out, stride);
  });
  const BNNSFilterType types[] = {BNNSFullyConnected, BNNSBatchNorm};
  BNNSLayerParametersNormalization second = {};
  second.i_desc = second.o_desc = vector_descriptor(4, nullptr);
  const void* layers[] = {&dense_, &second};
  const FilterHandle fused = own(BNNSFilterCreateFusedLayer(2, types, layers, nullptr));
  sweep_batches(&counter_, [&](size_t batch, float* in, float* out, size_t stride) {
    return BNNSFusedFilterApplyBatch(fused.get(), batch, in, stride, out, stride, true);
  });
}

}  // namespace
}  // namespace bnns::testing
