// The MPS pooling family on a GPU, at the seam: first random encodes against the CPU device, then time.
//   mps_pooling_bench [--check=N] [--rounds=R] [--filter=text] [--json=file]
// limit: bytes that must move (forward: source and target; average gradient: gradient and target; max and L2 gradient:
// the source too) at the rate of a device-to-device copy in the same run. cuDNN, where its header is found: the better
// of NCHW and NHWC, in the same rounds.

#include "src/ops/mps_pooling/cuda/bench.cuh"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define BNNS_PEER_CUDNN 1
#endif

namespace {

// One random encode on both devices. Integers: equal bits. Otherwise max equal, sums within a few ulp.
bool check_one(int number) {
  const PoolKind kind = static_cast<PoolKind>(number % 3);
  const PixelType types[] = {PixelType::f32, PixelType::f16,    PixelType::f32,
                             PixelType::f16, PixelType::unorm8, PixelType::unorm16};
  const PixelType type = types[pick(0, 5)];
  const bool backward = pick(0, 2) != 0, integers = pick(0, 1) != 0;
  const int64_t images = pick(1, 3), channels = pick(0, 2) == 0 ? pick(1, 3) : pick(1, 12);
  const int64_t width = pick(1, 70), height = pick(1, 40);
  PoolAxis x, y;
  for (PoolAxis* a : {&x, &y}) {
    a->kernel = pick(0, 2) ? pick(1, 5) : pick(1, 16), a->stride = pick(1, 4);
    a->dilation = kind == PoolKind::max && pick(0, 3) == 0 ? pick(1, 3) : 1;
    a->first_centre = pick(-3, 4), a->zero_pad = pick(0, 2);
  }
  if (pick(0, 1) == 0) {  // the common windows
    x.kernel = y.kernel = pick(2, 3), x.stride = y.stride = x.kernel == 2 ? 2 : pick(1, 2), x.dilation = y.dilation = 1;
    x.first_centre = pick(0, 1), y.first_centre = pick(0, 1);
  }
  if (pick(0, 9) == 0) x.kernel = width, y.kernel = height, x.dilation = y.dilation = 1;  // global
  int64_t out_w = pick(1, width / x.stride + 2), out_h = pick(1, height / y.stride + 2);
  if (x.kernel == width && y.kernel == height && pick(0, 1) == 0) {
    out_w = out_h = 1, x.first_centre = width / 2, y.first_centre = height / 2;
  }
  Image source(type, images, channels, height, width, integers);
  Image small(type, images, channels, out_h, out_w, integers);
  Image target(type, images, channels, backward ? height : out_h, backward ? width : out_w, integers);
  PoolEncode e;
  e.kind = kind, e.edge = static_cast<PoolEdge>(pick(0, 1)), e.x = x, e.y = y;
  e.images = images, e.channels = channels;
  e.width = backward ? width : out_w, e.height = backward ? height : out_h;
  if (pick(0, 3) == 0) {  // a clip rectangle
    e.target_x = pick(0, e.width - 1), e.width = pick(1, e.width - e.target_x);
    e.target_y = pick(0, e.height - 1), e.height = pick(1, e.height - e.target_y);
  }
  e.gradient_width = out_w, e.gradient_height = out_h;
  if (pick(0, 3) == 0) e.source_x = pick(0, 2), e.source_y = pick(0, 2);
  PoolEncode d = e;
  e.source = source.host, e.target = target.host, e.gradient = small.host;
  d.source = source.device, d.target = target.device, d.gradient = small.device;
  e.backward = d.backward = backward;
  run_plain(e, 2);
  CHECK(static_cast<cudaError_t>(pool_cuda(d, nullptr)));
  std::vector<char> got(target.bytes);
  CHECK(cudaMemcpy(got.data(), target.device.data, target.bytes, cudaMemcpyDeviceToHost));
  const bool exact = kind == PoolKind::max || (integers && kind == PoolKind::average);
  for (size_t i = 0; i < target.count; ++i) {
    const float want = value_at(target.memory, type, i), have = value_at(got, type, i);
    // Norms of clamped windows count an edge pixel many times.
    const double slack = kind == PoolKind::l2_norm && backward ? 2e-5
                         : type == PixelType::f32              ? 1e-6
                         : type == PixelType::f16              ? 2e-3
                                                               : 1.01;
    if (have == want || (std::isnan(have) && std::isnan(want))) continue;
    if (!exact && std::fabs(have - want) <= slack * std::max(1.0f, std::fabs(want))) continue;
    std::printf("encode %d: element %zu is %g on the GPU, %g on the CPU (%s)\n", number, i, double(have), double(want),
                text_of(e).c_str());
    return false;
  }
  return true;
}

// ---- time -----------------------------------------------------------------------------------------------------------

struct Shape {
  int64_t n, c, h, w, k, s, p;
};
constexpr Shape kShapes[] = {{128, 64, 112, 112, 3, 2, 1}, {128, 192, 56, 56, 3, 2, 0}, {64, 64, 224, 224, 2, 2, 0},
                             {128, 512, 28, 28, 2, 2, 0},  {128, 480, 14, 14, 3, 1, 1}, {256, 2048, 7, 7, 7, 1, 0}};

#ifdef BNNS_PEER_CUDNN
// cuDNN's pooling of the same shape; the better layout. {forward, backward} calls are timed in turn by the caller.
struct CudnnPool {
  cudnnHandle_t handle;
  cudnnPoolingDescriptor_t pool;
  cudnnTensorDescriptor_t x, y;
  bool good = true;
  CudnnPool(const Shape& s, int64_t out_h, int64_t out_w, PoolKind kind, PixelType type, bool nhwc) {
    cudnnCreate(&handle), cudnnCreatePoolingDescriptor(&pool);
    cudnnCreateTensorDescriptor(&x), cudnnCreateTensorDescriptor(&y);
    const auto mode =
        kind == PoolKind::max ? CUDNN_POOLING_MAX_DETERMINISTIC : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    const auto format = nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    const auto data = type == PixelType::f32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF;
    good =
        cudnnSetPooling2dDescriptor(pool, mode, CUDNN_PROPAGATE_NAN, int(s.k), int(s.k), int(s.p), int(s.p), int(s.s),
                                    int(s.s)) == CUDNN_STATUS_SUCCESS &&
        cudnnSetTensor4dDescriptor(x, format, data, int(s.n), int(s.c), int(s.h), int(s.w)) == CUDNN_STATUS_SUCCESS &&
        cudnnSetTensor4dDescriptor(y, format, data, int(s.n), int(s.c), int(out_h), int(out_w)) == CUDNN_STATUS_SUCCESS;
  }
  ~CudnnPool() {
    cudnnDestroyTensorDescriptor(x), cudnnDestroyTensorDescriptor(y), cudnnDestroyPoolingDescriptor(pool),
        cudnnDestroy(handle);
  }
  bool forward(const void* in, void* out) {
    const float one = 1, zero = 0;
    return cudnnPoolingForward(handle, pool, &one, x, in, &zero, y, out) == CUDNN_STATUS_SUCCESS;
  }
  bool backward(const void* out, const void* dout, const void* in, void* din) {
    const float one = 1, zero = 0;
    return cudnnPoolingBackward(handle, pool, &one, y, out, y, dout, x, in, &zero, x, din) == CUDNN_STATUS_SUCCESS;
  }
};
#endif

}  // namespace

int main(int argc, char** argv) {
  int checks = 3000, rounds = 7;
  std::string filter, json;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.rfind("--check=", 0) == 0) checks = std::atoi(text.c_str() + 8);
    if (text.rfind("--rounds=", 0) == 0) rounds = std::atoi(text.c_str() + 9);
    if (text.rfind("--filter=", 0) == 0) filter = text.substr(9);
    if (text.rfind("--json=", 0) == 0) json = text.substr(7);
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device here: nothing to measure\n");
    return 0;
  }
  int wrong = 0;
  for (int i = 0; i < checks && wrong < 10; ++i) {
    state = static_cast<uint64_t>(i) * 7919 + 1;
    wrong += check_one(i) ? 0 : 1;
  }
  std::printf("%d random encodes on GPU and CPU: %s\n", checks, wrong ? "DIFFERENT" : "equal");
  if (rounds == 0) return wrong ? 1 : 0;

  const double rate = copy_rate();
  std::printf("copy: %.2f TB/s\n%-36s %-9s %8s %8s %6s %8s %6s\n", rate / 1e9, "shape", "call", "ms", "limit", "share",
              "cuDNN", "ratio");
  std::FILE* out = json.empty() ? nullptr : std::fopen(json.c_str(), "w");
  if (out) std::fprintf(out, "{\"copy_tb_s\": %.3f, \"rows\": [\n", rate / 1e9);
  bool first_row = true;
  for (const PixelType type : {PixelType::f32, PixelType::f16}) {
    for (const Shape& s : kShapes) {
      const int64_t oh = (s.h + 2 * s.p - s.k) / s.s + 1, ow = (s.w + 2 * s.p - s.k) / s.s + 1;
      const size_t size = bytes_of(type), large = size_t(s.n * s.c * s.h * s.w) * size,
                   small = size_t(s.n * s.c * oh * ow) * size;
      // Sets rotate so that nothing stays in L2.
      const size_t sets = std::max<size_t>(1, (size_t{1} << 30) / (2 * large + small) + 1);
      std::vector<char> noise(large);
      for (size_t i = 0; i < large / size; ++i) {
        const float v = float(pick(-1000, 1000)) * 1e-3f;
        const uint16_t h = bnns::float_to_half(v);
        std::memcpy(&noise[i * size], size == 4 ? static_cast<const void*>(&v) : &h, size);
      }
      std::vector<void*> src(sets), dst(sets), small_in(sets), small_out(sets);
      for (size_t k = 0; k < sets; ++k) {
        CHECK(cudaMalloc(&src[k], large)), CHECK(cudaMalloc(&dst[k], large));
        CHECK(cudaMalloc(&small_in[k], small)), CHECK(cudaMalloc(&small_out[k], small));
        CHECK(cudaMemcpy(src[k], noise.data(), large, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(small_in[k], noise.data(), small, cudaMemcpyHostToDevice));
      }
      PoolEncode e;
      e.x.kernel = e.y.kernel = s.k, e.x.stride = e.y.stride = s.s;
      e.x.first_centre = e.y.first_centre = s.k / 2 - s.p;
      e.images = s.n, e.channels = s.c, e.edge = PoolEdge::clamp;
      e.source.type = type, e.source.width = s.w, e.source.height = s.h, e.source.slices = s.c / 4;
      e.target = e.gradient = e.source;
      e.gradient.width = ow, e.gradient.height = oh, e.gradient_width = ow, e.gradient_height = oh;
      for (const bool backward : {false, true}) {
        for (const PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::l2_norm}) {
          char name[100];
          std::snprintf(name, sizeof name, "%s %lld %lld %lld %lld k%lld s%lld p%lld",
                        type == PixelType::f32 ? "f32" : "f16", (long long)s.n, (long long)s.c, (long long)s.h,
                        (long long)s.w, (long long)s.k, (long long)s.s, (long long)s.p);
          const char* kinds[] = {"max", "avg", "l2"};
          const std::string label = std::string(backward ? "bwd " : "fwd ") + kinds[int(kind)];
          if ((name + (" " + label)).find(filter) == std::string::npos) continue;
          e.kind = kind, e.backward = backward;
          e.edge = kind == PoolKind::l2_norm ? PoolEdge::zero : PoolEdge::clamp;
          size_t set = 0;
          const auto call = [&] {
            const size_t k = set++ % sets;
            e.source.data = src[k];
            if (backward) {
              e.target = e.source, e.target.data = dst[k], e.gradient.data = small_in[k];
              e.width = s.w, e.height = s.h;
            } else {
              e.target = e.gradient, e.target.data = small_out[k], e.width = ow, e.height = oh;
            }
            CHECK(static_cast<cudaError_t>(pool_cuda(e, nullptr)));
          };
          std::vector<double> times;
          std::vector<double> peer_times[2];
          for (int r = 0; r < rounds; ++r) {
            times.push_back(milliseconds(call, 10));
#ifdef BNNS_PEER_CUDNN
            for (int nhwc = 0; nhwc < 2 && kind != PoolKind::l2_norm; ++nhwc) {
              CudnnPool pool(s, oh, ow, kind, type, nhwc != 0);
              size_t at = 0;
              const bool works = pool.good && pool.forward(src[0], small_out[0]) &&
                                 (!backward || pool.backward(small_out[0], small_in[0], src[0], dst[0]));
              if (!works) continue;
              peer_times[nhwc].push_back(milliseconds(
                  [&] {
                    const size_t k = at++ % sets;
                    backward ? pool.backward(small_out[k], small_in[k], src[k], dst[k])
                             : pool.forward(src[k], small_out[k]);
                  },
                  5));
            }
#endif
          }
          const double ms = median(times);
          const double moved =
              backward ? double(large) * (kind == PoolKind::average ? 1 : 2) + double(small) : double(large + small);
          double peer = 0;
          for (const auto& t : peer_times) {
            if (!t.empty() && (peer == 0 || median(t) < peer)) peer = median(t);
          }
          std::printf("%-36s %-9s %8.4f %8.4f %5.0f%% %8.4f %6.2f\n", name, label.c_str(), ms, moved / rate,
                      100 * moved / rate / ms, peer, peer / ms);
          if (out) {
            std::fprintf(
                out,
                "%s  {\"shape\": \"%s\", \"call\": \"%s\", \"image_mb\": %.1f, \"ms\": %.5f, \"limit_ms\": %.5f, "
                "\"share\": %.4f, \"cudnn_ms\": %.5f}",
                first_row ? "" : ",\n", name, label.c_str(), double(large) / 1e6, ms, moved / rate, moved / rate / ms,
                peer);
            first_row = false;
          }
        }
      }
      for (size_t k = 0; k < sets; ++k)
        cudaFree(src[k]), cudaFree(dst[k]), cudaFree(small_in[k]), cudaFree(small_out[k]);
    }
  }
  if (out) std::fprintf(out, "\n]}\n"), std::fclose(out);
  return wrong ? 1 : 0;
}
