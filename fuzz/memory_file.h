// A file in memory, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/bytes.h"

namespace bnns::fuzz {

class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(file_)) {
    if (file_ < 0) found("memfd_create failed");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // The file with these bytes; its path.
  const std::string& with(const std::string& bytes) {
    if (ftruncate(file_, 0) != 0 || pwrite(file_, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size())) {
      found("the file in memory cannot be written");
    }
    return path_;
  }

 private:
  int file_;
  std::string path_;
};

}  // namespace bnns::fuzz
