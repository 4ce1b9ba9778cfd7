// Dropout: y = x / (1 - rate) for kept elements, 0 for dropped ones; dx = dy / (1 - rate) or 0 with the same decisions.
//
// A decision is a word of a counter-based generator (Threefry-2x32, Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011), keyed by seed and number of the pass, at the decision's index: an element is dropped when its
// word is below rate 2^32. Decisions therefore depend on nothing else, are the same for any number of threads and on
// every instruction set, and backward computes them again instead of keeping a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/core/process/fork.h"
#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct DropoutProblem {
  Tensor x, y;  // one sample, equally many elements, paired in memory order
  float rate = 0;
  uint32_t seed = 0;     // 0: from the operating system
  uint32_t control = 0;  // bit k: one decision for all elements along x.size[k]

  std::string text() const;  // "dropout f32 4x4 rate 0.5 control 2"
};

// Every check of BNNSLayerParametersDropout.
DropoutProblem make_dropout_problem(const BNNSLayerParametersDropout* layer);

// Which decision an element of a sample takes. Elements and decisions are numbered in memory order of x; axes that
// share decisions do not count for the latter.
class DecisionMap {
 public:
  DecisionMap(const Tensor& x, uint32_t control);

  size_t decisions() const { return decisions_; }  // of a sample
  // Elements [first, first + run(first)) take consecutive decisions, or all the same one, from decision(first) on.
  bool same_in_run() const { return shared_[0]; }
  size_t run(size_t first) const { return extent_[0] - first % extent_[0]; }
  size_t decision(size_t first) const;

 private:
  size_t axes_ = 1, decisions_ = 1;
  size_t extent_[kMaxRank] = {1};  // fastest first; neighbours of one kind are merged
  bool shared_[kMaxRank] = {};
};

// The decisions of one pass over a batch.
struct DropoutPass {
  uint32_t seed = 0;
  uint64_t number = 0;     // from 1; 0: none yet
  uint32_t threshold = 0;  // dropped below
  float scale = 1;         // 1 / (1 - rate)
  size_t batch = 0;
};

// Keeps the number of the last pass and nothing else: forward and backward calls from many threads are each whole, and
// the gradient belongs to the last forward call.
class DropoutFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::dropout;
  DropoutFilter(const Options& options, const DropoutProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  DropoutProblem problem_;
  DecisionMap map_;
  ForkMutex mutex_;  // guards last_; a child forked inside it finds one pass counted or not
  DropoutPass last_;
};

// A seed for clients that give none; not 0, which is the client's "choose one".
uint32_t seed_from_system() noexcept;

// ---- kernels: dropout_simd.cc; the same bits on every instruction set ---------------------------------------------

inline constexpr size_t kDropoutBlock = 512;
// Words come in groups: the counters of group g are 16 g + k, k < 16; word k is the first of counter k, word 16 + k the
// second.
inline constexpr size_t kDropoutGroup = 32;

// The words of decisions [first, first + n), n <= kDropoutBlock: a pointer into `buffer`, which has kDropoutBlock +
// 2 * kDropoutGroup words.
const uint32_t* dropout_words(uint32_t seed, uint64_t pass, uint64_t first, size_t n, uint32_t* buffer) noexcept;

// y = word < threshold ? 0 : scale x. y may be x. What is dropped is 0 even where x is not finite.
void dropout_select(const uint32_t* words, uint32_t threshold, float scale, const float* x, float* y,
                    size_t n) noexcept;

// y = scale x.
void dropout_scale(float scale, const float* x, float* y, size_t n) noexcept;

}  // namespace bnns
