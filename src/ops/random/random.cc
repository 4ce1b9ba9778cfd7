// The fills that take one word (or two) per element.

#include "src/ops/random/random.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/half.h"
#include "src/core/parallel.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "random";

}  // namespace

// ---- checks --------------------------------------------------------------------------------------------------------

Tensor resolve_fill(const BNNSNDArrayDescriptor* desc) {
  const Tensor t = resolve_with_data(desc, kOp, "desc");
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: desc.layout is OIHW_Pack32; fill another layout and copy", kOp);
  }
  check_distinct(t, kOp, "desc");
  return t;
}

namespace {

Tensor resolve_float_fill(const BNNSNDArrayDescriptor* desc) {
  const Tensor t = resolve_fill(desc);
  if (!is_float(t.type)) {
    fail_invalid("%s: desc.data_type is %s, expected f32, f16 or bf16", kOp, type_name(t.type));
  }
  return t;
}

float largest_finite(BNNSDataType type) {
  return type == BNNSDataTypeFloat32   ? std::numeric_limits<float>::max()
         : type == BNNSDataTypeFloat16 ? half_to_float(0x7BFF)
                                       : bfloat16_to_float(0x7F7F);
}

uint16_t to_16_bits(BNNSDataType type, float value) {
  return type == BNNSDataTypeFloat16 ? float_to_half(value) : float_to_bfloat16(value);
}
float from_16_bits(BNNSDataType type, uint16_t bits) {
  return type == BNNSDataTypeFloat16 ? half_to_float(bits) : bfloat16_to_float(bits);
}
float rounded(BNNSDataType type, float value) {
  return type == BNNSDataTypeFloat32 ? value : from_16_bits(type, to_16_bits(type, value));
}

// The smallest value of the type that is at least v. |v| is at most the type's largest finite value.
float at_least(BNNSDataType type, float v) {
  const float nearest = rounded(type, v);
  if (nearest >= v) return nearest;
  const uint16_t bits = to_16_bits(type, v);  // only 16-bit types round; a step up makes negative magnitudes smaller
  return from_16_bits(type, static_cast<uint16_t>(bits & 0x8000 ? bits - 1 : bits + 1));
}

// The largest value of the type that is below v: the negative of the next value above -v.
float below(BNNSDataType type, float v) {
  if (type == BNNSDataTypeFloat32) return std::nextafter(v, -std::numeric_limits<float>::infinity());
  const float next = at_least(type, -v);
  if (next > -v) return -next;
  const uint16_t bits = to_16_bits(type, next + 0.0f);  // -0 would step the wrong way
  return -from_16_bits(type, static_cast<uint16_t>(bits & 0x8000 ? bits - 1 : bits + 1));
}

// ---- the loop over a tensor ----------------------------------------------------------------------------------------

// Elements per task: 64 KiB of f32 behind 4096 AES blocks. A multiple of kBlock, fixed, so the split follows the shape.
constexpr size_t kTask = 16 * kBlock;

// Calls block(first, count) for all elements, kBlock at a time, over the generator's threads.
template <class Block>
void for_each_block(size_t n, size_t work_per_element, size_t n_threads, const Block& block) {
  const size_t tasks = div_up(n, kTask);
  parallel_for(tasks, threads_for(n_threads, tasks, n * work_per_element), [&](size_t task, size_t) {
    const size_t end = std::min(n, (task + 1) * kTask);
    for (size_t first = task * kTask; first < end; first += kBlock) block(first, std::min(kBlock, end - first));
  });
}

// kernel(words, n, y) makes n floats from n words.
template <class Kernel>
void fill_floats(Generator& generator, const Tensor& t, size_t work_per_element, const Kernel& kernel) {
  const WordStream stream = generator.take(t.count);
  const Elements elements(t);
  for_each_block(t.count, work_per_element, generator.options().n_threads, [&](size_t first, size_t n) {
    uint32_t words[kBlock];
    float buffer[kBlock];
    stream.words(first, n, words);
    float* y = elements.target(t.data, first, buffer);
    kernel(words, n, y);
    elements.write(t.data, first, n, y);
  });
}

}  // namespace

// ---- floats --------------------------------------------------------------------------------------------------------

UniformRule make_uniform_rule(BNNSDataType type, float a, float b) {
  if (!(a <= b))
    fail_invalid("%s: a is %g and b is %g, expected a <= b", kOp, static_cast<double>(a), static_cast<double>(b));
  const float limit = largest_finite(type);
  a = std::clamp(a, -limit, limit) + 0.0f;  // + 0 turns -0 into 0, so that signs of zero do not depend on the ISA
  b = std::clamp(b, -limit, limit) + 0.0f;
  UniformRule rule;
  rule.a = a;
  rule.width = b - a;
  if (std::isinf(rule.width)) {
    rule.scale = 2;
    rule.a = a / 2;
    rule.width = b / 2 - a / 2;
  }
  rule.low = (a == b ? rounded(type, a) : at_least(type, a)) + 0.0f;
  rule.high = (a == b ? rounded(type, a) : below(type, b)) + 0.0f;
  if (rule.low > rule.high) {
    fail_invalid("%s: a is %.9g and b is %.9g, but no %s value lies in [a, b)", kOp, static_cast<double>(a),
                 static_cast<double>(b), type_name(type));
  }
  return rule;
}

void fill_uniform_float(Generator& generator, const BNNSNDArrayDescriptor* desc, float a, float b) {
  const Tensor t = resolve_float_fill(desc);
  const UniformRule rule = make_uniform_rule(t.type, a, b);
  fill_floats(generator, t, sizeof(float),
              [&](const uint32_t* words, size_t n, float* y) { uniform_from_words(rule, words, n, y); });
}

NormalRule make_normal_rule(BNNSDataType type, float mean, float stddev) {
  if (!std::isfinite(mean)) fail_invalid("%s: mean is %g, expected a finite number", kOp, static_cast<double>(mean));
  if (!(stddev >= 0) || std::isinf(stddev)) {
    fail_invalid("%s: stddev is %g, expected a finite number, at least 0", kOp, static_cast<double>(stddev));
  }
  return {static_cast<double>(mean) + 0.0, stddev, largest_finite(type)};
}

void fill_normal_float(Generator& generator, const BNNSNDArrayDescriptor* desc, float mean, float stddev) {
  const Tensor t = resolve_float_fill(desc);
  const NormalRule rule = make_normal_rule(t.type, mean, stddev);
  constexpr size_t kWork = 32;  // a quantile costs as much as moving 32 bytes
  fill_floats(generator, t, kWork,
              [&](const uint32_t* words, size_t n, float* y) { normal_from_words(rule, words, n, y); });
}

// ---- integers ------------------------------------------------------------------------------------------------------

namespace {

__extension__ typedef unsigned __int128 Product;

// a + floor(word range / 2^32), or with 64-bit words (first word low) when the range is above 2^32.
struct IntegerRule {
  uint64_t a = 0, range = 1;
  bool wide() const { return range > (uint64_t{1} << 32); }
};

IntegerRule make_integer_rule(BNNSDataType type, int64_t a, int64_t b) {
  if (a >= b) {
    fail_invalid("%s: a is %lld and b is %lld, expected a < b: b is excluded", kOp, static_cast<long long>(a),
                 static_cast<long long>(b));
  }
  const size_t bits = type_bits(type);
  const int64_t low = is_signed(type) ? -static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) - 1 : 0;
  const int64_t high = is_signed(type) ? -(low + 1)
                       : bits == 64    ? std::numeric_limits<int64_t>::max()
                                       : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  if (a < low || b - 1 > high) {
    fail_invalid("%s: [a, b) is [%lld, %lld), but %s holds %lld to %lld", kOp, static_cast<long long>(a),
                 static_cast<long long>(b), type_name(type), static_cast<long long>(low), static_cast<long long>(high));
  }
  return {static_cast<uint64_t>(a), static_cast<uint64_t>(b) - static_cast<uint64_t>(a)};
}

void integers_from_words(const IntegerRule& rule, const uint32_t* words, size_t n, uint64_t* values) {
  if (!rule.wide()) {
    for (size_t i = 0; i < n; ++i) values[i] = rule.a + (words[i] * rule.range >> 32);
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    const uint64_t word = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
    values[i] = rule.a + static_cast<uint64_t>(static_cast<Product>(word) * rule.range >> 64);
  }
}

// The low bits of each value: right for signed and unsigned types, since the values fit the type.
template <class T>
void store_integers(const Tensor& t, const Elements& elements, size_t first, size_t n, const uint64_t* values) {
  T* y = static_cast<T*>(t.data);
  if (t.dense) {
    for (size_t i = 0; i < n; ++i) y[first + i] = static_cast<T>(values[i]);
  } else {
    for (size_t i = 0; i < n; ++i) y[elements.offset(first + i)] = static_cast<T>(values[i]);
  }
}

}  // namespace

void fill_uniform_int(Generator& generator, const BNNSNDArrayDescriptor* desc, int64_t a, int64_t b) {
  const Tensor t = resolve_fill(desc);
  if (!is_integer(t.type)) {
    fail_invalid("%s: desc.data_type is %s, expected an integer type", kOp, type_name(t.type));
  }
  const IntegerRule rule = make_integer_rule(t.type, a, b);
  const size_t per_element = rule.wide() ? 2 : 1;
  const WordStream stream = generator.take(checked_mul(t.count, per_element, "random: desc.size"));
  const Elements elements(t);
  // Elements narrower than a byte share bytes, which two tasks must not write at once: one thread.
  const size_t n_threads = type_bytes(t.type) == 0 ? 1 : generator.options().n_threads;
  for_each_block(t.count, 4 * per_element, n_threads, [&](size_t first, size_t n) {
    uint32_t words[2 * kBlock];
    uint64_t values[kBlock];
    stream.words(first * per_element, n * per_element, words);
    integers_from_words(rule, words, n, values);
    switch (type_bytes(t.type)) {
      case 1:
        return store_integers<uint8_t>(t, elements, first, n, values);
      case 2:
        return store_integers<uint16_t>(t, elements, first, n, values);
      case 4:
        return store_integers<uint32_t>(t, elements, first, n, values);
      case 8:
        return store_integers<uint64_t>(t, elements, first, n, values);
      default:
        for (size_t i = 0; i < n; ++i) {
          store_saturated(t, t.data, elements.offset(first + i), static_cast<int64_t>(values[i]));
        }
    }
  });
}

}  // namespace bnns
