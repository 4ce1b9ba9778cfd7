// Multi-head attention beside the GEMM core's best rate, in one process.
//   attention_bench [threads] [rounds]
// A case is B samples, h heads of d columns, L = S positions. FLOPs are those of the products: projections and heads,
// and in backward twice as many, without what is computed again. The yardstick is a 1024^3 product on as many threads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"
#include "src/gemm/gemm.h"

namespace {

using namespace bnns;
using namespace bnns::bench;

std::vector<float> make_floats(size_t n, float scale) {
  std::vector<float> v(n);
  uint32_t state = 1;
  for (float& x : v) {
    state = state * 1664525 + 1013904223;
    x = scale * (static_cast<float>(state >> 8) * (1.0f / 8388608) - 1.0f);
  }
  return v;
}

double time_of(int rounds, const std::function<void()>& body) {
  body();
  std::vector<double> times;
  for (int r = 0; r < rounds; ++r) {
    const double begin = now();
    body();
    times.push_back(now() - begin);
  }
  return median(times);
}

double gemm_rate(size_t threads, int rounds) {
  const size_t n = 1024;
  const std::vector<float> a = make_floats(n * n, 1), b = make_floats(n * n, 1);
  std::vector<float> c(n * n);
  const Lens la = strided_lens(a.data(), FloatType::f32, n, 1), lb = strided_lens(b.data(), FloatType::f32, 1, n);
  const GemmOutput out{c.data(), n, 1};
  void* workspace = std::aligned_alloc(64, gemm_workspace_bytes({n, n, n}, la, lb, out, threads) / 64 * 64 + 64);
  const double seconds = time_of(rounds, [&] { gemm({n, n, n}, la, lb, out, nullptr, {}, workspace, threads); });
  std::free(workspace);
  return 2e-9 * n * n * n / seconds;
}

BNNSNDArrayDescriptor tensor(BNNSDataLayout layout, std::vector<size_t> size, float* data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = layout;
  for (size_t k = 0; k < size.size(); ++k) d.size[k] = size[k];
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

void run_case(size_t B, size_t H, size_t L, size_t d, bool core_only, size_t threads, int rounds, double peak) {
  const size_t D = core_only ? 16 : H * d;  // a narrow model leaves the heads alone
  std::vector<float> x = make_floats(B * L * D, 1), y(B * L * D), w = make_floats(D * H * d, 0.05f);
  std::vector<float> dx(B * L * D), dw(4 * D * H * d);
  const BNNSNDArrayDescriptor target = tensor(BNNSDataLayout2DFirstMajor, {L, D}, nullptr);
  BNNSLayerParametersMultiheadAttention layer;
  std::memset(static_cast<void*>(&layer), 0, sizeof layer);
  layer.query = layer.key = layer.value = {target, tensor(BNNSDataLayout3DLastMajor, {D, d, H}, w.data()), {}};
  layer.output = {target, tensor(BNNSDataLayout2DFirstMajor, {H * d, D}, w.data()), {}};
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.n_threads = threads;
  BNNSFilter filter = BNNSFilterCreateLayerMultiheadAttention(&layer, &options);
  size_t bytes = 0;
  const auto forward = [&](void* cache) {
    return BNNSApplyMultiheadAttention(filter, B, x.data(), 0, x.data(), 0, nullptr, 0, x.data(), 0, y.data(), 0,
                                       nullptr, &bytes, cache, nullptr, nullptr);
  };
  if (!filter || forward(nullptr) != 0) std::printf("%s\n", BNNSExtLastError()), std::exit(1);
  std::vector<char> cache(bytes);
  BNNSMHAProjectionParameters g[4];
  std::memset(static_cast<void*>(g), 0, sizeof g);
  for (size_t i = 0; i < 4; ++i) {
    g[i] = i < 3 ? layer.query : layer.output;
    g[i].weights.data = dw.data() + i * D * H * d;
    g[i].target_desc.data = i < 3 ? dx.data() : x.data();
  }
  const auto backward = [&](void* given) {
    return BNNSApplyMultiheadAttentionBackward(filter, B, x.data(), 0, &g[0], x.data(), 0, nullptr, 0, &g[1], x.data(),
                                               0, &g[2], nullptr, nullptr, nullptr, nullptr, 0, &g[3], bytes, given,
                                               nullptr, nullptr);
  };
  size_t* no_size = nullptr;
  const double f = time_of(rounds, [&] {
    BNNSApplyMultiheadAttention(filter, B, x.data(), 0, x.data(), 0, nullptr, 0, x.data(), 0, y.data(), 0, nullptr,
                                no_size, nullptr, nullptr, nullptr);
  });
  if (forward(cache.data()) != 0 || backward(cache.data()) != 0) std::printf("%s\n", BNNSExtLastError()), std::exit(1);
  const double b = time_of(rounds, [&] { backward(cache.data()); });
  const double n = static_cast<double>(B * L), heads = static_cast<double>(H * d);
  const double flops = 8 * n * static_cast<double>(D) * heads + 4 * n * static_cast<double>(L) * heads;
  std::printf(
      "B%zu h%zu L%zu d%zu %-9s  forward %8.2f ms %7.1f GFLOP/s %3.0f %%   backward %8.2f ms %7.1f GFLOP/s %3.0f %%\n",
      B, H, L, d, core_only ? "heads" : "layer", 1e3 * f, 1e-9 * flops / f, 1e-7 * flops / f / peak, 1e3 * b,
      2e-9 * flops / b, 2e-7 * flops / b / peak);
  BNNSFilterDestroy(filter);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : default_threads();
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const double peak = gemm_rate(threads, rounds);
  std::printf("%zu threads, gemm 1024^3: %.1f GFLOP/s = 100 %%\n", threads, peak);
  for (const bool core_only : {false, true}) {
    run_case(8, 8, 512, 64, core_only, threads, rounds, peak);
    run_case(1, 8, 2048, 64, core_only, threads, rounds, peak);
    run_case(64, 4, 32, 32, core_only, threads, rounds, peak);
  }
  return 0;
}
