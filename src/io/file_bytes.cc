#include "src/io/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/core/error.h"

namespace bnns::io {
namespace {

class Descriptor {
 public:
  // O_NONBLOCK: a pipe is refused below instead of waited for.
  explicit Descriptor(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

constexpr size_t kMostAtOnce = size_t{1} << 30;  // read(2) takes less than 2 GiB a call

}  // namespace

FileBytes::FileBytes(const char* path, BNNSExtArrayFileMode mode, const char* shown) {
  const Descriptor file(path);
  if (file.get() < 0) fail_invalid("%s: cannot be opened: %s", shown, std::strerror(errno));
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) fail_invalid("%s: cannot be read: %s", shown, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) fail_invalid("%s: is not a regular file", shown);
  const size_t size = static_cast<size_t>(facts.st_size);
  if (size == 0) return;  // nothing to map; the caller says what is missing

  if (mode == BNNSExtArrayFileMap) {
    void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
    if (pages == MAP_FAILED) fail_invalid("%s: cannot be mapped: %s", shown, std::strerror(errno));
    data_ = static_cast<char*>(pages), size_ = size, mapped_ = true;
    return;
  }
  Buffer memory(Options{}, size, "a file of arrays");
  for (size_t have = 0; have < size;) {
    const ssize_t got = read(file.get(), memory.as<char>() + have, std::min(size - have, kMostAtOnce));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_invalid("%s: cannot be read: %s", shown, std::strerror(errno));
    if (got == 0) fail_invalid("%s: ends after %zu bytes, expected %zu: it was cut off meanwhile", shown, have, size);
    have += static_cast<size_t>(got);
  }
  data_ = memory.as<char>(), size_ = size;
  memory_ = std::move(memory);
}

FileBytes::~FileBytes() {
  if (mapped_) munmap(data_, size_);
}

void FileBytes::forbid_writing() noexcept {
  if (mapped_) mprotect(data_, size_, PROT_READ);
}

}  // namespace bnns::io
