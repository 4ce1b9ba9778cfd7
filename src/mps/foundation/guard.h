// The boundary of the MPS classes: no exception passes it.
#pragma once

#include <new>
#include <utility>

#include "src/core/error.h"

namespace NS {
class String;
}
namespace MTL {
class CommandBuffer;
}
namespace MPS {
class Kernel;
}

namespace bnns::mps {

// Whose call a message is about. The text is made only where there is something to say.
class Reporter {
 public:
  Reporter(const char* function) noexcept : function_(function) {}  // NOLINT: a plain name is one too
  // A call of a labelled object: commit "step 3".
  Reporter(const char* function, const NS::String* label) noexcept : function_(function), label_(label) {}
  // MPSCNNPoolingMax "pool 1" in command buffer "step 3", where the two have labels.
  explicit Reporter(const MPS::Kernel& kernel, MTL::CommandBuffer* buffer = nullptr) noexcept;

  void refused(const Error& error) const noexcept;
  void out_of_memory() const noexcept;

 private:
  const char* function_;
  const NS::String *label_ = nullptr, *buffer_label_ = nullptr;
};

// Reports without throwing: for calls that do nothing when refused.
[[gnu::format(printf, 2, 3)]] void refuse(const Reporter& reporter, const char* format, ...) noexcept;

// What the caller's own code (allocators, paddings, handlers) threw.
Error foreign_exception() noexcept;

// Like bnns::guarded, for any exception.
template <class Result, class Body>
Result protect(const Reporter& reporter, Result fallback, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    reporter.refused(error);
  } catch (const std::bad_alloc&) {
    reporter.out_of_memory();
  } catch (...) {
    reporter.refused(foreign_exception());
  }
  return fallback;
}

}  // namespace bnns::mps
