// What every operator's test uses: each ISA, several thread counts, seeded data, guard pages, poison.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/isa.h"
#include "src/core/parallel.h"

namespace bnns::testing {

// Runs body() once for every instruction set of this machine; failures name the set.
template <class Body>
void for_each_isa(Body&& body) {
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) {
    const Isa isa = static_cast<Isa>(i);
    SCOPED_TRACE(std::string("isa ") + isa_name(isa));
    set_max_isa(isa);
    body();
  }
  set_max_isa(best_isa());
}

inline constexpr size_t kThreadCounts[] = {1, 2, 3, 7};

// SplitMix64: small, seeded, the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform(double low = 0, double high = 1) { return low + (high - low) * double(next() >> 11) * 0x1p-53; }
  size_t below(size_t n) { return next() % n; }
  int integer(int low, int high) { return low + int(below(size_t(high - low + 1))); }
  double normal() { return std::sqrt(-2 * std::log(uniform(1e-300, 1))) * std::cos(6.283185307179586 * uniform()); }
  // Small integers: every partial sum is exact in f32, so a kernel must equal its reference bit for bit.
  std::vector<float> integers(size_t n, int bound = 4) {
    std::vector<float> v(n);
    for (float& x : v) x = float(integer(-bound, bound));
    return v;
  }
  std::vector<float> normals(size_t n, double scale = 1) {
    std::vector<float> v(n);
    for (float& x : v) x = float(scale * normal());
    return v;
  }
  // A shuffled grid without repeats: neighbours differ by `step`, so no input sits on or near a kink or a tie.
  std::vector<double> spread(size_t n, double step) {
    std::vector<double> v(n);
    for (size_t i = 0; i < n; ++i) v[i] = (double(i) - double(n) / 2 + 0.3) * step;
    for (size_t i = n; i > 1; --i) std::swap(v[i - 1], v[below(i)]);
    return v;
  }

 private:
  uint64_t state_;
};

inline constexpr uint32_t kPoisonBits = 0x7fc0dead;  // a quiet NaN that no arithmetic produces
inline float poison() {
  return std::bit_cast<float>(kPoisonBits);
}
inline bool is_poison(float x) {
  return std::bit_cast<uint32_t>(x) == kPoisonBits;
}

// n elements that end (or begin) exactly at a page that faults: one byte too far is a crash, on every ISA.
template <class T>
class Guarded {
 public:
  enum class Side { end, begin };
  explicit Guarded(size_t n, Side side = Side::end) : n_(n) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), bytes = (n * sizeof(T) + page - 1) / page * page;
    length_ = bytes + 2 * page;
    memory_ = static_cast<char*>(mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    if (bytes) mprotect(memory_ + page, bytes, PROT_READ | PROT_WRITE);
    data_ = reinterpret_cast<T*>(memory_ + page + (side == Side::end ? bytes - n * sizeof(T) : 0));
  }
  Guarded(const std::vector<T>& values, Side side = Side::end) : Guarded(values.size(), side) {
    if (n_) std::memcpy(data_, values.data(), n_ * sizeof(T));
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(memory_, length_); }
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  size_t size() const { return n_; }

 private:
  char* memory_;
  size_t length_, n_;
  T* data_;
};

inline uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

// Equal bit for bit (so NaN equals the same NaN); prints the first difference.
inline ::testing::AssertionResult same_bits(const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (bits(a[i]) != bits(b[i])) {
      return ::testing::AssertionFailure() << "element " << i << " of " << n << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}
inline ::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " elements";
  return same_bits(a.data(), b.data(), a.size());
}

// |got - want| <= bound(i) for every element; NaN only where the reference has NaN. Prints first and largest miss.
template <class Got, class Want, class Bound>
::testing::AssertionResult within(const Got& got, const Want& want, size_t n, Bound&& bound) {
  size_t first = n, worst = n;
  double worst_excess = 0;
  for (size_t i = 0; i < n; ++i) {
    const double g = double(got[i]), w = double(want[i]), limit = bound(i);
    const bool both_nan = std::isnan(g) && std::isnan(w);
    if (both_nan || g == w || std::fabs(g - w) <= limit) continue;
    const double excess = std::isnan(g) || std::isnan(w) ? INFINITY : std::fabs(g - w) / (limit > 0 ? limit : 1e-300);
    if (first == n) first = i;
    if (excess >= worst_excess) worst_excess = excess, worst = i;
  }
  if (first == n) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "first miss at " << first << ": got " << double(got[first]) << ", want "
                                       << double(want[first]) << ", bound " << bound(first) << "; worst at " << worst
                                       << ": got " << double(got[worst]) << ", want " << double(want[worst]);
}

// Central differences of scalar f(x) for every x[i], all in double: relative to the largest gradient.
template <class F>
std::vector<double> central_differences(std::vector<double> x, F&& f, double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i], h = step * std::max(1.0, std::fabs(at));
    x[i] = at + h;
    const double above = f(x);
    x[i] = at - h;
    const double below = f(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * h);
  }
  return gradient;
}
inline double gradient_error(const std::vector<double>& analytic, const std::vector<double>& numeric) {
  double error = 0, largest = 1e-30;
  for (size_t i = 0; i < analytic.size(); ++i) {
    error = std::max(error, std::fabs(analytic[i] - numeric[i]));
    largest = std::max(largest, std::fabs(analytic[i]));
  }
  return error / largest;
}

// Descriptors.
inline BNNSNDArrayDescriptor vector_descriptor(size_t n, void* data, BNNSDataType type = BNNSDataTypeFloat32) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = data;
  d.data_type = type;
  return d;
}
inline BNNSNDArrayDescriptor descriptor(BNNSDataLayout layout, std::vector<size_t> size, void* data,
                                        BNNSDataType type = BNNSDataTypeFloat32) {
  BNNSNDArrayDescriptor d = vector_descriptor(0, data, type);
  d.layout = layout;
  for (size_t k = 0; k < size.size(); ++k) d.size[k] = size[k];
  return d;
}

// A refused call: the failure value came back and the reason mentions every word.
inline ::testing::AssertionResult refused_because(std::initializer_list<const char*> words) {
  const std::string reason = BNNSExtLastError();
  for (const char* word : words) {
    if (reason.find(word) == std::string::npos) {
      return ::testing::AssertionFailure() << "the reason does not mention \"" << word << "\": " << reason;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace bnns::testing
