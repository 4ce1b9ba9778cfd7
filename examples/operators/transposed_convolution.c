// cc -std=c99 transposed_convolution.c -o transposed_convolution -lbnns && ./transposed_convolution
// prints: y = 1 1 2 2
// prints: y = 1 1 2 2
// prints: y = 3 3 4 4
// prints: y = 3 3 4 4
// Each pixel becomes a block of 2x2: a kernel of ones over a stride of 2.
#include "tensor.h"

int main(void) {
  float x[4] = {1, 2, 3, 4}, w[4] = {1, 1, 1, 1}, y[16];
  BNNSLayerParametersConvolution p;
  memset(&p, 0, sizeof p);
  p.i_desc = image(2, 2, 1, NULL);
  p.o_desc = image(4, 4, 1, NULL);
  p.w_desc = tensor(BNNSDataLayoutConvolutionWeightsOIHW, w, 2, 2, 1, 1);
  p.x_stride = p.y_stride = 2;
  BNNSFilter layer = BNNSFilterCreateLayerTransposedConvolution(&p, NULL);
  int status = BNNSFilterApply(layer, x, y);
  for (int row = 0; row < 4; row++) show("y", y + 4 * row, 4);
  BNNSFilterDestroy(layer);
  return status;
}
