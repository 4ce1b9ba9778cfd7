// Kernels against their references: small problems drawn from bytes, with an instruction set, a number of threads and
// some algorithms left out. Data are seeded: bytes decide the shape, which is what kernels branch on.
#include "fuzz/kernels/kernels.h"

#include <gtest/gtest.h>

#include "src/core/implementation.h"
#include "src/core/isa.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  GTEST_FLAG_SET(break_on_failure, true);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bnns;
  // What may be left out; the last algorithm of each table accepts everything.
  static const char* const kSkipped[] = {
      nullptr,           "convolution/winograd",
      "convolution/few", "convolution/depthwise,convolution/winograd,convolution/few",
      "pooling/global",  "pooling/backward/max_3x3,pooling/global,pooling/convert/pieces",
      "gemm/skinny",     "convolution/strided",
  };
  fuzz::Bytes bytes(data, size);
  const size_t operation = bytes.below(4);
  set_max_isa(static_cast<Isa>(bytes.below(static_cast<size_t>(best_isa()) + 1)));
  set_skipped(kSkipped[bytes.below(std::size(kSkipped))]);
  constexpr void (*operations[])(fuzz::Bytes&) = {fuzz::convolution, fuzz::pooling, fuzz::fully_connected,
                                                  fuzz::normalization};
  operations[operation](bytes);
  return 0;
}
