// Where messages go: the client's callback, and stderr when BNNS_VERBOSE asks for it.
//   BNNS_VERBOSE=0  nothing (default)    1  refusals, and one line per create and apply
#pragma once

#include <chrono>
#include <string>

#include "bnns/bnns_extensions.h"

namespace bnns {

void set_log_callback(BNNSExtLogCallback callback, void* user) noexcept;
void log_message(BNNSExtLogLevel level, const char* message) noexcept;
bool verbose() noexcept;  // a relaxed load after the first call

// One line for a variable of the environment whose text means nothing and is passed over.
void log_ignored_setting(const char* name, const char* text, const char* expected) noexcept;

// One verbose line for one call: "bnns_verbose,apply,fully_connected f32 i784 o128,batch 32,avx512,12.3 us".
class CallTimer {
 public:
  explicit CallTimer(const char* action) noexcept : action_(verbose() ? action : nullptr) {
    if (action_) start_ = std::chrono::steady_clock::now();
  }
  bool active() const noexcept { return action_ != nullptr; }
  void finish(const std::string& problem, size_t batch) const noexcept;

 private:
  const char* action_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace bnns
