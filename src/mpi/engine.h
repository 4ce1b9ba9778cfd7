// The operations of a group in the order of the calls: first the ranks agree on one, then it runs, several at a time.
//
// Agreement is a dissemination barrier: in round d rank r tells r + 2^d what it was asked for and hears it from r -
// 2^d. After ceil(log2 ranks) rounds every rank has come and all were asked for the same, since each heard, over
// others, of all. So no array moves before, and a message of unexpected size never exists.
//
// What went wrong ends the group: the ranks tell each other where they stand (trouble.h), and every call from then on
// throws the reason.
//
// Where MPI allows it, a thread keeps what is under way going while the caller computes; else calls do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "src/mpi/operation.h"
#include "src/mpi/trouble.h"

namespace bnns::mpi {

class Engine {
 public:
  Engine(const Link& link, double timeout);
  ~Engine() { stop(); }
  void stop();  // our thread

  // Takes its place behind what was submitted before. The operation lives until wait() has returned.
  void submit(Operation& operation);
  // Lets what is under way go on; cheap.
  void poll();
  // Until all that was submitted is done. Throws Error with the reason of all ranks.
  void wait();
  // Throws the reason, if the group has failed.
  void check_alive() const;
  bool has_failed() const { return !failure_.empty(); }
  const Link& link() const { return link_; }

 private:
  enum class Phase { agreeing, agreed, running, done };
  struct Greeting {  // what an agreement's message holds
    uint64_t sequence, hash;
  };
  struct Pending {
    Operation* operation;
    Greeting mine, theirs;
    Phase phase = Phase::agreeing;
    int round = 0;
    Exchange exchange;
  };
  bool progress();
  bool progress_one(Pending& p, bool all_before_run);
  bool agree(Pending& p);
  void keep_going();
  void note(Trouble::Cause cause, int rank, const std::string& text);
  [[noreturn]] void fail();

  const Link link_;
  const double timeout_;
  std::mutex mutex_;  // all below; the caller's thread and ours
  std::condition_variable work_;
  std::deque<Pending> pending_;
  uint64_t sequence_ = 0;
  int probed_ = 0;
  Trouble trouble_;
  std::chrono::steady_clock::time_point moved_{};
  std::string failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace bnns::mpi
