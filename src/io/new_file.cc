#include "src/io/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "src/core/error.h"

namespace bnns::io {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16, kMostAtOnce = size_t{1} << 30;
constexpr int kAttempts = 100;

}  // namespace

void NewFile::fail(const char* what) const {
  fail_invalid("%s: %s: %s", shown_, what, std::strerror(errno));
}

NewFile::NewFile(const char* path, const char* shown) : shown_(shown), buffer_(kBufferBytes) {
  struct stat facts {};
  const bool exists = stat(path, &facts) == 0;
  if (exists && !S_ISREG(facts.st_mode)) {
    fail_invalid("%s: is %s, expected the name of a file", shown,
                 S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
  }
  char resolved[PATH_MAX];  // a link keeps pointing to the file; what it points to is replaced
  target_ = exists && realpath(path, resolved) ? resolved : path;
  create(exists ? facts.st_mode & 07777 : 0666, exists);
}

// The umask applies to a new file, as to one of fopen; one that is replaced keeps its mode.
void NewFile::create(unsigned mode, bool keep_mode) {
  static std::atomic<unsigned> serial{0};
  for (int attempt = 0; attempt < kAttempts && fd_ < 0; ++attempt) {
    temporary_ = target_ + "." + std::to_string(getpid()) + "-" + std::to_string(serial.fetch_add(1)) + ".tmp";
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) {
    temporary_.clear();
    fail("cannot be written here");
  }
  if (keep_mode) (void)!fchmod(fd_, mode);
}

NewFile::~NewFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::put(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = ::write(fd_, data, std::min(bytes, kMostAtOnce));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("could not be written");
    data += done, bytes -= static_cast<size_t>(done);
  }
}

void NewFile::flush() {
  put(buffer_.data(), std::exchange(used_, 0));
}

void NewFile::write(const void* data, size_t bytes) {
  if (bytes > kBufferBytes - used_) flush();
  if (bytes >= kBufferBytes) return put(static_cast<const char*>(data), bytes);
  std::memcpy(buffer_.data() + used_, data, bytes);
  used_ += bytes;
}

void NewFile::commit() {
  flush();
  if (fsync(fd_) != 0) fail("could not be written");
  if (close(std::exchange(fd_, -1)) != 0) fail("could not be written");
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("could not be renamed from its temporary name");
  temporary_.clear();
  // The name is on the disk when the folder is. Some file systems cannot flush a folder; the file is whole all the
  // same.
  const size_t slash = target_.rfind('/');
  const std::string folder = slash == target_.npos ? "." : target_.substr(0, slash + 1);
  if (const int at = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    (void)fsync(at);
    close(at);
  }
}

}  // namespace bnns::io
