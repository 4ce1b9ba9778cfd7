// The scratch of a whole call, reserved before the call writes anything.
//
// A call of several passes (dW, db and dX; one phase of a transposed convolution after the other) takes scratch in
// each. Taken as it goes, memory could run out between two of them, with results half-written. Instead the passes run
// twice: first only measuring what they would lease, then in one block of that size.
//
//   CallScratch::run(shelf, memo, key, [&](CallScratch& scratch) {
//     CallScratch::Lease buffer(scratch, bytes);
//     if (scratch.measuring()) return;  // after the last lease, before the first write
//     ...
//   });
//
// Leases end in the opposite order of their beginning. The size is remembered under a key, so that a steady state
// measures once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "src/core/checked.h"
#include "src/core/memory.h"

namespace bnns {

// The last size that was measured, and for which call. One word, so that many threads may use it at once.
class ScratchMemo {
 public:
  // A key of everything that sizes depend on.
  static uint32_t key(std::initializer_list<size_t> words) {
    uint64_t hash = 0;
    for (const size_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15u ^ hash >> 29;
    return static_cast<uint32_t>(hash >> 32) | 1;
  }
  bool find(uint32_t key, size_t* bytes) const {
    const uint64_t entry = entry_.load(std::memory_order_relaxed);
    *bytes = static_cast<size_t>(entry >> 32) * kAlignment;
    return static_cast<uint32_t>(entry) == key;
  }
  void keep(uint32_t key, size_t bytes) {  // bytes: a multiple of kAlignment
    const size_t lines = bytes / kAlignment;
    if (lines <= UINT32_MAX) entry_.store(uint64_t{lines} << 32 | key, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> entry_{0};  // cache lines, key
};

class CallScratch {
 public:
  // Leases come from the shelf one by one: for a call that has them all before it writes.
  explicit CallScratch(ScratchShelf& shelf) : shelf_(shelf) {}
  CallScratch(const CallScratch&) = delete;
  CallScratch& operator=(const CallScratch&) = delete;

  template <class Passes>
  static void run(ScratchShelf& shelf, ScratchMemo& memo, uint32_t key, Passes&& passes) {
    CallScratch scratch(shelf);
    size_t bytes = 0;
    if (!memo.find(key, &bytes)) {
      scratch.mode_ = Mode::measuring;
      passes(scratch);
      bytes = scratch.most_;
      memo.keep(key, bytes);
    }
    const ScratchShelf::Lease block(shelf, bytes);
    scratch.mode_ = Mode::reserved;
    scratch.block_ = block.as<char>(), scratch.capacity_ = bytes;
    passes(scratch);
  }

  // The passes compute nothing and write nothing; leases have an address but no memory.
  bool measuring() const { return mode_ == Mode::measuring; }

  class Lease {
   public:
    Lease(CallScratch& scratch, size_t bytes)
        : scratch_(scratch), bytes_(scratch.claim(bytes, &data_)), own_(scratch.shelf_, data_ ? 0 : bytes) {
      if (!data_) data_ = own_.data();
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { scratch_.used_ -= bytes_; }

    // nullptr for a lease of 0 bytes.
    void* data() const { return data_; }
    template <class T>
    T* as() const {
      return static_cast<T*>(data_);
    }

   private:
    CallScratch& scratch_;
    void* data_ = nullptr;
    size_t bytes_;             // of the block
    ScratchShelf::Lease own_;  // where the block does not have them
  };

 private:
  // Takes bytes of the block, and returns how many. 0 and no address where the shelf must give them: without a
  // reservation, or where two calls share a key.
  size_t claim(size_t bytes, void** data) {
    if (bytes == 0 || mode_ == Mode::direct) return 0;
    const size_t rounded = round_up(bytes, kAlignment);
    if (mode_ == Mode::measuring) {
      *data = nowhere_;
      used_ = checked_add(used_, rounded, "scratch");
      most_ = std::max(most_, used_);
      return rounded;
    }
    if (rounded > capacity_ - used_) return 0;
    *data = block_ + used_;
    used_ += rounded;
    return rounded;
  }

  alignas(kAlignment) static inline char nowhere_[kAlignment];
  enum class Mode { direct, measuring, reserved };
  ScratchShelf& shelf_;
  Mode mode_ = Mode::direct;
  char* block_ = nullptr;
  size_t capacity_ = 0, used_ = 0, most_ = 0;
};

}  // namespace bnns
