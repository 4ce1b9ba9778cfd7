// The working memory of convolution, measured with the client's allocator: at most 2 MB per thread, the packed weights,
// and 2 MB of slices for a weight gradient. A steady state allocates nothing.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "src/core/memory.h"
#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

struct Counter {
  static inline size_t live = 0, peak = 0, calls = 0;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    const int status = posix_memalign(memory, alignment, bytes + 64);
    if (status != 0) return status;
    *static_cast<size_t*>(*memory) = bytes;
    *memory = static_cast<char*>(*memory) + 64;
    live += bytes, peak = std::max(peak, live), ++calls;
    return 0;
  }
  static void free(void* memory) {
    if (!memory) return;
    memory = static_cast<char*>(memory) - 64;
    live -= *static_cast<size_t*>(memory);
    std::free(memory);
  }
};

const std::vector<NamedShape>& shapes() {
  static const std::vector<NamedShape> all = {
      {"64x56x56 > 64 3x3", make_shape(1, 64, 56, 56, 64, 3, 1, 1)},
      {"512x7x7 > 512 3x3 n6", make_shape(6, 512, 7, 7, 512, 3, 1, 1)},
      {"3x224x224 > 64 7x7 s2", make_shape(1, 3, 224, 224, 64, 7, 2, 3)},
      {"256x56x56 > 64 1x1", make_shape(1, 256, 56, 56, 64, 1, 1, 0)},
      {"128x56x56 depthwise 3x3", make_shape(2, 128, 56, 56, 128, 3, 1, 1, 128)},
      {"32x8x2048 > 32 3x3", make_shape(1, 32, 8, 2048, 32, 3, 1, 1)},
      {"3x224x224 > 96 32x32 s32", make_shape(5, 3, 224, 224, 96, 32, 32, 0)},
      {"24x65x65 > 24 3x3 d18", make_shape(1, 24, 65, 65, 24, 3, 1, 18, 1, 18)},
      {"64x14x14 > 600 1x1 s2", make_shape(9, 64, 14, 14, 600, 1, 2, 0)},
      {"2x20x20 > 2 19x19", make_shape(2, 2, 20, 20, 2, 19, 1, 9)},
      {"32x8x2050 > 32 3x3 no padding", make_shape(1, 32, 8, 2050, 32, 3, 1, 0)},
      {"32x282x282 > 32 3x3 no padding", make_shape(1, 32, 282, 282, 32, 3, 1, 0)},
      {"256x30x30 > 256 3x3 no padding", make_shape(2, 256, 30, 30, 256, 3, 1, 0)},
      {"32x28x28 > 32 4x4 s2 transposed", make_shape(1, 32, 28, 28, 32, 4, 2, 1, 1, 1, true)},
  };
  return all;
}

enum class Pass { forward, input, weights, bias };
constexpr const char* kPassNames[] = {"forward", "input", "weights", "bias"};

// Uninitialised data would do: the passes never look at values. Zeros are as good.
struct Data {
  std::vector<float> x, w, y, dx, dw, db;
  explicit Data(const ConvolutionShape& s)
      : x(s.x_count()), w(s.w_count()), y(s.y_count()), dx(s.x_count()), dw(s.w_count()), db(s.o) {}
};

int run(BNNSFilter filter, const ConvolutionLayer& layer, Pass pass, Data& d, bool accumulate = false) {
  const ConvolutionShape& s = layer.shape;
  if (pass == Pass::forward) return BNNSFilterApplyBatch(filter, s.n, d.x.data(), 0, d.y.data(), 0);
  auto dx = image(s.iw, s.ih, s.i, d.dx.data()), dy = image(s.ow, s.oh, s.o, d.y.data());
  auto dw = layer.parameters.w_desc, db = vector_descriptor(s.o, d.db.data());
  dw.data = d.dw.data();
  if (accumulate) dx.flags = dw.flags = db.flags = BNNSNDArrayFlagBackpropAccumulate;
  return BNNSFilterApplyBackwardBatch(filter, s.n, d.x.data(), 0, pass == Pass::input ? &dx : nullptr, 0, nullptr, 0,
                                      &dy, 0, pass == Pass::weights ? &dw : nullptr,
                                      pass == Pass::bias ? &db : nullptr);
}

ConvolutionLayer counted_layer(const ConvolutionShape& s, const Data& d, size_t threads) {
  ConvolutionLayer layer(s, d.w.data(), nullptr);
  layer.options.flags = BNNSFlagsUseClientPtr;
  layer.options.n_threads = threads;
  layer.options.alloc_memory = Counter::alloc, layer.options.free_memory = Counter::free;
  return layer;
}

TEST(ConvolutionScratch, StaysWithinItsBound) {
  constexpr size_t kMega = 1 << 20, kSmall = 64 * 1024;
  for (const NamedShape& c : shapes()) {
    const ConvolutionShape& s = c.shape;
    Data data(s);
    for (const size_t threads : {1, 2, 7}) {
      for (const Pass pass : {Pass::forward, Pass::input, Pass::weights, Pass::bias}) {
        for (const bool accumulate : {false, true}) {
          if (accumulate && threads != 2) continue;
          const ConvolutionLayer layer = counted_layer(s, data, threads);
          const auto filter = layer.make();
          const size_t before = Counter::live;
          Counter::peak = Counter::live;
          for (int i = 0; i < 2; ++i) ASSERT_EQ(run(filter.get(), layer, pass, data, accumulate), 0);
          const size_t bytes = Counter::peak - before, weights = s.w_count() * sizeof(float);
          // Winograd's algorithm keeps 36 points of each tile or of each pair of channels.
          const bool winograd = s.kh == 3 && s.sy == 1 && s.dy == 1 && s.groups == 1 && std::min(s.i, s.o) >= 32;
          const size_t packed = (winograd ? 4 : 1) * (weights + weights * 3 / 10);
          const size_t bound = pass == Pass::weights ? threads * 2 * kMega + (winograd ? 12 : 2) * kMega + kSmall
                                                     : threads * 2 * kMega + packed + kSmall;
          EXPECT_LE(bytes, bound) << c.name << " " << kPassNames[int(pass)] << ", " << threads << " threads";
          if (std::getenv("BNNS_PRINT_SCRATCH") && !accumulate) {
            std::printf("%-32s %-8s %zu threads: %6zu KB, weights %6zu KB\n", c.name, kPassNames[int(pass)], threads,
                        bytes / 1024, weights / 1024);
          }
        }
      }
    }
  }
}

// After a few rounds of training the shelf holds what every call needs.
TEST(ConvolutionScratch, SteadyStateAllocatesNothing) {
  for (const NamedShape& c : {shapes()[0], shapes()[4], shapes()[12], shapes()[13]}) {
    const ConvolutionShape& s = c.shape;
    Data data(s);
    for (const auto function :
         {BNNSActivationFunctionIdentity, BNNSActivationFunctionSiLU, BNNSActivationFunctionSoftmax}) {
      ConvolutionLayer layer = counted_layer(s, data, 2);
      layer.parameters.activation.function = function;
      const auto filter = layer.make();
      auto dx = image(s.iw, s.ih, s.i, data.dx.data());
      std::vector<float> upstream(s.y_count());
      auto dy = image(s.ow, s.oh, s.o, upstream.data());
      auto dw = layer.parameters.w_desc, db = vector_descriptor(s.o, data.db.data());
      dw.data = data.dw.data();
      for (int round = 0; round < 8; ++round) {
        const size_t calls = Counter::calls;
        ASSERT_EQ(run(filter.get(), layer, Pass::forward, data), 0);
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, data.x.data(), 0, &dx, 0, data.y.data(), 0, &dy, 0,
                                               &dw, &db),
                  0);
        if (round < 4) continue;
        EXPECT_EQ(Counter::calls, calls) << c.name << " function " << function << " round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace bnns
