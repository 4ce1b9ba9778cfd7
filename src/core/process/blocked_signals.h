// Threads of the library take none of the application's signals: a new thread inherits the mask of its maker.
//
// Handlers expect the application's own threads, and a call that is interrupted there knows what to do. Faults stay
// open: they belong to the thread that makes them, and blocked they end the process past the handler of whoever manages
// memory by them.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace bnns {

// Around the start of a thread.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace bnns
