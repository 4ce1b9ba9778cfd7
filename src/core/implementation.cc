// Entries to leave out, and the record that a thread's calls go to.
#include "src/core/implementation.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "src/core/internal.h"
#include "src/core/log.h"

namespace bnns {
namespace {

thread_local CallRecord* current_record = nullptr;

constexpr size_t kMostTold = 64;
std::atomic<const char*> told[kMostTold];  // entries that were left out, as their tables name them

const char* chosen_names = nullptr;  // of set_skipped
bool names_are_chosen = false;

const char* skip_list() noexcept {
  return names_are_chosen ? chosen_names : std::getenv("BNNS_SKIP");
}

// A name of the list is an entry's own or a folder that it is in.
bool covers(const char* from, size_t length, const char* name) noexcept {
  return length > 0 && std::strncmp(from, name, length) == 0 && (name[length] == '\0' || name[length] == '/');
}

// One line for each entry that is left out. A misspelt name has none.
void tell(const char* name) noexcept {
  for (std::atomic<const char*>& slot : told) {
    const char* known = nullptr;
    if (slot.compare_exchange_strong(known, name, std::memory_order_relaxed)) break;
    if (known == name) return;
  }
  char line[160];
  std::snprintf(line, sizeof line, "BNNS_SKIP leaves out %s", name);
  log_finding(line);
}

}  // namespace

namespace detail {

std::atomic<int> skips{-1};

bool skipped(const char* name) noexcept {
  const char* list = skip_list();
  if (skips.load(std::memory_order_relaxed) < 0) skips.store(list && *list ? 1 : 0, std::memory_order_relaxed);
  while (list && *list) {
    const size_t length = std::strcspn(list, ",");
    if (covers(list, length, name)) {
      if (!names_are_chosen) tell(name);
      return true;
    }
    list += length + (list[length] == ',');
  }
  return false;
}

}  // namespace detail

void set_skipped(const char* names) {
  static std::string kept;
  kept = names ? names : "";
  chosen_names = kept.c_str();
  names_are_chosen = names != nullptr;
  detail::skips.store(-1, std::memory_order_relaxed);
}

CallRecord::CallRecord() noexcept : before_(current_record) {
  current_record = this;
}

CallRecord::~CallRecord() {
  current_record = before_;
}

CallRecord* CallRecord::current() noexcept {
  return current_record;
}

}  // namespace bnns

bnns::CallRecord* bnns_internal_current_record() noexcept {
  return bnns::current_record;
}

void bnns_internal_set_current_record(bnns::CallRecord* record) noexcept {
  bnns::current_record = record;
}
