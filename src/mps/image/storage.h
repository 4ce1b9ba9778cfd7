// Memory of images.
//
// A block belongs to a texture. Blocks of temporary images go back to the arena of their command buffer, which hands
// them out again at once: the operations of a buffer run in order, so the next user comes later than the last. When the
// buffer is done its blocks go to the device's cache, for the next buffer: allocating on a GPU stops it.
//
// A list that another thread was changing when this process was forked off is forgotten, blocks and all.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/core/process/fork.h"
#include "src/mps/device/device_backend.h"

namespace bnns::mps {

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
  bool zero = false;  // holds zeros now
};

class BlockCache {
 public:
  explicit BlockCache(DeviceBackend& backend) : backend_(backend) {}
  ~BlockCache() { clear(); }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  Block take(size_t bytes);  // throws Error
  void put(Block block) noexcept;
  void clear() noexcept;

 private:
  static constexpr size_t kKeptBytes = size_t{2} << 30;  // more than this is freed

  DeviceBackend& backend_;
  ForkMutex mutex_;
  std::vector<Block> blocks_;
  size_t kept_ = 0;
};

// The temporary memory of one command buffer; also its identity, which outlives it in temporary images.
class Arena {
 public:
  explicit Arena(BlockCache& cache) : cache_(cache) {}
  ~Arena() { close(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Block take(size_t bytes);  // throws Error
  void put(Block block) noexcept;
  void close() noexcept;  // the command buffer is done

 private:
  BlockCache& cache_;
  ForkMutex mutex_;
  std::vector<Block> blocks_;
  bool open_ = true;
};

}  // namespace bnns::mps
