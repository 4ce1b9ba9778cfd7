// BNNS_CHECK_NAN=1: results are searched for NaN and infinity, and the first is named with filter, pass and position,
// once per filter and pass. Callers ask nan_check_wanted() first.
#pragma once

#include <cstddef>
#include <string>

#include "bnns/bnns.h"
#include "src/filter/filter.h"

namespace bnns {

// The result of a forward pass: `batch` samples of filter.result().
void check_forward_result(const Filter& filter, size_t batch, const void* out, size_t out_stride) noexcept;

// One gradient of a backward pass; NULL is skipped. Gradients of parameters are a batch of 1.
void check_gradient(const Filter& filter, const BNNSNDArrayDescriptor* delta, const char* field, size_t batch = 1,
                    size_t stride = 0) noexcept;
void check_gradients(const Filter& filter, const BackwardCall& call) noexcept;

// A tensor that a call without a filter wrote, or that has no descriptor: once per problem and field.
void check_written(const std::string& problem, const char* field, const Tensor& sample, const void* data,
                   size_t batch = 1, size_t stride = 0) noexcept;
// The same of a filter.
void check_written(const Filter& filter, Note pass, const char* field, const Tensor& sample, const void* data,
                   size_t batch = 1, size_t stride = 0) noexcept;

}  // namespace bnns
