// The functions of bnns_distributed.h.

#include "bnns/bnns_distributed.h"
#include "src/core/error.h"
#include "src/mpi/group.h"

namespace bnns::mpi {
namespace {

bool is_group(BNNSExtGroup handle) {
  return handle && reinterpret_cast<uintptr_t>(handle) % alignof(Group) == 0 &&
         reinterpret_cast<Group*>(handle)->is_alive();
}

Group& from(BNNSExtGroup handle) {
  if (!handle) fail_invalid("group: group is NULL, expected one that BNNSExtGroupCreate returned");
  if (!is_group(handle)) fail_invalid("group: group %p is not a group of this library", static_cast<void*>(handle));
  return *reinterpret_cast<Group*>(handle);
}

}  // namespace
}  // namespace bnns::mpi

using namespace bnns;

BNNSExtGroup BNNSExtGroupCreate(const void* communicator, const BNNSExtGroupParameters* parameters) noexcept {
  return guarded("BNNSExtGroupCreate", BNNSExtGroup{},
                 [&] { return reinterpret_cast<BNNSExtGroup>(mpi::Group::create(communicator, parameters)); });
}

int BNNSExtGroupFinalize(BNNSExtGroup group) noexcept {
  return guarded_status("BNNSExtGroupFinalize", [&] {
    if (group) mpi::Group::finalize(&mpi::from(group));
  });
}

size_t BNNSExtGroupRank(BNNSExtGroup group) noexcept {
  return guarded("BNNSExtGroupRank", SIZE_MAX, [&] { return mpi::from(group).rank(); });
}

size_t BNNSExtGroupSize(BNNSExtGroup group) noexcept {
  return guarded("BNNSExtGroupSize", size_t{0}, [&] { return mpi::from(group).size(); });
}

size_t BNNSExtGroupShards(BNNSExtGroup group) noexcept {
  return guarded("BNNSExtGroupShards", size_t{0}, [&] { return mpi::from(group).shards(); });
}

int BNNSExtGroupItems(BNNSExtGroup group, size_t batch, size_t shard, size_t* first, size_t* count) noexcept {
  return guarded_status("BNNSExtGroupItems", [&] {
    const mpi::Group& g = mpi::from(group);
    if (!first || !count) fail_invalid("group: %s is NULL, expected where the answer goes", first ? "count" : "first");
    g.items(batch, shard, first, count);
  });
}

int BNNSExtGroupBroadcast(BNNSExtGroup group, size_t root, size_t n, BNNSNDArrayDescriptor* const* arrays) noexcept {
  return guarded_status("BNNSExtGroupBroadcast", [&] { mpi::from(group).broadcast(root, n, arrays); });
}

int BNNSExtGroupAllReduce(BNNSExtGroup group, BNNSExtGroupReduction reduction, size_t n,
                          BNNSNDArrayDescriptor* const* arrays) noexcept {
  return guarded_status("BNNSExtGroupAllReduce", [&] { mpi::from(group).all_reduce(reduction, n, arrays); });
}

int BNNSExtGroupReduceStart(BNNSExtGroup group, BNNSExtGroupReduction reduction, size_t shard, size_t n,
                            const BNNSNDArrayDescriptor* const* arrays) noexcept {
  return guarded_status("BNNSExtGroupReduceStart", [&] { mpi::from(group).reduce_start(reduction, shard, n, arrays); });
}

int BNNSExtGroupReduceWait(BNNSExtGroup group) noexcept {
  return guarded_status("BNNSExtGroupReduceWait", [&] { mpi::from(group).reduce_wait(); });
}

int BNNSExtGroupOptimizerStep(BNNSExtGroup group, BNNSOptimizerFunction function, const void* fields, size_t n,
                              BNNSNDArrayDescriptor** parameters, const BNNSNDArrayDescriptor** gradients,
                              BNNSNDArrayDescriptor** accumulators,
                              const BNNSFilterParameters* filter_parameters) noexcept {
  const int status = guarded_status("BNNSExtGroupOptimizerStep", [&] {
    mpi::Group& g = mpi::from(group);
    g.check_started(n, gradients);
    g.reduce_wait();
  });
  if (status != 0) return status;
  return BNNSOptimizerStep(function, fields, n, parameters, gradients, accumulators, filter_parameters);
}
