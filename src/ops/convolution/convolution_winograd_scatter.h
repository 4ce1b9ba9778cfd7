// An up map by the transpose of Winograd's algorithm, from the side of the small image:
//
//   large tiles (6x6, which overlap) of channel l = B [ sum over s of U(s, l) * Z(s) ] B',  U = G g G',  Z = A y A'
//
// For kernels whose large image is a good deal larger than the small one (no padding, or a stride of 2, whose four
// phases are channels of their own as in convolution_winograd.h), where tiles of the large image would meet many zeros.
// Rows of tiles are taken from top to bottom; what two of them share is added in this order, whoever runs the task.
#pragma once

#include <cstddef>

#include "src/core/memory.h"
#include "src/ops/convolution/convolution_target.h"
#include "src/ops/convolution/convolution_winograd.h"

namespace bnns {

// Whether this map is computed so, and that pays. No sink.
bool winograd_scatter_accepts(const ConvolutionMap& map, size_t batch);

void winograd_scatter(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                      const WeightView& w, ScratchShelf& scratch, size_t threads);

}  // namespace bnns
