// The thread pool: every task once, nested and concurrent calls, fork, defaults.

#include "src/core/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/core/isa.h"
#include "src/core/log.h"

namespace bnns {
namespace {

TEST(ParallelFor, RunsEveryTaskOnceWithItsOwnSlot) {
  for (size_t threads : {1, 2, 3, 7, 16}) {
    for (size_t tasks : {0, 1, 2, 5, 64, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      std::vector<std::atomic<int>> in_slot(threads);
      std::atomic<int> clashes{0};
      parallel_for(tasks, threads, [&](size_t i, size_t worker) {
        clashes += worker >= threads || in_slot[worker].fetch_add(1) != 0;
        ++runs[i];
        --in_slot[worker];
      });
      for (size_t i = 0; i < tasks; ++i) ASSERT_EQ(runs[i].load(), 1) << threads << " threads, task " << i;
      EXPECT_EQ(clashes.load(), 0);
    }
  }
}

// Both tasks wait for each other, so each thread has one of them: its own share, in every call.
TEST(ParallelFor, ThreadsBeginWithTheirOwnShare) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> arrived{0};
    std::atomic<size_t> slots[2] = {7, 7};
    parallel_for(2, 2, [&](size_t i, size_t worker) {
      slots[i] = worker;
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    ASSERT_EQ(slots[0].load(), 0u);
    ASSERT_EQ(slots[1].load(), 1u);
  }
}

// BC51: a call from inside a task runs on its caller; it neither deadlocks nor starts more threads.
TEST(ParallelFor, NestedCallsFinish) {
  std::atomic<size_t> total{0};
  parallel_for(8, 4, [&](size_t, size_t) { parallel_for(100, 4, [&](size_t, size_t) { ++total; }); });
  EXPECT_EQ(total.load(), 800u);
}

TEST(ParallelFor, ManyCallersAtOnce) {
  std::atomic<size_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 16; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) parallel_for(10, 3, [&](size_t, size_t) { ++total; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 16u * 200 * 10);
}

// Signals of the process reach the application's threads only, whatever a worker is doing.
TEST(ParallelFor, WorkersTakeNoSignals) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own and delivers signals late; the plain build proves this";
#endif
  static std::atomic<long> taken_by{0};
  struct sigaction before = {}, action = {};
  action.sa_handler = [](int) { taken_by = syscall(SYS_gettid); };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  sigset_t usr1, mask;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, &mask), 0);
  std::atomic<size_t> total{0};
  parallel_for(64, 4, [&](size_t, size_t) { ++total; });  // workers exist from here on
  ASSERT_EQ(kill(getpid(), SIGUSR1), 0);
  parallel_for(64, 4, [&](size_t, size_t) {
    usleep(100);
    ++total;
  });
  EXPECT_EQ(total.load(), 128u);
  EXPECT_EQ(taken_by.load(), 0) << "a worker took the signal";
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &mask, nullptr), 0);  // it was waiting for this thread
  EXPECT_EQ(taken_by.load(), syscall(SYS_gettid));
  sigaction(SIGUSR1, &before, nullptr);

  size_t workers = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) != 0) continue;
      ++workers;
      const unsigned long long blocked = std::stoull(line.substr(7), nullptr, 16);
      for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE, SIGRTMAX}) {
        EXPECT_TRUE(blocked >> (signal - 1) & 1) << "signal " << signal;
      }
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {  // a fault is the thread's own, and its handler's
        EXPECT_FALSE(blocked >> (fault - 1) & 1) << "signal " << fault;
      }
    }
  }
  EXPECT_GE(workers, 3u);
}

// BC50: the child of a fork has no workers; it must make its own and not wait for the parent's.
TEST(ParallelFor, WorksAfterFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads; the plain and ASan builds prove this";
#endif
  parallel_for(8, 4, [](size_t, size_t) {});
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // fork while another thread is inside a parallel call
    while (!stop) parallel_for(50, 4, [](size_t, size_t) {});
  });
  for (int child = 0; child < 20; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(5);
      std::atomic<size_t> total{0};
      parallel_for(64, 4, [&](size_t, size_t) { ++total; });
      const std::filesystem::directory_iterator first("/proc/self/task"), end;
      const auto threads = std::distance(first, end);
      _exit(total != 64 ? 1 : threads == 4 ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << child << " status " << status;
  }
  stop = true;
  busy.join();
}

// BC52: the default follows the affinity mask.
TEST(DefaultThreads, FollowsAffinityAndCanBeSet) {
  if (getenv("BNNS_NUM_THREADS")) GTEST_SKIP() << "BNNS_NUM_THREADS is set and overrides the affinity mask";
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  set_default_threads(0);
  EXPECT_EQ(default_threads(), 1u);
  sched_setaffinity(0, sizeof before, &before);
  set_default_threads(5);
  EXPECT_EQ(default_threads(), 5u);
  set_default_threads(0);
  EXPECT_GE(default_threads(), 1u);
}

// Settings that mean nothing are passed over, with a line that says so.
TEST(Environment, MisspeltSettingsAreNamed) {
  if (getenv("BNNS_NUM_THREADS") || getenv("BNNS_MAX_ISA")) GTEST_SKIP() << "the environment has settings of its own";
  std::string lines;
  set_log_callback([](BNNSExtLogLevel, const char* line, void* user) { *static_cast<std::string*>(user) += line; },
                   &lines);
  const Isa before = isa();
  const size_t threads = default_threads();
  for (const char* text : {"avx", "", "0", "-2", "3x"}) {
    lines.clear();
    setenv("BNNS_MAX_ISA", text, 1);
    EXPECT_EQ(detail::detect_isa(), static_cast<int>(before));
    EXPECT_EQ(lines, "BNNS_MAX_ISA=" + std::string(text) +
                         " in the environment is ignored, expected sse4, avx2, avx512, avx512_bf16 or amx");
    lines.clear();
    setenv("BNNS_NUM_THREADS", text, 1);
    set_default_threads(0);
    EXPECT_EQ(default_threads(), threads);
    EXPECT_EQ(lines, "BNNS_NUM_THREADS=" + std::string(text) +
                         " in the environment is ignored, expected a number of threads, 1 or more");
  }
  lines.clear();
  setenv("BNNS_MAX_ISA", "sse4", 1), setenv("BNNS_NUM_THREADS", "3", 1);
  EXPECT_EQ(detail::detect_isa(), static_cast<int>(Isa::baseline));
  set_default_threads(0);
  EXPECT_EQ(default_threads(), 3u);
  setenv("VECLIB_MAXIMUM_THREADS", "4", 1);  // Accelerate's name; ours goes before it
  set_default_threads(0);
  EXPECT_EQ(default_threads(), 3u);
  unsetenv("BNNS_NUM_THREADS");
  set_default_threads(0);
  EXPECT_EQ(default_threads(), 4u);
  unsetenv("VECLIB_MAXIMUM_THREADS");
  EXPECT_EQ(lines, "");
  unsetenv("BNNS_MAX_ISA"), unsetenv("BNNS_NUM_THREADS");
  set_log_callback(nullptr, nullptr);
  set_max_isa(before);
  set_default_threads(0);
}

TEST(ThreadsFor, SmallWorkStaysOnTheCaller) {
  EXPECT_EQ(threads_for(8, 100, kMinThreadWork - 1), 1u);
  EXPECT_EQ(threads_for(8, 100, 3 * kMinThreadWork), 3u);
  EXPECT_EQ(threads_for(8, 2, SIZE_MAX), 2u);
  EXPECT_EQ(threads_for(3, 100, SIZE_MAX), 3u);
}

}  // namespace
}  // namespace bnns
