// The string of a tensor contraction. A few bytes make the descriptors, so that strings meet ranks and sizes that fit
// and ones that do not; the rest is the string. Refused with one line, or the filter computes.
#include <bnns/bnns.h>
#include <bnns/bnns_extensions.h>

#include <vector>

#include "fuzz/bytes.h"

namespace bnns::fuzz {
namespace {

// Rank 1 to 4, sizes 1 to 3, with memory of exactly that size.
BNNSNDArrayDescriptor array(Bytes& bytes, std::vector<float>& memory, float value) {
  BNNSNDArrayDescriptor d{};
  const size_t rank = bytes.from(1, 4);
  d.layout = static_cast<BNNSDataLayout>((rank << 16) | 0x8001);
  d.data_type = BNNSDataTypeFloat32;
  size_t count = 1;
  for (size_t k = 0; k < rank; ++k) count *= d.size[k] = bytes.from(1, 3);
  memory.assign(count, value);
  d.data = memory.data();
  return d;
}

}  // namespace
}  // namespace bnns::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bnns::fuzz;
  BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) {}, nullptr);
  Bytes bytes(data, size);
  std::vector<float> a, b, c, da, db;
  BNNSLayerParametersTensorContraction p{};
  p.alpha = 1, p.beta = bytes.chance(64) ? 1.0f : 0.0f;
  p.iA_desc = array(bytes, a, 1), p.iB_desc = array(bytes, b, 1), p.o_desc = array(bytes, c, 0);
  auto a_delta = p.iA_desc, b_delta = p.iB_desc, c_delta = p.o_desc;
  const std::string text = bytes.rest();
  p.operation = text.c_str();  // up to its first 0
  BNNSExtClearLastError();
  const BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&p, nullptr);
  if (filter == nullptr) {
    if (*BNNSExtLastError() == '\0' || std::strchr(BNNSExtLastError(), '\n') != nullptr)
      found("refused without one line");
    return 0;
  }
  da = a, db = b;
  a_delta.data = da.data(), b_delta.data = db.data();
  if (BNNSFilterApplyTwoInput(filter, a.data(), b.data(), c.data()) == 0) {
    for (const float each : c) {
      // Sums of ones.
      if (!(each >= 0 && each <= 1e6f && each == float(int(each)))) found("no whole number comes of whole numbers");
    }
    BNNSFilterApplyBackwardTwoInputBatch(filter, 1, a.data(), 0, &a_delta, 0, b.data(), 0, &b_delta, 0, nullptr, 0,
                                         &c_delta, 0, nullptr, nullptr);
  } else {
    // One input: the operand whose name does not begin with w, the only one, or both, which are one.
    const size_t first = text.find_first_not_of(" \t\n\v\f\r");
    const bool swapped = first != text.npos && text[first] == 'w';
    const float* const x = swapped ? b.data() : a.data();
    if (BNNSFilterApply(filter, x, c.data()) == 0) {
      BNNSFilterApplyBackwardBatch(filter, 1, x, 0, swapped ? &b_delta : &a_delta, 0, nullptr, 0, &c_delta, 0, nullptr,
                                   nullptr);
    }
  }
  BNNSFilterDestroy(filter);
  return 0;
}
