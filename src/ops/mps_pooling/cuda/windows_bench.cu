// Random windows on a GPU: kernels 1 to 16, strides 1 to 16, dilation 1 to 3, both edges, f32 and f16, images of 64 MB
// and more; forward and gradient of max and average. Each is checked against the CPU device on two slices of an image,
// then timed. scripts/gpu-pooling-windows runs it beside PyTorch.
//   mps_pooling_windows_bench --json=file [--count=N] [--seed=S]

#include "src/ops/mps_pooling/cuda/bench.cuh"
#include "src/ops/mps_pooling/implementations.h"

namespace {

struct Window {
  PixelType type;
  PoolEdge edge;
  int64_t n, c, h, w, kernel, stride, dilation, pad;
};

// Strides up to the kernel are drawn more often than gaps, and every third window is small.
Window draw(PixelType type) {
  Window v;
  v.type = type, v.edge = static_cast<PoolEdge>(pick(0, 1));
  v.kernel = pick(0, 2) == 0 ? pick(1, 5) : pick(1, 16);
  v.stride = pick(0, 2) == 0 ? 1 : pick(0, 1) ? pick(1, v.kernel) : pick(1, 16);
  v.dilation = pick(0, 2) == 0 ? pick(2, 3) : 1;
  v.pad = pick(0, v.kernel / 2);
  constexpr int64_t kSizes[][4] = {{64, 64, 112, 112}, {128, 128, 56, 56}, {16, 64, 224, 224}, {64, 96, 100, 75}};
  const int64_t* size = kSizes[pick(0, 3)];
  v.n = size[0] * (v.type == PixelType::f16 ? 2 : 1), v.c = size[1], v.h = size[2], v.w = size[3];
  return v;
}

PoolEncode encode_of(const Window& v, PoolKind kind, bool backward) {
  PoolEncode e;
  e.kind = kind, e.edge = v.edge, e.backward = backward;
  for (PoolAxis* a : {&e.x, &e.y}) {
    a->kernel = v.kernel, a->stride = v.stride, a->dilation = kind == PoolKind::max ? v.dilation : 1;
    a->first_centre = a->before() - v.pad;
  }
  e.images = v.n, e.channels = v.c;
  e.gradient_width = (v.w + 2 * v.pad - e.x.extent()) / v.stride + 1;
  e.gradient_height = (v.h + 2 * v.pad - e.y.extent()) / v.stride + 1;
  e.width = backward ? v.w : e.gradient_width, e.height = backward ? v.h : e.gradient_height;
  return e;
}

// 0: equal bits, else the largest difference; -1 for a wrong result.
double difference(const Window& v, PoolKind kind, bool backward) {
  PoolEncode e = encode_of(v, kind, backward);
  e.images = 1, e.channels = 8;
  Image source(v.type, 1, 8, v.h, v.w, false);
  Image small(v.type, 1, 8, e.gradient_height, e.gradient_width, false);
  Image target(v.type, 1, 8, e.height, e.width, false);
  PoolEncode d = e;
  e.source = source.host, e.target = target.host, e.gradient = small.host;
  d.source = source.device, d.target = target.device, d.gradient = small.device;
  run_plain(e, 16);
  CHECK(static_cast<cudaError_t>(pool_cuda(d, nullptr)));
  std::vector<char> got(target.bytes);
  CHECK(cudaMemcpy(got.data(), target.device.data, target.bytes, cudaMemcpyDeviceToHost));
  if (std::memcmp(got.data(), target.memory.data(), target.bytes) == 0) return 0;
  double most = 0;
  for (size_t i = 0; i < target.count; ++i) {
    const double want = value_at(target.memory, v.type, i), have = value_at(got, v.type, i);
    if (!(std::fabs(want - have) <= 1e-3 * (1 + std::fabs(want)))) return -1;
    most = std::max(most, std::fabs(want - have));
  }
  return most;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 40;
  uint64_t seed = 1;
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.rfind("--count=", 0) == 0) count = std::atoi(text.c_str() + 8);
    if (text.rfind("--seed=", 0) == 0) seed = std::strtoull(text.c_str() + 7, nullptr, 10);
    if (text.rfind("--json=", 0) == 0) json = text.substr(7);
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device here: nothing to measure\n");
    return 0;
  }
  const double rate = copy_rate();
  // Sets rotate so that nothing stays in L2; the largest image of draw() is 16 x 64 x 224 x 224.
  constexpr size_t kBytes = size_t{64} * 128 * 224 * 224, kSets = 3;
  void *source[kSets], *target[kSets], *small[kSets];
  state = seed;
  std::vector<char> noise[2];
  for (const PixelType type : {PixelType::f32, PixelType::f16}) {
    std::vector<char>& bytes = noise[type == PixelType::f16];
    bytes.resize(kBytes);
    for (size_t i = 0; i < kBytes / bytes_of(type); ++i) {
      const float value = static_cast<float>(static_cast<int64_t>(next_random() >> 44)) * 0x1p-20f - 0.5f;
      const uint16_t half = bnns::float_to_half(value);
      std::memcpy(&bytes[i * bytes_of(type)], type == PixelType::f32 ? static_cast<const void*>(&value) : &half,
                  bytes_of(type));
    }
  }
  for (size_t k = 0; k < kSets; ++k) {
    CHECK(cudaMalloc(&source[k], kBytes)), CHECK(cudaMalloc(&target[k], kBytes)), CHECK(cudaMalloc(&small[k], kBytes));
  }
  std::FILE* out = std::fopen(json.c_str(), "w");
  if (!out) return 2;
  std::fprintf(out, "{\"copy_tb_s\": %.3f, \"rows\": [", rate / 1e9);
  bool wrong = false, first = true;
  for (int i = 0; i < count; ++i) {
    state = seed * 1000003 + static_cast<uint64_t>(i);
    const PixelType type = i < count / 2 ? PixelType::f32 : PixelType::f16;
    Window v = draw(type);
    PoolEncode any = encode_of(v, PoolKind::max, false);
    while (any.gradient_width < 1 || any.gradient_height < 1) v = draw(type), any = encode_of(v, PoolKind::max, false);
    const std::vector<char>& bytes = noise[v.type == PixelType::f16];
    for (size_t k = 0; k < kSets && (i == 0 || i == count / 2); ++k) {
      CHECK(cudaMemcpy(source[k], bytes.data(), kBytes, cudaMemcpyHostToDevice));
      CHECK(cudaMemcpy(small[k], bytes.data(), kBytes, cudaMemcpyHostToDevice));
    }
    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
      for (const bool backward : {false, true}) {
        const double off = difference(v, kind, backward);
        wrong = wrong || off < 0 || (kind == PoolKind::max && off != 0);
        PoolEncode e = encode_of(v, kind, backward);
        const auto view = [&](void* data, int64_t h, int64_t w) { return ImageView{data, v.type, w, h, v.c / 4, 4}; };
        size_t set = 0;
        const auto call = [&] {
          const size_t k = set++ % kSets;
          e.source = view(source[k], v.h, v.w), e.gradient = view(small[k], e.gradient_height, e.gradient_width);
          e.target = view(target[k], e.height, e.width);
          CHECK(static_cast<cudaError_t>(pool_cuda(e, nullptr)));
        };
        call();
        const std::string name = find(kOnCuda, e).name;
        std::vector<double> times;
        for (int r = 0; r < 3; ++r) times.push_back(milliseconds(call, 6));
        const double large = double(v.n * v.c * v.h * v.w) * double(bytes_of(v.type));
        const double less = double(v.n * v.c * e.gradient_height * e.gradient_width) * double(bytes_of(v.type));
        const double moved = backward && kind == PoolKind::max ? 2 * large + less : large + less;
        std::fprintf(
            out,
            "%s\n{\"type\": \"%s\", \"n\": %lld, \"c\": %lld, \"h\": %lld, \"w\": %lld, \"k\": %lld, \"s\": %lld, "
            "\"d\": %lld, \"p\": %lld, \"edge\": \"%s\", \"kind\": \"%s\", \"call\": \"%s\", \"off\": %g, "
            "\"name\": \"%s\", \"limit\": %.4f, \"ms\": %.5f}",
            first ? "" : ",", v.type == PixelType::f32 ? "f32" : "f16", (long long)v.n, (long long)v.c, (long long)v.h,
            (long long)v.w, (long long)v.kernel, (long long)v.stride, (long long)e.x.dilation, (long long)v.pad,
            v.edge == PoolEdge::clamp ? "clamp" : "zero", kind == PoolKind::max ? "max" : "avg",
            backward ? "bwd" : "fwd", off, name.c_str(), moved / rate, median(times));
        first = false;
      }
    }
  }
  std::fprintf(out, "\n]}\n"), std::fclose(out);
  std::printf("%d windows: %s\n", count, wrong ? "DIFFERENT from the CPU device" : "equal to the CPU device");
  return wrong ? 1 : 0;
}
