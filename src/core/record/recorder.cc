#include "src/core/record/recorder.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "src/core/log.h"
#include "src/core/process/fork.h"
#include "src/core/record/files.h"

namespace bnns::recorder {
namespace {

// Everything below is used only after start(), and stays to the end of the process: calls may come that late.
std::atomic<Site*> sites[kSiteSlots];
std::atomic<size_t> site_count{0};
Site other_calls{0, "call", "others: more kinds of calls than are told apart", "-", "-", 0, 1, 0, 0};

Chunk* chunks = nullptr;  // nullptr: no trace
std::atomic<size_t> chunk_count{0};
std::atomic<uint64_t> calls{0}, lost{0};
bool profiled = false;
std::atomic<bool> started{false};
int64_t began = 0;
uint32_t generation = 0;  // of the process that records; a child of a fork does not

struct Lane {
  std::atomic<bool> taken{false};
  Chunk* chunk = nullptr;  // of the thread that has the lane
};
Lane lanes[kLanes];

// A calling thread's lane; the next thread takes it over when this one ends. And its ranges that have no end yet.
struct OwnLane {
  struct Open {
    uint32_t slot;
    uint64_t call;
    int64_t start;
  };
  static constexpr size_t kDeepest = 16;
  Lane* lane = nullptr;
  size_t depth = 0;  // may exceed kDeepest
  Open open[kDeepest];
  ~OwnLane() {
    if (lane) lane->taken.store(false, std::memory_order_release);
    lane = nullptr;
  }
};
thread_local OwnLane own;

Lane* own_lane() noexcept {
  if (own.lane) return own.lane;
  for (size_t k = 0; k < kCallerLanes; ++k) {
    if (!lanes[k].taken.load(std::memory_order_relaxed) && !lanes[k].taken.exchange(true, std::memory_order_acquire)) {
      return own.lane = &lanes[k];
    }
  }
  return nullptr;
}

// And what start() wrote is there.
bool is_ours() noexcept {
  return started.load(std::memory_order_acquire) && fork_generation() == generation;
}

bool is_full() noexcept {
  return chunk_count.load(std::memory_order_relaxed) >= kChunks;
}

void add_event(Lane* lane, const Event& event) noexcept {
  Chunk* chunk = lane ? lane->chunk : nullptr;
  uint32_t at = chunk ? chunk->size.load(std::memory_order_relaxed) : 0;
  if (lane && (!chunk || at == Chunk::kEvents)) {
    const size_t fresh = is_full() ? kChunks : chunk_count.fetch_add(1, std::memory_order_relaxed);
    chunk = lane->chunk = fresh < kChunks ? &chunks[fresh] : nullptr;
    at = 0;
    if (chunk) chunk->lane = static_cast<uint32_t>(lane - lanes);
  }
  if (!chunk) {
    lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  chunk->events[at] = event;
  chunk->size.store(at + 1, std::memory_order_release);
}

uint64_t mix(uint64_t hash, uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

uint64_t bits_of(double value) noexcept {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The slot that has the key, or the free one where it belongs.
uint32_t slot_of(uint64_t key) noexcept {
  for (size_t k = key % kSiteSlots;; k = (k + 1) % kSiteSlots) {
    const Site* site = sites[k].load(std::memory_order_acquire);
    if (!site || site->key == key) return static_cast<uint32_t>(k);
  }
}

// One block: the site and its texts. They are copied: a library that a literal lies in may be gone at the end.
Site* make_site(uint64_t key, const FinishedCall& c, const char* implementation) noexcept {
  const char* texts[] = {c.action, c.problem, implementation, c.where};
  size_t bytes = sizeof(Site);
  for (const char* text : texts) bytes += std::strlen(text) + 1;
  char* memory = static_cast<char*>(std::malloc(bytes));
  if (!memory) return nullptr;
  char* at = memory + sizeof(Site);
  for (const char*& text : texts) {
    const size_t length = std::strlen(text) + 1;
    text = static_cast<const char*>(std::memcpy(at, text, length));
    at += length;
  }
  return new (memory) Site{key,
                           texts[0],
                           texts[1],
                           texts[2],
                           texts[3],
                           c.batch,
                           c.record->threads(),
                           c.record->bytes(),
                           c.record->operations()};
}

// The key of the calls that are like this one.
uint64_t key_of(const FinishedCall& c) noexcept {
  uint64_t key = mix(mix(c.hash, reinterpret_cast<uintptr_t>(c.action)), c.batch);
  key = mix(mix(key, reinterpret_cast<uintptr_t>(c.where)), c.record->threads());
  key = mix(mix(key, bits_of(c.record->bytes())), bits_of(c.record->operations()));
  for (size_t k = 0; k < c.record->size(); ++k) key = mix(key, reinterpret_cast<uintptr_t>(c.record->name(k)));
  return key;
}

// The slot of the site of a call; kOtherCalls where there are too many.
uint32_t make_slot(const FinishedCall& call, const char* implementation) noexcept {
  const uint64_t key = key_of(call);
  const uint32_t at = slot_of(key);
  if (sites[at].load(std::memory_order_acquire)) return at;
  Site* fresh = nullptr;
  if (site_count.fetch_add(1, std::memory_order_relaxed) < kSites) fresh = make_site(key, call, implementation);
  if (!fresh) return kOtherCalls;
  for (;;) {  // another thread may take the slot, perhaps for the same key
    const uint32_t slot = slot_of(key);
    Site* known = nullptr;
    if (sites[slot].compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return slot;
    if (known->key != key) continue;
    std::free(fresh);
    return slot;
  }
}

void count_call(Site& site, uint32_t slot, const FinishedCall& c) noexcept {
  if (profiled) {
    site.calls.fetch_add(1, std::memory_order_relaxed);
    site.nanoseconds.fetch_add(static_cast<uint64_t>(c.end - c.start), std::memory_order_relaxed);
  }
  if (c.record->call() != 0) add_event(own_lane(), {c.start, c.end, c.record->call(), slot});
}

// Both files are written when the process ends: by exit(), by return from main, or when the library is unloaded.
[[gnu::destructor]] void finish() noexcept {
  if (is_ours()) write_files();
}

}  // namespace

bool start() noexcept {
  const Wanted wanted = wanted_files();
  if (wanted.trace) {
    void* memory = mmap(nullptr, kChunks * sizeof(Chunk), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    chunks = memory == MAP_FAILED ? nullptr : static_cast<Chunk*>(memory);
  }
  if (!chunks && !wanted.profile) return false;
  profiled = wanted.profile;
  generation = fork_generation();
  began = detail::monotonic_nanoseconds();
  started.store(true, std::memory_order_release);
  return true;
}

uint64_t next_call() noexcept {
  if (!is_ours() || !chunks) return 0;
  return calls.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool add_known(const FinishedCall& call) noexcept {
  if (!is_ours()) return true;
  const uint32_t slot = slot_of(key_of(call));
  Site* site = sites[slot].load(std::memory_order_acquire);
  if (!site && site_count.load(std::memory_order_relaxed) < kSites) return false;
  site ? count_call(*site, slot, call) : count_call(other_calls, kOtherCalls, call);
  return true;
}

void add(const FinishedCall& call, const char* implementation) noexcept {
  if (add_known(call)) return;
  const uint32_t slot = make_slot(call, implementation);
  count_call(slot == kOtherCalls ? other_calls : *sites[slot].load(std::memory_order_acquire), slot, call);
}

void add_part(size_t slot, uint64_t call, int64_t start, int64_t end) noexcept {
  if (is_ours()) add_event(&lanes[kCallerLanes + slot], {start, end, call, kPart});
}

void begin_range(const char* name) noexcept {
  const uint64_t call = next_call();
  if (call == 0 || own.depth++ >= OwnLane::kDeepest) return;
  const CallRecord none;
  const uint32_t slot = make_slot({kRangeAction, name, nullptr, "-", text_hash(name), 0, &none, 0, 0}, "-");
  own.open[own.depth - 1] = {slot, call, detail::monotonic_nanoseconds()};
}

void end_range() noexcept {
  if (!is_ours() || !chunks || own.depth == 0 || own.depth-- > OwnLane::kDeepest) return;
  const OwnLane::Open& range = own.open[own.depth];
  add_event(own_lane(), {range.start, detail::monotonic_nanoseconds(), range.call, range.slot});
}

const Site* site_at(uint32_t slot) noexcept {
  if (slot < kSiteSlots) return sites[slot].load(std::memory_order_acquire);
  return slot == kOtherCalls ? &other_calls : nullptr;
}

const Chunk* chunk_at(size_t k) noexcept {
  return chunks && k < chunk_count.load(std::memory_order_acquire) && k < kChunks ? &chunks[k] : nullptr;
}

int64_t start_time() noexcept {
  return began;
}

uint64_t lost_events() noexcept {
  return lost.load(std::memory_order_relaxed);
}

}  // namespace bnns::recorder
