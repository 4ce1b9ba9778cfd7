// The CPU quota of the control group that this process runs in.
#pragma once

#include <cstddef>

namespace bnns {

// Threads that the quota allows, rounded up: the smallest of the process's own group and all groups above it, of cgroup
// v2 and v1. 0 when there is none. Allocates nothing. `root` stands before every path that is read; tests give a
// folder.
size_t cgroup_threads(const char* root = "") noexcept;

}  // namespace bnns
