// Something that all ranks do together, after they have agreed on it (agreement.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/mpi/arithmetic.h"
#include "src/mpi/call.h"
#include "src/mpi/link.h"

namespace bnns::mpi {

class Operation {
 public:
  virtual ~Operation() = default;
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Called again and again until it returns true: what could be done was done, and nothing waits. `tag` is this
  // operation's own. Throws MpiFailure.
  virtual bool advance(const Link& link, int tag) = 0;

  std::vector<Record> records;  // what the ranks compare
};

// Nothing but the agreement: that a group begins, or ends.
class Meeting final : public Operation {
 public:
  bool advance(const Link&, int) override { return true; }
};

// A block of bytes from one rank to all others.
class Broadcast final : public Operation {
 public:
  Broadcast(int root, size_t bytes) : root_(root), bytes_(bytes) {}
  char* data() { return bytes_.data(); }
  bool advance(const Link& link, int tag) override;

 private:
  int root_;
  std::vector<char> bytes_;
  std::vector<MPI_Request> requests_;
  bool begun_ = false;
};

// A block of values of all ranks becomes their sum or maximum on every rank.
//
// Deterministic: recursive halving, then doubling. In step d rank r exchanges with r ^ 2^d, lower distances first: a
// sum is ((0 + 1) + (2 + 3)) + ..., the tree's order, whatever part of the block a rank works on. Each rank sends and
// receives 2 (1 - 1 / ranks) of the block. A small block is not halved: half as many steps.
class TreeReduction final : public Operation {
 public:
  TreeReduction(WireType wire, Combine how, int ranks);
  // `other` has space for n values too. Both live until advance() has returned true.
  void set_block(void* values, void* other, size_t n);
  bool advance(const Link& link, int tag) override;

 private:
  struct Range {
    size_t begin, end;
    size_t size() const { return end - begin; }
  };
  bool start_step(const Link& link, int tag);
  void finish_step(const Link& link);
  char* at(void* base, size_t i) const { return static_cast<char*>(base) + i * wire_.bytes(); }

  WireType wire_;
  Combine how_;
  void *values_ = nullptr, *other_ = nullptr;
  bool halves_ = false;
  int distances_ = 0, step_ = 0;  // 2^distances_ ranks
  std::vector<Range> ranges_;     // what this rank worked on before and after each halving
  Exchange exchange_;
};

// The same by MPI_Iallreduce, in MPI's own order.
class FastReduction final : public Operation {
 public:
  FastReduction(WireType wire, Combine how) : wire_(wire), how_(how) {}
  void set_block(void* values, size_t n) { values_ = values, n_ = n; }
  bool advance(const Link& link, int tag) override;

 private:
  WireType wire_;
  Combine how_;
  void* values_ = nullptr;
  size_t n_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool begun_ = false;
};

}  // namespace bnns::mpi
