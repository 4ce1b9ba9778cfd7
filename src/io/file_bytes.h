// The bytes of a regular file, read into memory or mapped.
#pragma once

#include <cstddef>

#include "bnns/bnns_io.h"
#include "src/core/memory.h"

namespace bnns::io {

class FileBytes {
 public:
  // `shown` is the file's name in messages.
  FileBytes(const char* path, BNNSExtArrayFileMode mode, const char* shown);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  // Aligned to 64 bytes at least. Writing changes this copy, never the file (mapped pages are copied on write).
  char* data() const { return data_; }
  size_t size() const { return size_; }

  // From here on a stray write into mapped memory is a fault instead of a changed weight.
  void forbid_writing() noexcept;

 private:
  Buffer memory_;  // of a file that was read
  char* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
};

}  // namespace bnns::io
