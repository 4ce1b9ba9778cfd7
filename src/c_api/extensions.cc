// What we add to the C interface.

#include "bnns/bnns_extensions.h"
#include "src/core/error.h"
#include "src/core/isa.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/core/record/recorder.h"
#include "src/filter/filter.h"

const char* BNNSExtVersion(void) noexcept {
  return OPENBNNS_VERSION_TEXT;
}

const char* BNNSExtLastError(void) noexcept {
  return bnns::last_error();
}

void BNNSExtClearLastError(void) noexcept {
  bnns::clear_last_error();
}

void BNNSExtSetLogCallback(BNNSExtLogCallback callback, void* user) noexcept {
  bnns::set_log_callback(callback, user);
}

void BNNSExtSetNumThreads(size_t threads) noexcept {
  bnns::set_default_threads(threads);
}

size_t BNNSExtGetNumThreads(void) noexcept {
  return bnns::default_threads();
}

int BNNSExtSetMaxISA(const char* name) noexcept {
  return bnns::guarded_status("BNNSExtSetMaxISA", [&] {
    bnns::Isa cap;
    if (!name || !bnns::parse_isa(name, &cap)) {
      bnns::fail_invalid("isa: name is %s, expected sse4, avx2, avx512, avx512_bf16 or amx", name ? name : "NULL");
    }
    bnns::set_max_isa(cap);
  });
}

const char* BNNSExtGetISA(void) noexcept {
  return bnns::isa_name(bnns::isa());
}

const char* BNNSExtImplementation(void* filter, BNNSExtPass pass, size_t batch) noexcept {
  return bnns::guarded("BNNSExtImplementation", static_cast<const char*>(nullptr), [&] {
    if (pass > BNNSExtPassWeightsGradient) {
      bnns::fail_invalid("filter: pass is %u, expected BNNSExtPassForward, InputGradient or WeightsGradient",
                         static_cast<unsigned>(pass));
    }
    return bnns::from_handle(filter).implementation(pass, batch);
  });
}

void BNNSExtTraceBegin(const char* name) noexcept {
  if (bnns::recording()) bnns::recorder::begin_range(name ? name : "");
}

void BNNSExtTraceEnd(void) noexcept {
  if (bnns::recording()) bnns::recorder::end_range();
}
