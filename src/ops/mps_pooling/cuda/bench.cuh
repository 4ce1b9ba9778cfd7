// What the benchmarks on a GPU share: seeded images on both devices, and times.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "src/core/half.h"
#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/window.h"

namespace {

using namespace bnns::mps;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

uint64_t state = 1;
uint64_t next_random() {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
int64_t pick(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next_random() % static_cast<uint64_t>(high - low + 1));
}

// An image in host memory and on the device.
struct Image {
  ImageView host, device;
  size_t bytes = 0, count = 0;
  std::vector<char> memory;

  Image(PixelType type, int64_t images, int64_t channels, int64_t height, int64_t width, bool integers) {
    host.type = type, host.width = width, host.height = height, host.slices = (channels + 3) / 4;
    host.lanes = channels == 1 ? 1 : channels == 2 ? 2 : 4;
    count = static_cast<size_t>(images * host.slices * height * width * host.lanes);
    bytes = count * bytes_of(type);
    memory.resize(bytes);
    for (size_t i = 0; i < count; ++i) {
      const float value =
          integers ? static_cast<float>(pick(-4, 4)) : static_cast<float>(pick(-1000000, 1000000)) * 1e-6f;
      if (type == PixelType::f32) std::memcpy(&memory[4 * i], &value, 4);
      if (type == PixelType::unorm8) memory[i] = static_cast<char>(pick(0, 255));
      const uint16_t half = type == PixelType::f16 ? bnns::float_to_half(value) : static_cast<uint16_t>(pick(0, 65535));
      if (bytes_of(type) == 2) std::memcpy(&memory[2 * i], &half, 2);
    }
    host.data = memory.data();
    device = host;
    CHECK(cudaMalloc(&device.data, std::max<size_t>(bytes, 16)));
    CHECK(cudaMemcpy(device.data, memory.data(), bytes, cudaMemcpyHostToDevice));
  }
  Image(const Image&) = delete;
  ~Image() { cudaFree(device.data); }
};

float value_at(const std::vector<char>& m, PixelType type, size_t i) {
  if (type == PixelType::f32) {
    float v;
    std::memcpy(&v, &m[4 * i], 4);
    return v;
  }
  if (type == PixelType::unorm8) return static_cast<unsigned char>(m[i]);
  uint16_t h;
  std::memcpy(&h, &m[2 * i], 2);
  return type == PixelType::f16 ? bnns::half_to_float(h) : static_cast<float>(h);
}

// ---- time -----------------------------------------------------------------------------------------------------------

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double milliseconds(const std::function<void()>& call, int repeats) {
  static cudaEvent_t start = nullptr, stop = nullptr;
  if (!start) CHECK(cudaEventCreate(&start)), CHECK(cudaEventCreate(&stop));
  call();
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < repeats; ++i) call();
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  return double(ms) / repeats;
}

double copy_rate() {  // bytes read and written per ms
  const size_t bytes = size_t{1} << 30;
  void *a, *b;
  CHECK(cudaMalloc(&a, bytes)), CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMemset(a, 1, bytes));
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    times.push_back(milliseconds([&] { CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice)); }, 5));
  }
  cudaFree(a), cudaFree(b);
  return 2.0 * double(bytes) / median(times);
}

}  // namespace
