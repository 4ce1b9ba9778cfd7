// A file that appears under its name only when it is whole: written beside the old one, flushed, renamed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bnns::io {

class NewFile {
 public:
  // `shown` is the file's name in messages. Refuses a path that is there and is no regular file.
  NewFile(const char* path, const char* shown);
  ~NewFile();  // removes what was not committed
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes);
  void commit();

 private:
  void create(unsigned mode, bool keep_mode);
  void flush();
  void put(const char* data, size_t bytes);
  [[noreturn]] void fail(const char* what) const;

  const char* shown_;
  std::string target_, temporary_;
  int fd_ = -1;
  std::vector<char> buffer_;
  size_t used_ = 0;
};

}  // namespace bnns::io
