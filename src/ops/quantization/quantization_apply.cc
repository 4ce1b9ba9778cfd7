// The walk over a batch. Elements are numbered through the batch in memory order: element i is element i mod count of
// sample i / count. A block is cut where source, target or parameters stop being regular; where that would make blocks
// too short for the kernel, the side in question goes through a buffer in L1 instead.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/ops/quantization/quantization.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

constexpr const char* kOp = "quantization";
constexpr size_t kTaskElements = 16 * 1024;
constexpr size_t kShort = 32;  // two vectors of AVX-512: blocks below this cost more than a pass through a buffer

bool in_kernel(BNNSDataType type) {
  return type_bytes(type) <= 4;
}

// The samples of one operand, or (batch = false) f32 values that stand for elements from `origin` on.
struct Side {
  const Elements* elements;
  BNNSDataType type;
  char* base;
  size_t stride, count, run;
  bool joined;  // all samples lie next to each other
  size_t origin = 0;

  Side(const Elements& sample, const Tensor& t, size_t sample_run, const void* data, size_t batch_stride)
      : elements(&sample),
        type(t.type),
        base(static_cast<char*>(const_cast<void*>(data))),
        stride(batch_stride),
        count(t.count),
        run(sample_run),
        joined(run == count && stride == count) {}
  Side(const float* values, size_t first)
      : elements(nullptr),
        type(BNNSDataTypeFloat32),
        base(reinterpret_cast<char*>(const_cast<float*>(values))),
        stride(0),
        count(0),
        run(0),
        joined(true),
        origin(first) {}

  // How many elements from i on lie next to each other, and where.
  size_t stretch(size_t i) const { return joined ? SIZE_MAX : run - i % run; }
  void* address(size_t i) const {
    const size_t offset = joined ? i - origin : i / count * stride + elements->offset(i % count);
    return base + offset * type_bytes(type);
  }
  void* sample(size_t i) const { return base + i / count * stride * type_bytes(type); }
};

// Scale and bias of a block.
class BlockParameters {
 public:
  // `length` elements will be asked for: where scale and bias repeat soon, a pattern is written out once.
  BlockParameters(const QuantizationProblem& problem, const QuantizationParameters& parameters, size_t length)
      : p_(problem), scale_(parameters.scale(), 1), bias_(parameters.bias(), 0) {
    const size_t period = p_.inner * p_.entries;
    if (p_.entries == 1 || p_.inner >= kShort || period > kBlock || length < 4 * kBlock) return;
    period_ = period;
    per_element_ = true;
    scale_.repeat(0, 0, p_.inner, p_.entries, period + kBlock);
    bias_.repeat(0, 0, p_.inner, p_.entries, period + kBlock);
  }

  // Prepares elements [i, i + n) and returns how many of them it did: all, or at least kShort.
  size_t prepare(size_t i, size_t n) {
    if (period_ != 0) {
      scale_.values = scale_.buffer + i % period_;
      bias_.values = bias_.buffer + i % period_;
      return n;
    }
    if (p_.inner == 0 || p_.entries == 1) return constant(0, n);
    const size_t entry = i / p_.inner % p_.entries;
    const size_t left = p_.inner == 1 ? p_.entries - entry : p_.inner - i % p_.inner;
    if (left < n && left < kShort) {
      per_element_ = true;
      scale_.repeat(entry, i % p_.inner, p_.inner, p_.entries, n);
      bias_.repeat(entry, i % p_.inner, p_.inner, p_.entries, n);
      return n;
    }
    n = std::min(n, left);
    if (p_.inner != 1) return constant(entry, n);
    per_element_ = true;
    scale_.read(entry, n);
    bias_.read(entry, n);
    return n;
  }

  bool per_element() const { return per_element_; }
  const float* scale() const { return scale_.values; }
  const float* bias() const { return bias_.values; }

 private:
  struct Vector {
    const Tensor& tensor;
    Elements elements;
    float missing;  // every entry where no data are there
    const float* values = nullptr;
    size_t held = SIZE_MAX;  // the entry that buffer[0] holds for constant()
    float buffer[2 * kBlock];

    Vector(const Tensor& t, float absent) : tensor(t), missing(absent) {
      if (t.data) elements = Elements(t);
    }
    void constant(size_t entry) {
      if (held != entry) buffer[0] = tensor.data ? *elements.read(tensor.data, entry, 1, buffer) : missing;
      held = entry;
      values = buffer;
    }
    void read(size_t entry, size_t n) {
      held = SIZE_MAX;
      if (!tensor.data) std::fill_n(buffer, n, missing);
      values = tensor.data ? elements.read(tensor.data, entry, n, buffer) : buffer;
    }
    // n elements, the first of which is number `at` of the `inner` that share `entry`.
    void repeat(size_t entry, size_t at, size_t inner, size_t entries, size_t n) {
      if (!tensor.data) return read(entry, n);
      held = SIZE_MAX;
      values = buffer;
      for (size_t done = 0; done < n;) {
        float one;
        const float value = *elements.read(tensor.data, entry, 1, &one);  // a pointer into a dense f32 vector
        const size_t end = std::min(n, done + inner - at);
        while (done < end) buffer[done++] = value;
        at = 0;
        if (++entry == entries) entry = 0;
      }
    }
  };

  size_t constant(size_t entry, size_t n) {
    per_element_ = false;
    scale_.constant(entry);
    bias_.constant(entry);
    return n;
  }

  const QuantizationProblem& p_;
  Vector scale_, bias_;
  bool per_element_ = false;
  size_t period_ = 0;  // of the pattern in both buffers; 0: none
};

// Elements [i, end) from x to y.
void walk(const QuantizationProblem& p, const QuantizationParameters& values, const Side& x, const Side& y, size_t i,
          size_t end) noexcept {
  BlockParameters parameters(p, values, end - i);
  float x_buffer[kBlock], y_buffer[kBlock];
  const bool one_is_f32 = x.type == BNNSDataTypeFloat32 || y.type == BNNSDataTypeFloat32;
  const bool through = x.joined && y.joined && one_is_f32 && in_kernel(x.type) && in_kernel(y.type);
  for (size_t n; i < end; i += n) {
    n = std::min(end - i, kBlock);
    if (!through) n = std::min(n, p.y.count - i % p.y.count);  // Elements know one sample
    const auto direct = [&](const Side& side) {
      const size_t stretch = side.stretch(i);
      if (!in_kernel(side.type) || (stretch < n && stretch < kShort)) return false;
      n = std::min(n, stretch);
      return true;
    };
    const bool to_y = direct(y), from_x = direct(x) && (one_is_f32 || !to_y);
    n = parameters.prepare(i, n);
    QuantizationBlock block{p.dequantize,
                            parameters.per_element(),
                            x.type,
                            y.type,
                            parameters.scale(),
                            parameters.bias(),
                            nullptr,
                            nullptr,
                            n};
    if (from_x) {
      block.x = x.address(i);
    } else {
      block.x = x.elements->read(x.sample(i), i % x.count, n, x_buffer);
      block.x_type = BNNSDataTypeFloat32;
    }
    block.y = to_y ? y.address(i) : y_buffer;
    if (!to_y) block.y_type = BNNSDataTypeFloat32;
    quantize_block(block);
    if (!to_y) y.elements->write(y.sample(i), i % y.count, n, y_buffer);
  }
}

}  // namespace

void quantize_batch(const QuantizationProblem& p, const QuantizationParameters& parameters, size_t batch,
                    const void* in, size_t in_stride, void* out, size_t out_stride, size_t n_threads) {
  if (batch == 0) return;
  check_data(in, p.x.type, kOp, "i_desc", ".data");
  check_data(out, p.y.type, kOp, "o_desc", ".data");
  in_stride = input_batch_stride(in_stride, batch, p.x, kOp, "input_stride");
  out_stride = output_batch_stride(out_stride, batch, p.y, kOp, "output_stride");
  const size_t total = checked_mul(batch, p.x.count, kOp);
  check_in_place_or_apart({p.x, in, in_stride, "i_desc.data"}, {p.y, out, out_stride, "o_desc.data"}, batch, kOp);
  check_quantization_call(p, parameters, batch, out, out_stride);
  const Side x(p.x_elements, p.x, p.x_run, in, batch == 1 ? p.x.count : in_stride);
  const Side y(p.y_elements, p.y, p.y_run, out, batch == 1 ? p.y.count : out_stride);
  const size_t tasks = div_up(total, kTaskElements), bytes = type_bytes(p.x.type) + type_bytes(p.y.type);
  parallel_for(tasks, threads_for(n_threads, tasks, total * bytes), [&](size_t task, size_t) {
    walk(p, parameters, x, y, task * kTaskElements, std::min(total, (task + 1) * kTaskElements));
  });
}

void quantize_run(const QuantizationProblem& p, const QuantizationParameters& parameters, size_t n, size_t first,
                  const float* values, size_t count, void* out, size_t out_stride) noexcept {
  const size_t i = n * p.y.count + first;
  walk(p, parameters, Side(values, i), Side(p.y_elements, p.y, p.y_run, out, out_stride), i, i + count);
}

}  // namespace bnns
