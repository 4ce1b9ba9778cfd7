// cc -std=c99 convolution.c -o convolution -lbnns && ./convolution
// prints: y = 6 8 12 14
// prints: dx = 1 0 0 0 1 0 0 0 0
// prints: dw = 1 2 4 5
// A 2x2 kernel on an image of 3x3, forward and both gradients.
#include "tensor.h"

int main(void) {
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 0, 0, 1}, y[4], dy[4] = {1, 0, 0, 0}, dx[9], dw[4];
  BNNSLayerParametersConvolution p;
  memset(&p, 0, sizeof p);
  p.i_desc = image(3, 3, 1, NULL);
  p.o_desc = image(2, 2, 1, NULL);
  p.w_desc = tensor(BNNSDataLayoutConvolutionWeightsOIHW, w, 2, 2, 1, 1);  // width, height, in, out
  p.x_stride = p.y_stride = 1;
  BNNSFilter layer = BNNSFilterCreateLayerConvolution(&p, NULL);
  int status = BNNSFilterApply(layer, x, y);
  BNNSNDArrayDescriptor up = image(2, 2, 1, dy), down = image(3, 3, 1, dx), dw_desc = p.w_desc;
  dw_desc.data = dw;
  status |= BNNSFilterApplyBackwardBatch(layer, 1, x, 9, &down, 9, y, 4, &up, 4, &dw_desc, NULL);
  show("y", y, 4);
  show("dx", dx, 9);
  show("dw", dw, 4);
  BNNSFilterDestroy(layer);
  return status;
}
