// What belongs to the caller's thread stays as it is: its signal mask, the CPUs it may run on, locale, priority; after
// calls that work and after calls that are refused. (Rounding and traps: float_mode_test.)

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <clocale>

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

struct State {
  std::string signals, cpus, locale;
  int nice = 0;
  bool operator==(const State&) const = default;
};

State state() {
  State s;
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  for (int signal = 1; signal < NSIG; ++signal) s.signals += sigismember(&mask, signal) == 1 ? '1' : '0';
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) s.cpus += CPU_ISSET(cpu, &cpus) ? '1' : '0';
  s.locale = std::setlocale(LC_ALL, nullptr);
  s.nice = getpriority(PRIO_PROCESS, 0);
  return s;
}

TEST(CallerState, IsAsBeforeEachCall) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  std::setlocale(LC_ALL, "C.UTF-8");
  const State expected = state();
  size_t calls = 0, refused = 0;
  for (const auto& layer : every_layer()) {
    FilterOptions options = {};
    options.n_threads = kTableThreads;
    BNNSFilter filter = layer->create ? layer->create(&options) : nullptr;
    EXPECT_TRUE(state() == expected) << layer->name << ": creation";
    for (const Layer::Call& call : layer->calls) {
      EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
      EXPECT_TRUE(state() == expected) << layer->name << ": " << call.name;
      ++calls;
      refused += call.run(nullptr, &options) != 0;  // for want of a filter, where it takes one
      EXPECT_TRUE(state() == expected) << layer->name << ": " << call.name << ", refused";
    }
    BNNSFilterDestroy(filter);
    EXPECT_TRUE(state() == expected) << layer->name << ": destruction";
  }
  std::setlocale(LC_ALL, "C");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_GT(refused, 100u);
  RecordProperty("figure", std::to_string(calls) + " calls and " + std::to_string(refused) +
                               " refused ones left signals, CPUs, locale and priority alone");
}

}  // namespace
}  // namespace bnns::testing
