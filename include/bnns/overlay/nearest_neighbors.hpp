// OpenBNNS C++ overlay: k nearest neighbours under the Euclidean distance.
#pragma once

#include <limits>

#include "types.hpp"

namespace bnns {

/// Swift's BNNS.NearestNeighbors. A sample is its own first neighbour, at distance 0. Move-only.
class NearestNeighbors {
 public:
  struct Parameters {
    std::size_t capacity, dimensionCount, neighborCount;
    BNNSDataType dataType = BNNSDataTypeFloat32;  ///< or Float16
    OptFilterParams filterParameters{};
  };
  explicit NearestNeighbors(const Parameters& p)
      : neighbors_(::BNNSCreateNearestNeighbors(number(p.capacity), number(p.dimensionCount), number(p.neighborCount),
                                                p.dataType, detail::pointer(p.filterParameters))),
        parameters_(p) {
    if (!neighbors_) detail::refused(-1, "BNNSCreateNearestNeighbors", Error::Code::unableToCreateLayer);
  }
  NearestNeighbors(std::size_t capacity, std::size_t dimensionCount, std::size_t neighborCount, BNNSDataType dataType)
      : NearestNeighbors(Parameters{capacity, dimensionCount, neighborCount, dataType, {}}) {}
  ~NearestNeighbors() {
    if (neighbors_) ::BNNSDestroyNearestNeighbors(neighbors_);
  }
  NearestNeighbors(NearestNeighbors&& o) noexcept
      : neighbors_(std::exchange(o.neighbors_, nullptr)), parameters_(o.parameters_), loaded_(o.loaded_) {}
  NearestNeighbors& operator=(NearestNeighbors&& o) noexcept {
    if (auto old = std::exchange(neighbors_, std::exchange(o.neighbors_, nullptr))) ::BNNSDestroyNearestNeighbors(old);
    parameters_ = o.parameters_, loaded_ = o.loaded_;
    return *this;
  }

  /// Appends samples, one after the other in memory: as many as the array has elements / dimensionCount.
  void append(const Desc& samples) {
    constexpr auto function = "BNNSNearestNeighborsLoad";
    const BNNSNearestNeighbors store = live(function);
    const void* data = detail::requireData(samples, "samples");
    const std::size_t count = detail::elementCount(samples), n = parameters_.dimensionCount;
    if (samples.data_type != parameters_.dataType) detail::badArray(function, "the samples are of another type");
    if (count % n != 0) {
      detail::badArray(function,
                       std::to_string(count) + " elements are no whole number of samples of " + std::to_string(n));
    }
    detail::check(::BNNSNearestNeighborsLoad(store, number(count / n), data), function);
    loaded_ += count / n;
  }

  /// Neighbours of one sample, nearest first, or of all of them, one row each. Indices are Int32, distances of the
  /// type of the samples; either may be left out.
  void apply(std::optional<std::size_t> index, const OptDesc& outputIndices, const OptDesc& outputDistances) {
    constexpr auto function = "BNNSNearestNeighborsGetInfo";
    const BNNSNearestNeighbors store = live(function);
    if (index && *index > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      detail::mistake(Error::Code::layerApplyFail, function, "there is no sample " + std::to_string(*index));
    }
    const std::size_t needed = parameters_.neighborCount * (index ? 1 : loaded_);
    if (outputIndices) require(*outputIndices, needed, BNNSDataTypeInt32, "outputIndices");
    if (outputDistances) require(*outputDistances, needed, parameters_.dataType, "outputDistances");
    detail::check(::BNNSNearestNeighborsGetInfo(store, index ? static_cast<int>(*index) : -1,
                                                outputIndices ? static_cast<int*>(outputIndices->data) : nullptr,
                                                outputDistances ? outputDistances->data : nullptr),
                  function);
  }

 private:
  // The C call takes bare pointers, so that only we can compare.
  static void require(const Desc& d, std::size_t needed, BNNSDataType type, const char* label) {
    detail::requireData(d, label);
    if (d.data_type != type) detail::badArray(label, "the array is of another type");
    if (detail::elementCount(d) < needed) {
      detail::badArray(label, "the array has " + std::to_string(detail::elementCount(d)) + " elements, expected " +
                                  std::to_string(needed));
    }
  }
  static unsigned number(std::size_t n) {
    if (n > std::numeric_limits<unsigned>::max()) detail::badArray("NearestNeighbors", "a count exceeds 32 bits");
    return static_cast<unsigned>(n);
  }
  BNNSNearestNeighbors live(const char* function) const {
    if (!neighbors_) detail::mistake(Error::Code::layerApplyFail, function, "the store was moved from");
    return neighbors_;
  }

  BNNSNearestNeighbors neighbors_ = nullptr;
  Parameters parameters_;
  std::size_t loaded_ = 0;
};

}  // namespace bnns
