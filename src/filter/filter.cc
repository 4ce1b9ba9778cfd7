// What filters of all kinds share: names, refusals of calls that are not theirs, handles.

#include "src/filter/filter.h"

namespace bnns {

const char* filter_kind_name(FilterKind kind) noexcept {
  switch (kind) {
    case FilterKind::activation:
      return "activation";
    case FilterKind::arithmetic:
      return "arithmetic";
    case FilterKind::contraction:
      return "contraction";
    case FilterKind::convolution:
      return "convolution";
    case FilterKind::dropout:
      return "dropout";
    case FilterKind::embedding:
      return "embedding";
    case FilterKind::fully_connected:
      return "fully_connected";
    case FilterKind::fully_connected_sparse:
      return "fully_connected_sparse";
    case FilterKind::fused:
      return "fused";
    case FilterKind::gram:
      return "gram";
    case FilterKind::loss:
      return "loss";
    case FilterKind::multihead_attention:
      return "multihead_attention";
    case FilterKind::matmul:
      return "matmul";
    case FilterKind::normalization:
      return "normalization";
    case FilterKind::padding:
      return "padding";
    case FilterKind::permute:
      return "permute";
    case FilterKind::pooling:
      return "pooling";
    case FilterKind::reduction:
      return "reduction";
    case FilterKind::resize:
      return "resize";
    case FilterKind::scale_shift:
      return "scale_shift";
    case FilterKind::transposed_convolution:
      return "transposed_convolution";
  }
  return "unknown";
}

namespace {

const char* own_forward(FilterKind kind) {
  switch (kind) {
    case FilterKind::arithmetic:
      return "BNNSArithmeticFilterApplyBatch";
    case FilterKind::fused:
      return "BNNSFusedFilterApplyBatch or BNNSFusedFilterApplyMultiInputBatch";
    case FilterKind::loss:
      return "BNNSLossFilterApplyBatch";
    case FilterKind::multihead_attention:
      return "BNNSApplyMultiheadAttention";
    case FilterKind::normalization:
      return "BNNSNormalizationFilterApplyBatch";
    default:
      return "BNNSFilterApplyBatch";
  }
}

const char* own_backward(FilterKind kind) {
  switch (kind) {
    case FilterKind::arithmetic:
      return "BNNSArithmeticFilterApplyBackwardBatch";
    case FilterKind::fused:
      return "BNNSFusedFilterApplyBackwardBatch or BNNSFusedFilterApplyBackwardMultiInputBatch";
    case FilterKind::loss:
      return "BNNSLossFilterApplyBackwardBatch";
    case FilterKind::multihead_attention:
      return "BNNSApplyMultiheadAttentionBackward";
    case FilterKind::normalization:
      return "BNNSNormalizationFilterApplyBackwardBatch";
    default:
      return "BNNSFilterApplyBackwardBatch";
  }
}

}  // namespace

const char* Filter::implementation(BNNSExtPass, size_t) const {
  return filter_kind_name(kind_);
}

void Filter::forward(size_t, const void*, size_t, void*, size_t) {
  fail_invalid("%s: this filter is applied by %s", filter_kind_name(kind_), own_forward(kind_));
}

void Filter::backward(const BackwardCall&) {
  fail_invalid("%s: this filter's gradient is %s", filter_kind_name(kind_), own_backward(kind_));
}

void Filter::forward_two(const TwoInputCall&) {
  fail_invalid("%s: this filter does not take two inputs; it is applied by %s", filter_kind_name(kind_),
               own_forward(kind_));
}

void Filter::backward_two(const TwoInputBackwardCall&) {
  fail_invalid("%s: this filter does not take two inputs; its gradient is %s", filter_kind_name(kind_),
               own_backward(kind_));
}

Filter& from_handle(BNNSFilter handle) {
  if (!handle) fail_invalid("filter is NULL, expected a filter that a BNNSFilterCreate call returned");
  Filter* filter = static_cast<Filter*>(handle);
  if (reinterpret_cast<uintptr_t>(handle) % alignof(Filter) != 0 || !Filter::is_alive(filter)) {
    fail_invalid("filter %p is not a living filter of this library", handle);
  }
  return *filter;
}

uint64_t Filter::hash() const {
  uint64_t hash = hash_.load(std::memory_order_relaxed);
  if (hash == 0) hash_.store(hash = text_hash(text().c_str()), std::memory_order_relaxed);
  return hash;
}

void finish_call(const CallTimer& timer, BNNSExtPass pass, const Filter& filter, size_t batch) {
  if (timer.finish_again(filter.hash(), batch)) return;
  timer.finish(filter.text(), batch, filter.implementation(pass, batch));
}

void destroy_filter(BNNSFilter handle) noexcept {
  Filter* filter = static_cast<Filter*>(handle);
  if (!filter || reinterpret_cast<uintptr_t>(handle) % alignof(Filter) != 0 || !Filter::is_alive(filter)) return;
  filter->retire();
  const Options options = filter->options();
  filter->~Filter();
  release(options, filter);
}

}  // namespace bnns
