// MPI as the group uses it: its own communicator, whose errors are returned, and the number of this rank.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C++ bindings of old, which would have to be linked
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <stdexcept>

namespace bnns::mpi {

struct Link {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
};

// An MPI call that failed, and the rank that it was about, or -1. Never leaves the library.
struct MpiFailure : std::runtime_error {
  MpiFailure(const char* call, int code, int rank);
  int rank;
};

inline void check_mpi(int code, const char* call, int rank = -1) {
  if (code != MPI_SUCCESS) throw MpiFailure(call, code, rank);
}

// A pair of messages, out to one rank and in from another (or the same), that are under way.
class Exchange {
 public:
  bool is_under_way() const { return under_way_; }
  void start(const Link& link, int tag, int to, const void* out, size_t out_bytes, int from, void* in, size_t in_bytes);
  // Whether both have arrived. Throws MpiFailure.
  bool test();

 private:
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int ranks_[2] = {-1, -1};
  bool under_way_ = false;
};

// MPI for this process. A process that no launcher started does without.
bool is_mpi_running();
bool was_started_by_launcher();
// Initializes MPI; it is finalized when the process exits, unless a group is alive then or has failed.
void start_mpi();
void group_began();
void group_ended(bool failed);

// Whether another thread may call MPI while the caller's threads do.
bool allows_threads();

// Duplicates a communicator. Throws Error if its ranks do not all come within the timeout.
Link make_link(MPI_Comm comm, double timeout);

}  // namespace bnns::mpi
