#include "src/mpi/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "src/simd/convert.h"

namespace bnns::mpi {
namespace {

constexpr size_t kBlock = 1024;  // f32 values on the stack: they stay in L1

size_t bytes_of(BNNSDataType type) {
  return type == BNNSDataTypeFloat32 ? 4 : 2;
}

void load(BNNSDataType type, const void* x, float* values, size_t n) {
  if (type == BNNSDataTypeFloat32) {
    std::memcpy(values, x, n * sizeof(float));
  } else if (type == BNNSDataTypeFloat16) {
    half_to_float(static_cast<const uint16_t*>(x), values, n);
  } else {
    bfloat16_to_float(static_cast<const uint16_t*>(x), values, n);
  }
}

void store(BNNSDataType type, const float* values, void* out, size_t n) {
  if (type == BNNSDataTypeFloat32) {
    std::memcpy(out, values, n * sizeof(float));
  } else if (type == BNNSDataTypeFloat16) {
    float_to_half(values, static_cast<uint16_t*>(out), n);
  } else {
    float_to_bfloat16(values, static_cast<uint16_t*>(out), n);
  }
}

// Loops that the compiler vectorizes.
void combine_floats(Combine how, const float* a, const float* b, float* out, size_t n) {
  if (how == Combine::sum) {
    for (size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];
  }
}

const char* at(const void* base, BNNSDataType type, size_t i) {
  return static_cast<const char*>(base) + i * bytes_of(type);
}
char* at(void* base, BNNSDataType type, size_t i) {
  return static_cast<char*>(base) + i * bytes_of(type);
}

}  // namespace

void combine(WireType wire, Combine how, const void* a, const void* b, void* out, size_t n) noexcept {
  if (wire.type == BNNSDataTypeFloat32) {
    return combine_floats(how, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(out), n);
  }
  float left[kBlock], right[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t m = std::min(kBlock, n - first);
    load(wire.type, at(a, wire.type, first), left, m);
    load(wire.type, at(b, wire.type, first), right, m);
    combine_floats(how, left, right, left, m);
    store(wire.type, left, at(out, wire.type, first), m);
  }
}

void add_leaf(WireType wire, Combine how, BNNSDataType type, const void* x, size_t n, void* const* levels,
              size_t shard) noexcept {
  const auto completed = static_cast<size_t>(std::countr_one(shard));
  if (completed == 0 && type == wire.type) {
    std::memcpy(levels[0], x, n * wire.bytes());
    return;
  }
  float sum[kBlock];
  alignas(16) unsigned char node[kBlock * sizeof(float)];  // the same, as it would travel
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t m = std::min(kBlock, n - first);
    load(type, at(x, type, first), sum, m);
    store(wire.type, sum, node, m);
    for (size_t l = 0; l < completed; ++l) combine(wire, how, at(levels[l], wire.type, first), node, node, m);
    std::memcpy(at(levels[completed], wire.type, first), node, m * wire.bytes());
  }
}

void write_result(WireType wire, const void* sum, float scale, BNNSDataType type, void* out, size_t n) noexcept {
  float values[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t m = std::min(kBlock, n - first);
    load(wire.type, at(sum, wire.type, first), values, m);
    for (size_t i = 0; i < m; ++i) values[i] *= scale;
    store(type, values, at(out, type, first), m);
  }
}

}  // namespace bnns::mpi
