// ForkMutex: a mutex among threads, and free in a child whose parent held it.

#include "src/core/process/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

namespace bnns {
namespace {

// The child's answer, or -1 when it did not end by itself within 10 seconds.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    _exit(body());
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkMutex, OneThreadAtATime) {
  ForkMutex mutex;
  size_t total = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const ForkLock lock(mutex);
        EXPECT_TRUE(lock.intact());
        ++total;
        if (i % 1000 == 0) std::this_thread::yield();  // others find it locked
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, 8u * 20000);
}

TEST(ForkMutex, ChildFindsTheParentsLockFreeAndKnowsIt) {
  for (const bool awaited : {false, true}) {
    ForkMutex mutex;
    mutex.lock();
    std::thread waiting;
    if (awaited) {
      waiting = std::thread([&] { const ForkLock lock(mutex); });
      usleep(20000);
    }
    EXPECT_EQ(in_child([&] {
                if (mutex.lock()) return 1;  // this thread's own lock of before the fork counts as abandoned too
                mutex.unlock();
                const ForkLock again(mutex);
                return again.intact() ? 0 : 2;
              }),
              0);
    mutex.unlock();  // the parent's is as it was
    if (awaited) waiting.join();
    EXPECT_TRUE(ForkLock(mutex).intact());
  }
}

TEST(ForkMutex, FreeLockIsIntactInTheChild) {
  ForkMutex mutex;
  EXPECT_EQ(in_child([&] { return ForkLock(mutex).intact() ? 0 : 1; }), 0);
}

TEST(ForkGeneration, CountsForks) {
  const uint32_t here = fork_generation();
  EXPECT_EQ(in_child([&] {
              if (fork_generation() != here + 1) return 1;
              return in_child([&] { return fork_generation() == here + 2 ? 0 : 2; });
            }),
            0);
  EXPECT_EQ(fork_generation(), here);
}

}  // namespace
}  // namespace bnns
