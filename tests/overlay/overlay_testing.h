// What the tests of the C++ overlay share: data, comparison to the bit, refusals, and filters made by hand.
#pragma once

#include <gtest/gtest.h>

#include <bnns/bnns.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace overlay {

using namespace bnns;  // NOLINT: what a program using the overlay does

inline constexpr std::size_t kBatch = 3;

// The same numbers for the same seed, spread over (-1, 1) without repeats that matter.
inline std::vector<float> numbers(std::size_t n, unsigned seed, float low = -1, float high = 1) {
  std::vector<float> v(n);
  unsigned state = seed * 2654435761u + 12345u;
  for (float& x : v) {
    state = state * 1664525u + 1013904223u;
    x = low + (high - low) * (static_cast<float>(state >> 8) + 0.5f) * 0x1p-24f;
  }
  return v;
}
inline NDArray data(const Shape& shape, unsigned seed, std::size_t batch = kBatch, float low = -1, float high = 1) {
  return NDArray::from(numbers(shape.batchStride() * batch, seed, low, high), shape, batch);
}
// An output that holds numbers no call writes.
inline NDArray output(const Shape& shape, std::size_t batch = kBatch) {
  return NDArray::repeating(-77.25f, shape, batch);
}

inline ::testing::AssertionResult same(const NDArray& a, const NDArray& b) {
  const auto x = a.span<float>(), y = b.span<float>();
  if (x.size() != y.size()) return ::testing::AssertionFailure() << x.size() << " and " << y.size() << " elements";
  bool written = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::memcmp(&x[i], &y[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "element " << i << " of " << x.size() << ": " << x[i] << ", C " << y[i];
    }
    written = written || x[i] != -77.25f;
  }
  if (!written) return ::testing::AssertionFailure() << "neither call wrote anything";
  return ::testing::AssertionSuccess();
}

// A filter made by the C interface.
struct Filter {
  explicit Filter(BNNSFilter f) : handle(f) { EXPECT_NE(f, nullptr) << BNNSExtLastError(); }
  ~Filter() { BNNSFilterDestroy(handle); }
  Filter(const Filter&) = delete;
  operator BNNSFilter() const { return handle; }
  BNNSFilter handle;
};

// The gradient call of the C interface, with packed samples.
inline int backward(BNNSFilter filter, const Desc& x, const Desc& y, const Desc& dy, const NDArray* dx,
                    const NDArray* dw = nullptr, const NDArray* db = nullptr) {
  Desc d[3]{};
  if (dx) d[0] = *dx;
  if (dw) d[1] = *dw;
  if (db) d[2] = *db;
  return BNNSFilterApplyBackwardBatch(filter, kBatch, x.data, 0, dx ? &d[0] : nullptr, 0, y.data, 0, &dy, 0,
                                      dw ? &d[1] : nullptr, db ? &d[2] : nullptr);
}

// Throws Error with this code, and the reason mentions every word.
template <class Body>
::testing::AssertionResult refuses(Error::Code code, std::initializer_list<const char*> words, Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() != code) return ::testing::AssertionFailure() << "another code: " << e.what();
    if (e.reason().empty() || e.function().empty() || std::string(e.what()) != e.function() + ": " + e.reason()) {
      return ::testing::AssertionFailure() << "incomplete: " << e.what();
    }
    for (const char* word : words) {
      if (std::string(e.what()).find(word) == std::string::npos) {
        return ::testing::AssertionFailure() << "no \"" << word << "\" in: " << e.what();
      }
    }
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "nothing was thrown";
}

inline constexpr auto kCreate = Error::Code::unableToCreateLayer;
inline constexpr auto kApply = Error::Code::layerApplyFail;
inline constexpr auto kData = Error::Code::arrayDescriptorInvalidData;
inline constexpr auto kStep = Error::Code::optimizerStepFail;

}  // namespace overlay
