// A part of the run that a trace shows by name (BNNS_TRACE), besides the library's calls.
#pragma once

#include <bnns/bnns_extensions.h>

namespace bnns::tool {

class TraceRange {
 public:
  explicit TraceRange(const char* name) { BNNSExtTraceBegin(name); }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
  ~TraceRange() { BNNSExtTraceEnd(); }
};

}  // namespace bnns::tool
