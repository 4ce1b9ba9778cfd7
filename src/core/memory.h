// Memory that a filter keeps or works in. All of it comes from the client's callbacks when the client gave them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "bnns/bnns.h"

namespace bnns {

inline constexpr size_t kAlignment = 64;  // a cache line and an AVX-512 vector

// BNNSFilterParameters, checked. The default object means: private copies, all threads, posix_memalign.
struct Options {
  bool use_client_pointers = false;
  size_t n_threads = 0;
  BNNSAlloc alloc = nullptr;
  BNNSFree free = nullptr;
};
Options read_options(const BNNSFilterParameters* parameters, const char* op);

// Raw allocation; throws Error(out_of_memory). The client's callback is always asked for kAlignment; malloc, which is
// quicker than posix_memalign, serves what needs no more than its own.
void* allocate(const Options& options, size_t bytes, const char* what, size_t alignment = kAlignment);
void release(const Options& options, void* memory) noexcept;

// An owned, aligned, uninitialised block.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Options& options, size_t bytes, const char* what)
      : options_(options), data_(bytes ? allocate(options, bytes, what) : nullptr), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { release(options_, data_); }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(options_, other.options_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Options options_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Working memory for applies that run at the same time: each lease has a block of its own. Blocks return to a small
// lock-free shelf, so a steady state allocates nothing and takes no lock.
class ScratchShelf {
 public:
  explicit ScratchShelf(const Options& options) : options_(options) {}
  ScratchShelf(const ScratchShelf&) = delete;
  ScratchShelf& operator=(const ScratchShelf&) = delete;
  ~ScratchShelf();

  class Lease {
   public:
    Lease(ScratchShelf& shelf, size_t bytes) : shelf_(shelf), block_(bytes ? shelf.take(bytes) : nullptr) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      if (block_) shelf_.put(block_);
    }
    // nullptr for a lease of 0 bytes.
    void* data() const { return block_ ? static_cast<char*>(block_) + kAlignment : nullptr; }
    template <class T>
    T* as() const {
      return static_cast<T*>(data());
    }

   private:
    ScratchShelf& shelf_;
    void* block_;
  };

 private:
  void* take(size_t bytes);  // a block whose first kAlignment bytes hold its capacity
  void put(void* block) noexcept;
  static size_t& capacity(void* block) { return *static_cast<size_t*>(block); }

  static constexpr size_t kSlots = 8;  // more concurrent applies than this allocate and free
  Options options_;
  std::atomic<void*> slots_[kSlots] = {};
};

}  // namespace bnns
