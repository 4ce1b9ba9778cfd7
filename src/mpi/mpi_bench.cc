// What a group costs, on the ranks that mpirun starts. docs/distributed.md has the commands and figures.
//   mpi_bench rate [wire]                     BNNSExtGroupAllReduce beside MPI_Allreduce, by size
//   mpi_bench dense|conv deterministic|fast [batch] [f32|bf16|f16]
//                                             steps of a network: time, and how much of the reduction is hidden
#include <bnns/bnns_distributed.h>
#include <bnns/bnns_extensions.h>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Floats = std::vector<float>;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: %s\n", what, BNNSExtLastError());
  std::exit(1);
}

BNNSNDArrayDescriptor describe(BNNSDataLayout layout, size_t a, size_t b, size_t c, size_t d, float* data) {
  BNNSNDArrayDescriptor t{};
  t.layout = layout, t.size[0] = a, t.size[1] = b, t.size[2] = c, t.size[3] = d;
  t.data = data, t.data_type = BNNSDataTypeFloat32;
  return t;
}

BNNSDataType wire_of(const char* text) {
  if (std::strcmp(text, "bf16") == 0) return BNNSDataTypeBFloat16;
  return std::strcmp(text, "f16") == 0 ? BNNSDataTypeFloat16 : BNNSDataTypeFloat32;
}

BNNSExtGroup make_group(bool fast, const char* wire, size_t shards) {
  BNNSExtGroupParameters p{};
  p.mode = fast ? BNNSExtGroupFast : BNNSExtGroupDeterministic;
  p.wire = wire_of(wire), p.shards = fast ? 0 : shards;
  BNNSExtGroup group = BNNSExtGroupCreate(nullptr, &p);
  check(group ? 0 : -1, "creating a group");
  return group;
}

// The best of several attempts, alternating, so that a busy machine hits both.
void rate(const char* wire) {
  BNNSExtGroup tree = make_group(false, wire, 8), fast = make_group(true, wire, 0);
  const bool first = BNNSExtGroupRank(tree) == 0;
  if (first) std::printf("%10s %12s %12s %12s %8s\n", "bytes", "tree GB/s", "fast GB/s", "MPI GB/s", "tree/MPI");
  for (size_t n = 256; n <= (size_t{16} << 20); n *= 4) {
    Floats a(n, 1), b(n, 1);
    auto d = describe(BNNSDataLayoutVector, n, 0, 0, 0, a.data());
    BNNSNDArrayDescriptor* list[] = {&d};
    double best[3] = {1e9, 1e9, 1e9};
    const int repeats = n < 100000 ? 50 : 5;
    for (int attempt = 0; attempt < 12; ++attempt) {
      for (int k = 0; k < 3; ++k) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now();
        for (int i = 0; i < repeats; ++i) {
          if (k < 2)
            check(BNNSExtGroupAllReduce(k == 0 ? tree : fast, BNNSExtGroupMean, 1, list), "all-reduce");
          else
            MPI_Allreduce(MPI_IN_PLACE, b.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        }
        if (attempt > 0) best[k] = std::min(best[k], (now() - start) / repeats);
        std::fill(b.begin(), b.end(), 1.0f);
      }
    }
    const double bytes = static_cast<double>(4 * n);
    if (first) {
      std::printf("%10.0f %12.2f %12.2f %12.2f %8.2f\n", bytes, bytes / best[0] * 1e-9, bytes / best[1] * 1e-9,
                  bytes / best[2] * 1e-9, best[2] / best[0]);
    }
  }
  check(BNNSExtGroupFinalize(tree), "finalizing"), check(BNNSExtGroupFinalize(fast), "finalizing");
}

struct Layer {
  BNNSFilter filter;
  BNNSNDArrayDescriptor w, dw, bias, db;
  size_t in, out;
  Floats y, dy;
};

// `dense`: six square layers, 25 M parameters. `conv`: 20 layers 3x3 of 64 channels on 28 x 28, as in a residual
// network.
std::vector<Layer> make_layers(bool dense, size_t items, std::vector<Floats>& memory) {
  const size_t count = dense ? 6 : 20, width = 2048, channels = 64, side = 28;
  const size_t weights = dense ? width * width : 9 * channels * channels, biases = dense ? width : channels;
  std::vector<Layer> layers(count);
  const BNNSFilterParameters options{BNNSFlagsUseClientPtr, 1, nullptr, nullptr};
  for (Layer& l : layers) {
    for (size_t n : {weights, weights, biases, biases}) memory.emplace_back(n, 0.01f);
    float* data[4];
    for (size_t k = 0; k < 4; ++k) data[k] = memory[memory.size() - 4 + k].data();
    l.in = l.out = dense ? width : channels * side * side;
    const auto shape = dense ? BNNSDataLayoutRowMajorMatrix : BNNSDataLayoutConvolutionWeightsOIHW;
    for (int k = 0; k < 2; ++k) {
      (k == 0 ? l.w : l.dw) =
          dense ? describe(shape, width, width, 0, 0, data[k]) : describe(shape, 3, 3, channels, channels, data[k]);
      (k == 0 ? l.bias : l.db) = describe(BNNSDataLayoutVector, biases, 0, 0, 0, data[2 + k]);
    }
    l.y.assign(items * l.out, 0.1f), l.dy.assign(items * l.out, 0.1f);
    if (dense) {
      BNNSLayerParametersFullyConnected p{};
      p.i_desc = p.o_desc = describe(BNNSDataLayoutVector, width, 0, 0, 0, nullptr);
      p.w_desc = l.w, p.bias = l.bias;
      l.filter = BNNSFilterCreateLayerFullyConnected(&p, &options);
    } else {
      BNNSLayerParametersConvolution p{};
      p.i_desc = p.o_desc = describe(BNNSDataLayoutImageCHW, side, side, channels, 0, nullptr);
      p.w_desc = l.w, p.bias = l.bias, p.x_stride = p.y_stride = p.x_padding = p.y_padding = 1;
      l.filter = BNNSFilterCreateLayerConvolution(&p, &options);
    }
    check(l.filter ? 0 : -1, "creating a layer");
  }
  return layers;
}

void network(bool dense, bool fast, size_t batch, const char* wire) {
  int ranks = 1;
  BNNSExtGroup group = make_group(fast, wire, 2);  // two shards: a rank of two has one of them
  ranks = static_cast<int>(BNNSExtGroupSize(group));
  const size_t local = BNNSExtGroupShards(group);
  size_t first = 0, items = 0;
  check(BNNSExtGroupItems(group, batch, 0, &first, &items), "dividing the batch");
  std::vector<Floats> memory;
  memory.reserve(200);
  std::vector<Layer> layers = make_layers(dense, items, memory);
  Floats x(items * layers[0].in, 0.1f), dx(x.size());
  std::vector<BNNSNDArrayDescriptor*> parameters, moments;
  std::vector<const BNNSNDArrayDescriptor*> gradients;
  std::vector<BNNSNDArrayDescriptor> state;
  state.reserve(4 * layers.size());
  for (Layer& l : layers) {
    for (auto* d : {&l.w, &l.bias}) {
      const size_t n = BNNSNDArrayGetDataSize(d) / 4;
      memory.emplace_back(n, 0.0f);
      state.push_back(*d);
      state.back().data = memory.back().data();
      parameters.push_back(d), moments.push_back(&state.back());
    }
    gradients.push_back(&l.dw), gradients.push_back(&l.db);
  }
  BNNSOptimizerSGDMomentumFields sgd{};
  sgd.learning_rate = 1e-9f, sgd.momentum = 0.9f, sgd.gradient_scale = 1;

  const auto compute = [&](size_t shard, bool reduce) {
    const float* in = x.data();
    for (Layer& l : layers) {
      check(BNNSFilterApplyBatch(l.filter, items, in, l.in, l.y.data(), l.out), "forward");
      in = l.y.data();
    }
    for (size_t k = layers.size(); k-- > 0;) {
      Layer& l = layers[k];
      auto out = describe(BNNSDataLayoutVector, l.out, 0, 0, 0, l.dy.data());
      auto delta = describe(BNNSDataLayoutVector, l.in, 0, 0, 0, k == 0 ? dx.data() : layers[k - 1].dy.data());
      check(BNNSFilterApplyBackwardBatch(l.filter, items, k == 0 ? x.data() : layers[k - 1].y.data(), l.in, &delta,
                                         l.in, l.y.data(), l.out, &out, l.out, &l.dw, &l.db),
            "backward");
      const BNNSNDArrayDescriptor* ready[] = {&l.dw, &l.db};
      if (reduce) check(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, shard, 2, ready), "starting");
    }
  };
  double step = 1e9, alone = 1e9, wait = 1e9, reduction = 1e9;
  for (int attempt = 0; attempt < 8; ++attempt) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (size_t s = 0; s < local; ++s) compute(s, false);
    alone = std::min(alone, now() - start);
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    for (size_t s = 0; s < local; ++s) compute(s, true);
    const double waiting = now();
    check(BNNSExtGroupReduceWait(group), "waiting");
    wait = std::min(wait, now() - waiting);
    check(BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &sgd, parameters.size(), parameters.data(),
                            gradients.data(), moments.data(), nullptr),
          "step");
    step = std::min(step, now() - start);
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();  // nothing to hide behind
    for (size_t s = 0; s < local; ++s) {
      check(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, s, gradients.size(), gradients.data()), "starting");
    }
    check(BNNSExtGroupReduceWait(group), "waiting");
    reduction = std::min(reduction, now() - start);
  }
  double times[] = {step, alone, wait, reduction};
  MPI_Allreduce(MPI_IN_PLACE, times, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (BNNSExtGroupRank(group) == 0) {
    std::printf(
        "%s %s %s batch %zu ranks %d: step %.1f ms; forward and backward alone %.1f, reduction alone %.1f, waited "
        "%.1f: "
        "%.0f %% of it hidden\n",
        dense ? "dense" : "conv", fast ? "fast" : "deterministic", wire, batch, ranks, times[0] * 1e3, times[1] * 1e3,
        times[3] * 1e3, times[2] * 1e3, 100 * (1 - times[2] / times[3]));
  }
  check(BNNSExtGroupFinalize(group), "finalizing");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (mode == "rate") rate(argc > 2 ? argv[2] : "f32");
  if (mode == "dense" || mode == "conv") {
    network(mode == "dense", argc > 2 && std::strcmp(argv[2], "fast") == 0,
            argc > 3 ? static_cast<size_t>(std::atoi(argv[3])) : 64, argc > 4 ? argv[4] : "f32");
  }
  MPI_Finalize();
  return 0;
}
