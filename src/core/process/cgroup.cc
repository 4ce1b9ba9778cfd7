#include "src/core/process/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace bnns {
namespace {

constexpr size_t kPath = 1024;  // on the stack of whoever calls first

// The lines of a file, read without allocating. What a line has beyond the buffer is dropped.
class Lines {
 public:
  explicit Lines(const char* path) noexcept : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    if (file_ >= 0) close(file_);
  }

  // The view ends with a zero and lasts until the next call.
  bool next(std::string_view* line) noexcept {
    size_t length = 0;
    for (;; ++at_) {
      if (at_ == end_) {
        const ssize_t got = file_ < 0 ? 0 : read(file_, chunk_, sizeof chunk_);
        if (got <= 0) break;
        at_ = 0, end_ = static_cast<size_t>(got);
      }
      if (chunk_[at_] == '\n') {
        ++at_;
        line_[length] = '\0';
        *line = {line_, length};
        return true;
      }
      if (length + 1 < sizeof line_) line_[length++] = chunk_[at_];
    }
    line_[length] = '\0';
    *line = {line_, length};
    return length != 0;
  }

 private:
  int file_;
  size_t at_ = 0, end_ = 0;
  char chunk_[512], line_[kPath];
};

std::string_view take_word(std::string_view* text, char separator) noexcept {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

bool has_word(std::string_view list, std::string_view wanted) noexcept {
  while (!list.empty()) {
    if (take_word(&list, ',') == wanted) return true;
  }
  return false;
}

double number_in(const char* path) noexcept {
  std::string_view line;
  Lines file(path);
  return file.next(&line) ? std::atof(line.data()) : 0;
}

void lower(size_t* threads, double quota, double period) noexcept {
  if (!(quota > 0) || !(period > 0)) return;  // v1 writes -1, v2 "max", where there is none
  const double wanted = (quota + period - 1) / period;
  const size_t allowed = wanted < 1e6 ? std::max<size_t>(1, static_cast<size_t>(wanted)) : 1000000;
  *threads = *threads ? std::min(*threads, allowed) : allowed;
}

// The quota in the folder whose path is the first `length` characters of `path`; the rest is overwritten.
void read_group(char (&path)[kPath], size_t length, bool v2, size_t* threads) noexcept {
  const auto file = [&](const char* name) {
    return std::snprintf(path + length, kPath - length, "/%s", name) < static_cast<int>(kPath - length);
  };
  if (v2) {
    if (!file("cpu.max")) return;
    std::string_view line;
    Lines lines(path);
    if (!lines.next(&line)) return;
    const double quota = std::atof(line.data());
    take_word(&line, ' ');
    return lower(threads, quota, std::atof(line.data()));
  }
  if (!file("cpu.cfs_quota_us")) return;
  const double quota = number_in(path);
  if (file("cpu.cfs_period_us")) lower(threads, quota, number_in(path));
}

// The process's path in one hierarchy; "" where the file does not name it.
void find_group(const char* root, bool v2, char (&group)[kPath]) noexcept {
  char path[kPath];
  group[0] = '\0';
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  Lines lines(path);
  for (std::string_view line; lines.next(&line);) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    take_word(&line, ':');
    const std::string_view controllers = take_word(&line, ':');
    if (v2 ? controllers.empty() : has_word(controllers, "cpu")) {
      group[line.copy(group, kPath - 1)] = '\0';
      return;
    }
  }
}

// From the process's group up to the mount. `shown` is the group that the mount shows as its top: what lies above it
// cannot be seen from here. A group outside of it (a cgroup namespace says "/../a") leaves the mount itself.
void walk(const char* root, std::string_view mount, std::string_view shown, bool v2, size_t* threads) noexcept {
  char group[kPath], path[kPath];
  find_group(root, v2, group);
  std::string_view below = group;
  if (shown == "/") shown = "";
  const bool inside =
      below.substr(0, shown.size()) == shown && (below.size() == shown.size() || below[shown.size()] == '/');
  below = inside && below.find("/..") == below.npos ? below.substr(shown.size()) : "";
  while (!below.empty() && below.back() == '/') below.remove_suffix(1);
  const int top = std::snprintf(path, sizeof path, "%s%.*s", root, static_cast<int>(mount.size()), mount.data());
  for (;;) {
    const size_t length = static_cast<size_t>(top) + below.size();
    if (length >= kPath) return;
    below.copy(path + top, below.size());
    read_group(path, length, v2, threads);
    if (below.empty()) return;
    below = below.substr(0, below.rfind('/'));
  }
}

}  // namespace

size_t cgroup_threads(const char* root) noexcept {
  size_t threads = 0;
  bool mounted = false;
  char path[kPath];
  std::snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
  Lines lines(path);
  for (std::string_view line; lines.next(&line);) {  // "32 31 0:29 /shown /mount rw,... [...] - cgroup source rw,cpu"
    const size_t dash = line.find(" - cgroup");
    if (dash == line.npos) continue;
    std::string_view after = line.substr(dash + 3), before = line;
    const std::string_view type = take_word(&after, ' ');
    take_word(&after, ' ');
    const bool v2 = type == "cgroup2";
    if (!v2 && (type != "cgroup" || !has_word(after, "cpu"))) continue;
    for (int field = 0; field < 3; ++field) take_word(&before, ' ');
    const std::string_view shown = take_word(&before, ' ');
    walk(root, take_word(&before, ' '), shown, v2, &threads);
    mounted = true;
  }
  if (!mounted) {  // no mountinfo: the usual places
    walk(root, "/sys/fs/cgroup", "/", true, &threads);
    walk(root, "/sys/fs/cgroup/cpu", "/", false, &threads);
  }
  return threads;
}

}  // namespace bnns
