// OpenBNNS C++ overlay: one training over many processes (library libbnns_mpi). Swift's classes have nothing like it.
//
//   Group group;                                       // all ranks that mpirun started, or this process alone
//   group.broadcast({w, b});
//   for (std::size_t s = 0; s < group.shards(); ++s) {
//     const Group::Items items = group.items(batch, s);
//     ... forward and backward of those items ...
//     group.reduceStart(s, {dw, db});                  // mean over all shards
//   }
//   group.step(adam, {w, b}, {dw, db}, moments);       // waits, and steps
//
// Every rank makes the same calls. bnns_distributed.h says what happens where they do not, and what a shard is.
#pragma once

#include <bnns/bnns_distributed.h>

#include <bnns/bnns.hpp>

namespace bnns {

/// The ranks that train together. Move-only; the destructor ends the group with the other ranks, unless an exception is
/// on its way: they are then told by their timeout, or by mpirun.
class Group {
 public:
  enum class Mode : std::uint32_t { deterministic = BNNSExtGroupDeterministic, fast = BNNSExtGroupFast };
  enum class Reduction : std::uint32_t { sum = BNNSExtGroupSum, mean = BNNSExtGroupMean, max = BNNSExtGroupMax };
  struct Parameters {
    const void* communicator = nullptr;  ///< The address of an MPI_Comm; none: MPI_COMM_WORLD
    Mode mode = Mode::deterministic;
    BNNSDataType wire = BNNSDataTypeFloat32;
    std::size_t shards = 0;  ///< 0: 8
    double timeout = 0;      ///< Seconds; 0: 30
  };
  struct Items {
    std::size_t first, count;
  };

  Group() : Group(Parameters{}) {}
  explicit Group(const Parameters& p) {
    const ::BNNSExtGroupParameters parameters{static_cast<::BNNSExtGroupMode>(p.mode), p.wire, p.shards, p.timeout};
    handle_ = ::BNNSExtGroupCreate(p.communicator, &parameters);
    check(handle_ ? 0 : -1, "Group", "BNNSExtGroupCreate");
  }
  ~Group() {
    if (handle_ && std::uncaught_exceptions() == exceptions_) ::BNNSExtGroupFinalize(handle_);
  }
  Group(Group&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  Group& operator=(Group&&) = delete;

  std::size_t rank() const { return ::BNNSExtGroupRank(handle_); }
  std::size_t size() const { return ::BNNSExtGroupSize(handle_); }
  std::size_t shards() const { return ::BNNSExtGroupShards(handle_); }
  Items items(std::size_t batch, std::size_t shard) const {
    Items items{};
    check(::BNNSExtGroupItems(handle_, batch, shard, &items.first, &items.count), "items", "BNNSExtGroupItems");
    return items;
  }

  /// Arrays of `root` to all ranks.
  void broadcast(const Outputs& arrays, std::size_t root = 0) const {
    detail::Pointers list(detail::Where("Group", "broadcast"), "arrays", arrays);
    check(::BNNSExtGroupBroadcast(handle_, root, arrays.size(), list.mutables()), "broadcast", "BNNSExtGroupBroadcast");
  }
  /// Arrays of all ranks combined, on every rank.
  void allReduce(Reduction reduction, const Outputs& arrays) const {
    detail::Pointers list(detail::Where("Group", "allReduce"), "arrays", arrays);
    check(::BNNSExtGroupAllReduce(handle_, static_cast<::BNNSExtGroupReduction>(reduction), arrays.size(),
                                  list.mutables()),
          "allReduce", "BNNSExtGroupAllReduce");
  }
  /// What a shard of this rank computed, to all; returns at once.
  void reduceStart(std::size_t shard, const Outputs& arrays, Reduction reduction = Reduction::mean) const {
    detail::Pointers list(detail::Where("Group", "reduceStart"), "arrays", arrays);
    check(::BNNSExtGroupReduceStart(handle_, static_cast<::BNNSExtGroupReduction>(reduction), shard, arrays.size(),
                                    list.constants()),
          "reduceStart", "BNNSExtGroupReduceStart");
  }
  void reduceWait() const { check(::BNNSExtGroupReduceWait(handle_), "reduceWait", "BNNSExtGroupReduceWait"); }
  /// reduceWait(), then the optimizer's step with what was given to reduceStart().
  void step(const Optimizer auto& optimizer, const Outputs& parameters, const Inputs& gradients,
            const Outputs& accumulators = {}) const {
    reduceWait();
    optimizer.step(parameters, gradients, accumulators);
  }

 private:
  static void check(int status, const char* call, const char* function) {
    detail::check(status, detail::Where("Group", call), function, Error::Code::optimizerStepFail);
  }
  ::BNNSExtGroup handle_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace bnns
