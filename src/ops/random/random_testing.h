// What the tests of the random fills share.
#pragma once

#include "src/core/half.h"
#include "src/ops/random/random_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

// A generator for one test; n_threads 0 is the default.
class Source {
 public:
  explicit Source(uint64_t seed, size_t n_threads = 1) {
    BNNSFilterParameters parameters = {};
    parameters.n_threads = n_threads;
    handle_ = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, seed, &parameters);
  }
  Source(const Source&) = delete;
  ~Source() { BNNSDestroyRandomGenerator(handle_); }
  operator BNNSRandomGenerator() const { return handle_; }

 private:
  BNNSRandomGenerator handle_;
};

inline float to_float(BNNSDataType type, uint16_t value) {
  return type == BNNSDataTypeFloat16 ? half_to_float(value) : bfloat16_to_float(value);
}

}  // namespace bnns::testing
