#include "tests/process/every_layer.h"

#include "src/core/half.h"

namespace bnns::testing {

namespace {

size_t bytes_of(size_t n, BNNSDataType type) {
  return n * (static_cast<size_t>(type) & 0xff) / 8;
}

}  // namespace

void* Layer::block(size_t bytes) {
  if (place_ == Memory::spare) return memory_.emplace_back(bytes + 8192).data();  // eight times as much
  if (place_ == Memory::heap) return memory_.emplace_back(bytes / sizeof(double) + 8).data();
  return flush_.emplace_back(bytes, place_ == Memory::flush_end ? Guarded<char>::Side::end : Guarded<char>::Side::begin)
      .data();
}

void* Layer::in(size_t n, BNNSDataType type) {
  void* data = block(bytes_of(n, type));
  for (size_t i = 0; i < n; ++i) {
    const float value = static_cast<float>(random_.normal() / 4);
    switch (type) {
      case BNNSDataTypeFloat16:
        static_cast<uint16_t*>(data)[i] = float_to_half(value);
        break;
      case BNNSDataTypeBFloat16:
        static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits(value) >> 16);
        break;
      default:
        static_cast<float*>(data)[i] = value;
    }
  }
  inputs_.push_back({data, n, type});
  return data;
}

void Layer::make_inputs_subnormal() {
  for (const Input& input : inputs_) {
    for (size_t i = 0; i < input.n; ++i) {
      const uint32_t sign = static_cast<uint32_t>(random_.below(2)),
                     bits = 1 + static_cast<uint32_t>(random_.below(0x7ffffe));
      switch (input.type) {
        case BNNSDataTypeFloat16:
          static_cast<uint16_t*>(input.data)[i] = static_cast<uint16_t>(sign << 15 | (bits >> 13));
          break;
        case BNNSDataTypeBFloat16:
          static_cast<uint16_t*>(input.data)[i] = static_cast<uint16_t>(sign << 15 | (bits >> 16));
          break;
        default:
          static_cast<uint32_t*>(input.data)[i] = sign << 31 | bits;
      }
    }
  }
}

void* Layer::out(size_t n, BNNSDataType type) {
  const size_t bytes = bytes_of(n, type);
  void* data = block(bytes);
  std::memset(data, 0x3c, bytes);  // 0.0115 as f32 and bf16, 1.05 as f16: what accumulation may start from
  outputs.push_back({data, bytes});
  return data;
}

uint32_t* Layer::indices(size_t n, size_t below) {
  uint32_t* data = static_cast<uint32_t*>(block(n * sizeof(uint32_t)));
  for (size_t i = 0; i < n; ++i) data[i] = static_cast<uint32_t>(random_.below(below));
  return data;
}

float* Layer::probabilities(size_t n) {
  float* data = static_cast<float*>(block(n * sizeof(float)));
  for (size_t i = 0; i < n; ++i) data[i] = static_cast<float>(random_.uniform(0.05, 0.95));
  return data;
}

std::vector<char> Layer::written() const {
  std::vector<char> all;
  for (const Bytes& b : outputs) all.insert(all.end(), static_cast<char*>(b.data), static_cast<char*>(b.data) + b.size);
  return all;
}

void Layer::restore(const std::vector<char>& bytes) {
  size_t at = 0;
  for (const Bytes& b : outputs) {
    std::memcpy(b.data, bytes.data() + at, b.size);
    at += b.size;
  }
}

void add_plain_calls(Layer& layer, const Plain& p) {
  const void* x = layer.in(p.batch * p.x, p.type);
  void* y = layer.out(p.batch * p.y, p.type);
  if (p.forward) {
    layer.call("forward",
               [=](BNNSFilter f, const FilterOptions*) { return BNNSFilterApplyBatch(f, p.batch, x, p.x, y, p.y); });
  }
  if (!p.backward) return;
  Array dy = vector_descriptor(p.y, layer.in(p.batch * p.y, p.type), p.type);
  Array dx = p.dx;
  if (dx.layout == BNNSDataLayoutVector && dx.size[0] == 0) dx = vector_descriptor(p.x, nullptr, p.type);
  dx.data = layer.out(p.batch * p.x, p.type);
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) {
    Array in_delta = dx, w_delta = p.dw, b_delta = p.db;
    return BNNSFilterApplyBackwardBatch(f, p.batch, x, p.x, &in_delta, p.x, y, p.y, &dy, p.y,
                                        w_delta.data ? &w_delta : nullptr, b_delta.data ? &b_delta : nullptr);
  });
}

}  // namespace bnns::testing
