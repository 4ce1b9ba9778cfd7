// What people write or paste for the tool: the JSON of `bnns explain`, and for `bnns bench` problem lines and
// descriptions. The first byte chooses, the rest is the text. Refused with one line, or read.
#include <algorithm>

#include "bench/description.h"
#include "bench/problem_line.h"
#include "fuzz/memory_file.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/explain/explain_command.h"

namespace {

using bnns::fuzz::found;

void one_line(const char* what) {
  if (*what == '\0' || std::strpbrk(what, "\n\r\x1b") != nullptr)
    found(std::string("refused without one line: ") + what);
}

// The row is made; nothing is allocated for it before it runs.
void describe(const std::string& text) {
  namespace bench = bnns::bench;
  for (const std::string& line : bench::descriptions_of(text)) {
    const bench::Description d(line);
    const auto maker = bench::makers().find(d.family);
    if (maker != bench::makers().end()) maker->second(d);
  }
}

void explain(const std::string& text) {
  static bnns::fuzz::MemoryFile memory;
  try {
    bnns::tool::run_explain({.file = memory.with(text), .example = "", .json = true});
  } catch (const bnns::tool::DataError& error) {
    one_line(error.what());
  }
}

}  // namespace

// Answers go to stdout, findings to stderr.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return std::freopen("/dev/null", "w", stdout) == nullptr;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bnns::fuzz::Bytes bytes(data, size);
  const bool json = bytes.chance(128);
  const std::string text = bytes.rest();
  if (json) {
    explain(text);
    return 0;
  }
  try {
    describe(text.c_str());  // an argument of a command line ends at its first 0
  } catch (const std::runtime_error& error) {
    if (*error.what() == '\0') found("refused without a reason");  // it may quote what was typed
  }
  return 0;
}
