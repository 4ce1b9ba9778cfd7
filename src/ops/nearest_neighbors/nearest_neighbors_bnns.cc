// BNNSCreateNearestNeighbors, BNNSDestroyNearestNeighbors, BNNSNearestNeighborsLoad, BNNSNearestNeighborsGetInfo.

#include <new>

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/nearest_neighbors/nearest_neighbors.h"

using bnns::NearestNeighbors;

namespace {

bool is_store(BNNSNearestNeighbors handle) {
  return handle && reinterpret_cast<uintptr_t>(handle) % alignof(NearestNeighbors) == 0 &&
         NearestNeighbors::is_alive(static_cast<NearestNeighbors*>(handle));
}

NearestNeighbors& from_handle(BNNSNearestNeighbors handle) {
  if (!is_store(handle)) {
    bnns::fail_invalid(
        "nearest_neighbors: knn %p is not a living store, expected one that BNNSCreateNearestNeighbors "
        "returned",
        handle);
  }
  return *static_cast<NearestNeighbors*>(handle);
}

}  // namespace

BNNSNearestNeighbors BNNSCreateNearestNeighbors(unsigned int max_n_samples, unsigned int n_features,
                                                unsigned int n_neighbors, BNNSDataType data_type,
                                                const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded("BNNSCreateNearestNeighbors", BNNSNearestNeighbors{}, [&]() -> BNNSNearestNeighbors {
    const bnns::Options options = bnns::read_options(filter_params, "nearest_neighbors");
    void* memory = bnns::allocate(options, sizeof(NearestNeighbors), "the store");
    try {
      return new (memory) NearestNeighbors(options, max_n_samples, n_features, n_neighbors, data_type);
    } catch (...) {
      bnns::release(options, memory);
      throw;
    }
  });
}

void BNNSDestroyNearestNeighbors(BNNSNearestNeighbors knn) noexcept {
  if (!is_store(knn)) return;
  NearestNeighbors* store = static_cast<NearestNeighbors*>(knn);
  store->retire();
  const bnns::Options options = store->options();
  store->~NearestNeighbors();
  bnns::release(options, store);
}

int BNNSNearestNeighborsLoad(BNNSNearestNeighbors knn, unsigned int n_new_samples, const void* data_ptr) noexcept {
  return bnns::guarded_status("BNNSNearestNeighborsLoad", [&] {
    const bnns::CallTimer timer("load");
    NearestNeighbors& store = from_handle(knn);
    store.load(n_new_samples, data_ptr);
    if (timer.active()) timer.finish(store.text(), n_new_samples);
  });
}

int BNNSNearestNeighborsGetInfo(BNNSNearestNeighbors knn, int sample_number, int* indices, void* distances) noexcept {
  return bnns::guarded_status("BNNSNearestNeighborsGetInfo", [&] {
    const bnns::CallTimer timer("apply");
    const NearestNeighbors& store = from_handle(knn);
    store.info(sample_number, indices, distances);
    if (timer.active()) timer.finish(store.text(), 1);
  });
}
