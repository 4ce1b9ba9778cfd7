// The two tensors of a batched call that reads one and writes the other, checked: for layers without parameters that do
// not work in place.
#pragma once

#include <cstddef>

#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct BatchPair {
  size_t batch = 0;  // 0: nothing to do
  Tensor from, to;   // one sample; data is the first
  size_t from_stride = 0, to_stride = 0;
};

// Refuses rotated and packed weight layouts, types narrower than a byte and indexed types.
void check_plain(const Tensor& t, const char* op, const char* field);

// BNNSFilterApply[Batch]: y from x.
BatchPair forward_pair(size_t batch, const Tensor& x, const void* in, size_t in_stride, const Tensor& y, void* out,
                       size_t out_stride, const char* op);

// BNNSFilterApplyBackwardBatch: dx from dy, in the shapes of x and y, with the strides of the descriptors. in_delta may
// be NULL; parameter gradients must be. in and out are not looked at.
BatchPair backward_pair(const BackwardCall& call, const Tensor& x, const Tensor& y, const char* op);

}  // namespace bnns
