#include "tools/bnns/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace bnns::tool {
namespace {

// docs/settings.md says what each does.
constexpr const char* kVariables[] = {"BNNS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "BNNS_MAX_ISA",   "BNNS_PRECISION",
                                      "BNNS_SKIP",        "BNNS_VERBOSE",           "BNNS_CHECK_NAN", "BNNS_TRACE",
                                      "BNNS_PROFILE",     "BNNS_MPS_DEVICE"};

// What stands behind "name" and a colon in a file of /proc; "" if there is no such line.
std::string field(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const std::size_t colon = line.find(':'),
                      begin = colon == line.npos ? line.npos : line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

// The smallest limit of the control groups (version 2) that this process is in, up to the root of what it sees.
double cgroup_quota() {
  std::ifstream file("/proc/self/cgroup");
  std::string line, group;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) == 0) group = line.substr(3);
  }
  double least = 0;
  const std::filesystem::path root = "/sys/fs/cgroup";
  for (std::filesystem::path at = std::filesystem::path("/") / group;; at = at.parent_path()) {
    std::ifstream limit(root / at.relative_path() / "cpu.max");
    std::string quota;
    double period = 0;
    if (limit >> quota >> period && quota != "max" && period > 0) {
      const double cores = std::atof(quota.c_str()) / period;
      if (cores > 0 && (least == 0 || cores < least)) least = cores;
    }
    if (at == at.parent_path()) return least;
  }
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Machine this_machine() {
  Machine m;
  m.cpu = field("/proc/cpuinfo", "model name");
  m.cores = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t mask;
  m.allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<std::size_t>(CPU_COUNT(&mask)) : m.cores;
  m.quota = cgroup_quota();
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    const std::string model = field(entry.path() / "information", "Model");
    if (!model.empty()) m.gpus.push_back(model);
  }
  return m;
}

std::vector<std::pair<std::string, std::string>> settings_in_force() {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : kVariables) {
    if (is_set(name)) found.emplace_back(name, std::getenv(name));
  }
  return found;
}

std::string source_of_threads(std::size_t threads) {
  for (const char* name : {"BNNS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"}) {
    if (is_set(name) && std::getenv(name) == std::to_string(threads)) return name;
  }
  return "what this process may use";
}

}  // namespace bnns::tool
