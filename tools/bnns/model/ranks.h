// The ranks of `mpirun -n 4 bnns train`: who trains on which digits of a batch, and how their gradients meet.
#pragma once

#include <bnns/bnns.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace bnns::tool {

class Ranks {
 public:
  enum class Reduction { sum, mean, max };
  struct Items {
    std::size_t first, count;
  };

  // Whether mpirun or srun started this process, one of several.
  static bool launched();
  // The group of all ranks, with `shards` shards in every batch (0: 8); of this process alone where none was launched.
  // Throws LibraryError, also where bnns was built without MPI.
  static std::unique_ptr<Ranks> create(std::size_t shards);
  // Leaves without a word: a group ends by finish() alone, so that an error does not wait for other ranks.
  ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }
  std::size_t shards() const { return shards_; }  // of this rank
  std::size_t all_shards() const { return size_ * shards_; }
  Items items(std::size_t batch, std::size_t shard) const;

  // The calls of bnns_distributed.h by these names; each throws LibraryError.
  void broadcast(std::vector<BNNSNDArrayDescriptor> arrays);
  void all_reduce(Reduction reduction, BNNSNDArrayDescriptor array);
  void start(Reduction reduction, std::size_t shard, std::span<const BNNSNDArrayDescriptor> arrays);
  void adam_step(const BNNSOptimizerAdamFields& fields, std::span<BNNSNDArrayDescriptor*> parameters,
                 std::span<const BNNSNDArrayDescriptor*> gradients, std::span<BNNSNDArrayDescriptor*> moments,
                 const BNNSFilterParameters& options);
  void finish();

 private:
  Ranks() = default;
  [[maybe_unused]] void* group_ = nullptr;  // built without MPI there is no call that takes it
  std::size_t rank_ = 0, size_ = 1, shards_ = 1;
};

}  // namespace bnns::tool
