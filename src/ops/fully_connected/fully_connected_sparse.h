// Fully connected with sparse weights, for inference: Y(o) = act(b(o) + sum of W(o,i) X(i) over the stored W(o,i)).
//
// The weights come packed in memory of the caller (BNNSNDArrayFullyConnectedSparsify..., src/ops/sparse): a header,
// then compressed rows. A filter checks them once and keeps them as f32 of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/ops/fully_connected/fully_connected.h"

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

// Every check of a layer whose w_desc is FullyConnectedSparse, but that of the indices.
FullyConnectedProblem make_sparse_fully_connected_problem(const BNNSLayerParametersFullyConnected* layer);

class SparseFullyConnectedFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::fully_connected_sparse;
  // problem.w.data holds packed weights, whose indices are checked here.
  SparseFullyConnectedFilter(const Options& options, const FullyConnectedProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text() + " sparse"; }
  const Tensor* result() const override { return &problem_.y; }

 private:
  FullyConnectedProblem problem_;
  Parameter bias_;
  Buffer weights_;  // starts u32[outputs + 1], columns u32[nonzeros], values f32[nonzeros]
  const uint32_t *starts_ = nullptr, *columns_ = nullptr;
  const float* values_ = nullptr;
  ScratchShelf scratch_;
};

struct SparseRows {
  const uint32_t *starts, *columns;
  const float* values;
  const float* bias;  // NULL: none
};

// Samples that one call of the kernel takes side by side: the lanes of a vector.
size_t sparse_lanes() noexcept;

// y[lane * y_stride + o] = b[o] + sum of W(o,i) x[i * lanes + lane] for the outputs [begin, end) and the first `used`
// of the lanes, which are 1 or sparse_lanes(). A lane gives the same bits however many there are.
void sparse_multiply(const SparseRows& rows, size_t begin, size_t end, const float* x, size_t lanes, size_t used,
                     float* y, size_t y_stride) noexcept;

}  // namespace bnns
