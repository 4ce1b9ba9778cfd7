#include "src/mpi/engine.h"

#include <sched.h>

#include <algorithm>

#include "src/core/error.h"
#include "src/core/float_mode.h"

namespace bnns::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr size_t kAtOnce = 4;      // operations under way: one's latency hides behind another's bytes
constexpr uint64_t kTags = 8192;   // two for each operation; MPI promises 32767
constexpr double kSilence = 0.85;  // of the timeout, until the ranks ask each other who is missing
constexpr int kBusyPolls = 2000;   // without progress before a waiting thread sleeps
constexpr auto kSleep = std::chrono::microseconds(50), kThreadSleep = std::chrono::microseconds(200);

int tag_of(uint64_t sequence) {
  return static_cast<int>(sequence % kTags) * 2;
}

}  // namespace

Engine::Engine(const Link& link, double timeout) : link_(link), timeout_(timeout) {
  if (!allows_threads()) return;
  thread_ = std::thread([this] { keep_going(); });
}

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Engine::submit(Operation& operation) {
  check_alive();
  {
    const std::lock_guard lock(mutex_);
    const uint64_t sequence = sequence_++;
    pending_.push_back({.operation = &operation,
                        .mine = {sequence, hash_of(sequence, operation.records)},
                        .theirs = {},
                        .exchange = {}});
    moved_ = Clock::now();
    if (trouble_.cause == Trouble::Cause::none) progress();
  }
  work_.notify_one();
}

void Engine::poll() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // busy: it goes on as it is
  if (lock && !pending_.empty() && trouble_.cause == Trouble::Cause::none) progress();
}

void Engine::wait() {
  check_alive();
  const std::lock_guard lock(mutex_);
  moved_ = Clock::now();
  for (int idle = 0; !pending_.empty();) {
    if (trouble_.cause == Trouble::Cause::none && progress()) {
      idle = 0;
      continue;
    }
    if (trouble_.cause == Trouble::Cause::none && ++idle % 64 == 0 &&
        Seconds(Clock::now() - moved_).count() > kSilence * timeout_) {
      note(Trouble::Cause::timeout, -1, "");
    }
    if (trouble_.cause != Trouble::Cause::none) fail();
    if (idle < kBusyPolls) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

void Engine::check_alive() const {
  if (has_failed()) fail_invalid("%s", failure_.c_str());
}

// One look at everything under way. Under the mutex. Whether something moved; trouble is noted.
bool Engine::progress() {
  bool moved = false, all_before_run = true;
  try {
    for (size_t i = 0; i < std::min(kAtOnce, pending_.size()); ++i) {
      Pending& p = pending_[i];
      const Phase before = p.phase;
      const int round = p.round;
      moved = progress_one(p, all_before_run) || p.phase != before || p.round != round || moved;
      all_before_run = all_before_run && p.phase >= Phase::running;
    }
    while (!pending_.empty() && pending_.front().phase == Phase::done) pending_.pop_front();
    if (!moved && link_.size > 1) {  // somebody may have something to say; one rank's turn each time
      probed_ = (probed_ + 1) % link_.size;
      if (probed_ != link_.rank && reports_trouble(link_, probed_)) note(Trouble::Cause::told, -1, "");
    }
  } catch (const MpiFailure& failure) {
    note(Trouble::Cause::lost, failure.rank, failure.what());
  }
  if (moved) moved_ = Clock::now();
  return moved;
}

// Collectives of MPI begin in the same order on every rank, so none before all earlier ones run.
bool Engine::progress_one(Pending& p, bool all_before_run) {
  if (p.phase == Phase::agreeing && agree(p)) p.phase = Phase::agreed;
  if (p.phase == Phase::agreed && all_before_run) p.phase = Phase::running;
  if (p.phase != Phase::running || !p.operation->advance(link_, tag_of(p.mine.sequence) + 1)) return false;
  p.phase = Phase::done;
  return true;
}

bool Engine::agree(Pending& p) {
  for (; (1 << p.round) < link_.size; ++p.round) {
    const int step = 1 << p.round;
    if (!p.exchange.is_under_way()) {
      const int to = (link_.rank + step) % link_.size, from = (link_.rank - step + link_.size) % link_.size;
      p.exchange.start(link_, tag_of(p.mine.sequence), to, &p.mine, sizeof p.mine, from, &p.theirs, sizeof p.theirs);
    }
    if (!p.exchange.test()) return false;
    if (p.theirs.sequence != p.mine.sequence || p.theirs.hash != p.mine.hash) {
      note(Trouble::Cause::mismatch, -1, "");
      return false;
    }
  }
  return true;
}

void Engine::note(Trouble::Cause cause, int rank, const std::string& text) {
  if (trouble_.cause == Trouble::Cause::none) trouble_.cause = cause, trouble_.lost_rank = rank, trouble_.text = text;
}

// Ends the group: asks all ranks where they stand, and throws what they conclude.
void Engine::fail() {
  Standing mine{
      .trouble = trouble_, .next = sequence_, .waited = Seconds(Clock::now() - moved_).count(), .operations = {}};
  for (const Pending& p : pending_) mine.operations.push_back({p.mine.sequence, p.operation->records});
  failure_ = "group: " + conclude(link_, mine, timeout_);
  fail_invalid("%s", failure_.c_str());
}

void Engine::keep_going() {
  const FloatMode mode;  // sums have the same bits whichever thread adds
  std::unique_lock lock(mutex_);
  while (!stop_) {
    work_.wait(lock, [this] { return stop_ || (!pending_.empty() && trouble_.cause == Trouble::Cause::none); });
    while (!stop_ && !pending_.empty() && trouble_.cause == Trouble::Cause::none) {
      const bool moved = progress();
      lock.unlock();
      if (moved) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(kThreadSleep);
      }
      lock.lock();
    }
  }
}

}  // namespace bnns::mpi
