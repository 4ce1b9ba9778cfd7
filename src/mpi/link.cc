#include "src/mpi/link.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>

#include "src/core/error.h"

namespace bnns::mpi {
namespace {

std::atomic<int> living_groups{0};
std::atomic<bool> any_failed{false};

std::string message_of(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(call) + ": " + text;
}

// MPI_Finalize waits for every rank: only where all groups ended together.
void finalize_at_exit() {
  int done = 0;
  MPI_Finalized(&done);
  if (!done && living_groups == 0 && !any_failed) MPI_Finalize();
}

}  // namespace

MpiFailure::MpiFailure(const char* call, int code, int about)
    : std::runtime_error(message_of(call, code)), rank(about) {}

void Exchange::start(const Link& link, int tag, int to, const void* out, size_t out_bytes, int from, void* in,
                     size_t in_bytes) {
  ranks_[0] = from, ranks_[1] = to;
  check_mpi(MPI_Irecv(in, static_cast<int>(in_bytes), MPI_BYTE, from, tag, link.comm, &requests_[0]), "MPI_Irecv",
            from);
  check_mpi(MPI_Isend(out, static_cast<int>(out_bytes), MPI_BYTE, to, tag, link.comm, &requests_[1]), "MPI_Isend", to);
  under_way_ = true;
}

bool Exchange::test() {
  bool all = true;
  for (int i = 0; i < 2; ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    int done = 0;
    check_mpi(MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE), "MPI_Test", ranks_[i]);
    all = all && done != 0;
  }
  if (all) under_way_ = false;
  return all;
}

bool is_mpi_running() {
  int begun = 0, done = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&done);
  return begun != 0 && done == 0;
}

bool was_started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

void start_mpi() {
  int done = 0;
  MPI_Finalized(&done);
  if (done) fail_invalid("group: MPI has been finalized in this process, and cannot be initialized again");
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
    fail_invalid("group: MPI_Init_thread failed");
  }
  // Another MPI's mpirun starts ranks that do not see each other: each would train alone.
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* text = std::getenv(name);
    if (size > 1 || text == nullptr || std::atoi(text) <= 1) continue;
    fail_invalid(
        "group: %s is %s, but MPI sees 1 rank: this mpirun is not that of the MPI that libbnns_mpi was built with",
        name, text);
  }
  std::atexit(finalize_at_exit);
}

void group_began() {
  ++living_groups;
}

void group_ended(bool failed) {
  --living_groups;
  if (failed) any_failed = true;
}

bool allows_threads() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

Link make_link(MPI_Comm comm, double timeout) {
  using Clock = std::chrono::steady_clock;
  Link link;
  MPI_Comm_rank(comm, &link.rank);
  MPI_Comm_size(comm, &link.size);
  if (link.size == 1) return link;
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Comm_idup(comm, &link.comm, &request) != MPI_SUCCESS) {
    fail_invalid("group: MPI_Comm_idup failed on rank %d", link.rank);
  }
  const auto began = Clock::now();
  for (int done = 0; !done; sched_yield()) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      fail_invalid("group: MPI_Comm_idup failed on rank %d", link.rank);
    }
    if (std::chrono::duration<double>(Clock::now() - began).count() > timeout) {
      fail_invalid("group: some of the %d ranks did not come to BNNSExtGroupCreate within %g s of rank %d", link.size,
                   timeout, link.rank);
    }
  }
  MPI_Comm_set_errhandler(link.comm, MPI_ERRORS_RETURN);
  return link;
}

}  // namespace bnns::mpi
