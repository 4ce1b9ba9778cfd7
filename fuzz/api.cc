// Layers of every kind from raw bytes: created, applied forward and backward (fuzz/api/case.h). The first byte chooses
// the kind; the rest are sizes, types and values, most of them plausible, some wild.
#include <bnns/bnns_extensions.h>

#include "fuzz/api/case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bnns::fuzz;
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (const auto* some : {&kWindows, &kElementwise, &kMovers, &kProducts, &kOld})
      all.insert(all.end(), some->begin(), some->end());
    return all;
  }();
  BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) {}, nullptr);
  Bytes bytes(data, size);
  const Kind kind = kinds[bytes.below(kinds.size())];
  Case drawn(bytes);
  BNNSExtClearLastError();
  kind(drawn);
  return 0;
}
