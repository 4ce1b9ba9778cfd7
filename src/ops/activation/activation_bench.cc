// The activation layer, forward and backward: nanoseconds per element and GB/s (bytes read plus bytes written), beside
// memcpy of the same bytes in the same run, and beside oneDNN where it is installed.
//
// Usage: activation_bench [threads]      Best of all repetitions, since neighbours only slow.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/check.h"
#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"
#include "src/engine/activation/activation.h"

#if defined(BNNS_PEER_ONEDNN)
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace {

using bnns::bench::check;

template <class Body>
double fastest(Body&& body) {
  return bnns::bench::fastest(0.1, body, 4);
}

BNNSNDArrayDescriptor array(BNNSDataLayout layout, std::vector<size_t> size, void* data) {
  BNNSNDArrayDescriptor d = {};
  d.layout = layout;
  std::copy(size.begin(), size.end(), d.size);
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

// oneDNN's time for the same function on n elements (or rows of `axis` elements); 0 when it has none.
double peer(BNNSActivationFunction function, const float* x, float* y, size_t n, size_t row) {
#if defined(BNNS_PEER_ONEDNN)
  using namespace dnnl;
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  const memory::desc md({memory::dim(n / row), memory::dim(row)}, memory::data_type::f32, memory::format_tag::ab);
  memory src(md, cpu, const_cast<float*>(x)), dst(md, cpu, y);
  const auto eltwise = [&](algorithm kind) {
    const eltwise_forward primitive({cpu, prop_kind::forward_inference, kind, md, md, 0.f, 0.f});
    return fastest([&] {
      primitive.execute(queue, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
      queue.wait();
    });
  };
  switch (function) {
    case BNNSActivationFunctionRectifiedLinear:
      return eltwise(algorithm::eltwise_relu);
    case BNNSActivationFunctionSigmoid:
      return eltwise(algorithm::eltwise_logistic);
    case BNNSActivationFunctionTanh:
      return eltwise(algorithm::eltwise_tanh);
    case BNNSActivationFunctionGELU:
      return eltwise(algorithm::eltwise_gelu_erf);
    case BNNSActivationFunctionGELUApproximation:
      return eltwise(algorithm::eltwise_gelu_tanh);
    case BNNSActivationFunctionSoftmax: {
      const softmax_forward primitive({cpu, prop_kind::forward_inference, algorithm::softmax_accurate, md, md, 1});
      return fastest([&] {
        primitive.execute(queue, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
        queue.wait();
      });
    }
    default:
      return 0;
  }
#else
  (void)function, (void)x, (void)y, (void)n, (void)row;
  return 0;
#endif
}

struct Case {
  const char* name;
  BNNSActivationFunction function;
  float alpha, beta;
};

constexpr Case kCases[] = {{"relu", BNNSActivationFunctionRectifiedLinear, 0, 0},
                           {"sigmoid", BNNSActivationFunctionSigmoid, 0, 0},
                           {"tanh", BNNSActivationFunctionTanh, 0, 0},
                           {"silu", BNNSActivationFunctionSiLU, 0, 0},
                           {"gelu", BNNSActivationFunctionGELU, 0, 0},
                           {"gelu tanh", BNNSActivationFunctionGELUApproximation, 0.79788456f, 0.044715f},
                           {"elu", BNNSActivationFunctionELU, 1, 0},
                           {"softplus", BNNSActivationFunctionSoftplus, 1, 1}};

void run(const char* name, const BNNSLayerParametersActivation& layer, size_t batch, size_t row, size_t threads,
         std::vector<float>& x, std::vector<float>& y, std::vector<float>& dy, std::vector<float>& dx) {
  const size_t n = x.size();
  BNNSFilterParameters options = {};
  options.n_threads = threads;
  BNNSFilter filter = BNNSFilterCreateLayerActivation(&layer, &options);
  if (!filter) check(-1);
  const double copy = fastest([&] { std::memcpy(y.data(), x.data(), 4 * n); });
  const double forward = fastest([&] { check(BNNSFilterApplyBatch(filter, batch, x.data(), 0, y.data(), 0)); });
  BNNSNDArrayDescriptor in_delta = layer.i_desc, out_delta = layer.o_desc;
  in_delta.data = dx.data();
  out_delta.data = dy.data();
  const double backward = fastest([&] {
    check(BNNSFilterApplyBackwardBatch(filter, batch, x.data(), 0, &in_delta, 0, y.data(), 0, &out_delta, 0, nullptr,
                                       nullptr));
  });
  const double other = peer(layer.activation.function, x.data(), dx.data(), n, row);
  std::printf("%-22s n %9zu  forward %7.3f ns %6.1f GB/s  backward %7.3f ns %6.1f GB/s  memcpy %6.1f GB/s", name, n,
              1e9 * forward / double(n), 8e-9 * double(n) / forward, 1e9 * backward / double(n),
              12e-9 * double(n) / backward, 8e-9 * double(n) / copy);
  if (other > 0) std::printf("  oneDNN %7.3f ns (%.2fx)", 1e9 * other / double(n), other / forward);
  std::printf("\n");
  BNNSFilterDestroy(filter);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : bnns::default_threads();
  std::printf("%zu threads, %s; oneDNN uses OMP_NUM_THREADS\n", threads, BNNSExtGetISA());
  for (size_t n : {128u, 16384u, 1u << 20, 1u << 25}) {
    std::vector<float> x(n), y(n), dy(n, 1), dx(n);
    for (size_t i = 0; i < n; ++i) x[i] = float(i % 997) / 100 - 5;
    for (const Case& c : kCases) {
      BNNSLayerParametersActivation layer = {};
      layer.i_desc = layer.o_desc = array(BNNSDataLayoutVector, {n}, nullptr);
      layer.activation.function = c.function;
      layer.activation.alpha = c.alpha;
      layer.activation.beta = c.beta;
      run(c.name, layer, 1, n, threads, x, y, dy, dx);
    }
  }
  // Rows: ten classes, ImageNet's thousand, attention of 512, a vocabulary; then the channels of a segmentation.
  for (auto [row, batch] : {std::pair<size_t, size_t>{10, 1}, {10, 1024}, {512, 2048}, {1000, 256}, {50257, 32}}) {
    const size_t n = row * batch;
    std::vector<float> x(n), y(n), dy(n, 1), dx(n);
    for (size_t i = 0; i < n; ++i) x[i] = float(i % 997) / 100 - 5;
    BNNSLayerParametersActivation layer = {};
    layer.i_desc = layer.o_desc = array(BNNSDataLayoutVector, {row}, nullptr);
    layer.activation.function = BNNSActivationFunctionSoftmax;
    const std::string name = "softmax " + std::to_string(batch) + " x " + std::to_string(row);
    run(name.c_str(), layer, batch, row, threads, x, y, dy, dx);
  }
  const size_t n = 21 * 128 * 128 * 4;
  std::vector<float> x(n), y(n), dy(n, 1), dx(n);
  for (size_t i = 0; i < n; ++i) x[i] = float(i % 997) / 100 - 5;
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = layer.o_desc = array(BNNSDataLayoutImageCHW, {128, 128, 21}, nullptr);
  layer.activation.function = BNNSActivationFunctionLogSoftmax;
  layer.axis_flags = 4;
  run("log_softmax channels", layer, 4, 21, threads, x, y, dy, dx);
}
