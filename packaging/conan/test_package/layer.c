// One activation, through the installed package.
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  BNNSLayerParametersActivation layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc.layout = layer.o_desc.layout = BNNSDataLayoutVector;
  layer.i_desc.size[0] = layer.o_desc.size[0] = 3;
  layer.i_desc.data_type = layer.o_desc.data_type = BNNSDataTypeFloat32;
  layer.activation.function = BNNSActivationFunctionRectifiedLinear;
  BNNSFilter relu = BNNSFilterCreateLayerActivation(&layer, NULL);
  const float x[3] = {-1, 0, 2};
  float y[3] = {9, 9, 9};
  if (BNNSFilterApply(relu, x, y) != 0) return 1;
  printf("relu of -1 0 2 is %g %g %g\n", y[0], y[1], y[2]);
  BNNSFilterDestroy(relu);
  return y[0] == 0 && y[1] == 0 && y[2] == 2 ? 0 : 1;
}
