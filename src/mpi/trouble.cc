#include "src/mpi/trouble.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

namespace bnns::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTag = 32000;    // above those of operations
constexpr double kLate = 0.4;  // of the timeout: who has waited for less while others gave up came late

// ---- A standing as a message: the head, MPI's words, then each operation's sequence, count and records --------------

struct Head {
  uint64_t next;
  double waited;
  Trouble::Cause cause;
  int32_t lost_rank;
  uint64_t text, operations;
};

std::vector<char> packed(const Standing& s) {
  std::vector<char> out;
  const auto put = [&](const void* data, size_t n) {
    const char* bytes = static_cast<const char*>(data);
    out.insert(out.end(), bytes, bytes + n);
  };
  const Head head{s.next, s.waited, s.trouble.cause, s.trouble.lost_rank, s.trouble.text.size(), s.operations.size()};
  put(&head, sizeof head);
  put(s.trouble.text.data(), s.trouble.text.size());
  for (const auto& each : s.operations) {
    const uint64_t numbers[2] = {each.sequence, each.records.size()};
    put(numbers, sizeof numbers);
    put(each.records.data(), each.records.size() * sizeof(Record));
  }
  return out;
}

Standing unpacked(const std::vector<char>& in) {
  Standing s{};
  size_t at = 0;
  const auto get = [&](void* data, size_t n) {
    if (n == 0) return;
    std::memcpy(data, in.data() + at, n);
    at += n;
  };
  Head head;
  get(&head, sizeof head);
  s.trouble.cause = head.cause, s.trouble.lost_rank = head.lost_rank, s.next = head.next, s.waited = head.waited;
  s.trouble.text.resize(head.text);
  get(s.trouble.text.data(), head.text);
  s.operations.resize(head.operations);
  for (auto& each : s.operations) {
    uint64_t numbers[2];
    get(numbers, sizeof numbers);
    each.sequence = numbers[0];
    each.records.resize(numbers[1]);
    get(each.records.data(), each.records.size() * sizeof(Record));
  }
  return s;
}

// ---- All standings that arrive in time ------------------------------------------------------------------------------

using Standings = std::vector<std::optional<Standing>>;

struct Incoming {
  std::vector<char> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

// Whether the standing of `rank` has arrived as a whole. A rank that MPI has lost sends none.
bool receive(const Link& link, int rank, Incoming& in, std::optional<Standing>& standing) {
  int there = 0;
  if (in.request == MPI_REQUEST_NULL) {
    MPI_Status status;
    if (MPI_Iprobe(rank, kTag, link.comm, &there, &status) != MPI_SUCCESS || !there) return false;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    in.bytes.resize(static_cast<size_t>(count));
    if (MPI_Irecv(in.bytes.data(), count, MPI_BYTE, rank, kTag, link.comm, &in.request) != MPI_SUCCESS) return false;
  }
  if (MPI_Test(&in.request, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there) return false;
  standing = unpacked(in.bytes);
  return true;
}

bool has_waited(Trouble::Cause cause) {
  return cause == Trouble::Cause::timeout || cause == Trouble::Cause::lost;
}

Standings gather(const Link& link, const Standing& mine, double timeout) {
  const auto size = static_cast<size_t>(link.size);
  // Left to the process: a rank that is gone never takes its message.
  auto* const out = new std::vector<char>(packed(mine));
  auto* const in = new std::vector<Incoming>(size);
  Standings all(size);
  all[static_cast<size_t>(link.rank)] = mine;
  for (int rank = 0; rank < link.size; ++rank) {
    MPI_Request request;
    if (rank != link.rank) {
      MPI_Isend(out->data(), static_cast<int>(out->size()), MPI_BYTE, rank, kTag, link.comm, &request);
    }
  }
  const auto after = [&](double share) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(share * timeout));
  };
  auto deadline = after(has_waited(mine.trouble.cause) ? 0.1 : 0.9);
  while (Clock::now() < deadline) {
    bool complete = true;
    for (size_t r = 0; r < size; ++r) {
      if (all[r]) continue;
      if (!receive(link, static_cast<int>(r), (*in)[r], all[r])) {
        complete = false;
      } else if (has_waited(all[r]->trouble.cause)) {
        deadline = std::min(deadline, after(0.1));
      }
    }
    if (complete) break;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  // Messages out leave with MPI's progress, which the polls above drive; a last look for those who ask late.
  for (int i = 0; i < 100; ++i) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, link.comm, &there, MPI_STATUS_IGNORE);
    sched_yield();
  }
  return all;
}

// ---- What they say together -----------------------------------------------------------------------------------------

const std::vector<Record>* records_of(const std::optional<Standing>& s, uint64_t sequence) {
  if (!s) return nullptr;
  for (const auto& each : s->operations) {
    if (each.sequence == sequence) return &each.records;
  }
  return nullptr;
}

// The first rank that differs from what most ranks were asked for, or "".
std::string mismatch(const Standings& all, uint64_t sequence) {
  size_t reference = all.size(), most = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    const auto* mine = records_of(all[r], sequence);
    if (!mine) continue;
    const auto equal = static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const auto& s) {
      const auto* other = records_of(s, sequence);
      return other && *other == *mine;
    }));
    if (equal > most) most = equal, reference = r;
  }
  for (size_t r = 0; r < all.size(); ++r) {
    const auto* mine = records_of(all[r], sequence);
    if (!mine || *mine == *records_of(all[reference], sequence)) continue;
    return difference(static_cast<int>(r), *mine, static_cast<int>(reference), *records_of(all[reference], sequence));
  }
  return "";
}

std::string names(const std::vector<size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < ranks.size() ? ", " : " and ") + std::to_string(ranks[i]);
  }
  return text;
}

std::string verdict(const Standings& all, double timeout) {
  uint64_t first = UINT64_MAX, last = 0;
  for (const auto& s : all) {
    if (!s || s->operations.empty()) continue;
    first = std::min(first, s->operations.front().sequence);
    last = std::max(last, s->operations.back().sequence);
  }
  for (uint64_t sequence = first; sequence <= last && first != UINT64_MAX; ++sequence) {
    if (std::string text = mismatch(all, sequence); !text.empty()) return text;
  }
  std::string where = "this call";
  for (const auto& s : all) {
    if (const auto* records = records_of(s, first); records && !records->empty()) where = text_of(records->front());
  }
  for (const auto& s : all) {
    if (!s || s->trouble.cause != Trouble::Cause::lost) continue;
    if (s->trouble.lost_rank < 0) return where + " failed: " + s->trouble.text;
    return "rank " + std::to_string(s->trouble.lost_rank) + " was lost in " + where + ": " + s->trouble.text;
  }
  std::vector<size_t> absent, late;
  for (size_t r = 0; r < all.size(); ++r) {
    if (!all[r] || all[r]->next <= first) {
      absent.push_back(r);
    } else if (all[r]->waited < kLate * timeout) {
      late.push_back(r);
    }
  }
  char seconds[40];
  std::snprintf(seconds, sizeof seconds, "%g s", timeout);
  if (absent.empty() && !late.empty() && late.size() < all.size()) {
    return names(late) + " came too late to " + where + ": the others had waited for " + seconds;
  }
  if (absent.empty()) return where + ": all ranks are here, but its data did not arrive within " + seconds;
  return "no answer from " + names(absent) + " in " + where + " within " + seconds +
         ": it has ended, or is busy elsewhere";
}

}  // namespace

bool reports_trouble(const Link& link, int rank) {
  int there = 0;
  check_mpi(MPI_Iprobe(rank, kTag, link.comm, &there, MPI_STATUS_IGNORE), "MPI_Iprobe", rank);
  return there != 0;
}

std::string conclude(const Link& link, const Standing& mine, double timeout) {
  return verdict(gather(link, mine, timeout), timeout);
}

}  // namespace bnns::mpi
