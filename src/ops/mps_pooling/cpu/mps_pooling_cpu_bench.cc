// The CPU device's pooling kernels at the seam, against the machine's copy bandwidth.
//   mps_pooling_cpu_bench [--threads=N] [--rounds=R] [--filter=text] [--json=file] [--cpu-time]
// gbs: bytes that must move (forward: source and target; average gradient: gradient and target; max and L2 gradient:
// the source too) over the median time; share: the median over rounds of gbs against a copy with non-temporal stores
// on as many threads, made right after in the same round. Images rotate through 768 MB, so that they come from memory.
// Without --threads: 1 thread, then all. --cpu-time: one thread, its CPU time, for busy machines.

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
#include "src/core/half.h"
#include "src/core/isa.h"
#include "src/core/parallel.h"
#include "src/mps/device/device_backend.h"
#include "src/ops/mps_pooling/mps_pooling.h"

namespace {

using namespace bnns::mps;

struct Shape {
  int64_t n, c, h, w, k, s, p;
};
// The shapes of docs/performance.md with batch 8.
constexpr Shape kShapes[] = {{8, 64, 112, 112, 3, 2, 1}, {8, 192, 56, 56, 3, 2, 0}, {8, 64, 224, 224, 2, 2, 0},
                             {8, 512, 28, 28, 2, 2, 0},  {8, 480, 14, 14, 3, 1, 1}, {8, 2048, 7, 7, 7, 1, 0}};

struct Options {
  std::vector<size_t> threads;
  int rounds = 7;
  std::string filter, json;
};

clockid_t clock_used = CLOCK_MONOTONIC;
double now() {
  return bnns::bench::now(clock_used);
}

// Memory as the device gives it to images, for the copy too.
DeviceBackend& device() {
  static const std::unique_ptr<DeviceBackend> backend = make_cpu_backend();
  return *backend;
}
struct Free {
  size_t bytes = 0;
  void operator()(char* p) const { device().free(p, bytes); }
};
using Bytes = std::unique_ptr<char, Free>;
Bytes make_bytes(size_t n) {
  Bytes b(static_cast<char*>(device().allocate(n, true)), Free{n});
  std::memset(b.get(), 0, n);
  return b;
}

// Bytes per second of a copy with non-temporal stores.
class Copy {
 public:
  // Data, as images have it: a Zen 4 copies zeros 5 to 20 % faster.
  Copy() {
    auto* x = reinterpret_cast<float*>(from_.get());
    for (size_t i = 0; i < kFloats; ++i) x[i] = static_cast<float>(i % 8191);
  }
  double rate(size_t threads) const {
    const double start = now();
    constexpr size_t kPiece = 64 * 1024;
    bnns::parallel_for(kFloats / kPiece, threads, [&](size_t task, size_t) {
      const float* x = reinterpret_cast<const float*>(from_.get()) + task * kPiece;
      float* y = reinterpret_cast<float*>(to_.get()) + task * kPiece;
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
  Bytes from_ = make_bytes(4 * kFloats), to_ = make_bytes(4 * kFloats);
};

void fill(char* data, PixelType type, size_t count) {
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const float v = static_cast<float>(state >> 8) * (1.0f / 8388608) - 1.0f;
    const uint16_t h = bnns::float_to_half(v);
    type == PixelType::f32 ? std::memcpy(data + 4 * i, &v, 4) : std::memcpy(data + 2 * i, &h, 2);
  }
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    if (options.json.empty()) return;
    json_ = std::fopen(options.json.c_str(), "w");
    if (!json_) std::fprintf(stderr, "cannot write %s\n", options.json.c_str()), std::exit(1);
  }
  ~Bench() {
    if (json_) std::fprintf(json_, first_ ? "[]\n" : "\n]\n"), std::fclose(json_);
  }

  void run(const Shape& s, PixelType type) {
    const int64_t oh = (s.h + 2 * s.p - s.k) / s.s + 1, ow = (s.w + 2 * s.p - s.k) / s.s + 1;
    const auto large = static_cast<size_t>(s.n * s.c * s.h * s.w), small = static_cast<size_t>(s.n * s.c * oh * ow);
    const size_t size = bytes_of(type), sets = std::max<size_t>(2, (size_t{768} << 20) / (size * (2 * large + small)));
    char name[100];
    std::snprintf(name, sizeof name, "%s %dx%dx%dx%d k%d s%d p%d", type == PixelType::f32 ? "f32" : "f16", int(s.n),
                  int(s.c), int(s.h), int(s.w), int(s.k), int(s.s), int(s.p));
    struct Set {
      Bytes source, target, small_in, small_out;
    };
    std::vector<Set> all;
    PoolEncode e;
    e.x.kernel = e.y.kernel = s.k, e.x.stride = e.y.stride = s.s;
    e.x.first_centre = e.y.first_centre = s.k / 2 - s.p;
    e.images = s.n, e.channels = s.c;
    e.source = {nullptr, type, s.w, s.h, s.c / 4, 4};
    e.gradient = {nullptr, type, ow, oh, s.c / 4, 4};
    e.gradient_width = ow, e.gradient_height = oh;
    for (const bool backward : {true, false}) {
      for (const PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::l2_norm}) {
        const char* kinds[] = {"max", "avg", "l2"};
        const std::string call = std::string(backward ? "bwd " : "fwd ") + kinds[static_cast<int>(kind)];
        if ((name + (" " + call)).find(options_.filter) == std::string::npos) continue;
        while (all.size() < sets) {
          Set set{make_bytes(large * size), make_bytes(large * size), make_bytes(small * size),
                  make_bytes(small * size)};
          if (all.empty()) {
            fill(set.source.get(), type, large), fill(set.small_in.get(), type, small);
          } else {
            std::memcpy(set.source.get(), all[0].source.get(), large * size);
            std::memcpy(set.small_in.get(), all[0].small_in.get(), small * size);
          }
          all.push_back(std::move(set));
        }
        e.kind = kind, e.backward = backward;
        e.edge = kind == PoolKind::l2_norm ? PoolEdge::zero : PoolEdge::clamp;
        const double bytes = static_cast<double>(size) *
                             (double(small) + double(large) * (backward && kind != PoolKind::average ? 2 : 1));
        for (const size_t threads : options_.threads) {
          measure(name, call, threads, bytes, [&](size_t k) {
            const Set& set = all[k % sets];
            e.source.data = set.source.get();
            if (backward) {
              e.target = e.source, e.target.data = set.target.get(), e.gradient.data = set.small_in.get();
              e.width = s.w, e.height = s.h;
            } else {
              e.target = e.gradient, e.target.data = set.small_out.get(), e.width = ow, e.height = oh;
            }
            pool_cpu(e, threads);
          });
        }
      }
    }
  }

  void summary() const {
    if (shares_.empty()) return;
    double logs = 0;
    for (const double v : shares_) logs += std::log(v);
    std::printf("%zu cases: geometric mean %.0f %%, least %.0f %%\n", shares_.size(),
                100 * std::exp(logs / static_cast<double>(shares_.size())),
                100 * *std::min_element(shares_.begin(), shares_.end()));
  }

 private:
  template <class Call>
  void measure(const char* name, const std::string& call, size_t threads, double bytes, Call&& body) {
    const int calls = std::clamp(static_cast<int>(3e-2 / (bytes / 20e9)), 1, 200);
    size_t next = 0;
    std::vector<double> times, shares, copies;
    body(next++);
    for (int round = 0; round < options_.rounds; ++round) {
      const double start = now();
      for (int i = 0; i < calls; ++i) body(next++);
      times.push_back((now() - start) / calls);
      copies.push_back(copy_.rate(threads));
      shares.push_back(bytes / times.back() / copies.back());
    }
    const double time = bnns::bench::median(times), share = bnns::bench::median(shares);
    const double copy = bnns::bench::median(copies);
    shares_.push_back(share);
    std::printf("%-30s %-8s %zu threads %9.4f ms %6.1f GB/s copy %5.1f share %4.0f %%\n", name, call.c_str(), threads,
                1e3 * time, bytes / time * 1e-9, copy * 1e-9, 100 * share);
    std::fflush(stdout);
    if (!json_) return;
    std::fprintf(json_,
                 "%s  {\"shape\": \"%s\", \"call\": \"%s\", \"threads\": %zu, \"isa\": \"%s\", \"ms\": %.5f, \"gbs\": "
                 "%.3f, \"copy_gbs\": %.3f, \"share\": %.4f}",
                 first_ ? "[\n" : ",\n", name, call.c_str(), threads, bnns::isa_name(bnns::isa()), 1e3 * time,
                 bytes / time * 1e-9, copy * 1e-9, share);
    first_ = false;
  }

  Options options_;
  Copy copy_;
  std::FILE* json_ = nullptr;
  bool first_ = true;
  std::vector<double> shares_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const auto starts = [&](const char* with) { return text.rfind(with, 0) == 0; };
    if (starts("--threads=")) {
      options.threads = {std::strtoul(text.c_str() + 10, nullptr, 10)};
    } else if (starts("--rounds=")) {
      options.rounds = std::max(1, std::atoi(text.c_str() + 9));
    } else if (starts("--filter=")) {
      options.filter = text.substr(9);
    } else if (starts("--json=")) {
      options.json = text.substr(7);
    } else if (text == "--cpu-time") {
      clock_used = CLOCK_THREAD_CPUTIME_ID, options.threads = {1};
    } else {
      std::fprintf(stderr,
                   "mps_pooling_cpu_bench [--threads=N] [--rounds=R] [--filter=text] [--json=file] [--cpu-time]\n");
      return 2;
    }
  }
  if (options.threads.empty()) {
    options.threads = {1};
    if (bnns::default_threads() > 1) options.threads.push_back(bnns::default_threads());
  }
  Bench bench(options);
  for (const PixelType type : {PixelType::f32, PixelType::f16}) {
    for (const Shape& s : kShapes) bench.run(s, type);
  }
  bench.summary();
}
