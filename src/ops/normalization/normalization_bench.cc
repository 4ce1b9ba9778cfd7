// Batch normalization, training forward and backward, beside oneDNN on plain NCHW in the same run; layer normalization
// beside oneDNN's. One JSON line per case; ratio = peer time / our time, above 1 is faster than the peer. GB/s count
// what must move: forward x, y and the kept x^; backward dy, x^ and dx.
//
// Usage: normalization_bench [threads [substring of the cases wanted]]      Best of all repetitions, the two taken in
// turn, since neighbours only slow.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

#ifdef BNNS_PEER_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace {

double seconds(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

// One thread is timed by its own clock, which stands still while neighbours have the core; several by the wall's.
bool one_thread = false;

double now() {
  timespec time;
  clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

template <class Body>
double time_of(Body&& body) {
  const double start = now();
  body();
  return now() - start;
}

// The best of three calls, after the other contender's threads have gone to sleep and a call that warms up.
template <class Body>
double time_once(Body&& body) {
  if (!one_thread) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  body();
  double best = 1e9;
  for (int i = 0; i < 3; ++i) best = std::min(best, time_of(body));
  return best;
}

void check(int status) {
  if (status == 0) return;
  std::fprintf(stderr, "%s\n", BNNSExtLastError());
  std::exit(1);
}

struct Shape {
  const char* name;
  size_t N, C, H, W;
};

const char* wanted = "";

// Our pass and the peer's, in turn.
template <class Own, class Peer>
void report(const std::string& name, double gigabytes, Own&& own, Peer&& peer, bool have_peer) {
  std::vector<double> own_times, peer_times;
  double total = 0;
  own();  // backward needs it, and the results are compared
  if (have_peer) peer();
  if (name.find(wanted) == std::string::npos) return;
  for (int i = 0; total < 0.3 || i < 6; ++i) {
    own_times.push_back(time_once(own));
    if (have_peer) peer_times.push_back(time_once(peer));
    total += own_times.back() + (have_peer ? peer_times.back() : 0);
  }
  const double ms = 1e3 * seconds(own_times);
  std::printf("{\"family\":\"normalization\",\"case\":\"%s\",\"ms\":%.4f,\"gb_s\":%.1f", name.c_str(), ms,
              gigabytes / ms * 1e3);
  if (have_peer) {
    const double peer_ms = 1e3 * seconds(peer_times);
    std::printf(",\"peer\":\"onednn\",\"peer_ms\":%.4f,\"ratio\":%.2f", peer_ms, peer_ms / ms);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

BNNSNDArrayDescriptor image(const Shape& s, void* data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutImageCHW;
  d.size[0] = s.W, d.size[1] = s.H, d.size[2] = s.C;
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

BNNSNDArrayDescriptor vector(size_t n, void* data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

void run(const Shape& s, bool layer_norm, bool relu, size_t threads) {
  const size_t count = s.N * s.C * s.H * s.W, affine = layer_norm ? s.C * s.H * s.W : s.C;
  std::vector<float> x(count), y(count, 0.f), dy(count), dx(count, 0.f);
  for (size_t i = 0; i < count; ++i)
    x[i] = float(int(i * 2654435761u >> 8 & 1023) - 500) / 256, dy[i] = x[count - 1 - i];
  std::vector<float> gamma(affine, 1.5f), beta(affine, 0.1f), dgamma(affine, 0.f), dbeta(affine, 0.f), mean(affine),
      variance(affine);

  BNNSLayerParametersNormalization layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc = layer.o_desc = image(s, nullptr);
  layer.gamma_desc = vector(affine, gamma.data());
  layer.beta_desc = vector(affine, beta.data());
  layer.epsilon = 1e-5f;
  layer.activation.function = relu ? BNNSActivationFunctionRectifiedLinear : BNNSActivationFunctionIdentity;
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.n_threads = threads;
  options.flags = BNNSFlagsUseClientPtr;
  BNNSFilter filter = BNNSFilterCreateLayerNormalization(layer_norm ? BNNSLayerNorm : BNNSBatchNorm, &layer, &options);
  if (!filter) check(-1);
  auto dx_desc = image(s, dx.data()), dy_desc = image(s, dy.data());
  auto dgamma_desc = vector(affine, dgamma.data()), dbeta_desc = vector(affine, dbeta.data());
  const auto forward = [&] { check(BNNSNormalizationFilterApplyBatch(filter, s.N, x.data(), 0, y.data(), 0, true)); };
  const auto inference = [&] {
    check(BNNSNormalizationFilterApplyBatch(filter, s.N, x.data(), 0, y.data(), 0, false));
  };
  const auto backward = [&] {
    check(BNNSNormalizationFilterApplyBackwardBatch(filter, s.N, &dx_desc, 0, y.data(), 0, &dy_desc, 0, &dbeta_desc,
                                                    &dgamma_desc));
  };
  const std::string name = std::string(layer_norm ? "layer_norm" : "batch_norm") + (relu ? "_relu " : " ") + s.name;
  const double bytes = 4e-9 * double(count);

#ifdef BNNS_PEER_ONEDNN
  using namespace dnnl;
  engine cpu(engine::kind::cpu, 0);
  stream stream(cpu);
  std::vector<float> peer_y(count), peer_dx(count), mask(count);
  std::vector<float> scale_shift(2 * affine), scale_shift_gradient(2 * affine);
  std::copy(gamma.begin(), gamma.end(), scale_shift.begin());
  std::copy(beta.begin(), beta.end(), scale_shift.begin() + long(affine));
  if (!layer_norm) {
    const memory::dims dims = {memory::dim(s.N), memory::dim(s.C), memory::dim(s.H), memory::dim(s.W)};
    const memory::desc data(dims, memory::data_type::f32, memory::format_tag::nchw);
    auto flags = normalization_flags::use_scale_shift;
    if (relu) flags |= normalization_flags::fuse_norm_relu;
    const batch_normalization_forward::desc fd(prop_kind::forward_training, data, 1e-5f, flags);
    const batch_normalization_forward::primitive_desc fpd(fd, cpu);
    const batch_normalization_backward::desc bd(prop_kind::backward, data, data, 1e-5f, flags);
    const batch_normalization_backward::primitive_desc bpd(bd, cpu, fpd);
    memory mx(data, cpu, x.data()), my(data, cpu, peer_y.data()), mdy(data, cpu, dy.data()),
        mdx(data, cpu, peer_dx.data());
    memory mm(fpd.mean_desc(), cpu, mean.data()), mv(fpd.variance_desc(), cpu, variance.data());
    memory ms(fpd.weights_desc(), cpu, scale_shift.data()),
        mds(bpd.diff_weights_desc(), cpu, scale_shift_gradient.data());
    memory mw(fpd.workspace_desc(), cpu);
    batch_normalization_forward fp(fpd);
    batch_normalization_backward bp(bpd);
    report(
        name + " training forward", 3 * bytes, forward,
        [&] {
          fp.execute(stream, {{DNNL_ARG_SRC, mx},
                              {DNNL_ARG_DST, my},
                              {DNNL_ARG_MEAN, mm},
                              {DNNL_ARG_VARIANCE, mv},
                              {DNNL_ARG_SCALE_SHIFT, ms},
                              {DNNL_ARG_WORKSPACE, mw}});
          stream.wait();
        },
        true);
    report(
        name + " backward", (3 + relu) * bytes, backward,
        [&] {
          bp.execute(stream, {{DNNL_ARG_SRC, mx},
                              {DNNL_ARG_DIFF_DST, mdy},
                              {DNNL_ARG_MEAN, mm},
                              {DNNL_ARG_VARIANCE, mv},
                              {DNNL_ARG_SCALE_SHIFT, ms},
                              {DNNL_ARG_DIFF_SRC, mdx},
                              {DNNL_ARG_DIFF_SCALE_SHIFT, mds},
                              {DNNL_ARG_WORKSPACE, mw}});
          stream.wait();
        },
        true);
  } else {
    const memory::desc data({memory::dim(s.N), memory::dim(affine)}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc statistics({memory::dim(s.N)}, memory::data_type::f32, memory::format_tag::a);
    const auto flags = normalization_flags::use_scale_shift;
    const layer_normalization_forward::desc fd(prop_kind::forward_training, data, statistics, 1e-5f, flags);
    const layer_normalization_forward::primitive_desc fpd(fd, cpu);
    const layer_normalization_backward::desc bd(prop_kind::backward, data, data, statistics, 1e-5f, flags);
    const layer_normalization_backward::primitive_desc bpd(bd, cpu, fpd);
    std::vector<float> row_mean(s.N), row_variance(s.N);
    memory mx(data, cpu, x.data()), my(data, cpu, peer_y.data()), mdy(data, cpu, dy.data()),
        mdx(data, cpu, peer_dx.data());
    memory mm(fpd.mean_desc(), cpu, row_mean.data()), mv(fpd.variance_desc(), cpu, row_variance.data());
    memory ms(fpd.weights_desc(), cpu, scale_shift.data()),
        mds(bpd.diff_weights_desc(), cpu, scale_shift_gradient.data());
    layer_normalization_forward fp(fpd);
    layer_normalization_backward bp(bpd);
    report(
        name + " training forward", 3 * bytes, forward,
        [&] {
          fp.execute(stream, {{DNNL_ARG_SRC, mx},
                              {DNNL_ARG_DST, my},
                              {DNNL_ARG_MEAN, mm},
                              {DNNL_ARG_VARIANCE, mv},
                              {DNNL_ARG_SCALE_SHIFT, ms}});
          stream.wait();
        },
        true);
    report(
        name + " backward", 3 * bytes, backward,
        [&] {
          bp.execute(stream, {{DNNL_ARG_SRC, mx},
                              {DNNL_ARG_DIFF_DST, mdy},
                              {DNNL_ARG_MEAN, mm},
                              {DNNL_ARG_VARIANCE, mv},
                              {DNNL_ARG_SCALE_SHIFT, ms},
                              {DNNL_ARG_DIFF_SRC, mdx},
                              {DNNL_ARG_DIFF_SCALE_SHIFT, mds}});
          stream.wait();
        },
        true);
  }
  // Both must have computed the same thing, or the times mean nothing.
  double worst = 0;
  for (size_t i = 0; i < count; i += 997)
    worst = std::max({worst, std::fabs(double(y[i]) - peer_y[i]), std::fabs(double(dx[i]) - peer_dx[i])});
  if (!(worst < 1e-3)) {
    std::fprintf(stderr, "%s: results differ by %g\n", name.c_str(), worst);
    std::exit(1);
  }
#else
  report(
      name + " training forward", 3 * bytes, forward, [] {}, false);
  report(
      name + " backward", (3 + relu) * bytes, backward, [] {}, false);
#endif
  report(
      name + " inference", 2 * bytes, inference, [] {}, false);
  BNNSFilterDestroy(filter);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : bnns::default_threads();
  one_thread = threads == 1;
  if (argc > 2) wanted = argv[2];
#ifdef BNNS_PEER_ONEDNN
  omp_set_num_threads(int(threads));
#endif
  const Shape images[] = {{"32x64x56x56", 32, 64, 56, 56},     {"32x256x56x56", 32, 256, 56, 56},
                          {"32x64x112x112", 32, 64, 112, 112}, {"32x128x28x28", 32, 128, 28, 28},
                          {"32x256x14x14", 32, 256, 14, 14},   {"32x512x7x7", 32, 512, 7, 7},
                          {"1x64x56x56", 1, 64, 56, 56},       {"128x1024x1x1", 128, 1024, 1, 1}};
  for (const Shape& s : images) run(s, false, false, threads);
  run(images[0], false, true, threads);
  const Shape rows[] = {{"512x768", 512, 768, 1, 1}, {"16384x768", 16384, 768, 1, 1}};
  for (const Shape& s : rows) run(s, true, false, threads);
}
