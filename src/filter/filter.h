// The object behind a BNNSFilter handle: a validated Problem plus what must outlive one call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/memory.h"
#include "src/filter/parameter.h"

namespace bnns {

enum class FilterKind {
  activation,
  arithmetic,
  contraction,
  convolution,
  dropout,
  embedding,
  fully_connected,
  fully_connected_sparse,
  fused,
  gram,
  loss,
  multihead_attention,
  matmul,
  normalization,
  padding,
  permute,
  pooling,
  reduction,
  resize,
  scale_shift,  // examples/operator_skeleton, not in the library
  transposed_convolution
};

const char* filter_kind_name(FilterKind kind) noexcept;

// The arguments of BNNSFilterApplyBackwardBatch, as they came.
struct BackwardCall {
  size_t batch;
  const void* in;
  size_t in_stride;
  const BNNSNDArrayDescriptor* in_delta;
  size_t in_delta_stride;
  const void* out;
  size_t out_stride;
  const BNNSNDArrayDescriptor* out_delta;
  size_t out_delta_stride;
  const BNNSNDArrayDescriptor* weights_delta;
  const BNNSNDArrayDescriptor* bias_delta;
};

// The arguments of BNNSFilterApplyTwoInputBatch and BNNSFilterApplyBackwardTwoInputBatch, as they came.
struct TwoInputCall {
  size_t batch;
  const void* in_a;
  size_t in_a_stride;
  const void* in_b;
  size_t in_b_stride;
  void* out;
  size_t out_stride;
};
struct TwoInputBackwardCall {
  size_t batch;
  const void* in_a;
  size_t in_a_stride;
  const BNNSNDArrayDescriptor* in_a_delta;
  size_t in_a_delta_stride;
  const void* in_b;
  size_t in_b_stride;
  const BNNSNDArrayDescriptor* in_b_delta;
  size_t in_b_delta_stride;
  const BNNSNDArrayDescriptor* out_delta;
  size_t out_delta_stride;
  const BNNSNDArrayDescriptor* weights_delta;
  const BNNSNDArrayDescriptor* bias_delta;
};

// What is said at most once of a filter (notes.h).
enum class Note { forward_nan, backward_nan, gradient };

class Filter {
 public:
  Filter(FilterKind kind, const Options& options) : options_(options), kind_(kind) {}
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  virtual ~Filter() = default;

  // BNNSFilterApply[Batch] and BNNSFilterApplyBackwardBatch. Kinds with entry points of their own keep the default,
  // which refuses and names the right call.
  virtual void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride);
  virtual void backward(const BackwardCall& call);
  // BNNSFilterApplyTwoInput[Batch] and BNNSFilterApplyBackwardTwoInputBatch; the default refuses.
  virtual void forward_two(const TwoInputCall& call);
  virtual void backward_two(const TwoInputBackwardCall& call);

  // The algorithm of a pass for dense tensors (BNNSExtImplementation). Kinds with tables of them ask these; for the
  // others the name of the operator is the name.
  virtual const char* implementation(BNNSExtPass pass, size_t batch) const;

  // The problem in one line: in verbose output and messages.
  virtual std::string text() const = 0;
  // text_hash() of it, found once.
  uint64_t hash() const;

  // The sample that a forward pass writes; nullptr where that is no single tensor.
  virtual const Tensor* result() const { return nullptr; }

  // True the first time it is asked about a note.
  bool first_time(Note note) const noexcept {
    const uint32_t bit = uint32_t{1} << static_cast<int>(note);
    return (noted_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

  FilterKind kind() const { return kind_; }
  const Options& options() const { return options_; }
  // Whether a handle is a living filter of ours. It may be anything, so only the mark is read, and no sanitizer may
  // take the look itself for a use of the object.
  __attribute__((no_sanitize("vptr"))) static bool is_alive(const Filter* filter) noexcept {
    return filter->magic_ == kMagic;
  }
  void retire() { magic_ = 0; }

 protected:
  Options options_;

 private:
  static constexpr uint64_t kMagic = 0x4f70656e424e4e53;  // "OpenBNNS": catches handles that are not ours
  volatile uint64_t magic_ = kMagic;  // volatile: the store in retire() must survive dead-store elimination
  FilterKind kind_;
  mutable std::atomic<uint32_t> noted_{0};
  mutable std::atomic<uint64_t> hash_{0};  // 0: not asked for yet
};

// Makes a filter in memory of the client's allocator and returns its handle.
template <class T, class... Arguments>
BNNSFilter make_filter(const Options& options, Arguments&&... arguments) {
  static_assert(alignof(T) <= kAlignment);
  CallTimer timer("create");
  void* memory = allocate(options, sizeof(T), "the filter", alignof(T));
  Filter* filter;
  try {
    filter = new (memory) T(options, std::forward<Arguments>(arguments)...);
  } catch (...) {
    release(options, memory);
    throw;
  }
  if (timer.active()) timer.finish(filter->text(), 0, filter_kind_name(filter->kind()));
  return filter;
}

void destroy_filter(BNNSFilter handle) noexcept;

// The filter behind a handle; refuses NULL and pointers that are no living filter.
Filter& from_handle(BNNSFilter handle);

// The same for an entry point that takes one kind only.
template <class T>
T& from_handle(BNNSFilter handle, FilterKind expected) {
  Filter& filter = from_handle(handle);
  if (filter.kind() != expected) {
    fail_invalid("filter is of kind %s, expected kind %s", filter_kind_name(filter.kind()), filter_kind_name(expected));
  }
  return static_cast<T&>(filter);
}

void finish_call(const CallTimer& timer, BNNSExtPass pass, const Filter& filter, size_t batch);

// Runs a call on a filter with its verbose line. Actions: apply, train, forward, direct; backward.
template <class Body>
void timed(const char* action, const Filter& filter, size_t batch, Body&& body) {
  const CallTimer timer(action);
  std::forward<Body>(body)();
  if (timer.active()) {
    finish_call(timer, action[0] == 'b' ? BNNSExtPassInputGradient : BNNSExtPassForward, filter, batch);
  }
}

}  // namespace bnns
