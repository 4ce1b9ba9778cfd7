// Convolutions of real networks beside oneDNN, in one process, in interleaved rounds.
//   convolution_bench [--threads=N] [--rounds=R] [--filter=text]
// Both get and give plain NCHW: oneDNN may choose its layouts, so its reorders count; its time without them stands in
// brackets. A figure is the median over rounds of (peer / ours).

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

#ifdef BNNS_PEER_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace {

using namespace bnns::bench;

struct Shape {
  const char* name;
  size_t n, i, size, o, k, stride, pad, groups;
  size_t out() const { return (size + 2 * pad - k) / stride + 1; }
  double flops() const { return 2.0 * double(n * i / groups * o * k * k) * double(out() * out()); }
  size_t x_count() const { return n * i * size * size; }
  size_t y_count() const { return n * o * out() * out(); }
  size_t w_count() const { return o * (i / groups) * k * k; }
};
constexpr Shape kShapes[] = {
    {"lenet1 32x1x28 6 k5p2", 32, 1, 28, 6, 5, 1, 2, 1}, {"lenet2 32x6x14 16 k5", 32, 6, 14, 16, 5, 1, 0, 1},
    {"3x3 8x64x56 64", 8, 64, 56, 64, 3, 1, 1, 1},       {"3x3 8x128x28 128", 8, 128, 28, 128, 3, 1, 1, 1},
    {"3x3 8x256x14 256", 8, 256, 14, 256, 3, 1, 1, 1},   {"3x3 8x512x7 512", 8, 512, 7, 512, 3, 1, 1, 1},
    {"3x3 1x512x7 512", 1, 512, 7, 512, 3, 1, 1, 1},     {"3x3s2 8x128x56 128", 8, 128, 56, 128, 3, 2, 1, 1},
    {"1x1 8x256x56 64", 8, 256, 56, 64, 1, 1, 0, 1},     {"1x1 8x64x56 256", 8, 64, 56, 256, 1, 1, 0, 1},
    {"1x1 8x1024x14 256", 8, 1024, 14, 256, 1, 1, 0, 1}, {"1x1s2 8x256x56 128", 8, 256, 56, 128, 1, 2, 0, 1},
    {"7x7s2 8x3x224 64", 8, 3, 224, 64, 7, 2, 3, 1},     {"3x3 1x32x282 32", 1, 32, 282, 32, 3, 1, 0, 1},
    {"g32 8x512x28 512", 8, 512, 28, 512, 3, 1, 1, 32},  {"dw 8x128x56 s1", 8, 128, 56, 128, 3, 1, 1, 128},
    {"dw 8x128x56 s2", 8, 128, 56, 128, 3, 2, 1, 128},   {"dw 8x512x14 s1", 8, 512, 14, 512, 3, 1, 1, 512},
};

enum class Pass { forward, input, weights };
constexpr const char* kPassNames[] = {"fwd", "bwd_d", "bwd_w"};

struct Options {
  size_t threads = bnns::default_threads();
  int rounds = 5;
  std::string filter;
};

struct Data {
  std::vector<float> x, w, y, dx, dw;
  explicit Data(const Shape& s) : x(s.x_count()), w(s.w_count()), y(s.y_count()), dx(s.x_count()), dw(s.w_count()) {
    uint32_t state = 1;
    for (auto* v : {&x, &w, &y}) {
      for (float& e : *v) {
        state = state * 1664525 + 1013904223;
        e = float(state >> 8) * (1.0f / 8388608) - 1.0f;
      }
    }
  }
};

BNNSNDArrayDescriptor describe(BNNSDataLayout layout, std::vector<size_t> size, float* data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = layout;
  for (size_t k = 0; k < size.size(); ++k) d.size[k] = size[k];
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

void check(int status) {
  if (status != 0) std::fprintf(stderr, "%s\n", BNNSExtLastError()), std::exit(1);
}

// Ours: one call of the C API.
std::function<void()> ours(const Shape& s, Pass pass, Data& data, const Options& options) {
  BNNSLayerParametersConvolution p;
  BNNSFilterParameters f;
  std::memset(&p, 0, sizeof p);
  std::memset(&f, 0, sizeof f);
  f.n_threads = options.threads;
  f.flags = BNNSFlagsUseClientPtr;
  p.i_desc = describe(BNNSDataLayoutImageCHW, {s.size, s.size, s.i}, nullptr);
  p.o_desc = describe(BNNSDataLayoutImageCHW, {s.out(), s.out(), s.o}, nullptr);
  p.w_desc = describe(BNNSDataLayoutConvolutionWeightsOIHW, {s.k, s.k, s.i / s.groups, s.o}, data.w.data());
  p.x_stride = p.y_stride = s.stride, p.x_padding = p.y_padding = s.pad, p.groups = s.groups;
  std::shared_ptr<void> filter(BNNSFilterCreateLayerConvolution(&p, &f), BNNSFilterDestroy);
  check(filter ? 0 : -1);
  const size_t n = s.n;
  if (pass == Pass::forward) {
    return [filter, n, &data] { check(BNNSFilterApplyBatch(filter.get(), n, data.x.data(), 0, data.y.data(), 0)); };
  }
  p.i_desc.data = data.dx.data(), p.w_desc.data = data.dw.data(), p.o_desc.data = data.y.data();
  const bool input = pass == Pass::input;
  return [filter, n, &data, p, input]() mutable {
    check(BNNSFilterApplyBackwardBatch(filter.get(), n, data.x.data(), 0, input ? &p.i_desc : nullptr, 0, nullptr, 0,
                                       &p.o_desc, 0, input ? nullptr : &p.w_desc, nullptr));
  };
}

#ifdef BNNS_PEER_ONEDNN
dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

// A tensor in the caller's layout beside the layout the primitive wants.
struct Side {
  dnnl::memory plain, own;
  Side(const dnnl::memory::desc& user, const dnnl::memory::desc& wanted, float* data)
      : plain(user, engine(), data), own(user == wanted ? plain : dnnl::memory(wanted, engine())) {}
  void in() {
    if (own.get() != plain.get()) dnnl::reorder(plain, own).execute(stream(), plain, own);
  }
  void out() {
    if (own.get() != plain.get()) dnnl::reorder(own, plain).execute(stream(), own, plain);
  }
};

// {the whole call, the primitive alone}
std::pair<std::function<void()>, std::function<void()>> onednn(const Shape& s, Pass pass, Data& data) {
  using namespace dnnl;
  const auto n = memory::dim(s.n), i = memory::dim(s.i), o = memory::dim(s.o), h = memory::dim(s.size),
             u = memory::dim(s.out()), k = memory::dim(s.k), g = memory::dim(s.groups);
  const auto f32 = memory::data_type::f32;
  const memory::dims w_dims = g > 1 ? memory::dims{g, o / g, i / g, k, k} : memory::dims{o, i, k, k};
  const memory::desc x({n, i, h, h}, f32, memory::format_tag::nchw), y({n, o, u, u}, f32, memory::format_tag::nchw),
      w(w_dims, f32, g > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
  const memory::desc any_x({n, i, h, h}, f32, memory::format_tag::any),
      any_y({n, o, u, u}, f32, memory::format_tag::any), any_w(w_dims, f32, memory::format_tag::any);
  const memory::dims stride(2, memory::dim(s.stride)), pad(2, memory::dim(s.pad));
  const auto algorithm = algorithm::convolution_direct;
  const convolution_forward::desc fd(prop_kind::forward_training, algorithm, any_x, any_w, any_y, stride, pad, pad);
  const convolution_forward::primitive_desc forward(fd, engine());
  if (pass == Pass::forward) {
    auto a = std::make_shared<Side>(x, forward.src_desc(), data.x.data());
    auto b = std::make_shared<Side>(w, forward.weights_desc(), data.w.data());
    auto c = std::make_shared<Side>(y, forward.dst_desc(), data.y.data());
    const convolution_forward run(forward);
    const std::function<void()> alone = [=]() mutable {
      run.execute(stream(), {{DNNL_ARG_SRC, a->own}, {DNNL_ARG_WEIGHTS, b->own}, {DNNL_ARG_DST, c->own}});
      stream().wait();
    };
    return {[=]() mutable { a->in(), b->in(), alone(), c->out(), stream().wait(); }, alone};
  }
  if (pass == Pass::input) {
    const convolution_backward_data::desc d(algorithm, any_x, any_w, any_y, stride, pad, pad);
    const convolution_backward_data::primitive_desc pd(d, engine(), forward);
    auto a = std::make_shared<Side>(x, pd.diff_src_desc(), data.x.data());
    auto b = std::make_shared<Side>(w, pd.weights_desc(), data.w.data());
    auto c = std::make_shared<Side>(y, pd.diff_dst_desc(), data.y.data());
    const convolution_backward_data run(pd);
    const std::function<void()> alone = [=]() mutable {
      run.execute(stream(), {{DNNL_ARG_DIFF_SRC, a->own}, {DNNL_ARG_WEIGHTS, b->own}, {DNNL_ARG_DIFF_DST, c->own}});
      stream().wait();
    };
    return {[=]() mutable { c->in(), b->in(), alone(), a->out(), stream().wait(); }, alone};
  }
  const convolution_backward_weights::desc d(algorithm, any_x, any_w, any_y, stride, pad, pad);
  const convolution_backward_weights::primitive_desc pd(d, engine(), forward);
  auto a = std::make_shared<Side>(x, pd.src_desc(), data.x.data());
  auto b = std::make_shared<Side>(w, pd.diff_weights_desc(), data.w.data());
  auto c = std::make_shared<Side>(y, pd.diff_dst_desc(), data.y.data());
  const convolution_backward_weights run(pd);
  const std::function<void()> alone = [=]() mutable {
    run.execute(stream(), {{DNNL_ARG_SRC, a->own}, {DNNL_ARG_DIFF_WEIGHTS, b->own}, {DNNL_ARG_DIFF_DST, c->own}});
    stream().wait();
  };
  return {[=]() mutable { a->in(), c->in(), alone(), b->out(), stream().wait(); }, alone};
}
#endif

double time_of(const std::function<void()>& call, double flops) {
  settle();
  call();
  const int calls = std::max(1, int(4e-3 / (flops / 100e9 + 1e-6)));
  const double start = now();
  for (int i = 0; i < calls; ++i) call();
  return (now() - start) / calls;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.rfind("--threads=", 0) == 0) {
      options.threads = std::strtoul(text.c_str() + 10, nullptr, 10);
    } else if (text.rfind("--rounds=", 0) == 0) {
      options.rounds = std::atoi(text.c_str() + 9);
    } else if (text.rfind("--filter=", 0) == 0) {
      options.filter = text.substr(9);
    } else {
      return std::fprintf(stderr, "usage: convolution_bench [--threads=N] [--rounds=R] [--filter=text]\n"), 2;
    }
  }
#ifdef BNNS_PEER_ONEDNN
  omp_set_num_threads(int(options.threads));
#endif
  std::printf("%-28s %9s %9s   peer (without reorders), ratio\n", "median", "ms", "GFLOP/s");
  double logs[3] = {};
  int counts[3] = {};
  for (const Shape& s : kShapes) {
    for (const Pass pass : {Pass::forward, Pass::input, Pass::weights}) {
      const std::string name = std::string(kPassNames[int(pass)]) + " " + s.name;
      if (name.find(options.filter) == std::string::npos) continue;
      Data mine(s), theirs(s);
      const auto our_call = ours(s, pass, mine, options);
      std::vector<double> our_times, ratios, peer_times, alone_times;
#ifdef BNNS_PEER_ONEDNN
      const auto [peer_call, alone_call] = onednn(s, pass, theirs);
#endif
      for (int round = 0; round < options.rounds; ++round) {
        our_times.push_back(time_of(our_call, s.flops()));
#ifdef BNNS_PEER_ONEDNN
        peer_times.push_back(time_of(peer_call, s.flops()));
        alone_times.push_back(time_of(alone_call, s.flops()));
        ratios.push_back(peer_times.back() / our_times.back());
#endif
      }
      const double time = median(our_times);
      std::printf("%-28s %9.3f %9.1f", name.c_str(), time * 1e3, s.flops() / time / 1e9);
      if (!ratios.empty()) {
        std::printf("   %9.3f (%.3f)  %.2f", median(peer_times) * 1e3, median(alone_times) * 1e3, median(ratios));
        logs[int(pass)] += std::log(median(ratios)), ++counts[int(pass)];
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  for (int pass = 0; pass < 3; ++pass) {
    if (counts[pass]) std::printf("geometric mean %s %.2f\n", kPassNames[pass], std::exp(logs[pass] / counts[pass]));
  }
}
