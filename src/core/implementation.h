// Algorithms by name.
//
// An operator that has several keeps an ordered table for each pass. The first entry that accepts a problem runs, the
// last one accepts every problem, and nothing else decides:
//
//   constexpr Implementation<PoolingForward, Run> kForward[] = {
//       {"pooling/global/forward", "one window, the whole plane", accepts_global, run_global},
//       {"pooling/forward/window", "anything", accepts_any, run_window},
//   };
//   choose(kForward, problem).run(problem, ...);
//
// A name is the path of the file that holds the kernel, below src/ops or src, without suffixes such as _simd.cc. It is
// what BNNS_VERBOSE=1 prints and BNNSExtImplementation returns. BNNS_SKIP=name,name of the environment leaves entries
// out; the name of a folder leaves out all that is in it. The last entry of a table is never left out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bnns {

// Tables whose entries need more than one function have a type of their own with these first three members.
template <class Problem, class Run>
struct Implementation {
  const char* name;
  const char* when;  // what accepts() says, in words: the README's table is written from it
  bool (*accepts)(const Problem& problem);
  Run run;
};

// For the last entry.
template <class Problem>
bool accepts_any(const Problem&) {
  return true;
}

// The algorithms, the threads and the work of one call, for its verbose line, for BNNS_TRACE and BNNS_PROFILE, and for
// tests. Only what the calling thread chooses is kept: an algorithm chosen inside a task that another thread takes is
// not seen.
class CallRecord {
 public:
  static constexpr size_t kNames = 8;  // a backward pass of an LSTM layer has 6

  CallRecord() noexcept;  // records from now on, instead of the one before
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  void add(const char* name) noexcept;  // once each, in the order of the first choice
  void use_threads(size_t threads) noexcept { threads_ = threads > threads_ ? threads : threads_; }

  // What an operator says that it moved and computed: an estimate from shapes (count_work of src/core/log.h).
  void count(double bytes, double operations) noexcept { bytes_ += bytes, operations_ += operations; }
  // The call's number in the trace, which the parts that workers run refer to; 0: it is not traced.
  void set_call(uint64_t call) noexcept { call_ = call; }

  size_t size() const { return size_; }
  uint64_t call() const { return call_; }
  double bytes() const { return bytes_; }
  double operations() const { return operations_; }
  const char* name(size_t k) const { return names_[k]; }
  bool has(const char* name) const noexcept;
  size_t threads() const { return threads_; }
  // "convolution/winograd/dw+convolution/winograd/gather", or "-".
  void join(char* text, size_t bytes) const noexcept;

  static CallRecord* current() noexcept;  // of this thread, or nullptr

 private:
  CallRecord* before_;
  const char* names_[kNames];
  size_t size_ = 0, threads_ = 1;
  uint64_t call_ = 0;
  double bytes_ = 0, operations_ = 0;
};

namespace detail {
extern std::atomic<int> skips;  // 1: some names are left out, 0: none, -1 until the environment was read
bool skipped(const char* name) noexcept;
}  // namespace detail

// Whether BNNS_SKIP leaves an entry out. A relaxed load where it is not set.
inline bool is_skipped(const char* name) noexcept {
  return detail::skips.load(std::memory_order_relaxed) != 0 && detail::skipped(name);
}

// Names to leave out from now on instead of those of BNNS_SKIP; nullptr returns to these. For tests, while no other
// thread is in a call.
void set_skipped(const char* names);

// The entry that runs. find() is for those who ask (BNNSExtImplementation); choose() also records it.
template <class Entry, size_t N, class Problem>
const Entry& find(const Entry (&table)[N], const Problem& problem) {
  for (size_t k = 0; k + 1 < N; ++k) {
    if (table[k].accepts(problem) && !is_skipped(table[k].name)) return table[k];
  }
  return table[N - 1];
}
template <class Entry, size_t N, class Problem>
const Entry& choose(const Entry (&table)[N], const Problem& problem) {
  const Entry& entry = find(table, problem);
  if (CallRecord* record = CallRecord::current()) record->add(entry.name);
  return entry;
}

}  // namespace bnns
