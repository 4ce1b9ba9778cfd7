// A group: what was agreed on when it was made, the stream of arrays of the step under way, and the calls.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bnns/bnns_distributed.h"
#include "src/mpi/engine.h"
#include "src/mpi/stream.h"

namespace bnns::mpi {

class Group {
 public:
  // Throws Error on every rank where the ranks do not agree.
  static Group* create(const void* communicator, const BNNSExtGroupParameters* parameters);
  // Meets the other ranks and ends the group, which is gone whether this throws or not.
  static void finalize(Group* group);

  bool is_alive() const { return alive_ == kAlive; }
  size_t rank() const { return static_cast<size_t>(link_.rank); }
  size_t size() const { return static_cast<size_t>(link_.size); }
  size_t shards() const { return all_shards_ / size(); }

  void items(size_t batch, size_t shard, size_t* first, size_t* count) const;
  void broadcast(size_t root, size_t n, BNNSNDArrayDescriptor* const* arrays);
  void all_reduce(BNNSExtGroupReduction reduction, size_t n, BNNSNDArrayDescriptor* const* arrays);
  void reduce_start(BNNSExtGroupReduction reduction, size_t shard, size_t n,
                    const BNNSNDArrayDescriptor* const* arrays);
  void reduce_wait();
  // Refuses a gradient that was not given since the last wait.
  void check_started(size_t n, const BNNSNDArrayDescriptor* const* gradients) const;

 private:
  Group(const Link& link, const BNNSExtGroupParameters& parameters);
  Record next_call(Call call, size_t detail, size_t arrays);
  void meet(std::vector<Record> records);
  static void finalize_failed(Group* group);
  static void check_parameters(const BNNSExtGroupParameters& parameters, const Link& link);

  static constexpr uint64_t kAlive = 0x62'6e'6e'73'6d'70'69'21u;
  uint64_t alive_ = kAlive;
  Link link_;
  size_t all_shards_;
  uint32_t calls_ = 0;
  std::unique_ptr<Engine> engine_;  // none where there is one rank
  std::unique_ptr<Stream> step_;    // of shards
  std::unique_ptr<Stream> ranks_;   // of all_reduce
};

}  // namespace bnns::mpi
