// cc -std=c99 find_nan.c -o find_nan -lbnns && BNNS_CHECK_NAN=1 ./find_nan
// prints: y[1] is nan
// stderr: note: .*fully_connected.*
// The weights of a layer have grown until a product overflows. BNNS_CHECK_NAN=1 says where that shows first.
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <string.h>

static BNNSNDArrayDescriptor vec(size_t n, float* p) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = p;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

int main(void) {
  float w[4] = {1, 2, 3e38f, -3e38f}, x[2] = {10, 10}, y[2], z[2];
  BNNSLayerParametersFullyConnected p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(2, NULL);
  p.o_desc = vec(2, NULL);
  p.w_desc = vec(2, w);
  p.w_desc.layout = BNNSDataLayoutRowMajorMatrix;
  p.w_desc.size[1] = 2;
  BNNSFilter first = BNNSFilterCreateLayerFullyConnected(&p, NULL);
  BNNSLayerParametersActivation q;
  memset(&q, 0, sizeof q);
  q.i_desc = vec(2, NULL);
  q.o_desc = vec(2, NULL);
  q.activation.function = BNNSActivationFunctionTanh;
  BNNSFilter second = BNNSFilterCreateLayerActivation(&q, NULL);

  int status = BNNSFilterApply(first, x, y);  // inf - inf: the first NaN, and the note on stderr
  status |= BNNSFilterApply(second, y, z);    // this layer only passes it on
  printf("y[1] is %s\n", y[1] != y[1] ? "nan" : "a number");
  BNNSFilterDestroy(first);
  BNNSFilterDestroy(second);
  return status;
}
