#include "src/mps/foundation/guard.h"

#include <cstdarg>
#include <cstdio>

#include "MetalPerformanceShaders/MPSKernel.hpp"

namespace bnns::mps {
namespace {

// Long labels are cut: the reason behind them matters more.
constexpr int kLabelSize = 48;

struct Name {
  char text[2 * kLabelSize + 96];

  Name(const char* function, const NS::String* label, const NS::String* buffer_label) noexcept {
    const auto or_empty = [](const NS::String* string) { return string ? string->utf8String() : ""; };
    std::snprintf(text, sizeof text, "%.60s%s%.*s%s%s%.*s%s", function, label ? " \"" : "", kLabelSize, or_empty(label),
                  label ? "\"" : "", buffer_label ? " in command buffer \"" : "", kLabelSize, or_empty(buffer_label),
                  buffer_label ? "\"" : "");
  }
};

}  // namespace

Reporter::Reporter(const MPS::Kernel& kernel, MTL::CommandBuffer* buffer) noexcept
    : function_(kernel.className()), label_(kernel.label()), buffer_label_(buffer ? buffer->label() : nullptr) {}

void Reporter::refused(const Error& error) const noexcept {
  report(Name(function_, label_, buffer_label_).text, error);
}

void Reporter::out_of_memory() const noexcept {
  report_out_of_memory(Name(function_, label_, buffer_label_).text);
}

void refuse(const Reporter& reporter, const char* format, ...) noexcept {
  Error error(ErrorKind::invalid, -1);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error.text(), Error::kTextSize, format, arguments);
  va_end(arguments);
  reporter.refused(error);
}

Error foreign_exception() noexcept {
  Error error(ErrorKind::invalid, -1);
  std::snprintf(error.text(), Error::kTextSize, "the caller's own code threw an exception");
  return error;
}

}  // namespace bnns::mps
