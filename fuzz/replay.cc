// The targets without libFuzzer: each file named, or of a folder named, is one input. How the test fuzz_corpus runs the
// inputs of the repository, and how a crash of the fuzzer is looked at in a debugger.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/bytes.h"

extern "C" [[gnu::weak]] int LLVMFuzzerInitialize(int* count, char*** arguments);

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (int k = 1; k < count; ++k) {
    if (!fs::is_directory(arguments[k])) {
      files.emplace_back(arguments[k]);
      continue;
    }
    for (const auto& each : fs::directory_iterator(arguments[k])) files.push_back(each.path());
  }
  std::sort(files.begin(), files.end());
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&count, &arguments);
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in || bytes.empty()) {
      std::fprintf(stderr, "%s cannot be read, or is empty\n", file.c_str());
      return 1;
    }
    std::fprintf(stderr, "%s, %zu bytes\n", file.c_str(), bytes.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::fprintf(stderr, "%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
