// What ranks tell each other when something is wrong, and the one line that they conclude.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/mpi/call.h"
#include "src/mpi/link.h"

namespace bnns::mpi {

struct Trouble {
  enum class Cause : uint32_t {
    none,
    mismatch,  // a rank was asked for something else than this one
    timeout,   // nothing moved for too long
    lost,      // MPI says that a message to or from lost_rank failed
    told,      // another rank says so
  };
  Cause cause = Cause::none;
  int lost_rank = -1;
  std::string text;  // MPI's words
};

// Where a rank stands: what it has not finished, in order, and the sequence number that its next operation will have.
struct Standing {
  struct Unfinished {
    uint64_t sequence;
    std::vector<Record> records;
  };
  Trouble trouble;
  uint64_t next;
  double waited;  // seconds since anything moved here
  std::vector<Unfinished> operations;
};

// Whether `rank` has sent its standing.
bool reports_trouble(const Link& link, int rank);

// Sends `mine` to all ranks and waits for theirs: at most a tenth of the timeout where it has passed already or a rank
// is lost, else nine tenths of it. Returns what is wrong, in the same words on every rank that hears of the same.
std::string conclude(const Link& link, const Standing& mine, double timeout);

}  // namespace bnns::mpi
