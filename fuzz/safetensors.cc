// The reader of safetensors files: a file opens, and then all that it says is true and can be read, or it is refused
// with one line. The first byte says whether it is read or mapped; the rest is the file.
#include <bnns/bnns_extensions.h>
#include <bnns/bnns_io.h>

#include <vector>

#include "fuzz/memory_file.h"

namespace bnns::fuzz {
namespace {

size_t sum(const void* data, size_t bytes) {
  size_t total = 0;
  for (size_t k = 0; k < bytes; ++k) total += static_cast<const unsigned char*>(data)[k];
  return total;
}

void read_arrays(BNNSExtArrayFile file, size_t file_bytes) {
  size_t bytes = 0;
  for (size_t k = 0; k < BNNSExtArrayFileCount(file); ++k) {
    BNNSExtArrayInfo info{};
    if (BNNSExtArrayFileInfo(file, k, &info) != 0) found("an array that is counted has no description");
    if (BNNSExtArrayFileFind(file, info.name) != k) found("an array is not found by its name");
    if ((bytes += info.bytes) > file_bytes) found("the arrays are larger than the file");
    sum(info.data, info.bytes);
    const unsigned rank = static_cast<unsigned>(info.rank);
    const auto layout = static_cast<BNNSDataLayout>(rank < 2 ? 0x10000u : (rank << 16) | 0x8001u);
    BNNSNDArrayDescriptor d{};
    if (BNNSExtArrayFileView(file, info.name, layout, &d) != 0) continue;
    if (d.data != nullptr && BNNSNDArrayGetDataSize(&d) != info.bytes) found("a view has another size than its array");
    std::vector<char> copy(info.bytes);
    d.data = copy.data();
    if (BNNSExtArrayFileCopy(file, info.name, &d) == 0 && sum(copy.data(), copy.size()) != sum(info.data, info.bytes)) {
      found("a copy differs from its array");
    }
  }
  for (size_t k = 0; k < BNNSExtArrayFileMetadataCount(file); ++k) {
    BNNSExtMetadata pair{};
    if (BNNSExtArrayFileMetadataAt(file, k, &pair) != 0) found("a text that is counted is not there");
    if (BNNSExtArrayFileMetadata(file, pair.key) != pair.value) found("a text is not found by its key");
    sum(pair.key, std::strlen(pair.key) + 1), sum(pair.value, std::strlen(pair.value) + 1);
  }
}

}  // namespace
}  // namespace bnns::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bnns::fuzz;
  static MemoryFile memory;
  BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) {}, nullptr);
  Bytes bytes(data, size);
  const auto mode = bytes.chance(128) ? BNNSExtArrayFileRead : BNNSExtArrayFileMap;
  const std::string contents = bytes.rest();
  BNNSExtClearLastError();
  const BNNSExtArrayFile file = BNNSExtArrayFileOpen(memory.with(contents).c_str(), mode);
  if (file == nullptr) {
    const std::string reason = BNNSExtLastError();
    if (reason.empty() || reason.find_first_of("\n\r\x1b") != reason.npos) found("refused without one line: " + reason);
    return 0;
  }
  read_arrays(file, contents.size());
  BNNSExtArrayFileClose(file);
  return 0;
}
