// Bias, activation and stores of finished values, for every type and stride.

#include "src/ops/convolution/common/target.h"

#include <algorithm>
#include <cstring>

#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/source.h"
#include "src/simd/convert.h"
#include "src/tensor/elements.h"

namespace bnns {

using Narrow = void (*)(const float*, uint16_t*, size_t) noexcept;

void finish_values(const ImageTarget& target, size_t channel, float* values, size_t count) {
  if (target.bias) add_constant(values, target.bias[channel], count);
  if (!target.activation.is_identity()) activation_forward(target.activation, values, values, count);
}

void store_block(const ImageTarget& target, const PatchAxis& y, const PatchAxis& x, const PixelBlock& block,
                 size_t channel, const float* values) {
  for (size_t n = block.n0; n < block.n1; ++n) {
    for (size_t u = block.u0; u < block.u1; ++u, values += block.width()) {
      store_run(target, n, channel, y.target_first + u * y.target_step, x.target_first + block.v0 * x.target_step,
                x.target_step, values, block.width());
    }
  }
}

void store_run(const ImageTarget& target, size_t sample, size_t channel, size_t row, size_t first, size_t step,
               const float* values, size_t count) {
  const Tensor& t = *target.tensor;
  const size_t offset = sample * target.batch_stride + channel * t.stride[2] + row * t.stride[1] + first * t.stride[0];
  if (t.type == BNNSDataTypeFloat32) {
    float* to = static_cast<float*>(target.data) + offset;
    const size_t stride = step * t.stride[0];
    if (stride == 1) {
      if (target.accumulate) return add_values(values, to, count);
      std::memcpy(to, values, count * sizeof(float));
      return;
    }
    if (stride == 2) return store_every_second(values, count, target.accumulate, to);
    for (size_t i = 0; i < count; ++i) to[i * stride] = target.accumulate ? to[i * stride] + values[i] : values[i];
    return;
  }
  const auto narrow = t.type == BNNSDataTypeFloat16    ? static_cast<Narrow>(float_to_half)
                      : t.type == BNNSDataTypeBFloat16 ? static_cast<Narrow>(float_to_bfloat16)
                                                       : nullptr;
  if (narrow && !target.accumulate) {
    uint16_t* to = static_cast<uint16_t*>(target.data) + offset;
    const size_t stride = step * t.stride[0];
    if (stride == 1) return narrow(values, to, count);
    uint16_t halves[64];
    for (size_t i = 0; i < count; i += 64) {
      const size_t part = std::min<size_t>(64, count - i);
      narrow(values + i, halves, part);
      for (size_t j = 0; j < part; ++j, to += stride) *to = halves[j];
    }
    return;
  }
  const Elements elements(t);
  void* base = element_at(target.data, t.type, sample * target.batch_stride);
  const size_t index = (channel * t.size[1] + row) * t.size[0] + first;
  for (size_t i = 0; i < count; ++i) {
    if (target.accumulate) {
      elements.accumulate(base, index + i * step, 1, values + i);
    } else {
      elements.write(base, index + i * step, 1, values + i);
    }
  }
}

}  // namespace bnns
