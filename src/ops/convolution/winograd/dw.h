// The weight gradient by Winograd's algorithm F(m x m, r x r), m + r = 7, transposed:
//
//   dW(s, l) = G' [ sum over tiles of V(l) * Z(s) ] G,   V = B' d B of the large image,  Z = A y A' of the small one
//
// Over a step of 2 the phases of a large channel count for one each (convolution/winograd/winograd.h). For each of the
// 36 points the sum over tiles is a matrix product, rows l, columns s, on the GEMM core's tile kernel, which reads V
// and Z as they lie. Tiles are taken in parts, fixed by the shape.
//   few weights    Slices of the parts, fixed by the shape too, each with sums of its own, in L2 beside V and Z of one
//                  part. They are added in order at the end.
//   more weights   For each part all threads transform both images, then all multiply. One part: the products of a
//                  block of dW stay in the cache until that is finished. More: they are summed in memory.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/gemm/kernels.h"
#include "src/ops/convolution/winograd/winograd.h"

namespace bnns {

bool accepts_winograd_dw(const WeightMap& p);
void run_winograd_dw(const WeightMap& p, CallScratch& scratch);

class WinogradWeightProduct {
 public:
  explicit WinogradWeightProduct(const WeightMap& map);

  size_t workspace_bytes() const {
    return scratch_bytes(threads_, thread_floats_, v_floats_ + z_floats_ + sums_floats_);
  }
  void run(const ImageSource& small, const ImageSource& large, const WeightTarget& target, void* workspace) const;

 private:
  struct Transform {
    const ImageSource& source;
    size_t first_channel, channels;  // channels: where they end
    float* to;
    size_t stride, point;
    bool is_large;
  };
  size_t chunks(const PixelBlock& part) const { return part.samples() * div_up(part.rows(), chunk_rows_); }
  void fetch_next(const Transform& t, const PixelBlock& part, size_t n, size_t channel, Range step) const;
  void transform(const Transform& t, const PixelBlock& part, size_t group, size_t chunk, float* stage) const;
  void multiply(const float* v, const float* z, size_t tiles, size_t rows, size_t columns, Range points,
                bool accumulate, float* m) const;
  void multiply_block(const float* v, const float* z, size_t tiles, size_t block, Range points, bool accumulate,
                      float* m) const;
  void store(size_t block, Range rows, const float* m, const WeightTarget& target) const;
  void run_slices(const ImageSource& small, const ImageSource& large, const WeightTarget& target, float* sums) const;

  ConvolutionMap map_;
  PatchAxis y_, x_;
  size_t taps_, tile_;     // r and m
  size_t phases_, large_;  // of a large channel; large channels, of which each phase is one
  TileKernels kernels_;
  PixelBlocks parts_;     // of tiles
  size_t chunk_rows_;     // tile rows that are gathered together
  size_t rows_, blocks_;  // large channels of a block of dW, blocks of dW
  size_t row_blocks_, column_blocks_;
  size_t slices_ = 0;  // 0: parts, shared by all threads
  size_t v_stride_, v_point_, z_stride_, z_point_, m_point_, m_floats_;
  size_t threads_, v_floats_, z_floats_, sums_floats_, thread_floats_;
};

}  // namespace bnns
