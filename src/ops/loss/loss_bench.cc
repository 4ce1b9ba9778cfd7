// Losses with their gradients in one call: microseconds, nanoseconds per element and GB/s (x and labels read, dx
// written once), beside a copy of the same bytes in the same run, and beside oneDNN's log-softmax pair where it is
// installed.
//
// Usage: loss_bench [threads]      Best of all repetitions, since neighbours only slow.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"

#if defined(BNNS_HAVE_DNNL)
#include <dnnl.hpp>
#endif

namespace {

template <class Body>
double fastest(Body&& body) {
  body();
  const double begin = bnns::bench::now();
  body();
  const double one = bnns::bench::now() - begin;
  // The clock costs 30 ns: short calls in groups.
  return bnns::bench::fastest(0.15, body, std::max(1, int(2e-5 / std::max(one, 1e-8))));
}

void check(bool good) {
  if (good) return;
  std::fprintf(stderr, "%s\n", BNNSExtLastError());
  std::exit(1);
}

// Forward and backward of log-softmax, without the loss itself; 0 when oneDNN is not there.
double peer_softmax(const std::vector<float>& x, const std::vector<float>& dy, size_t batch, size_t n) {
#if defined(BNNS_HAVE_DNNL) && DNNL_VERSION_MAJOR < 3
  using namespace dnnl;
  engine cpu(engine::kind::cpu, 0);
  stream queue(cpu);
  std::vector<float> y(batch * n), dx(batch * n);
  const memory::desc md({memory::dim(batch), memory::dim(n)}, memory::data_type::f32, memory::format_tag::ab);
  memory src(md, cpu, const_cast<float*>(x.data())), dst(md, cpu, y.data()), diff_src(md, cpu, dx.data()),
      diff_dst(md, cpu, const_cast<float*>(dy.data()));
  const logsoftmax_forward::primitive_desc forward_desc({prop_kind::forward_training, md, 1}, cpu);
  const logsoftmax_forward forward(forward_desc);
  const logsoftmax_backward backward(logsoftmax_backward::primitive_desc({md, md, 1}, cpu, forward_desc));
  return fastest([&] {
    forward.execute(queue, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
    backward.execute(queue, {{DNNL_ARG_DST, dst}, {DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DIFF_SRC, diff_src}});
    queue.wait();
  });
#else
  static_cast<void>(x), static_cast<void>(dy), static_cast<void>(batch), static_cast<void>(n);
  return 0;
#endif
}

void run(const char* name, BNNSLossFunction function, size_t batch, size_t n, bool compare) {
  std::vector<float> x(batch * n), labels(batch * n), dx(batch * n), copy(batch * n);
  for (float& v : x) v = float(std::rand()) / float(RAND_MAX) * 8 - 4;
  for (size_t b = 0; b < batch; ++b) labels[b * n + size_t(std::rand()) % n] = 1;
  BNNSLayerParametersLossHuber layer = {};
  layer.function = function;
  layer.reduction = BNNSLossReductionMean;
  layer.i_desc.layout = layer.o_desc.layout = BNNSDataLayoutVector;
  layer.i_desc.data_type = layer.o_desc.data_type = BNNSDataTypeFloat32;
  layer.i_desc.size[0] = n;
  layer.o_desc.size[0] = 1;
  layer.huber_delta = function == BNNSLossFunctionHuber ? 1.0f : 0.0f;
  BNNSFilter filter = BNNSFilterCreateLayerLoss(&layer, nullptr);
  check(filter != nullptr);
  BNNSNDArrayDescriptor delta = layer.i_desc;
  delta.data = dx.data();
  float loss = 0;
  const double seconds = fastest([&] {
    check(BNNSLossFilterApplyBatch(filter, batch, x.data(), 0, labels.data(), 0, nullptr, 0, &loss, &delta, 0) == 0);
  });
  BNNSFilterDestroy(filter);
  // Three tensors move; a copy moves two.
  const double copied = 1.5 * fastest([&] { std::memcpy(copy.data(), x.data(), x.size() * sizeof(float)); });
  const double elements = double(batch * n), other = compare ? peer_softmax(x, labels, batch, n) : 0;
  std::printf("%-14s %5zu x %-6zu %10.2f us %8.3f ns/element %7.1f GB/s   copy %8.2f us", name, batch, n, 1e6 * seconds,
              1e9 * seconds / elements, 12e-9 * elements / seconds, 1e6 * copied);
  if (other > 0) std::printf("   oneDNN logsoftmax pair %9.2f us", 1e6 * other);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) BNNSExtSetNumThreads(size_t(std::atoi(argv[1])));
  std::printf("losses with gradient, %zu threads\n", BNNSExtGetNumThreads());
  for (auto [batch, n] : {std::pair<size_t, size_t>{1, 10}, {32, 10}, {128, 10}, {128, 1000}, {32, 50257}}) {
    run("softmax_ce", BNNSLossFunctionSoftmaxCrossEntropy, batch, n, true);
  }
  const struct {
    const char* name;
    BNNSLossFunction function;
  } others[] = {{"sigmoid_ce", BNNSLossFunctionSigmoidCrossEntropy},
                {"mse", BNNSLossFunctionMeanSquareError},
                {"huber", BNNSLossFunctionHuber},
                {"log", BNNSLossFunctionLog},
                {"cosine", BNNSLossFunctionCosineDistance},
                {"hinge", BNNSLossFunctionHinge},
                {"mae", BNNSLossFunctionMeanAbsoluteError},
                {"categorical_ce", BNNSLossFunctionCategoricalCrossEntropy}};
  for (const auto& other : others) {
    run(other.name, other.function, 128, 10, false);
    run(other.name, other.function, 128, 1000, false);
  }
}
