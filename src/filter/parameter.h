// What a filter was trained to: weights, bias, gamma and beta.
#pragma once

#include "src/core/memory.h"
#include "src/tensor/tensor.h"

namespace bnns {

// A trained tensor of a filter: the client's memory (BNNSFlagsUseClientPtr) or a private copy made at creation.
class Parameter {
 public:
  Parameter() = default;  // absent
  Parameter(const Tensor& tensor, const Options& options, const char* what);

  bool present() const { return tensor_.data != nullptr; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  Buffer copy_, table_copy_;
};

}  // namespace bnns
