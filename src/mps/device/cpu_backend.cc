// The CPU device: ordinary memory, and kernels on the project's thread pool. Work is done by complete(), that is, on
// the queue's own thread, so commit returns at once.
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/core/error.h"
#include "src/core/float_mode.h"
#include "src/mps/device/device_backend.h"

namespace bnns::mps {
namespace {

constexpr size_t kAlignment = 64;
// From here on memory comes from the kernel directly: it is zero already and goes back when freed.
constexpr size_t kMapBytes = 1 << 20;

class CpuQueue final : public QueueBackend {
 public:
  std::string complete(const std::vector<Operation>& operations, Token, WorkTime* span) noexcept override {
    span->begin = host_seconds();
    for (const Operation& operation : operations) {
      if (const auto* encode = std::get_if<Encode>(&operation)) {
        const FloatMode mode;  // not around handlers: they are the caller's code
        encode->run_cpu();
      } else if (const auto* fill = std::get_if<Fill>(&operation)) {
        std::memset(fill->data, 0, fill->bytes);
      }
    }
    span->end = host_seconds();
    return {};
  }
};

class CpuBackend final : public DeviceBackend {
 public:
  std::string name() const override { return "CPU"; }
  bool is_host() const override { return true; }
  bool has_unified_memory() const override { return true; }

  // The machine's memory, or less where a container has a limit.
  uint64_t memory_bytes() const override {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
      std::ifstream file(path);
      uint64_t limit = 0;
      if (file >> limit && limit != 0) bytes = std::min(bytes, limit);  // "max" is no number
    }
    return bytes;
  }

  void copy_to_device(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void copy_to_host(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  std::unique_ptr<QueueBackend> make_queue() override { return std::make_unique<CpuQueue>(); }

 protected:
  void* allocate_block(size_t bytes, bool zero) override {
    if (bytes >= kMapBytes) {
      void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (data == MAP_FAILED) fail_out_of_memory("an image", bytes);
      // Kernels walk whole images once: with pages of 4 KB a third of the time goes into finding pages. A wish only.
      madvise(data, bytes, MADV_HUGEPAGE);
      return data;
    }
    void* data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (!data) fail_out_of_memory("an image", bytes);
    if (zero) std::memset(data, 0, bytes);
    return data;
  }

  void free_block(void* data, size_t bytes) noexcept override {
    bytes >= kMapBytes ? static_cast<void>(munmap(data, bytes)) : std::free(data);
  }
};

}  // namespace

double host_seconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::unique_ptr<DeviceBackend> make_cpu_backend() {
  return std::make_unique<CpuBackend>();
}

}  // namespace bnns::mps
