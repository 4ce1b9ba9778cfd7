// The CPU quota, read from folders that look like those of real systems.

#include "src/core/process/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bnns {
namespace {

class CgroupThreads : public ::testing::Test {
 protected:
  CgroupThreads() {
    std::string name = ::testing::TempDir() + "cgroup_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~CgroupThreads() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void v2(const std::string& group, const std::string& shown = "/") {
    write("/proc/self/cgroup", "0::" + group + "\n");
    std::string mounts(5000, 'x');
    mounts += " a line that is longer than any buffer\n22 1 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n";
    write("/proc/self/mountinfo",
          mounts + "30 22 0:26 " + shown + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void v1(const std::string& group, const std::string& shown = "/") {
    write("/proc/self/cgroup", "11:memory:/other\n4:cpu,cpuacct:" + group + "\n1:name=systemd:/x\n0::/not/this\n");
    write("/proc/self/mountinfo", "33 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n34 30 0:29 " +
                                      shown +
                                      " /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct\n");
  }
  void v1_quota(const std::string& folder, const std::string& quota, const std::string& period) {
    write("/sys/fs/cgroup/cpu,cpuacct" + folder + "/cpu.cfs_quota_us", quota + "\n");
    write("/sys/fs/cgroup/cpu,cpuacct" + folder + "/cpu.cfs_period_us", period + "\n");
  }
  size_t threads() const { return cgroup_threads(root_.c_str()); }

  std::string root_;
};

TEST_F(CgroupThreads, NothingToRead) {
  EXPECT_EQ(threads(), 0u);
  v2("/");
  EXPECT_EQ(threads(), 0u);
}

// The root of a v2 hierarchy has no cpu.max at all; the quota stands in the process's own group.
TEST_F(CgroupThreads, OwnGroupOfVersion2) {
  v2("/user.slice/job.scope");
  write("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "250000 100000\n");
  EXPECT_EQ(threads(), 3u);
}

TEST_F(CgroupThreads, SmallestOfTheGroupsAbove) {
  v2("/a/b/c");
  write("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  EXPECT_EQ(threads(), 2u);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "50000 100000\n");
  EXPECT_EQ(threads(), 1u);
}

// A container with a namespace of its own: the group is "/", and the mount is that group.
TEST_F(CgroupThreads, TopOfANamespace) {
  v2("/");
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(threads(), 4u);
}

// A process that was moved out of its namespace's top sees "/../other": the mount itself is all it can read.
TEST_F(CgroupThreads, OutsideOfTheNamespace) {
  v2("/../other");
  write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  write("/sys/fs/other/cpu.max", "100000 100000\n");
  EXPECT_EQ(threads(), 3u);
}

TEST_F(CgroupThreads, OwnGroupOfVersion1) {
  v1("/docker/42");
  v1_quota("", "-1", "100000");
  v1_quota("/docker", "600000", "100000");
  v1_quota("/docker/42", "150000", "100000");
  EXPECT_EQ(threads(), 2u);
  v1_quota("/docker/42", "-1", "100000");
  EXPECT_EQ(threads(), 6u);
}

// A container without a namespace: it is told the host's path, and the mount shows that group as its top.
TEST_F(CgroupThreads, MountOfAnInnerGroup) {
  v1("/docker/42/inner", "/docker/42");
  v1_quota("", "500000", "100000");
  v1_quota("/inner", "700000", "100000");
  EXPECT_EQ(threads(), 5u);
  v1("/docker/421", "/docker/42");  // beside it, not below it
  v1_quota("/1", "100000", "100000");
  EXPECT_EQ(threads(), 5u);
}

TEST_F(CgroupThreads, UsualPlacesWithoutMountinfo) {
  write("/proc/self/cgroup", "0::/a\n");
  write("/sys/fs/cgroup/a/cpu.max", "700000 100000\n");
  EXPECT_EQ(threads(), 7u);
  std::filesystem::remove(root_ + "/proc/self/cgroup");
  write("/sys/fs/cgroup/cpu.max", "200000 100000");  // no end of line
  EXPECT_EQ(threads(), 2u);
  std::filesystem::remove(root_ + "/sys/fs/cgroup/cpu.max");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "900000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(threads(), 9u);
}

TEST_F(CgroupThreads, NonsenseIsNoQuota) {
  v2("/a");
  for (const char* text : {"", "\n", "max", "x y", "-5 100000", "100000 0", "100000"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(threads(), 0u) << text;
  }
  v2("/" + std::string(5000, 'd'));  // a path that fits nowhere
  EXPECT_EQ(threads(), 0u);
}

}  // namespace
}  // namespace bnns
