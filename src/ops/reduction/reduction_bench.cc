// Reductions in GB/s read, and as a share of the read bandwidth: what a plain loop that only reads reaches in the same
// run.
//
// Usage: reduction_bench [threads]      Best of all repetitions, since neighbours only slow.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

namespace {

template <class Body>
double fastest(Body&& body) {
  return bnns::bench::fastest(0.15, body);
}

// The yardstick: every thread reads its part in 64-byte steps with 16 sums, and does nothing else.
double read_bandwidth(const float* x, size_t n, size_t threads) {
  std::vector<float> sums(threads * 16);
  const double seconds = fastest([&] {
    bnns::parallel_for(threads, threads, [&](size_t task, size_t) {
      float sum[16] = {};
      for (size_t i = task * n / threads; i + 16 <= (task + 1) * n / threads; i += 16) {
        for (size_t k = 0; k < 16; ++k) sum[k] += x[i + k];
      }
      for (size_t k = 0; k < 16; ++k) sums[task * 16 + k] = sum[k];
    });
  });
  volatile float sink = sums[0];
  (void)sink;
  return 4e-9 * double(n) / seconds;
}

struct Case {
  const char* name;
  size_t in[3], out[3];  // size[0] is fastest
};
const Case kCases[] = {
    {"all, 16 M", {1 << 24, 1, 1}, {1, 1, 1}},
    {"inner, 1024 x 16384", {1024, 16384, 1}, {1, 16384, 1}},
    {"inner, 49 x 327680 (7 x 7 planes)", {49, 327680, 1}, {1, 327680, 1}},
    {"inner, 3 x 5 M (RGB pixels)", {3, 5 << 20, 1}, {1, 5 << 20, 1}},
    {"outer, 1024 x 16384", {1024, 16384, 1}, {1024, 1, 1}},
    {"outer, 65536 x 256", {65536, 256, 1}, {65536, 1, 1}},
    {"outer, 3 x 5 M", {3, 5 << 20, 1}, {3, 1, 1}},
    {"middle, 64 x 512 x 512", {64, 512, 512}, {64, 1, 512}},
    {"ends, 196 x 64 x 1337 (batch statistics)", {196, 64, 1337}, {1, 64, 1}},
};

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : bnns::default_threads();
  size_t largest = 0;
  for (const Case& c : kCases) largest = std::max(largest, c.in[0] * c.in[1] * c.in[2]);
  std::vector<float> x(largest), y(5 << 20);
  for (size_t i = 0; i < largest; ++i) x[i] = 0.5f + float(i * 2654435761u % 1024) / 1024;
  const double bandwidth = read_bandwidth(x.data(), largest, threads);
  std::printf("%zu threads, plain read %.1f GB/s\n", threads, bandwidth);
  const struct {
    const char* name;
    BNNSReduceFunction f;
  } functions[] = {{"Sum", BNNSReduceFunctionSum},
                   {"Max", BNNSReduceFunctionMax},
                   {"ArgMax", BNNSReduceFunctionArgMax},
                   {"L2Norm", BNNSReduceFunctionL2Norm},
                   {"LogSumExp", BNNSReduceFunctionLogSumExp},
                   {"Product", BNNSReduceFunctionProduct}};
  for (const Case& c : kCases) {
    std::printf("%-42s", c.name);
    for (const auto& function : functions) {
      BNNSLayerParametersReduction layer;
      std::memset(&layer, 0, sizeof layer);
      layer.i_desc.layout = layer.o_desc.layout = BNNSDataLayout3DLastMajor;
      layer.i_desc.data_type = layer.o_desc.data_type = BNNSDataTypeFloat32;
      for (size_t k = 0; k < 3; ++k) layer.i_desc.size[k] = c.in[k], layer.o_desc.size[k] = c.out[k];
      layer.i_desc.data = x.data();
      layer.o_desc.data = y.data();
      layer.reduce_func = function.f;
      BNNSFilterParameters options = {};
      options.n_threads = threads;
      const double seconds = fastest([&] {
        if (BNNSDirectApplyReduction(&layer, &options) != 0) {
          std::fprintf(stderr, "%s\n", BNNSExtLastError());
          std::exit(1);
        }
      });
      const double speed = 4e-9 * double(c.in[0] * c.in[1] * c.in[2]) / seconds;
      std::printf("  %s %.1f GB/s %3.0f%%", function.name, speed, 100 * speed / bandwidth);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}
