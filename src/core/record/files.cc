#include "src/core/record/files.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "src/core/log.h"

namespace bnns::recorder {
namespace {

Wanted wanted;
char trace_path[4096];  // absolute: a program may change its folder before it ends

// False: errno says why.
bool make_path(const char* name) noexcept {
  size_t at = 0;
  if (name[0] != '/') {
    if (!getcwd(trace_path, sizeof trace_path)) return false;
    at = std::strlen(trace_path);
  }
  const int length = std::snprintf(trace_path + at, sizeof trace_path - at, "%s%s", at ? "/" : "", name);
  if (at + static_cast<size_t>(length) < sizeof trace_path) return true;
  errno = ENAMETOOLONG;
  return false;
}

// Known at the first call and not after hours of training. What the file holds stays until the end.
bool can_write(const char* path) noexcept {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return false;
  close(file);
  return true;
}

size_t columns_of_stderr() noexcept {
  winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return 200;
  return size.ws_col < 80 ? 80 : size.ws_col;
}

}  // namespace

Wanted wanted_files() noexcept {
  wanted = {};
  const char* file = std::getenv("BNNS_TRACE");
  if (file && *file) {
    wanted.trace = make_path(file) && can_write(trace_path);
    if (!wanted.trace) {
      char expected[128];
      std::snprintf(expected, sizeof expected, "a file that can be written (%s)", std::strerror(errno));
      log_ignored_setting("BNNS_TRACE", file, expected);
    }
  }
  const char* profile = std::getenv("BNNS_PROFILE");
  if (profile && *profile && std::strcmp(profile, "0") != 0) {
    wanted.profile = std::strcmp(profile, "1") == 0;
    if (!wanted.profile) log_ignored_setting("BNNS_PROFILE", profile, "0 or 1");
  }
  return wanted;
}

void write_files() noexcept {
  const Wanted now = wanted;
  wanted = {};
  if (now.trace && !write_trace(trace_path)) {
    std::fprintf(stderr, "openbnns: BNNS_TRACE: %s: %s\n", trace_path, std::strerror(errno));
  }
  if (now.profile) print_profile(stderr, columns_of_stderr());
}

}  // namespace bnns::recorder
