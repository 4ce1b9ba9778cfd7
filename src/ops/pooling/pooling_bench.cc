// Pooling of real networks beside oneDNN (plain NCHW, as our callers have it) in one process, in interleaved rounds.
//   pooling_bench [--threads=N] [--rounds=R] [--filter=text] [--cpu-time]
// One JSON line per case: medians in ms, ratio = median over rounds of (peer / ours), gbs = bytes that must move / time
// (each tensor once), copy_share = gbs / what a copy with non-temporal stores reached in the same rounds. Tensors
// rotate through 512 MB, so that they come from memory; small ones stay in cache. L2Norm has no peer in oneDNN: the
// ratio is to its average of the same shape. --cpu-time runs everything on one thread and counts its CPU time: for busy
// machines, where the clock on the wall measures the neighbours. Built with BNNS_PEER_ONEDNN where oneDNN is found,
// else without a peer.

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/isa.h"
#include "src/core/parallel.h"

#ifdef BNNS_PEER_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace {

struct Shape {
  const char* name;
  size_t N, C, size, out, k, s, before, after;  // square; padding before and after
};
constexpr Shape kShapes[] = {
    {"resnet_pool1 32x64x112 k3s2p1", 32, 64, 112, 56, 3, 2, 1, 1},
    {"googlenet 32x192x56 k3s2ceil", 32, 192, 56, 28, 3, 2, 0, 1},
    {"vgg1 32x64x224 k2s2", 32, 64, 224, 112, 2, 2, 0, 0},
    {"vgg4 32x512x28 k2s2", 32, 512, 28, 14, 2, 2, 0, 0},
    {"inception 32x480x14 k3s1p1", 32, 480, 14, 14, 3, 1, 1, 1},
    {"global 32x2048x7 k7", 32, 2048, 7, 1, 7, 1, 0, 0},
    {"lenet 128x20x24 k2s2", 128, 20, 24, 12, 2, 2, 0, 0},
};

enum class Mode { max, max_index, average, average_exclude, l2 };
constexpr const char* kModeNames[] = {"max", "max_index", "avg_incl", "avg_excl", "l2"};
constexpr BNNSPoolingFunction kFunctions[] = {BNNSPoolingFunctionMax, BNNSPoolingFunctionMax,
                                              BNNSPoolingFunctionAverageCountIncludePadding,
                                              BNNSPoolingFunctionAverageCountExcludePadding, BNNSPoolingFunctionL2Norm};

struct Options {
  size_t threads = bnns::default_threads();
  int rounds = 9;
  std::string filter;
};

clockid_t clock_used = CLOCK_MONOTONIC;

double now() {
  return bnns::bench::now(clock_used);
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Array = std::unique_ptr<T[], Free>;
template <class T>
Array<T> make_array(size_t n) {
  return Array<T>(static_cast<T*>(std::aligned_alloc(4096, (n * sizeof(T) + 4095) / 4096 * 4096)));
}

// The tensors of one call.
struct Set {
  Array<float> x, y, dx, dy, peer;
  Array<size_t> index;
#ifdef BNNS_PEER_ONEDNN
  dnnl::memory workspace = {};
#endif
};

// bytes per second of a copy around the caches; the yardstick of the machine as it is in this round.
class Copy {
 public:
  explicit Copy(size_t threads)
      : threads_(threads), from_(make_array<float>(kFloats)), to_(make_array<float>(kFloats)) {
    std::fill_n(from_.get(), kFloats, 1.0f);
    std::fill_n(to_.get(), kFloats, 0.0f);
  }
  double rate() const {
    const double start = now();
    constexpr size_t kPiece = 64 * 1024;
    bnns::parallel_for(kFloats / kPiece, threads_, [&](size_t task, size_t) {
      const float* x = from_.get() + task * kPiece;
      float* y = to_.get() + task * kPiece;
#if defined(__SSE2__)
      for (size_t i = 0; i < kPiece; i += 4) _mm_stream_ps(y + i, _mm_loadu_ps(x + i));
      _mm_sfence();
#else
      std::memcpy(y, x, kPiece * sizeof(float));
#endif
    });
    return 2.0 * kFloats * sizeof(float) / (now() - start);
  }

 private:
  static constexpr size_t kFloats = 32u << 20;
  size_t threads_;
  Array<float> from_, to_;
};

class Ours {
 public:
  Ours(const Shape& s, Mode mode, size_t threads) : s_(s), mode_(mode) {
    BNNSLayerParametersPooling p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = image(s.size, nullptr);
    p.o_desc = image(s.out, nullptr);
    p.pooling_function = kFunctions[static_cast<int>(mode)];
    p.k_width = p.k_height = s.k;
    p.x_stride = p.y_stride = s.s;
    p.pad[0] = p.pad[2] = s.before;
    p.pad[1] = p.pad[3] = s.after;
    BNNSFilterParameters options;
    std::memset(&options, 0, sizeof options);
    options.n_threads = threads;
    filter_ = BNNSFilterCreateLayerPooling(&p, &options);
    if (!filter_) std::fprintf(stderr, "%s\n", BNNSExtLastError()), std::exit(1);
  }
  ~Ours() { BNNSFilterDestroy(filter_); }
  Ours(const Ours&) = delete;

  void forward(Set& t) const {
    size_t* index = mode_ == Mode::max_index ? t.index.get() : nullptr;
    check(BNNSPoolingFilterApplyBatch(filter_, s_.N, t.x.get(), 0, t.y.get(), 0, index, 0));
  }
  void backward(Set& t) const {
    auto dx = image(s_.size, t.dx.get()), dy = image(s_.out, t.dy.get());
    const bool by_index = mode_ == Mode::max_index;
    check(BNNSPoolingFilterApplyBackwardBatch(filter_, s_.N, by_index ? nullptr : t.x.get(), 0, &dx, 0, nullptr, 0, &dy,
                                              0, nullptr, by_index ? t.index.get() : nullptr, 0));
  }

 private:
  BNNSNDArrayDescriptor image(size_t size, void* data) const {
    BNNSNDArrayDescriptor d;
    std::memset(&d, 0, sizeof d);
    d.layout = BNNSDataLayoutImageCHW;
    d.size[0] = d.size[1] = size;
    d.size[2] = s_.C;
    d.data = data;
    d.data_type = BNNSDataTypeFloat32;
    return d;
  }
  static void check(int status) {
    if (status != 0) std::fprintf(stderr, "%s\n", BNNSExtLastError()), std::exit(1);
  }
  const Shape& s_;
  Mode mode_;
  BNNSFilter filter_;
};

#ifdef BNNS_PEER_ONEDNN
class Peer {
 public:
  Peer(const Shape& s, Mode mode, bool training)
      : training_(training && (mode == Mode::max || mode == Mode::max_index)) {
    using namespace dnnl;
    using Dims = memory::dims;
    const auto d = [](size_t v) { return static_cast<memory::dim>(v); };
    const memory::desc x({d(s.N), d(s.C), d(s.size), d(s.size)}, memory::data_type::f32, memory::format_tag::nchw);
    const memory::desc y({d(s.N), d(s.C), d(s.out), d(s.out)}, memory::data_type::f32, memory::format_tag::nchw);
    const Dims stride{d(s.s), d(s.s)}, kernel{d(s.k), d(s.k)}, before{d(s.before), d(s.before)},
        after{d(s.after), d(s.after)};
    const auto algorithm = mode == Mode::max || mode == Mode::max_index ? algorithm::pooling_max
                           : mode == Mode::average_exclude              ? algorithm::pooling_avg_exclude_padding
                                                                        : algorithm::pooling_avg_include_padding;
    const pooling_forward::primitive_desc f({training_ ? prop_kind::forward_training : prop_kind::forward_inference,
                                             algorithm, x, y, stride, kernel, before, after},
                                            engine_);
    forward_ = pooling_forward(f);
    if (training_) workspace_ = f.workspace_desc();
    const pooling_forward::primitive_desc hint(
        {prop_kind::forward_training, algorithm, x, y, stride, kernel, before, after}, engine_);
    backward_ = pooling_backward({{algorithm, x, y, stride, kernel, before, after}, engine_, hint});
    x_ = memory(x, engine_, nullptr), y_ = memory(y, engine_, nullptr);
    dx_ = memory(x, engine_, nullptr), dy_ = memory(y, engine_, nullptr);
  }
  void prepare(Set& t) {
    if (training_) t.workspace = dnnl::memory(workspace_, engine_);
  }
  void forward(Set& t) {
    x_.set_data_handle(t.x.get()), y_.set_data_handle(t.peer.get());
    std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, x_}, {DNNL_ARG_DST, y_}};
    if (training_) arguments[DNNL_ARG_WORKSPACE] = t.workspace;
    forward_.execute(stream_, arguments);
    stream_.wait();
  }
  void backward(Set& t) {
    dx_.set_data_handle(t.peer.get()), dy_.set_data_handle(t.dy.get());
    std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_DIFF_SRC, dx_}, {DNNL_ARG_DIFF_DST, dy_}};
    if (training_) arguments[DNNL_ARG_WORKSPACE] = t.workspace;
    backward_.execute(stream_, arguments);
    stream_.wait();
  }

 private:
  bool training_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive forward_, backward_;
  dnnl::memory::desc workspace_;
  dnnl::memory x_, y_, dx_, dy_;
};
#endif

struct Row {
  std::string family;
  double ratio, share, bytes;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), copy_(options.threads) {}

  void run(const Shape& s, Mode mode, bool backward) {
    const std::string name = std::string(s.name) + " " + kModeNames[static_cast<int>(mode)];
    const char* family = backward ? "pool_backward" : "pool_forward";
    if (!options_.filter.empty() && (std::string(family) + " " + name).find(options_.filter) == std::string::npos)
      return;
    const size_t in = s.N * s.C * s.size * s.size, out = s.N * s.C * s.out * s.out;
    const bool needs_x = !backward || mode == Mode::max || mode == Mode::l2;
    const double bytes = 4.0 * double(out) + (needs_x ? 4.0 * double(in) : 0) + (backward ? 4.0 * double(in) : 0) +
                         (mode == Mode::max_index ? 8.0 * double(out) : 0);
    const double footprint = 4.0 * (2.0 * double(in) + double(out));
    const size_t sets = footprint < 4e6 ? 1 : std::max<size_t>(1, static_cast<size_t>(512e6 / footprint));
    Ours ours(s, mode, options_.threads);
#ifdef BNNS_PEER_ONEDNN
    Peer peer(s, mode, backward || mode == Mode::max_index);
#endif
    std::vector<Set> all;
    for (size_t i = 0; i < sets; ++i) {
      Set t{make_array<float>(in),  make_array<float>(out), make_array<float>(in),
            make_array<float>(out), make_array<float>(in),  make_array<size_t>(mode == Mode::max_index ? out : 1)};
      fill(t.x.get(), in), fill(t.dy.get(), out);
      std::memset(t.index.get(), 0, 8 * (mode == Mode::max_index ? out : 1));
      std::memset(t.y.get(), 0, out * 4), std::memset(t.dx.get(), 0, in * 4), std::memset(t.peer.get(), 0, in * 4);
#ifdef BNNS_PEER_ONEDNN
      peer.prepare(t);
      if (backward) peer.forward(t);
#endif
      if (backward) ours.forward(t);
      all.push_back(std::move(t));
    }
    size_t next = 0;
    const int calls = std::clamp(static_cast<int>(2e-2 / (bytes / 10e9)), 1, 200);
    const auto time = [&](auto&& body) {
      bnns::bench::settle();
      body(all[next++ % sets]);
      const double start = now();
      for (int i = 0; i < calls; ++i) body(all[next++ % sets]);
      return (now() - start) / calls;
    };
    std::vector<double> mine, theirs, ratios, shares;
    for (int round = 0; round < options_.rounds; ++round) {
      mine.push_back(time([&](Set& t) { backward ? ours.backward(t) : ours.forward(t); }));
#ifdef BNNS_PEER_ONEDNN
      theirs.push_back(time([&](Set& t) { backward ? peer.backward(t) : peer.forward(t); }));
      ratios.push_back(theirs.back() / mine.back());
#endif
      bnns::bench::settle();
      shares.push_back(bytes / mine.back() / copy_.rate());
    }
#ifdef BNNS_PEER_ONEDNN
    if (mode != Mode::l2)
      compare(name, all[0], backward ? all[0].dx.get() : all[0].y.get(), backward ? in : out,
              [&](Set& t) { backward ? ours.backward(t), peer.backward(t) : (ours.forward(t), peer.forward(t)); });
#endif
    const double ms = bnns::bench::median(mine) * 1e3, peer_ms = theirs.empty() ? 0 : bnns::bench::median(theirs) * 1e3;
    const double ratio = ratios.empty() ? 0 : bnns::bench::median(ratios), share = bnns::bench::median(shares);
    std::printf(
        "{\"family\":\"%s\",\"case\":\"%s\",\"ms\":%.4f,\"peer_ms\":%.4f,\"ratio\":%.3f,\"gbs\":%.1f,\"copy_share\":%."
        "2f}\n",
        family, name.c_str(), ms, peer_ms, ratio, bytes / ms * 1e-6, share);
    std::fflush(stdout);
    rows_.push_back({family, ratio, share, 4.0 * double(in)});
  }

  void summary() const {
    for (const char* family : {"pool_forward", "pool_backward"}) {
      double logs = 0, shares = 0, least = 1e9;
      int n = 0, large = 0;
      for (const Row& r : rows_) {
        if (r.family != family) continue;
        if (r.ratio > 0) logs += std::log(r.ratio), ++n, least = std::min(least, r.ratio);
        if (r.bytes >= 64e6) shares += std::log(r.share), ++large;
      }
      std::printf(
          "%-14s geometric mean %.2f x oneDNN over %d (least %.2f), %.0f %% of the copy limit on %d tensors of 64 MB "
          "or more\n",
          family, n ? std::exp(logs / n) : 0, n, n ? least : 0, large ? 100 * std::exp(shares / large) : 0, large);
    }
  }

 private:
  static void fill(float* data, size_t n) {
    uint32_t state = 12345;
    for (size_t i = 0; i < n; ++i) {
      state = state * 1664525 + 1013904223;
      data[i] = static_cast<float>(state >> 8) * (1.0f / 8388608) - 1.0f;
    }
  }
  template <class Body>
  static void compare(const std::string& name, Set& t, const float* mine, size_t n, Body&& body) {
    body(t);
    for (size_t i = 0; i < n; ++i) {
      if (!(std::fabs(mine[i] - t.peer[i]) <= 1e-5f)) {
        std::printf("%s: differs from the peer at %zu: %g, %g\n", name.c_str(), i, double(mine[i]), double(t.peer[i]));
        return;
      }
    }
  }

  Options options_;
  Copy copy_;
  std::vector<Row> rows_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.rfind("--threads=", 0) == 0)
      options.threads = std::strtoul(text.c_str() + 10, nullptr, 10);
    else if (text.rfind("--rounds=", 0) == 0)
      options.rounds = std::atoi(text.c_str() + 9);
    else if (text.rfind("--filter=", 0) == 0)
      options.filter = text.substr(9);
    else if (text == "--cpu-time")
      clock_used = CLOCK_THREAD_CPUTIME_ID, options.threads = 1;
    else
      return std::fprintf(stderr, "usage: pooling_bench [--threads=N] [--rounds=R] [--filter=text] [--cpu-time]\n"), 2;
  }
#ifdef BNNS_PEER_ONEDNN
  omp_set_num_threads(static_cast<int>(options.threads));
#endif
  Bench bench(options);
  for (const bool backward : {false, true}) {
    for (const Shape& s : kShapes) {
      for (const Mode mode : {Mode::max, Mode::max_index, Mode::average, Mode::average_exclude, Mode::l2}) {
        bench.run(s, mode, backward);
      }
    }
  }
  bench.summary();
}
