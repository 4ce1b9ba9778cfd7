// OpenBNNS C++ overlay: k nearest neighbours under the Euclidean distance.
#pragma once

#include <limits>

#include "checks.hpp"

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
    if (!neighbors_)
      detail::refused(-1, "NearestNeighbors", "BNNSCreateNearestNeighbors", Error::Code::unableToCreateLayer);
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
  void append(const Input& samples) {
    constexpr auto where = "NearestNeighbors::append";
    const BNNSNearestNeighbors store = live(where);
    const void* data = detail::requireData(where, "samples", samples);
    requirePacked(where, "samples", samples);
    const std::size_t count = elements(samples), n = parameters_.dimensionCount;
    if (samples.descriptor().data_type != parameters_.dataType) {
      detail::badArray(where, "samples are of another type: " + detail::typeName(samples.descriptor().data_type) +
                                  ", the store takes " + detail::typeName(parameters_.dataType));
    }
    if (count % n != 0) {
      detail::badArray(where,
                       std::to_string(count) + " elements are no whole number of samples of " + std::to_string(n));
    }
    detail::check(::BNNSNearestNeighborsLoad(store, number(count / n), data), where, "BNNSNearestNeighborsLoad");
    loaded_ += count / n;
  }

  /// Neighbours of one sample, nearest first, or of all of them, one row each. Indices are Int32, distances of the
  /// type of the samples; either may be left out.
  void apply(std::optional<std::size_t> index, const OptOutput& outputIndices, const OptOutput& outputDistances) {
    constexpr auto where = "NearestNeighbors::apply";
    const BNNSNearestNeighbors store = live(where);
    if (index && *index > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      detail::mistake(Error::Code::layerApplyFail, where, "there is no sample " + std::to_string(*index));
    }
    const std::size_t needed = parameters_.neighborCount * (index ? 1 : loaded_);
    if (outputIndices) require(outputIndices, needed, BNNSDataTypeInt32, "outputIndices");
    if (outputDistances) require(outputDistances, needed, parameters_.dataType, "outputDistances");
    detail::check(::BNNSNearestNeighborsGetInfo(store, index ? static_cast<int>(*index) : -1,
                                                static_cast<int*>(outputIndices.descriptor().data),
                                                outputDistances.descriptor().data),
                  where, "BNNSNearestNeighborsGetInfo");
  }

 private:
  // Of all samples of the array.
  static std::size_t elements(const detail::Argument& a) {
    return detail::elementCount(a.descriptor()) * a.batchSize();
  }
  static void requirePacked(const char* where, const char* label, const detail::Argument& a) {
    const detail::SampleSize& s = a.sampleSize();
    if (s.count != s.stride) {
      detail::badArray(where, std::string(label) + " have gaps: " + std::to_string(s.count) + " elements over " +
                                  std::to_string(s.stride) + ", the store takes packed rows");
    }
  }
  // The C call takes bare pointers, so that only we can compare.
  static void require(const OptOutput& a, std::size_t needed, BNNSDataType type, const char* label) {
    constexpr auto where = "NearestNeighbors::apply";
    detail::requireData(where, label, a);
    requirePacked(where, label, a);
    if (a.descriptor().data_type != type) {
      detail::badArray(where, std::string(label) + " are of another type: " +
                                  detail::typeName(a.descriptor().data_type) + ", expected " + detail::typeName(type));
    }
    if (elements(a) < needed) {
      detail::badArray(where, std::string(label) + " have " + std::to_string(elements(a)) + " elements, expected " +
                                  std::to_string(needed));
    }
  }
  static unsigned number(std::size_t n) {
    if (n > std::numeric_limits<unsigned>::max()) detail::badArray("NearestNeighbors", "a count exceeds 32 bits");
    return static_cast<unsigned>(n);
  }
  BNNSNearestNeighbors live(const char* where) const {
    if (!neighbors_) detail::mistake(Error::Code::layerApplyFail, where, "the store was moved from");
    return neighbors_;
  }

  BNNSNearestNeighbors neighbors_ = nullptr;
  Parameters parameters_;
  std::size_t loaded_ = 0;
};

}  // namespace bnns
