#include "src/core/memory.h"

#include <cstddef>
#include <cstdlib>
#include <utility>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/notes.h"

namespace bnns {

Options read_options(const BNNSFilterParameters* parameters, const char* op) {
  Options options;
  if (!parameters) return options;
  if (parameters->flags & ~static_cast<uint32_t>(BNNSFlagsUseClientPtr)) {
    fail_invalid("%s: filter_params.flags is 0x%x, expected 0 or BNNSFlagsUseClientPtr", op, parameters->flags);
  }
  if (!parameters->alloc_memory != !parameters->free_memory) {
    fail_invalid("%s: filter_params has alloc_memory or free_memory alone, expected both or neither", op);
  }
  options.use_client_pointers = parameters->flags & BNNSFlagsUseClientPtr;
  options.n_threads = parameters->n_threads;
  options.alloc = parameters->alloc_memory;
  options.free = parameters->free_memory;
  return options;
}

void* allocate(const Options& options, size_t bytes, const char* what, size_t alignment) {
  void* memory = nullptr;
  if (bytes > PTRDIFF_MAX) fail_out_of_memory(what, bytes);
  int status = 0;
  if (options.alloc) {
    status = options.alloc(&memory, kAlignment, bytes);
  } else if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(bytes ? bytes : 1);
  } else {
    status = posix_memalign(&memory, alignment, bytes ? bytes : 1);
  }
  if (status != 0 || !memory) fail_out_of_memory(what, bytes);
  return memory;
}

void release(const Options& options, void* memory) noexcept {
  if (!memory) return;
  forget_copy(memory);
  options.free ? options.free(memory) : std::free(memory);
}

ScratchShelf::~ScratchShelf() {
  for (std::atomic<void*>& slot : slots_) release(options_, slot.load(std::memory_order_relaxed));
}

// The smallest block that is large enough: leases of one call have different sizes, and a small one must not hold what
// the large one needs next.
void* ScratchShelf::take(size_t bytes) {
  void* best = nullptr;
  for (std::atomic<void*>& slot : slots_) {
    if (!slot.load(std::memory_order_relaxed)) continue;
    void* block = slot.exchange(nullptr, std::memory_order_acquire);
    if (!block) continue;
    if (capacity(block) >= bytes && (!best || capacity(block) < capacity(best))) std::swap(block, best);
    if (block) put(block);
  }
  if (best) return best;
  void* block = allocate(options_, checked_add(bytes, kAlignment, "scratch"), "scratch");
  capacity(block) = bytes;
  return block;
}

// A full shelf keeps the larger blocks.
void ScratchShelf::put(void* block) noexcept {
  for (std::atomic<void*>& slot : slots_) {
    void* expected = nullptr;
    if (slot.compare_exchange_strong(expected, block, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  }
  for (std::atomic<void*>& slot : slots_) {
    const size_t size = capacity(block);
    void* other = slot.exchange(block, std::memory_order_acq_rel);
    if (!other) return;
    block = other;
    if (capacity(other) < size) break;  // the smaller one goes
  }
  release(options_, block);
}

}  // namespace bnns
