// Sparse weights as they lie in the caller's memory (layout FullyConnectedSparse): a header, then compressed rows.
// Written by BNNSNDArrayFullyConnectedSparsify..., read by the fully connected layer, measured by
// BNNSNDArrayGetDataSize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/tensor/data_type.h"

namespace bnns {

// In front of: starts u32[outputs + 1], values[nonzeros] of `type`, columns u16 or u32 [nonzeros], each aligned to its
// element. The memory is aligned to 4 bytes.
struct SparseHeader {
  static constexpr uint64_t kMagic = 0x31737270536e4e42;  // "BNnSprs1"
  uint64_t magic = kMagic;
  uint64_t bytes = 0;  // of all
  uint64_t nonzeros = 0;
  uint32_t outputs = 0, inputs = 0;
  uint32_t type = 0, column_bytes = 4;
};

// Offsets of the three arrays, and the end.
struct SparseOffsets {
  size_t starts, values, columns, end;
  explicit SparseOffsets(const SparseHeader& h) {
    const size_t element = type_bytes(static_cast<BNNSDataType>(h.type));
    starts = sizeof(SparseHeader);
    values = starts + (size_t{h.outputs} + 1) * sizeof(uint32_t);
    columns = (values + h.nonzeros * element + 3) / 4 * 4;
    end = columns + h.nonzeros * h.column_bytes;
  }
};

// The header of packed weights; magic is 0 if there are none. Of other memory only the first 8 bytes are read.
inline SparseHeader sparse_header(const void* data) {
  SparseHeader header;
  header.magic = 0;
  uint64_t magic = 0;
  if (data) std::memcpy(&magic, data, sizeof magic);
  if (magic == SparseHeader::kMagic) std::memcpy(&header, data, sizeof header);
  return header;
}

}  // namespace bnns
