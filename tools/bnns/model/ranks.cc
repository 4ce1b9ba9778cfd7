#include "tools/bnns/model/ranks.h"

#include <cstdlib>
#include <stdexcept>

#include "tools/bnns/model/network.h"

#ifdef BNNS_HAVE_MPI
#include <bnns/bnns_distributed.h>
#endif

namespace bnns::tool {

bool Ranks::launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

#ifdef BNNS_HAVE_MPI

namespace {

BNNSExtGroup group_of(void* group) {
  return static_cast<BNNSExtGroup>(group);
}

BNNSExtGroupReduction reduction_of(Ranks::Reduction reduction) {
  return reduction == Ranks::Reduction::sum    ? BNNSExtGroupSum
         : reduction == Ranks::Reduction::mean ? BNNSExtGroupMean
                                               : BNNSExtGroupMax;
}

template <class D>
std::vector<D*> pointers(std::span<D> arrays) {
  std::vector<D*> all;
  for (D& each : arrays) all.push_back(&each);
  return all;
}

}  // namespace

std::unique_ptr<Ranks> Ranks::create(std::size_t shards) {
  BNNSExtGroupParameters parameters{};
  parameters.shards = shards;
  std::unique_ptr<Ranks> ranks(new Ranks());
  const BNNSExtGroup group = BNNSExtGroupCreate(nullptr, &parameters);
  if (group == nullptr) throw LibraryError("BNNSExtGroupCreate");
  ranks->group_ = group;
  ranks->rank_ = BNNSExtGroupRank(group);
  ranks->size_ = BNNSExtGroupSize(group);
  ranks->shards_ = BNNSExtGroupShards(group);
  return ranks;
}

Ranks::Items Ranks::items(std::size_t batch, std::size_t shard) const {
  Items items{};
  check("BNNSExtGroupItems", BNNSExtGroupItems(group_of(group_), batch, shard, &items.first, &items.count));
  return items;
}

void Ranks::broadcast(std::vector<BNNSNDArrayDescriptor> arrays) {
  const auto list = pointers(std::span(arrays));
  check("BNNSExtGroupBroadcast", BNNSExtGroupBroadcast(group_of(group_), 0, list.size(), list.data()));
}

void Ranks::all_reduce(Reduction reduction, BNNSNDArrayDescriptor array) {
  BNNSNDArrayDescriptor* list[] = {&array};
  check("BNNSExtGroupAllReduce", BNNSExtGroupAllReduce(group_of(group_), reduction_of(reduction), 1, list));
}

void Ranks::start(Reduction reduction, std::size_t shard, std::span<const BNNSNDArrayDescriptor> arrays) {
  const auto list = pointers(arrays);
  check("BNNSExtGroupReduceStart",
        BNNSExtGroupReduceStart(group_of(group_), reduction_of(reduction), shard, list.size(), list.data()));
}

void Ranks::adam_step(const BNNSOptimizerAdamFields& fields, std::span<BNNSNDArrayDescriptor*> parameters,
                      std::span<const BNNSNDArrayDescriptor*> gradients, std::span<BNNSNDArrayDescriptor*> moments,
                      const BNNSFilterParameters& options) {
  check("BNNSExtGroupOptimizerStep",
        BNNSExtGroupOptimizerStep(group_of(group_), BNNSOptimizerFunctionAdam, &fields, parameters.size(),
                                  parameters.data(), gradients.data(), moments.data(), &options));
}

void Ranks::finish() {
  check("BNNSExtGroupFinalize", BNNSExtGroupFinalize(group_of(group_)));
}

#else

std::unique_ptr<Ranks> Ranks::create(std::size_t) {
  throw std::runtime_error("this bnns was built without MPI: start it without mpirun and without --shards");
}

// There is no object to call these on.
Ranks::Items Ranks::items(std::size_t batch, std::size_t) const {
  return {0, batch};
}
void Ranks::broadcast(std::vector<BNNSNDArrayDescriptor>) {}
void Ranks::all_reduce(Reduction, BNNSNDArrayDescriptor) {}
void Ranks::start(Reduction, std::size_t, std::span<const BNNSNDArrayDescriptor>) {}
void Ranks::adam_step(const BNNSOptimizerAdamFields&, std::span<BNNSNDArrayDescriptor*>,
                      std::span<const BNNSNDArrayDescriptor*>, std::span<BNNSNDArrayDescriptor*>,
                      const BNNSFilterParameters&) {}
void Ranks::finish() {}

#endif

}  // namespace bnns::tool
