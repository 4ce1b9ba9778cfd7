// A store of samples that finds the nearest neighbours of each under the Euclidean distance.
//
// Neighbours of a sample: itself first, at 0; then by rising distance, of equal ones the lower index first. Where there
// are fewer samples than neighbours asked for, the index is -1 and the distance infinite.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/core/memory.h"
#include "src/core/process/fork.h"

namespace bnns {

class NearestNeighbors {
 public:
  // Refuses sizes of 0 and types other than f32 and f16. Memory for all samples is taken here.
  NearestNeighbors(const Options& options, size_t capacity, size_t features, size_t neighbors, BNNSDataType type);

  // Appends n samples of the store's type, one after the other; refuses more than fit, and then keeps none.
  void load(size_t n, const void* samples);
  // Of one sample, or of all (sample < 0), k each. indices and distances (of the store's type) may be NULL.
  void info(int sample, int* indices, void* distances) const;

  std::string text() const;  // "nearest_neighbors f32 features64 neighbors5"
  const Options& options() const { return options_; }
  __attribute__((no_sanitize("vptr"))) static bool is_alive(const NearestNeighbors* p) { return p->magic_ == kMagic; }
  void retire() { magic_ = 0; }

 private:
  struct Candidate {
    float square;
    int index;
  };
  static bool before(const Candidate& a, const Candidate& b);
  void keep(Candidate* heap, size_t* used, Candidate c) const;
  void finish(Candidate* heap, size_t used, size_t at, int* indices, void* distances) const;

  static constexpr uint64_t kMagic = 0x4e6e4e65696768;  // "hgieNnN"
  volatile uint64_t magic_ = kMagic;
  Options options_;
  size_t capacity_, features_, neighbors_;
  BNNSDataType type_;
  Buffer samples_;     // f32, row after row
  ForkMutex loading_;  // one load at a time. Rows never move, so info takes no lock: it sees those of finished loads
  std::atomic<size_t> loaded_{0};
};

// squares[i] = sum of (query - row i)^2 for n rows of d values.
void squared_distances(const float* query, const float* rows, size_t n, size_t d, float* squares) noexcept;

}  // namespace bnns
