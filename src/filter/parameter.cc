// The private copy of a trained tensor: see parameter.h.

#include "src/filter/parameter.h"

#include <cstring>

#include "src/core/notes.h"

namespace bnns {

Parameter::Parameter(const Tensor& tensor, const Options& options, const char* what) : tensor_(tensor) {
  if (!tensor.data || options.use_client_pointers) return;
  copy_ = Buffer(options, tensor.span_bytes(), what);
  std::memcpy(copy_.data(), tensor.data, tensor.span_bytes());
  tensor_.data = copy_.data();
  if (notes_wanted()) remember_copy(copy_.data(), tensor.data, tensor.span_bytes(), what);
  if (is_indexed(tensor.type)) {
    const size_t bytes = (size_t{1} << type_bits(tensor.type)) * type_bytes(tensor.table_type);
    table_copy_ = Buffer(options, bytes, what);
    std::memcpy(table_copy_.data(), tensor.table, bytes);
    tensor_.table = table_copy_.data();
  }
}

}  // namespace bnns
