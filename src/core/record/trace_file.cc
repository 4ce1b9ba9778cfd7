// BNNS_TRACE: the events of all lanes as complete events ("ph":"X") of the Trace Event Format, times in microseconds
// since the first call.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "bnns/bnns_extensions.h"
#include "src/core/record/files.h"
#include "src/core/record/recorder.h"

namespace bnns::recorder {
namespace {

struct Placed {
  const Event* event;
  uint32_t lane;
};

// An outer call before those that it made, also where they began in the same nanosecond.
bool is_before(const Placed& a, const Placed& b) noexcept {
  if (a.lane != b.lane) return a.lane < b.lane;
  if (a.event->start != b.event->start) return a.event->start < b.event->start;
  return a.event->end > b.event->end;
}

std::vector<Placed> all_events() {
  std::vector<Placed> all;
  for (size_t k = 0; const Chunk* chunk = chunk_at(k); ++k) {
    const uint32_t size = chunk->size.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < size; ++i) all.push_back({&chunk->events[i], chunk->lane});
  }
  std::sort(all.begin(), all.end(), is_before);
  return all;
}

void put_text(std::FILE* out, const char* text) noexcept {
  std::fputc('"', out);
  for (; *text; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') std::fputc('\\', out);
    if (c < 32 || c == 127) {
      std::fprintf(out, "\\u%04x", c);
    } else {
      std::fputc(c, out);
    }
  }
  std::fputc('"', out);
}

// Exact: a double would round the times of a long run, and calls would seem to overlap.
void put_microseconds(std::FILE* out, const char* name, int64_t nanoseconds) noexcept {
  std::fprintf(out, ",\"%s\":%lld.%03d", name, static_cast<long long>(nanoseconds / 1000),
               static_cast<int>(nanoseconds % 1000));
}

void put_lane(std::FILE* out, int process, uint32_t lane) noexcept {
  const bool worker = lane >= kCallerLanes;
  const uint32_t number = worker ? lane - static_cast<uint32_t>(kCallerLanes) : lane;
  std::fprintf(out,
               ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"%s %u\"}},\n"
               "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%u,\"args\":{\"sort_index\":%u}}",
               process, lane + 1, worker ? "worker" : "caller", number + 1, process, lane + 1, lane);
}

// A range of the program itself has its name and its times only.
void put_range(std::FILE* out, int process, const Placed& placed, const char* name) noexcept {
  std::fputs(",\n{\"ph\":\"X\",\"cat\":\"range\",\"name\":", out);
  put_text(out, name);
  std::fprintf(out, ",\"pid\":%d,\"tid\":%u", process, placed.lane + 1);
  put_microseconds(out, "ts", placed.event->start - start_time());
  put_microseconds(out, "dur", placed.event->end - placed.event->start);
  std::fputs("}", out);
}

void put_event(std::FILE* out, int process, const Placed& placed, const Site& site) noexcept {
  if (std::strcmp(site.action, kRangeAction) == 0) return put_range(out, process, placed, site.problem);
  const Event& e = *placed.event;
  const bool part = e.site == kPart;
  const int word = static_cast<int>(std::strcspn(site.problem, " "));
  std::fprintf(out, ",\n{\"ph\":\"X\",\"name\":\"%s %.*s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%u", site.action, word,
               site.problem, part ? "part" : "call", process, placed.lane + 1);
  put_microseconds(out, "ts", e.start - start_time());
  put_microseconds(out, "dur", e.end - e.start);
  std::fputs(",\"args\":{\"problem\":", out);
  put_text(out, site.problem);
  std::fputs(",\"implementation\":", out);
  put_text(out, site.implementation);
  if (!part) {
    std::fprintf(out, ",\"batch\":%zu,\"isa\":\"%s\",\"threads\":%zu", site.batch, site.where, site.threads);
    if (site.bytes > 0) std::fprintf(out, ",\"bytes\":%.0f", site.bytes);
    if (site.operations > 0) std::fprintf(out, ",\"operations\":%.0f", site.operations);
  }
  std::fprintf(out, ",\"call\":%llu}}", static_cast<unsigned long long>(e.call));
}

void put_all(std::FILE* out) {
  const std::vector<Placed> events = all_events();
  uint64_t calls = 0;
  for (const Placed& each : events) calls = std::max(calls, each.event->call);
  std::vector<uint32_t> site_of(calls + 1, kPart);  // kPart: a refused call, or one whose event was not kept
  for (const Placed& each : events) {
    if (each.event->site != kPart) site_of[each.event->call] = each.event->site;
  }
  const int process = getpid();
  std::fprintf(out,
               "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"openbnns\":\"%s\",\"events_not_kept\":%llu},\n"
               "\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":",
               OPENBNNS_VERSION_TEXT, static_cast<unsigned long long>(lost_events()), process);
  put_text(out, program_invocation_short_name);
  std::fputs("}}", out);
  uint32_t lane = UINT32_MAX;
  for (const Placed& each : events) {
    const uint32_t slot = site_of[each.event->call];
    const Site* site = slot == kPart ? nullptr : site_at(slot);
    if (!site) continue;
    if (each.lane != lane) put_lane(out, process, lane = each.lane);
    put_event(out, process, each, *site);
  }
  std::fputs("\n]}\n", out);
}

}  // namespace

bool write_trace(const char* path) noexcept {
  std::FILE* out = std::fopen(path, "we");
  if (!out) return false;
  int reason = 0;
  try {
    put_all(out);
  } catch (const std::bad_alloc&) {
    reason = ENOMEM;
  }
  if (std::ferror(out)) reason = reason ? reason : EIO;
  if (std::fclose(out) != 0) reason = reason ? reason : errno;
  errno = reason;
  if (lost_events() != 0) {
    std::fprintf(stderr, "openbnns: BNNS_TRACE: memory for %zu events is full, %llu later ones are not in %s\n",
                 kChunks * Chunk::kEvents, static_cast<unsigned long long>(lost_events()), path);
  }
  errno = reason;
  return reason == 0;
}

}  // namespace bnns::recorder
