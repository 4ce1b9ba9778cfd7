// How fast a step is, beside the copy bandwidth of the same machine in the same run.
//
//   large   25 M parameters in one tensor: limited by memory, so the yardstick is a copy of the same memory with the
//           same threads; both count the bytes that must move (a copy 8 per element, Adam 28: four reads, three writes)
//   mlp     784x128 + 128x10 with their biases, four tensors in one call, in cache: limited by the divider
//
// Usage: optimizer_bench [parameters] [threads]      Prints a table; best of all repetitions, since neighbours only
// slow.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"

namespace {

using bnns::bench::fastest;

struct Floats {
  explicit Floats(size_t n, float value = 0)
      : room(bnns::Options{}, n * sizeof(float), "bench data"), data(room.as<float>()) {
    std::fill(data, data + n, value);
  }
  bnns::Buffer room;
  float* data;
};

constexpr size_t kPiece = 64 * 1024;  // floats per task of a copy

void copy_plain(const float* x, float* y, size_t n, size_t threads) {
  bnns::parallel_for((n + kPiece - 1) / kPiece, threads, [&](size_t task, size_t) {
    const size_t begin = task * kPiece, m = std::min(kPiece, n - begin);
    std::memcpy(y + begin, x + begin, m * sizeof(float));
  });
}

#if defined(__SSE2__)
void copy_streaming(const float* x, float* y, size_t n, size_t threads) {
  bnns::parallel_for((n + kPiece - 1) / kPiece, threads, [&](size_t task, size_t) {
    const size_t begin = task * kPiece, end = std::min(n, begin + kPiece);
    for (size_t i = begin; i + 4 <= end; i += 4) _mm_stream_ps(y + i, _mm_loadu_ps(x + i));
    _mm_sfence();
  });
}
#endif

// A list of tensors with their gradients and accumulators, and one step over them.
class Model {
 public:
  explicit Model(const std::vector<size_t>& sizes) : n_(sizes.size()) {
    for (size_t role = 0; role < 5; ++role) {
      for (size_t i = 0; i < n_; ++i) {
        memory_.emplace_back(sizes[i], role < 2 ? 0.01f * float(i + 1) : 1e-4f);
        BNNSNDArrayDescriptor d;
        std::memset(&d, 0, sizeof d);
        d.layout = BNNSDataLayoutVector;
        d.size[0] = sizes[i];
        d.data = memory_.back().data;
        d.data_type = BNNSDataTypeFloat32;
        descriptors_.push_back(d);
        if (role == 0) total_ += sizes[i];
      }
    }
    for (auto& d : descriptors_) pointers_.push_back(&d);
    for (size_t i = 0; i < n_; ++i) gradients_.push_back(&descriptors_[n_ + i]);
  }
  size_t total() const { return total_; }
  void step(BNNSOptimizerFunction function, const void* fields, size_t threads) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    if (BNNSOptimizerStep(function, fields, n_, pointers_.data(), gradients_.data(), pointers_.data() + 2 * n_,
                          &options) != 0) {
      std::fprintf(stderr, "%s\n", BNNSExtLastError());
      std::exit(1);
    }
  }

 private:
  size_t n_, total_ = 0;
  std::vector<Floats> memory_;
  std::vector<BNNSNDArrayDescriptor> descriptors_;
  std::vector<BNNSNDArrayDescriptor*> pointers_;
  std::vector<const BNNSNDArrayDescriptor*> gradients_;
};

struct Case {
  const char* name;
  BNNSOptimizerFunction function;
  const void* fields;
  size_t bytes;  // per parameter: reads of W, g and the accumulators, writes of all but g
};

}  // namespace

int main(int argc, char** argv) {
  const size_t large = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 25'000'000;
  const size_t threads = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : bnns::default_threads();

  BNNSOptimizerSGDMomentumFields sgd = {};
  sgd.learning_rate = 1e-3f;
  sgd.gradient_scale = 1;
  BNNSOptimizerSGDMomentumFields momentum = sgd;
  momentum.momentum = 0.9f;
  momentum.sgd_momentum_variant = BNNSSGDMomentumVariant1;
  BNNSOptimizerAdamFields adam = {};
  adam.learning_rate = 1e-3f;
  adam.beta1 = 0.9f;
  adam.beta2 = 0.999f;
  adam.time_step = 10;
  adam.epsilon = 1e-8f;
  adam.gradient_scale = 1;
  BNNSOptimizerAdamWithClippingFields clipped = {};
  clipped.learning_rate = 1e-3f;
  clipped.beta1 = 0.9f;
  clipped.beta2 = 0.999f;
  clipped.time_step = 10;
  clipped.epsilon = 1e-8f;
  clipped.gradient_scale = 1;
  clipped.clipping_func = BNNSOptimizerClippingByGlobalNorm;
  clipped.clip_gradients_max_norm = 1;
  BNNSOptimizerRMSPropFields rmsprop = {};
  rmsprop.learning_rate = 1e-3f;
  rmsprop.alpha = 0.99f;
  rmsprop.epsilon = 1e-8f;
  rmsprop.gradient_scale = 1;
  const Case cases[] = {
      {"sgd", BNNSOptimizerFunctionSGDMomentum, &sgd, 12},
      {"sgd momentum", BNNSOptimizerFunctionSGDMomentum, &momentum, 20},
      {"adam", BNNSOptimizerFunctionAdam, &adam, 28},
      {"adam amsgrad", BNNSOptimizerFunctionAdamAMSGrad, &adam, 36},
      {"adam global norm", BNNSOptimizerFunctionAdamWithClipping, &clipped, 32},
      {"rmsprop", BNNSOptimizerFunctionRMSProp, &rmsprop, 20},
  };

  Model big({large}), mlp({784 * 128, 128, 128 * 10, 10});
  double copy = 0;
  {
    Floats x(large, 1), y(large, 0);
    const auto report = [&](const char* name, double seconds) {
      const double rate = 8e-9 * double(large) / seconds;
      copy = std::max(copy, rate);
      std::printf("%-18s %10.2f ms %8.1f GB/s\n", name, seconds * 1e3, rate);
    };
    std::printf("%zu parameters, %zu threads\n", large, threads);
    report("copy", fastest(0.5, [&] { copy_plain(x.data, y.data, large, threads); }));
#if defined(__SSE2__)
    report("copy streaming", fastest(0.5, [&] { copy_streaming(x.data, y.data, large, threads); }));
#endif
  }
  for (const Case& c : cases) {
    const double seconds = fastest(0.5, [&] { big.step(c.function, c.fields, threads); });
    const double rate = 1e-9 * double(c.bytes) * double(large) / seconds;
    std::printf("%-18s %10.2f ms %8.1f GB/s %5.0f %% of the better copy\n", c.name, seconds * 1e3, rate,
                100 * rate / copy);
  }
  std::printf("\nmlp 784-128-10: %zu parameters in 4 tensors\n", mlp.total());
  for (const Case& c : cases) {
    double rate[2], seconds[2];
    for (size_t many : {0, 1}) {
      seconds[many] = fastest(0.2, [&] { mlp.step(c.function, c.fields, many ? threads : 1); });
      rate[many] = 1e-9 * double(c.bytes) * double(mlp.total()) / seconds[many];
    }
    std::printf("%-18s %10.2f us %8.1f GB/s on 1 thread, %10.2f us %8.1f GB/s allowed %zu\n", c.name, seconds[0] * 1e6,
                rate[0], seconds[1] * 1e6, rate[1], threads);
  }
}
