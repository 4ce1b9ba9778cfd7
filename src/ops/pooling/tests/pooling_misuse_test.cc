// Pooling: wrong calls get the failure value and a reason that names field and rule, and nothing is written.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "src/ops/pooling/tests/pooling_testing.h"

namespace {
std::atomic<size_t> news{0};  // calls of operator new
}
// Not inlined: the compiler would see free() of what operator new returned, and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++news;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace bnns {
namespace {

using namespace bnns::testing;

void refused(void (*change)(PoolLayer&), std::initializer_list<const char*> words) {
  const float bias[2] = {};
  PoolLayer layer(Pool::max, square(2, 8, 2, 2));
  layer.parameters.bias = vector_descriptor(2, const_cast<float*>(bias));
  change(layer);
  EXPECT_EQ(BNNSFilterCreateLayerPooling(&layer.parameters, &layer.options), nullptr);
  EXPECT_TRUE(refused_because(words));
}

TEST(PoolingMisuse, CreationSaysWhy) {
  using L = PoolLayer&;
  refused([](L l) { l.parameters.k_width = 0; }, {"pooling", "k_width is 0, expected 1 to"});
  refused([](L l) { l.parameters.k_height = SIZE_MAX; }, {"k_height is 18446744073709551615"});
  refused([](L l) { l.parameters.x_stride = size_t{1} << 40; }, {"x_stride is"});
  refused([](L l) { l.parameters.y_dilation_stride = SIZE_MAX - 1; }, {"y_dilation_stride"});
  refused([](L l) { l.parameters.x_padding = SIZE_MAX; }, {"left padding"});
  refused([](L l) { l.parameters.pad[3] = SIZE_MAX; }, {"lower padding"});
  refused([](L l) { l.parameters.o_desc.size[0] = 5; },
          {"width of the small image is 5, expected at most 4 = (8 + 0 + 0 - 1) / 2 + 1"});
  refused(
      [](L l) {
        l.parameters.o_desc.size[1] = 6;
        l.parameters.pad[2] = 1;
      },
      {"height", "(8 + 1 + 0 - 1) / 2 + 1"});
  refused([](L l) { l.parameters.o_desc.size[2] = 3; }, {"o_desc has 3 channels, expected 2"});
  refused([](L l) { l.parameters.i_desc.size[0] = 0; }, {"i_desc.size[0] is 0"});
  refused([](L l) { l.parameters.i_desc.layout = BNNSDataLayoutVector; }, {"i_desc.layout", "ImageCHW"});
  refused([](L l) { l.parameters.o_desc.layout = BNNSDataLayout(99); }, {"o_desc.layout"});
  refused([](L l) { l.parameters.i_desc.data_type = BNNSDataTypeInt8; }, {"i_desc has type i8", "f32, f16 or bf16"});
  refused(
      [](L l) {
        l.parameters.o_desc.stride[0] = 1;
        l.parameters.o_desc.stride[1] = 1;
      },
      {"o_desc is f32", "elements (0, 1, 0) and (1, 0, 0) share an address"});
  refused([](L l) { l.parameters.pooling_function = BNNSPoolingFunction(9); }, {"pooling_function is 9"});
  refused([](L l) { l.parameters.bias.size[0] = 3; }, {"bias has 3 elements, expected 2 = channels"});
  refused([](L l) { l.parameters.activation.function = BNNSActivationFunctionSoftmax; },
          {"softmax", "cannot be fused"});
  refused([](L l) { l.parameters.activation.function = BNNSActivationFunction(99); }, {"activation"});
  refused([](L l) { l.options.flags = 6; }, {"filter_params.flags is 0x6"});
  EXPECT_EQ(BNNSFilterCreateLayerPooling(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

// Zero strides and dilations mean 1, an all-zero bias is none, and the padding of both sides wins over the four sides.
TEST(PoolingMisuse, LenientWhereClientsAre) {
  PoolLayer layer(Pool::max, square(1, 4, 2, 1));
  layer.parameters.x_stride = layer.parameters.y_stride = 0;
  layer.parameters.x_dilation_stride = layer.parameters.y_dilation_stride = 0;
  const auto filter = layer.make();
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  float y[9];
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y), 0);
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(y[8], 16);
}

struct Buffers {
  std::vector<float> x, y, dx, dy, db;
  std::vector<size_t> index;
  Buffers() : x(64), y(32, poison()), dx(128, poison()), dy(32), db(2, poison()), index(32) { x.resize(128); }
  bool untouched() const {
    const auto all = [](const std::vector<float>& v) { return std::all_of(v.begin(), v.end(), is_poison); };
    return all(y) && all(dx) && all(db);
  }
};

// BC37: one table of wrong calls through all entry points, forward and backward.
TEST(PoolingMisuse, BC37_EveryEntryPointSaysWhyAndWritesNothing) {
  const PoolShape s = square(2, 8, 2, 2);
  const auto filter = PoolLayer(Pool::max, s).make(), unmax = PoolLayer(BNNSPoolingFunctionUnMax, s).make();
  PoolLayer relu_layer(Pool::max, s), silu_layer(Pool::average_include, s);
  relu_layer.parameters.activation.function = BNNSActivationFunctionRectifiedLinear;
  silu_layer.parameters.activation.function = BNNSActivationFunctionSiLU;
  const auto relu = relu_layer.make(), silu = silu_layer.make(), l2 = PoolLayer(Pool::l2, s).make();
  Buffers b;
  const float *x = b.x.data(), *dy = b.dy.data();
  size_t* index = b.index.data();
  const auto apply = [&](BNNSFilter f, size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                         BNNSDataType type, void* indices, size_t idx_stride) {
    const int ex = BNNSPoolingFilterApplyBatchEx(f, batch, in, in_stride, out, out_stride, type, indices, idx_stride);
    if (type == BNNSDataTypeUInt64) {
      EXPECT_EQ(BNNSPoolingFilterApplyBatch(f, batch, in, in_stride, out, out_stride, static_cast<size_t*>(indices),
                                            idx_stride),
                ex);
    }
    return ex;
  };
  constexpr auto u64 = BNNSDataTypeUInt64;
  EXPECT_EQ(apply(nullptr, 1, x, 0, b.y.data(), 0, u64, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"filter is NULL"}));
  EXPECT_EQ(apply(filter.get(), 1, nullptr, 0, b.y.data(), 0, u64, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(apply(filter.get(), 1, x, 0, nullptr, 0, u64, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"out is NULL"}));
  EXPECT_EQ(apply(filter.get(), 2, x, 0, b.y.data(), 5, u64, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"out_stride is 5, expected 0 or at least 32"}));
  EXPECT_EQ(apply(filter.get(), 1, x, 0, b.y.data(), 0, BNNSDataTypeInt16, index, 0), -1);
  EXPECT_TRUE(refused_because({"indices_data_type", "UInt32, UInt64, Int32 or Int64"}));
  EXPECT_EQ(apply(filter.get(), 2, x, 0, b.y.data(), 0, u64, index, 3), -1);
  EXPECT_TRUE(refused_because({"idx_stride is 3"}));
  EXPECT_EQ(apply(filter.get(), 1, x, 0, b.y.data(), 0, u64, reinterpret_cast<char*>(index) + 4, 0), -1);
  EXPECT_TRUE(refused_because({"indices", "multiple of 8"}));
  EXPECT_EQ(apply(filter.get(), SIZE_MAX, x, 0, b.y.data(), 0, u64, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"do not fit in memory"}));
  EXPECT_EQ(apply(unmax.get(), 1, dy, 0, b.dx.data(), 0, u64, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"indices is NULL"}));
  EXPECT_EQ(BNNSFilterApply(unmax.get(), dy, b.dx.data()), -1);
  EXPECT_TRUE(refused_because({"BNNSFilterApply", "indices is NULL"}));

  auto dxd = large_descriptor(s, b.dx.data()), dyd = small_descriptor(s, b.dy.data());
  auto dbd = vector_descriptor(2, b.db.data());
  const auto back = [&](BNNSFilter f, const void* in, BNNSNDArrayDescriptor* dx, const void* out,
                        BNNSNDArrayDescriptor* g, BNNSNDArrayDescriptor* db, const size_t* indices, size_t batch = 1) {
    const int ex = BNNSPoolingFilterApplyBackwardBatchEx(f, batch, in, 0, dx, 0, out, 0, g, 0, db, u64, indices, 0);
    EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(f, batch, in, 0, dx, 0, out, 0, g, 0, db, indices, 0), ex);
    if (!indices) {
      EXPECT_EQ(BNNSFilterApplyBackwardBatch(f, batch, in, 0, dx, 0, out, 0, g, 0, nullptr, db), ex);
    }
    return ex;
  };
  EXPECT_EQ(back(filter.get(), nullptr, &dxd, nullptr, &dyd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in and indices are both NULL"}));
  EXPECT_EQ(back(l2.get(), nullptr, &dxd, nullptr, &dyd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(back(filter.get(), x, &dxd, nullptr, nullptr, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"out_delta is NULL"}));
  EXPECT_EQ(back(relu.get(), x, &dxd, nullptr, &dyd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"out is NULL"}));
  EXPECT_EQ(back(silu.get(), nullptr, &dxd, b.y.data(), &dyd, &dbd, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL", "needs the layer's input"}));
  EXPECT_EQ(back(unmax.get(), dy, &dyd, nullptr, &dxd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"indices is NULL"}));
  auto wrong = vector_descriptor(31, b.dy.data());
  EXPECT_EQ(back(filter.get(), x, &dxd, nullptr, &wrong, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"out_delta has 31 elements, expected 32"}));
  auto turned = descriptor(BNNSDataLayoutImageCHW, {4, 8, 4}, b.dx.data());
  EXPECT_EQ(back(filter.get(), x, &turned, nullptr, &dyd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta is", "expected"}));
  auto short_bias = vector_descriptor(1, b.db.data());
  EXPECT_EQ(back(filter.get(), x, &dxd, nullptr, &dyd, &short_bias, nullptr), -1);
  EXPECT_TRUE(refused_because({"bias_delta has 1 elements"}));
  auto on_dy = large_descriptor(s, b.dy.data());
  EXPECT_EQ(back(filter.get(), x, &on_dy, nullptr, &dyd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta and out_delta overlap"}));
  auto on_x = large_descriptor(s, b.x.data());
  EXPECT_EQ(back(filter.get(), x, &on_x, nullptr, &dyd, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta and in overlap"}));
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x, 0, &dxd, 0, nullptr, 0, &dyd, 0, &dbd, nullptr), -1);
  EXPECT_TRUE(refused_because({"weights_delta is given, expected NULL"}));
  EXPECT_TRUE(b.untouched());
}

// A pooling call on a filter of another kind.
TEST(PoolingMisuse, OtherKindsOfFilters) {
  BNNSLayerParametersActivation p;
  std::memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = vector_descriptor(4, nullptr);
  p.activation.function = BNNSActivationFunctionTanh;
  FilterHandle filter(BNNSFilterCreateLayerActivation(&p, nullptr), &BNNSFilterDestroy);
  float x[4] = {}, y[4];
  EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, x, 0, y, 0, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"kind activation, expected kind pooling"}));
  EXPECT_EQ(
      BNNSPoolingFilterApplyBackwardBatch(filter.get(), 1, x, 0, nullptr, 0, y, 0, nullptr, 0, nullptr, nullptr, 0),
      -1);
  EXPECT_TRUE(refused_because({"expected kind pooling"}));
}

// BC42, BC44, BC45: the N-th allocation fails; every block comes back.
struct Accountant {
  static inline int live = 0, total = 0, until_failure = -1;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    if (until_failure == 0) return 12;
    if (until_failure > 0) --until_failure;
    const int status = posix_memalign(memory, alignment, bytes);
    live += status == 0, total += status == 0;
    return status;
  }
  static void free(void* memory) {
    live -= memory != nullptr;
    std::free(memory);
  }
};

TEST(PoolingMisuse, BC42_BC44_BC45_AllocationsMayFail) {
  const float bias[4] = {};
  PoolLayer layer(Pool::max, square(4, 8, 2, 2));
  layer.parameters.bias = vector_descriptor(4, const_cast<float*>(bias));
  layer.options.alloc_memory = Accountant::alloc;
  layer.options.free_memory = Accountant::free;
  for (int n = 0; n < 2; ++n) {  // the filter, the copy of the bias
    Accountant::until_failure = n;
    EXPECT_EQ(BNNSFilterCreateLayerPooling(&layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because({"out of memory"}));
    EXPECT_EQ(Accountant::live, 0);
  }
  Accountant::until_failure = -1;
  auto filter = layer.make();
  EXPECT_EQ(Accountant::live, 2);
  filter.reset();
  EXPECT_EQ(Accountant::live, 0);
}

// BC43: no call takes memory, from the caller's allocator or from operator new, on any path and number of threads.
TEST(PoolingMisuse, BC43_ApplyUsesNoScratch) {
  const size_t N = 16;
  const std::vector<float> bias(4, 1.0f);
  const auto count = [&](Pool f, bool unmax, const PoolShape& s, BNNSDataType type, BNNSActivationFunction activation,
                         size_t threads) {
    PoolLayer layer(unmax ? BNNSPoolingFunctionUnMax : bnns_function(f), s);
    layer.parameters.i_desc.data_type = layer.parameters.o_desc.data_type = type;
    layer.parameters.bias = vector_descriptor(4, const_cast<float*>(bias.data()));
    layer.parameters.activation.function = activation;
    layer.options.alloc_memory = Accountant::alloc;
    layer.options.free_memory = Accountant::free;
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    const size_t in = N * (unmax ? s.small() : s.large()), out = N * (unmax ? s.large() : s.small());
    std::vector<float> x(in, 1.0f), y(out), dx(in), dy(out, 1.0f);
    std::vector<size_t> index(N * s.small(), 0);
    float db[4];
    auto dx_desc = unmax ? small_descriptor(s, dx.data(), type) : large_descriptor(s, dx.data(), type);
    auto dy_desc = unmax ? large_descriptor(s, dy.data(), type) : small_descriptor(s, dy.data(), type);
    auto db_desc = vector_descriptor(4, db);
    const auto call = [&](size_t* indices) {
      EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), N, x.data(), 0, y.data(), 0, indices, 0), 0)
          << BNNSExtLastError();
      EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                                    &db_desc, indices, 0),
                0)
          << BNNSExtLastError();
    };
    call(index.data());  // the first call of the process starts threads
    const int blocks = Accountant::total;
    const size_t before = news;
    call(index.data());
    if (!unmax) call(nullptr);
    EXPECT_EQ(Accountant::total, blocks) << text(s);
    EXPECT_EQ(news, before) << text(s) << (unmax ? " unmax" : "") << " function " << int(f) << " threads " << threads;
  };
  for (const PoolShape& s : one_of_each_kernel(4, 40)) {
    for (const auto type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16}) {
      for (const auto activation : {BNNSActivationFunctionIdentity, BNNSActivationFunctionSiLU}) {
        for (const size_t threads : {1, 7, 256}) {
          for (Pool f : kPools) count(f, false, s, type, activation, threads);
          count(Pool::max, true, s, type, activation, threads);
        }
      }
    }
  }
}

}  // namespace
}  // namespace bnns
