// Our product beside OpenBLAS and oneDNN, in one process, in interleaved rounds.
//   gemm_bench [--threads=N] [--rounds=R] [--filter=text] [--json=file] [--best]
// Cases: 2048^3 on one and N threads; fully connected forward (y = x w^T), input gradient (dx = dy w) and weight
// gradient (dw = dy^T x) over the layers of real networks at batch 1, 32 and 128. Weights above 2 MB rotate through
// memory, so that they come from DRAM; smaller ones stay in cache. A figure is the median over rounds of (best peer /
// ours), where the best peer is the one with the smallest median. Built with -DBNNS_PEER_OPENBLAS and
// -DBNNS_PEER_ONEDNN where these are found; without them only our times are shown.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "src/core/isa.h"
#include "src/gemm/gemm.h"

#ifdef BNNS_PEER_OPENBLAS
#include <cblas.h>
#endif
#ifdef BNNS_PEER_ONEDNN
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace {

using namespace bnns;
using namespace bnns::bench;

struct Options {
  size_t threads = default_threads();
  int rounds = 9;
  std::string filter, json;
  bool best = false;  // shortest times instead of medians
};

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

Floats make_floats(size_t count) {
  Floats floats(static_cast<float*>(std::aligned_alloc(4096, (count * sizeof(float) + 4095) / 4096 * 4096)));
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    floats[i] = static_cast<float>(state >> 8) * (1.0f / 8388608) - 1.0f;
  }
  return floats;
}

enum class Pass { forward, input_gradient, weight_gradient, square };
const char* pass_name(Pass pass) {
  const char* names[] = {"fwd", "bwd_d", "bwd_w", "gemm"};
  return names[static_cast<int>(pass)];
}

// forward, gradients: x[batch, in], y[batch, out], w[out, in]. square: y[batch, out] = x[batch, in] w[in, out].
struct Layer {
  Pass pass;
  size_t batch, in, out, threads;
  std::string name() const {
    return std::string(pass_name(pass)) + " b" + std::to_string(batch) + " " + std::to_string(in) + "->" +
           std::to_string(out) + " t" + std::to_string(threads);
  }
  double flops() const { return 2.0 * static_cast<double>(batch) * static_cast<double>(in) * static_cast<double>(out); }
};

using Call = std::function<void(float* x, float* w, float* y)>;
struct Contender {
  std::string name;
  Call call;
  std::vector<double> seconds = {};  // per call, of each round
  double shortest = 1e9;             // per call, of a few calls in a row
};

Contender ours(const Layer& l, std::vector<char>& workspace) {
  const auto in = static_cast<ptrdiff_t>(l.in), out = static_cast<ptrdiff_t>(l.out);
  GemmProblem p{l.batch, l.out, l.in, GemmInit::overwrite};
  Lens a = strided_lens(nullptr, FloatType::f32, in, 1), b = strided_lens(nullptr, FloatType::f32, in, 1);
  GemmOutput c{nullptr, l.out, 1};
  if (l.pass == Pass::square) b = strided_lens(nullptr, FloatType::f32, 1, out);
  if (l.pass == Pass::input_gradient) {
    p = {l.batch, l.in, l.out, GemmInit::overwrite};
    a = strided_lens(nullptr, FloatType::f32, out, 1), b = strided_lens(nullptr, FloatType::f32, 1, in);
    c = {nullptr, l.in, 1};
  }
  if (l.pass == Pass::weight_gradient) {
    p = {l.out, l.in, l.batch, GemmInit::overwrite};
    a = strided_lens(nullptr, FloatType::f32, 1, out), b = strided_lens(nullptr, FloatType::f32, 1, in);
    c = {nullptr, l.in, 1};
  }
  const size_t bytes = gemm_workspace_bytes(p, a, b, c, l.threads);
  workspace.resize(bytes + 64);
  char* memory = workspace.data();
  memory += 64 - reinterpret_cast<uintptr_t>(memory) % 64;
  void* scratch = bytes ? memory : nullptr;
  const Pass pass = l.pass;
  const size_t threads = l.threads;
  return {"ours", [=](float* x, float* w, float* y) mutable {
            a.data = pass == Pass::forward || pass == Pass::square ? x : y;
            b.data = pass == Pass::weight_gradient ? x : w;
            c.data = pass == Pass::forward || pass == Pass::square ? y : pass == Pass::input_gradient ? x : w;
            gemm(p, a, b, c, nullptr, {}, scratch, threads);
          }};
}

#ifdef BNNS_PEER_OPENBLAS
Contender openblas(const Layer& l) {
  const int batch = static_cast<int>(l.batch), in = static_cast<int>(l.in), out = static_cast<int>(l.out);
  const int threads = static_cast<int>(l.threads);
  const Pass pass = l.pass;
  return {"openblas", [=](float* x, float* w, float* y) {
            openblas_set_num_threads(threads);
            if (pass == Pass::square) {
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, out, in, 1, x, in, w, out, 0, y, out);
            } else if (batch == 1 && pass == Pass::forward) {
              cblas_sgemv(CblasRowMajor, CblasNoTrans, out, in, 1, w, in, x, 1, 0, y, 1);
            } else if (batch == 1 && pass == Pass::input_gradient) {
              cblas_sgemv(CblasRowMajor, CblasTrans, out, in, 1, w, in, y, 1, 0, x, 1);
            } else if (pass == Pass::forward) {
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, batch, out, in, 1, x, in, w, in, 0, y, out);
            } else if (pass == Pass::input_gradient) {
              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, in, out, 1, y, out, w, in, 0, x, in);
            } else {
              cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, batch, 1, y, out, x, in, 0, w, in);
            }
          }};
}
#endif

#ifdef BNNS_PEER_ONEDNN
Contender onednn_sgemm(const Layer& l) {
  const auto batch = static_cast<dnnl_dim_t>(l.batch), in = static_cast<dnnl_dim_t>(l.in),
             out = static_cast<dnnl_dim_t>(l.out);
  const int threads = static_cast<int>(l.threads);
  const Pass pass = l.pass;
  return {"dnnl_sgemm", [=](float* x, float* w, float* y) {
            omp_set_num_threads(threads);
            if (pass == Pass::square) dnnl_sgemm('N', 'N', batch, out, in, 1, x, in, w, out, 0, y, out);
            if (pass == Pass::forward) dnnl_sgemm('N', 'T', batch, out, in, 1, x, in, w, in, 0, y, out);
            if (pass == Pass::input_gradient) dnnl_sgemm('N', 'N', batch, in, out, 1, y, out, w, in, 0, x, in);
            if (pass == Pass::weight_gradient) dnnl_sgemm('T', 'N', out, in, batch, 1, y, out, x, in, 0, w, in);
          }};
}

Contender onednn_inner_product(const Layer& l) {
  using namespace dnnl;
  using Tag = memory::format_tag;
  omp_set_num_threads(static_cast<int>(l.threads));
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  const auto batch = static_cast<memory::dim>(l.batch), in = static_cast<memory::dim>(l.in),
             out = static_cast<memory::dim>(l.out);
  const memory::desc xd({batch, in}, memory::data_type::f32, Tag::ab), wd({out, in}, memory::data_type::f32, Tag::ab),
      yd({batch, out}, memory::data_type::f32, Tag::ab);
  const inner_product_forward::primitive_desc forward(cpu, prop_kind::forward_training, xd, wd, yd);
  primitive run;
  std::unordered_map<int, memory> arguments;
  memory xm(xd, cpu, nullptr), wm(wd, cpu, nullptr), ym(yd, cpu, nullptr);
  if (l.pass == Pass::forward) {
    run = inner_product_forward(forward);
    arguments = {{DNNL_ARG_SRC, xm}, {DNNL_ARG_WEIGHTS, wm}, {DNNL_ARG_DST, ym}};
  } else if (l.pass == Pass::input_gradient) {
    run = inner_product_backward_data({cpu, xd, wd, yd, forward});
    arguments = {{DNNL_ARG_DIFF_SRC, xm}, {DNNL_ARG_WEIGHTS, wm}, {DNNL_ARG_DIFF_DST, ym}};
  } else {
    run = inner_product_backward_weights({cpu, xd, wd, yd, forward});
    arguments = {{DNNL_ARG_SRC, xm}, {DNNL_ARG_DIFF_WEIGHTS, wm}, {DNNL_ARG_DIFF_DST, ym}};
  }
  const int threads = static_cast<int>(l.threads);
  return {"dnnl_ip", [=](float* x, float* w, float* y) mutable {
            omp_set_num_threads(threads);
            xm.set_data_handle(x), wm.set_data_handle(w), ym.set_data_handle(y);
            run.execute(queue, arguments);
          }};
}
#endif

struct Row {
  Layer layer;
  double ours = 0, best = 0, ratio = 0;
  std::string best_name;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), weights_(make_floats(kPool)), data_(make_floats(kData)) {}

  void run(const Layer& layer) {
    if (!options_.filter.empty() && layer.name().find(options_.filter) == std::string::npos) return;
    std::vector<char> workspace;
    std::vector<Contender> all;
    all.push_back(ours(layer, workspace));
#ifdef BNNS_PEER_OPENBLAS
    all.push_back(openblas(layer));
#endif
#ifdef BNNS_PEER_ONEDNN
    all.push_back(onednn_sgemm(layer));
    if (layer.pass != Pass::square) all.push_back(onednn_inner_product(layer));
#endif
    float* x = data_.get();
    float* y = x + round(layer.batch * layer.in);
    check(layer, all, x, y);

    const size_t size = round(layer.in * layer.out);
    const bool rotate = size * sizeof(float) > (2 << 20) && layer.pass != Pass::square;
    const size_t sets = rotate ? kPool / size : 1;
    size_t set = 0;
    const double estimate = std::max(layer.flops() / 200e9, static_cast<double>(size * 4) / 30e9);
    const int group = std::clamp(static_cast<int>(20e-6 / estimate), 1, 100);
    const int calls = std::clamp(static_cast<int>(3e-3 / estimate) / group, 1, 20) * group;
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < all.size(); ++i) {
        Contender& one = all[(i + static_cast<size_t>(round)) % all.size()];
        settle();
        for (int warm = 0; warm < 2; ++warm) one.call(x, weights_.get() + set++ % sets * size, y);
        const double start = now();
        double last = start;
        for (int done = 0; done < calls; done += group) {
          for (int call = 0; call < group; ++call) one.call(x, weights_.get() + set++ % sets * size, y);
          const double time = now();
          one.shortest = std::min(one.shortest, (time - last) / group);
          last = time;
        }
        one.seconds.push_back((last - start) / calls);
      }
    }
    report(layer, all);
  }

  void summary() const {
    for (const Pass pass : {Pass::square, Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
      for (const size_t batch : {size_t{0}, size_t{1}, size_t{32}, size_t{128}}) {
        geomean(pass_name(pass) + std::string(batch ? " b" + std::to_string(batch) : ""),
                [&](const Row& r) { return r.layer.pass == pass && (batch == 0 || r.layer.batch == batch); });
      }
    }
    geomean("all fully connected", [](const Row& r) { return r.layer.pass != Pass::square; });
    if (options_.json.empty()) return;
    std::FILE* file = std::fopen(options_.json.c_str(), "w");
    if (!file) return;
    std::fprintf(file, "{\"isa\": \"%s\", \"threads\": %zu, \"cases\": [\n", isa_name(isa()), options_.threads);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& r = rows_[i];
      std::fprintf(file, "  {\"case\": \"%s\", \"us\": %.3f, \"peer\": \"%s\", \"peer_us\": %.3f, \"ratio\": %.4f}%s\n",
                   r.layer.name().c_str(), r.ours * 1e6, r.best_name.c_str(), r.best * 1e6, r.ratio,
                   i + 1 < rows_.size() ? "," : "");
    }
    std::fprintf(file, "]}\n");
    std::fclose(file);
  }

 private:
  static constexpr size_t kPool = 100 << 20, kData = 32 << 20;  // floats
  static size_t round(size_t count) {
    return (count + 1023) / 1024 * 1024;
  }

  // Every contender must compute the same thing before it is timed.
  void check(const Layer& l, std::vector<Contender>& all, float* x, float* y) {
    float* w = weights_.get();
    const bool into_y = l.pass == Pass::forward || l.pass == Pass::square;
    float* result = into_y ? y : l.pass == Pass::input_gradient ? x : w;
    const size_t count = into_y ? l.batch * l.out : l.pass == Pass::input_gradient ? l.batch * l.in : l.in * l.out;
    std::vector<float> first;
    for (Contender& one : all) {
      std::fill(result, result + count, NAN);
      one.call(x, w, y);
      if (first.empty()) first.assign(result, result + count);
      // Another order of summation moves a sum by some eps of the terms, which are as large as the largest sums.
      float largest = 0;
      for (const float value : first) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < count; ++i) {
        if (!(std::abs(first[i] - result[i]) <= 1e-4f * largest)) {
          std::printf("%s: %s differs from ours at %zu: %g, %g\n", l.name().c_str(), one.name.c_str(), i,
                      static_cast<double>(result[i]), static_cast<double>(first[i]));
          break;
        }
      }
    }
  }

  void report(const Layer& layer, const std::vector<Contender>& all) {
    const auto time_of = [&](const Contender& one) { return options_.best ? one.shortest : median(one.seconds); };
    Row row{layer, time_of(all[0]), 0, 0, "-"};
    std::printf("%-32s", layer.name().c_str());
    for (const Contender& one : all) {
      const double time = time_of(one);
      std::printf(" %s %.2f us (%.0f)", one.name.c_str(), time * 1e6, layer.flops() / time / 1e9);
      if (&one == &all[0] || (row.best > 0 && row.best <= time)) continue;
      row.best = time;
      row.best_name = one.name;
      std::vector<double> ratios;
      for (size_t r = 0; r < one.seconds.size(); ++r) ratios.push_back(one.seconds[r] / all[0].seconds[r]);
      row.ratio = options_.best ? row.best / row.ours : median(ratios);
    }
    std::printf("  => %.2f\n", row.ratio);
    std::fflush(stdout);
    rows_.push_back(row);
  }

  template <class Select>
  void geomean(const std::string& name, Select select) const {
    double sum = 0;
    int count = 0, below = 0;
    for (const Row& r : rows_) {
      if (!select(r) || r.ratio <= 0) continue;
      sum += std::log(r.ratio);
      ++count;
      below += r.ratio < 1;
    }
    if (count)
      std::printf("geometric mean %-20s %.3f over %d, %d below 1\n", name.c_str(), std::exp(sum / count), count, below);
  }

  Options options_;
  Floats weights_, data_;
  std::vector<Row> rows_;
};

// in, out of the fully connected layers of AlexNet, VGG, GoogLeNet, ResNet, Mask R-CNN, NCF, DLRM, DIEN, Wide&Deep,
// GNMT, Transformer, BERT and RNN-T with weights under 200 MB.
constexpr size_t kLayers[][2] = {
    {13, 512},    {36, 36},     {40, 1},      {72, 36},     {72, 72},     {80, 2},      {80, 40},     {128, 1},
    {128, 64},    {144, 80},    {162, 200},   {200, 80},    {240, 4096},  {256, 1},     {256, 128},   {256, 256},
    {320, 1280},  {479, 1024},  {512, 29},    {512, 256},   {512, 512},   {768, 768},   {768, 2304},  {768, 3072},
    {845, 1024},  {1024, 81},   {1024, 324},  {1024, 512},  {1024, 1000}, {1024, 1024}, {1024, 4096}, {1024, 32768},
    {1344, 512},  {2048, 1000}, {2048, 1024}, {2048, 4096}, {3072, 768},  {4096, 81},   {4096, 324},  {4096, 1000},
    {4096, 1024}, {4096, 4096}, {9216, 4096}, {12544, 1024}};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const auto value = [&](const char* name) { return text.rfind(name, 0) == 0 ? text.substr(std::strlen(name)) : ""; };
    if (!value("--threads=").empty()) {
      options.threads = std::strtoul(value("--threads=").c_str(), nullptr, 10);
    } else if (!value("--rounds=").empty()) {
      options.rounds = std::atoi(value("--rounds=").c_str());
    } else if (!value("--filter=").empty()) {
      options.filter = value("--filter=");
    } else if (!value("--json=").empty()) {
      options.json = value("--json=");
    } else if (text == "--best") {
      options.best = true;
    } else {
      std::fprintf(stderr, "usage: gemm_bench [--threads=N] [--rounds=R] [--filter=text] [--json=file] [--best]\n");
      return 2;
    }
  }
#ifdef BNNS_PEER_OPENBLAS
  std::printf("OpenBLAS core %s; ", openblas_get_corename());
#endif
  std::printf("our instruction set %s, %zu threads; %s us (GFLOP/s)\n", isa_name(isa()), options.threads,
              options.best ? "shortest" : "median");
  Bench bench(options);
  for (const size_t threads : {size_t{1}, options.threads}) bench.run({Pass::square, 2048, 2048, 2048, threads});
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    for (const size_t batch : {size_t{1}, size_t{32}, size_t{128}}) {
      for (const auto& layer : kLayers) bench.run({pass, batch, layer[0], layer[1], options.threads});
    }
  }
  bench.summary();
}
