// The header of a safetensors file: its grammar, every check, and the list of arrays that comes out of it.
//
//   8 bytes   N, little-endian
//   N bytes   {"__metadata__": {"key": "value", ...},
//              "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, then spaces
//   the rest  the elements; offsets count from here, and the arrays follow each other without holes
//
// The text is replaced by records while it is read: a record is shorter than the text it stands for, so that the index
// takes no memory but the header's own and 4 bytes for each array and each key, twice for arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/tensor/tensor.h"

namespace bnns::io {

inline constexpr size_t kLengthBytes = 8;
inline constexpr size_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr char kMetadataName[] = "__metadata__";

struct Entry {
  const char* name = "";
  size_t type = 0;  // index into kElementTypes
  size_t rank = 0, shape[kMaxRank] = {};
  size_t begin = 0, end = 0;  // bytes from the first element of the file
};

class Header {
 public:
  // Reads N from the first 8 of `file_bytes` bytes and refuses what cannot be.
  static size_t checked_length(const char* file, const char* first, size_t file_bytes);

  // `text` is changed and must live as long as the object. `data_bytes` follow it in the file.
  Header(const char* file, char* text, size_t bytes, size_t data_bytes);

  size_t count() const { return records_.size(); }
  Entry entry(size_t index) const;
  size_t find(const char* name) const;  // SIZE_MAX: there is none

  size_t metadata_count() const { return keys_.size(); }
  const char* key(size_t index) const { return text_ + keys_[index]; }  // the value follows its NUL
  const char* value(const char* key) const;                             // nullptr: there is none

 private:
  void check_names(const char* file);
  void check_offsets(const char* file, size_t data_bytes) const;
  void list_metadata(const char* file, size_t begin, size_t count);

  const char* text_;
  std::vector<uint32_t> records_, by_name_, keys_;  // where they begin in the text; keys by rising key
};

}  // namespace bnns::io
