// Arrays in a safetensors file: the open file behind BNNSExtArrayFile, and the writer.
#pragma once

#include <cstddef>

#include "bnns/bnns_io.h"
#include "src/io/element_type.h"
#include "src/io/file_bytes.h"
#include "src/io/header.h"
#include "src/io/json.h"
#include "src/tensor/tensor.h"

namespace bnns::io {

class ArrayFile {
 public:
  ArrayFile(const char* path, BNNSExtArrayFileMode mode);
  ~ArrayFile() { alive_ = 0; }
  ArrayFile(const ArrayFile&) = delete;
  ArrayFile& operator=(const ArrayFile&) = delete;

  const Header& header() const { return header_; }
  BNNSExtArrayInfo info(size_t index) const;
  void copy(const char* name, const BNNSNDArrayDescriptor* array) const;
  BNNSNDArrayDescriptor view(const char* name, BNNSDataLayout layout) const;
  const char* shown() const { return shown_.text; }

  bool is_alive() const { return alive_ == kAlive; }

 private:
  Entry required(const char* name) const;
  Entry required_of_bnns(const char* name) const;  // the same, and BNNS has the type
  const char* elements(const Entry& e) const { return bytes_.data() + (bytes_.size() - data_bytes_) + e.begin; }

  static constexpr uint64_t kAlive = 0x424e4e53696f6678;
  uint64_t alive_ = kAlive;
  Shown shown_;
  FileBytes bytes_;
  size_t data_bytes_;
  Header header_;
};

// Writes the file, or throws and leaves the old one.
void save_arrays(const char* path, size_t count, const BNNSExtNamedArray* arrays, size_t metadata_count,
                 const BNNSExtMetadata* metadata);

// The extent of axis k of the shape that a tensor has in a file: the slowest axis first.
inline size_t file_extent(const Tensor& t, size_t k) {
  return t.size[t.axis[t.rank - 1 - k]];
}

// Calls run(offset, n, stride) for pieces of the tensor in the order of the file: n elements from `offset` on, `stride`
// apart; a dense tensor is one piece.
template <class Run>
void for_each_run(const Tensor& t, Run&& run) {
  if (t.dense) return run(size_t{0}, t.count, size_t{1});
  const size_t fastest = t.axis[0], runs = t.count / t.size[fastest];
  size_t at[kMaxRank] = {}, offset = 0;
  for (size_t i = 0; i < runs; ++i) {
    run(offset, t.size[fastest], t.stride[fastest]);
    for (size_t j = 1; j < t.rank; ++j) {
      const size_t k = t.axis[j];
      offset += t.stride[k];
      if (++at[k] < t.size[k]) break;
      offset -= t.stride[k] * t.size[k];
      at[k] = 0;
    }
  }
}

}  // namespace bnns::io
