// A fuzzer's input, taken apart from its front: numbers and choices. After its end everything is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace bnns::fuzz {

// What a target found: the line, and an end that libFuzzer takes for a crash.
[[noreturn]] inline void found(const std::string& what) {
  std::fprintf(stderr, "found: %s\n", what.c_str());
  std::abort();
}

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  uint8_t byte() { return left_ > 0 ? --left_, *at_++ : uint8_t{0}; }
  template <class T>
  T number() {
    T value{};
    const size_t n = sizeof value < left_ ? sizeof value : left_;
    if (n > 0) std::memcpy(&value, at_, n);
    at_ += n, left_ -= n;
    return value;
  }
  size_t below(size_t n) { return byte() % n; }  // n up to 256
  size_t from(size_t low, size_t high) { return low + below(high - low + 1); }
  bool chance(unsigned of_256) { return byte() < of_256; }
  std::string rest() {
    std::string text(reinterpret_cast<const char*>(at_), left_);
    at_ += left_, left_ = 0;
    return text;
  }
  size_t left() const { return left_; }

 private:
  const uint8_t* at_;
  size_t left_;
};

}  // namespace bnns::fuzz
