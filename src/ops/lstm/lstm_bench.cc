// Forward and backward of one layer, beside the products it consists of, in the same run.
//
//   lstm   BNNSDirectApplyLSTMBatchTrainingCaching and ...Backward with a training cache
//   gemm   the same products alone: x Wx' of all rows, h Wh' per step; dz Wh per step, x' dz, h' dz, dz Wx of all rows
//
// Usage: lstm_bench [steps batch input hidden [threads]]    Medians; GFLOP/s count the products only.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/gemm/gemm.h"

namespace {

using bnns::FloatType;
using bnns::Lens;

struct Shape {
  size_t T = 64, B = 32, I = 256, H = 256, threads = 0;
};

std::vector<float> noise(size_t n, float scale) {
  std::vector<float> v(n);
  uint32_t state = 1;
  for (float& x : v) x = scale * (static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1);
  return v;
}

template <class Body>
double median_seconds(Body&& body) {
  std::vector<double> times;
  for (double total = 0; total < 1.5 || times.size() < 7;) {
    const double start = bnns::bench::now();
    body();
    times.push_back(bnns::bench::now() - start);
    total += times.back();
  }
  return bnns::bench::median(times);
}

BNNSNDArrayDescriptor tensor(std::vector<float>& values) {  // sizes come from the layer
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.data = values.data();
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

struct Product {
  size_t m, n, k;
  Lens a, b;
  float* c;
};

struct Gemms {
  const Shape& s;
  std::vector<float> x, h, z, wx, wh, dwx, dwh, dx;
  size_t threads;
  bnns::Buffer workspace;
  std::vector<Product> forward, backward;

  explicit Gemms(const Shape& shape)
      : s(shape),
        x(noise(s.T * s.B * s.I, 1)),
        h(noise(s.T * s.B * s.H, 1)),
        z(s.T * s.B * 4 * s.H),
        wx(noise(4 * s.H * s.I, 0.1f)),
        wh(noise(std::max(s.H * (4 * s.H + 16), 4 * s.H * (s.H + 16)), 0.1f)),
        dwx(wx.size()),
        dwh(4 * s.H * s.H),
        dx(x.size()),
        threads(s.threads ? s.threads : bnns::default_threads()) {
    const size_t R = s.T * s.B, G = 4 * s.H;
    const auto rows = [](const std::vector<float>& v, size_t stride) {
      return bnns::strided_lens(v.data(), FloatType::f32, static_cast<ptrdiff_t>(stride), 1);
    };
    const auto columns = [](const std::vector<float>& v, size_t stride) {
      return bnns::strided_lens(v.data(), FloatType::f32, 1, static_cast<ptrdiff_t>(stride));
    };
    forward.push_back({R, G, s.I, rows(x, s.I), rows(wx, s.I), z.data()});
    for (size_t t = 0; t < s.T; ++t) {
      forward.push_back({s.B, G, s.H, rows(h, s.H), columns(wh, G + 16), z.data() + t * s.B * G});
      backward.push_back({s.B, s.H, G, rows(z, G), columns(wh, s.H + 16), h.data() + t * s.B * s.H});
    }
    backward.push_back({s.I, G, R, columns(x, s.I), columns(z, G), dwx.data()});
    backward.push_back({s.H, G, R, columns(h, s.H), columns(z, G), dwh.data()});
    backward.push_back({R, s.I, G, rows(z, G), columns(wx, s.I), dx.data()});
    size_t bytes = 0;
    for (const auto* list : {&forward, &backward}) {
      for (const Product& p : *list) {
        bytes = std::max(bytes, bnns::gemm_workspace_bytes({p.m, p.n, p.k}, p.a, p.b, {p.c, p.n, 1}, threads));
      }
    }
    workspace = bnns::Buffer({}, bytes, "workspace");
  }
  void run(const std::vector<Product>& list) const {
    for (const Product& p : list) {
      bnns::gemm({p.m, p.n, p.k}, p.a, p.b, {p.c, p.n, 1}, nullptr, {}, workspace.data(), threads);
    }
  }
  double flops(const std::vector<Product>& list) const {
    double sum = 0;
    for (const Product& p : list) sum += 2.0 * static_cast<double>(p.m * p.n * p.k);
    return sum;
  }
};

}  // namespace

int main(int argc, char** argv) {
  Shape s;
  size_t* fields[] = {&s.T, &s.B, &s.I, &s.H, &s.threads};
  for (int i = 1; i < argc && i <= 5; ++i) *fields[i - 1] = std::strtoull(argv[i], nullptr, 10);
  BNNSLayerParametersLSTM layer, deltas;
  std::memset(&layer, 0, sizeof layer);
  layer.input_size = s.I, layer.hidden_size = s.H, layer.batch_size = s.B, layer.num_layers = 1, layer.seq_len = s.T;
  layer.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  deltas = layer;
  std::vector<float> x = noise(s.T * s.B * s.I, 1), dx(x.size()), y(s.T * s.B * s.H), dy = noise(y.size(), 1);
  layer.input_descriptor.data_desc = tensor(x), deltas.input_descriptor.data_desc = tensor(dx);
  layer.output_descriptor.data_desc = tensor(y), deltas.output_descriptor.data_desc = tensor(dy);
  BNNSLSTMGateDescriptor* gates[] = {&layer.input_gate, &layer.forget_gate, &layer.candidate_gate, &layer.output_gate};
  BNNSLSTMGateDescriptor* grads[] = {&deltas.input_gate, &deltas.forget_gate, &deltas.candidate_gate,
                                     &deltas.output_gate};
  std::vector<float> memory[4][6];
  for (size_t k = 0; k < 4; ++k) {
    const size_t sizes[] = {s.H * s.I, s.H * s.H, s.H};
    for (size_t i = 0; i < 6; ++i) memory[k][i] = noise(sizes[i % 3], 0.05f);
    gates[k]->iw_desc[0] = tensor(memory[k][0]), gates[k]->hw_desc = tensor(memory[k][1]);
    gates[k]->b_desc = tensor(memory[k][2]), grads[k]->iw_desc[0] = tensor(memory[k][3]);
    grads[k]->hw_desc = tensor(memory[k][4]), grads[k]->b_desc = tensor(memory[k][5]);
  }
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.n_threads = s.threads;
  const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer);
  bnns::Buffer cache({}, capacity, "cache");
  const auto forward = [&] {
    if (BNNSDirectApplyLSTMBatchTrainingCaching(&layer, &options, cache.data(), capacity) != 0) {
      std::fprintf(stderr, "%s\n", BNNSExtLastError());
      std::exit(1);
    }
  };
  const auto backward = [&] {
    if (BNNSDirectApplyLSTMBatchBackward(&layer, &deltas, &options, cache.data(), capacity) != 0) std::exit(1);
  };
  forward();
  const Gemms products(s);
  const double lstm[] = {median_seconds(forward), median_seconds(backward)};
  const double gemm[] = {median_seconds([&] { products.run(products.forward); }),
                         median_seconds([&] { products.run(products.backward); })};
  const double flops[] = {products.flops(products.forward), products.flops(products.backward)};
  std::printf("lstm T%zu B%zu I%zu H%zu threads %zu, cache %.1f MB\n", s.T, s.B, s.I, s.H, products.threads,
              static_cast<double>(capacity) / 1e6);
  std::printf("%-10s %10s %10s %10s %12s\n", "pass", "lstm ms", "gemm ms", "gemm share", "GFLOP/s");
  const char* names[] = {"forward", "backward"};
  for (int i = 0; i < 2; ++i) {
    std::printf("%-10s %10.3f %10.3f %9.0f%% %12.1f\n", names[i], 1e3 * lstm[i], 1e3 * gemm[i], 100 * gemm[i] / lstm[i],
                1e-9 * flops[i] / lstm[i]);
  }
  std::printf("%-10s %10.3f %10.3f %9.0f%% %12.1f\n", "both", 1e3 * (lstm[0] + lstm[1]), 1e3 * (gemm[0] + gemm[1]),
              100 * (gemm[0] + gemm[1]) / (lstm[0] + lstm[1]), 1e-9 * (flops[0] + flops[1]) / (lstm[0] + lstm[1]));
  return 0;
}
