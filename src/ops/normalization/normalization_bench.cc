// Batch and layer normalization, training forward and backward, beside oneDNN in the same run. One JSON line per case;
// ratio = time of the fastest peer / our time, above 1 is faster than all of them. GB/s count what must move: forward
// x, y and the kept x^; backward dy, x^ and dx.
//
// oneDNN has two batch normalizations: generic code for plain NCHW, which is what we read, and a JIT one for channels
// in blocks of 16. The second is timed too, on data already in its layout: nothing is counted for getting there and
// back.
//
// Usage: normalization_bench [threads [substring of the cases wanted]]      Best of all repetitions, the contenders
// taken in turn. One thread is timed by its CPU clock; with more, oneDNN's barriers make it several times slower as
// soon as anything else runs on the cores: such ratios mean something on an idle machine only.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

#ifdef BNNS_PEER_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace {

// One thread is timed by its own clock, which stands still while neighbours have the core; several by the wall's.
bool one_thread = false;

double now() {
  return bnns::bench::now(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

// The best of three calls, after the other contender's threads have gone to sleep and a call that warms up.
template <class Body>
double time_once(Body&& body) {
  if (!one_thread) bnns::bench::settle();
  body();
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = now();
    body();
    best = std::min(best, now() - start);
  }
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

using Call = std::function<void()>;
struct Contender {
  const char* name;
  Call call;
};

// Our pass and the peers', in turn.
void report(const std::string& name, double gigabytes, const Call& own, const std::vector<Contender>& peers) {
  own();  // backward needs it, and the results are compared
  for (const Contender& peer : peers) peer.call();
  if (name.find(wanted) == std::string::npos) return;
  double own_ms = 1e12, total = 0;
  std::vector<double> peer_ms(peers.size(), 1e12);
  for (int i = 0; total < 0.3 || i < 6; ++i) {
    const double start = now();
    own_ms = std::min(own_ms, 1e3 * time_once(own));
    for (size_t k = 0; k < peers.size(); ++k) peer_ms[k] = std::min(peer_ms[k], 1e3 * time_once(peers[k].call));
    total += now() - start;
  }
  std::printf("{\"family\":\"normalization\",\"case\":\"%s\",\"ms\":%.4f,\"gb_s\":%.1f", name.c_str(), own_ms,
              gigabytes / own_ms * 1e3);
  for (size_t k = 0; k < peers.size(); ++k) std::printf(",\"%s_ms\":%.4f", peers[k].name, peer_ms[k]);
  if (!peers.empty()) {
    const size_t best = size_t(std::min_element(peer_ms.begin(), peer_ms.end()) - peer_ms.begin());
    std::printf(",\"peer\":\"%s\",\"ratio\":%.2f", peers[best].name, peer_ms[best] / own_ms);
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

#ifdef BNNS_PEER_ONEDNN
// One of oneDNN's normalizations with everything it works on.
struct Peer {
  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{cpu};
  dnnl::primitive forward_primitive, backward_primitive;
  std::unordered_map<int, dnnl::memory> forward_arguments, backward_arguments;

  void forward() { forward_primitive.execute(stream, forward_arguments), stream.wait(); }
  void backward() { backward_primitive.execute(stream, backward_arguments), stream.wait(); }

  Peer(const Shape& s, bool layer_norm, bool relu, dnnl::memory::format_tag tag, std::vector<float>& x,
       std::vector<float>& dy, const std::vector<float>& gamma, const std::vector<float>& beta) {
    using namespace dnnl;
    const memory::dim N = memory::dim(s.N), C = memory::dim(s.C), H = memory::dim(s.H), W = memory::dim(s.W);
    const auto f32 = memory::data_type::f32;
    auto flags = normalization_flags::use_scale_shift;
    if (relu) flags |= normalization_flags::fuse_norm_relu;
    if (layer_norm) {
      const memory::desc rows({N, C * H * W}, f32, memory::format_tag::ab), sets({N}, f32, memory::format_tag::a);
      const layer_normalization_forward::primitive_desc fpd(
          layer_normalization_forward::desc(prop_kind::forward_training, rows, sets, 1e-5f, flags), cpu);
      const layer_normalization_backward::primitive_desc bpd(
          layer_normalization_backward::desc(prop_kind::backward, rows, rows, sets, 1e-5f, flags), cpu, fpd);
      forward_primitive = layer_normalization_forward(fpd), backward_primitive = layer_normalization_backward(bpd);
      fill(fpd, bpd, rows, rows, x, dy, gamma, beta);
    } else {
      const memory::desc plain({N, C, H, W}, f32, memory::format_tag::nchw), data({N, C, H, W}, f32, tag);
      const batch_normalization_forward::primitive_desc fpd(
          batch_normalization_forward::desc(prop_kind::forward_training, data, 1e-5f, flags), cpu);
      const batch_normalization_backward::primitive_desc bpd(
          batch_normalization_backward::desc(prop_kind::backward, data, data, 1e-5f, flags), cpu, fpd);
      forward_primitive = batch_normalization_forward(fpd), backward_primitive = batch_normalization_backward(bpd);
      fill(fpd, bpd, plain, data, x, dy, gamma, beta);
    }
  }
  const float* y() const { return static_cast<const float*>(forward_arguments.at(DNNL_ARG_DST).get_data_handle()); }
  const float* dx() const {
    return static_cast<const float*>(backward_arguments.at(DNNL_ARG_DIFF_SRC).get_data_handle());
  }

 private:
  template <class Forward, class Backward>
  void fill(const Forward& fpd, const Backward& bpd, const dnnl::memory::desc& plain, const dnnl::memory::desc& data,
            std::vector<float>& x, std::vector<float>& dy, const std::vector<float>& gamma,
            const std::vector<float>& beta) {
    using dnnl::memory;
    memory mx(data, cpu), mdy(data, cpu), scale_shift(fpd.weights_desc(), cpu), mean(fpd.mean_desc(), cpu),
        variance(fpd.variance_desc(), cpu), workspace(fpd.workspace_desc(), cpu);
    memory from_x(plain, cpu, x.data()), from_dy(plain, cpu, dy.data());
    dnnl::reorder(from_x, mx).execute(stream, from_x, mx);
    dnnl::reorder(from_dy, mdy).execute(stream, from_dy, mdy);
    stream.wait();
    float* numbers = static_cast<float*>(scale_shift.get_data_handle());
    std::copy(gamma.begin(), gamma.end(), numbers);
    std::copy(beta.begin(), beta.end(), numbers + gamma.size());
    forward_arguments = {{DNNL_ARG_SRC, mx},
                         {DNNL_ARG_MEAN, mean},
                         {DNNL_ARG_VARIANCE, variance},
                         {DNNL_ARG_SCALE_SHIFT, scale_shift},
                         {DNNL_ARG_WORKSPACE, workspace}};
    backward_arguments = forward_arguments;
    forward_arguments.insert({DNNL_ARG_DST, memory(data, cpu)});
    backward_arguments.insert({DNNL_ARG_DIFF_DST, mdy});
    backward_arguments.insert({DNNL_ARG_DIFF_SRC, memory(data, cpu)});
    backward_arguments.insert({DNNL_ARG_DIFF_SCALE_SHIFT, memory(bpd.diff_weights_desc(), cpu)});
  }
};
#endif

void run(const Shape& s, bool layer_norm, bool relu, size_t threads) {
  const size_t count = s.N * s.C * s.H * s.W, affine = layer_norm ? s.C * s.H * s.W : s.C;
  std::vector<float> x(count), y(count, 0.f), dy(count), dx(count, 0.f);
  for (size_t i = 0; i < count; ++i)
    x[i] = float(int(i * 2654435761u >> 8 & 1023) - 500) / 256, dy[i] = x[count - 1 - i];
  std::vector<float> gamma(affine, 1.5f), beta(affine, 0.1f), dgamma(affine, 0.f), dbeta(affine, 0.f);

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

  std::vector<Contender> forward_peers, backward_peers;
#ifdef BNNS_PEER_ONEDNN
  using Tag = dnnl::memory::format_tag;
  Peer plain(s, layer_norm, relu, Tag::nchw, x, dy, gamma, beta),
      blocked(s, layer_norm, relu, Tag::nChw16c, x, dy, gamma, beta);
  forward_peers = {{"onednn", [&] { plain.forward(); }}};
  backward_peers = {{"onednn", [&] { plain.backward(); }}};
  if (!layer_norm) {
    forward_peers.push_back({"onednn_nChw16c", [&] { blocked.forward(); }});
    backward_peers.push_back({"onednn_nChw16c", [&] { blocked.backward(); }});
  }
#endif
  report(name + " training forward", 3 * bytes, forward, forward_peers);
  report(name + " backward", (3 + relu) * bytes, backward, backward_peers);
#ifdef BNNS_PEER_ONEDNN
  // Both must have computed the same thing, or the times mean nothing.
  double worst = 0;
  for (size_t i = 0; i < count; i += 997) {
    worst = std::max(
        {worst, std::fabs(double(y[i]) - double(plain.y()[i])), std::fabs(double(dx[i]) - double(plain.dx()[i]))});
  }
  if (!(worst < 1e-3)) {
    std::fprintf(stderr, "%s: results differ by %g\n", name.c_str(), worst);
    std::exit(1);
  }
#endif
  report(name + " inference", 2 * bytes, inference, {});
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
