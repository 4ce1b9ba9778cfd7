#include "src/mps/image/storage.h"

#include <new>
#include <utility>

#include "src/core/error.h"

namespace bnns::mps {
namespace {

// Removes and returns the smallest block that holds `bytes` and wastes at most as much again; an empty one if none.
Block take_fitting(std::vector<Block>* blocks, size_t bytes) {
  size_t best = blocks->size();
  for (size_t i = 0; i < blocks->size(); ++i) {
    const size_t size = (*blocks)[i].bytes;
    if (size < bytes || size / 2 > bytes) continue;
    if (best == blocks->size() || size < (*blocks)[best].bytes) best = i;
  }
  if (best == blocks->size()) return {};
  std::swap((*blocks)[best], blocks->back());
  const Block block = blocks->back();
  blocks->pop_back();
  return block;
}

// Leaves the list's memory alone: it may be half changed.
void forget(std::vector<Block>* blocks) {
  new (blocks) std::vector<Block>();
}

}  // namespace

Block BlockCache::take(size_t bytes) {
  {
    const ForkLock lock(mutex_);
    if (!lock.intact()) forget(&blocks_), kept_ = 0;
    const Block block = take_fitting(&blocks_, bytes);
    if (block.data) {
      kept_ -= block.bytes;
      return block;
    }
  }
  // Not zeroed here: on a GPU that is a step of the command buffer, and only where the image is not overwritten.
  const bool zero = backend_.is_host();
  try {
    return {backend_.allocate(bytes, zero), bytes, zero};
  } catch (const Error&) {
    clear();  // what is kept may be what is missing
    return {backend_.allocate(bytes, zero), bytes, zero};
  }
}

void BlockCache::put(Block block) noexcept {
  block.zero = false;
  try {
    const ForkLock lock(mutex_);
    if (!lock.intact()) forget(&blocks_), kept_ = 0;
    if (block.bytes <= kKeptBytes && kept_ <= kKeptBytes - block.bytes) {
      blocks_.push_back(block);
      kept_ += block.bytes;
      return;
    }
  } catch (const std::bad_alloc&) {
  }
  backend_.free(block.data, block.bytes);
}

void BlockCache::clear() noexcept {
  std::vector<Block> blocks;
  {
    const ForkLock lock(mutex_);
    if (!lock.intact()) forget(&blocks_), kept_ = 0;
    blocks.swap(blocks_);
    kept_ = 0;
  }
  for (const Block& block : blocks) backend_.free(block.data, block.bytes);
}

Block Arena::take(size_t bytes) {
  {
    const ForkLock lock(mutex_);
    if (!lock.intact()) forget(&blocks_);
    const Block block = take_fitting(&blocks_, bytes);
    if (block.data) return block;
  }
  return cache_.take(bytes);
}

void Arena::put(Block block) noexcept {
  block.zero = false;
  try {
    const ForkLock lock(mutex_);
    if (!lock.intact()) forget(&blocks_);
    if (open_) {
      blocks_.push_back(block);
      return;
    }
  } catch (const std::bad_alloc&) {
    return;  // recorded work may still use it: better lost than used twice
  }
  cache_.put(block);
}

void Arena::close() noexcept {
  std::vector<Block> blocks;
  {
    const ForkLock lock(mutex_);
    if (!lock.intact()) forget(&blocks_);
    open_ = false;
    blocks.swap(blocks_);
  }
  for (const Block& block : blocks) cache_.put(block);
}

}  // namespace bnns::mps
