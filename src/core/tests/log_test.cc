// The log in a process of many threads: a forked child is refused and goes on, whatever the others did at the fork.
// What is printed is the matter of tests/refusals.

#include "src/core/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "bnns/bnns.h"

namespace bnns {
namespace {

TEST(Log, ForkedChildIsRefusedWhileOthersAre) {
  std::atomic<bool> stop{false};
  static std::atomic<size_t> told;
  BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) { ++told; }, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) BNNSFilterApply(nullptr, nullptr, nullptr);
    });
  }
  while (told < 1000) std::this_thread::yield();
  int hung = 0;
  for (int round = 0; round < 300 && hung == 0; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);  // ends a child that waits for a lock
      _exit(BNNSFilterApply(nullptr, nullptr, nullptr) == -1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    hung += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  BNNSExtSetLogCallback(nullptr, nullptr);
  EXPECT_EQ(hung, 0);
}

TEST(Log, NotesAreWantedWithACallbackAlone) {
  EXPECT_FALSE(notes_wanted());
  EXPECT_FALSE(verbose());
  BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) {}, nullptr);
  EXPECT_TRUE(notes_wanted());
  EXPECT_FALSE(verbose());
  BNNSExtSetLogCallback(nullptr, nullptr);
  EXPECT_FALSE(notes_wanted());
}

}  // namespace
}  // namespace bnns
