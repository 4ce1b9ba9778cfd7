// What BNNS_TRACE and BNNS_PROFILE keep: every call that CallTimer ends (src/core/log.h), and the parts of it that the
// pool's workers ran (src/core/parallel.cc).
//
// Calls that are alike share a Site: one pass of one problem with one batch, algorithm and number of threads. For a
// profile a site counts its calls. A trace keeps an event for each call, in chunks that each belong to one lane (a
// thread), so that no two threads write to one. Both have a bound: after kSites kinds of calls further ones are counted
// together, after kChunks chunks events are no longer kept, and what is written at the process's end says how many.
// Nothing is allocated but a site when its first call ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/core/implementation.h"

namespace bnns {

// A call that has ended, as CallTimer knows it.
struct FinishedCall {
  const char *action, *problem, *name, *where;  // name and where may be nullptr (CallTimer::finish)
  uint64_t hash;                                // tells problems apart
  size_t batch;
  const CallRecord* record;
  int64_t start, end;  // nanoseconds of the monotonic clock
};

// Its verbose line, and what the recorder keeps; for CallTimer::finish (src/core/log.cc).
void finish_call(FinishedCall call) noexcept;

namespace recorder {

struct Site {
  uint64_t key;
  const char *action, *problem, *implementation, *where;
  size_t batch, threads;
  double bytes, operations;  // of one call; 0: not known
  std::atomic<uint64_t> calls{0}, nanoseconds{0};
};

struct Event {
  int64_t start, end;
  uint64_t call;  // a call's own number, or that of the call that a part belongs to
  uint32_t site;  // kPart: that of its call
};

inline constexpr size_t kSites = 4096, kSiteSlots = 2 * kSites;  // slots: an open hash table
inline constexpr uint32_t kOtherCalls = kSiteSlots;              // the site of what came after kSites
inline constexpr uint32_t kPart = UINT32_MAX;

// Lanes [0, kCallerLanes) are threads that call, the others are workers.
inline constexpr size_t kCallerLanes = 512, kLanes = kCallerLanes + 256;

struct Chunk {
  static constexpr size_t kEvents = 255;
  std::atomic<uint32_t> size;
  uint32_t lane;
  Event events[kEvents];
};
inline constexpr size_t kChunks = 2048;  // 16 MiB, half a million events; memory of the system until it is touched

// Reads BNNS_TRACE and BNNS_PROFILE; true where one of them is set and can be done. Called once.
bool start() noexcept;

// The number of a call that begins; 0 where there is no trace.
uint64_t next_call() noexcept;

// Counts a call whose like is known; false where it is not. The texts of its problem and name are not looked at.
bool add_known(const FinishedCall& call) noexcept;
// The same for any call; `implementation` is what the verbose line has.
void add(const FinishedCall& call, const char* implementation) noexcept;
// What worker `slot` of the pool did for a call.
void add_part(size_t slot, uint64_t call, int64_t start, int64_t end) noexcept;
// A range of the program itself, on the calling thread. Its site has the action kRangeAction and its name as problem;
// only a trace has ranges.
inline constexpr char kRangeAction[] = "range";
void begin_range(const char* name) noexcept;
void end_range() noexcept;

// ---- for those that write -------------------------------------------------------------------------------------------

const Site* site_at(uint32_t slot) noexcept;  // nullptr: the slot is free
const Chunk* chunk_at(size_t k) noexcept;     // nullptr: from here on there are none
int64_t start_time() noexcept;
uint64_t lost_events() noexcept;  // those that no chunk was left for

}  // namespace recorder
}  // namespace bnns
