// Every function that the library does not offer yet is there, fails, and says so. The calls are generated from the
// tables and src/c_api/symbols.h, so that a function cannot be forgotten on either side.

#include <bnns/bnns.h>
#include <bnns/bnns_extensions.h>
#include <stdio.h>
#include <string.h>

static int calls, failures;

// Not used while the library offers everything.
__attribute__((unused)) static void expect_not_offered(const char* function, int failed) {
  const char* reason = BNNSExtLastError();
  ++calls;
  if (!failed || !strstr(reason, function) || !strstr(reason, "not offered yet")) {
    printf("FAILED %s: %s, last error \"%s\"\n", function, failed ? "failed" : "did not fail", reason);
    ++failures;
  }
  // The next call must leave a reason of its own.
  BNNSExtClearLastError();
}

int main(void) {
  // Volatile, so that compilers which know that an argument must not be NULL do not see that it is.
  static void* volatile nothing;
  (void)nothing;
  BNNSExtClearLastError();
#include "not_offered_calls.inc"
  printf("%d functions that are not offered: %d failures\n", calls, failures);
  return failures != 0;
}
