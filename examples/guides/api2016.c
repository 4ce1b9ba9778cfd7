// cc -std=c99 api2016.c -o api2016 -lbnns && ./api2016
// prints: 2016: 6 15, today: 6 15
// The interface of macOS 10.12 beside today's, in one program: both are there.
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <string.h>

static BNNSNDArrayDescriptor vec(size_t n, const float* p) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = (void*)p;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

int main(void) {
  const float w[6] = {1, 2, 3, 4, 5, 6}, x[3] = {1, 1, 1};
  float old[2], today[2];

  BNNSVectorDescriptor in, out;
  BNNSFullyConnectedLayerParameters q;
  memset(&in, 0, sizeof in);
  memset(&out, 0, sizeof out);
  memset(&q, 0, sizeof q);
  in.size = 3;
  in.data_type = BNNSDataTypeFloat32;
  out.size = 2;
  out.data_type = BNNSDataTypeFloat32;
  q.in_size = 3;
  q.out_size = 2;
  q.weights.data = w;
  q.weights.data_type = BNNSDataTypeFloat32;
  BNNSFilter a = BNNSFilterCreateFullyConnectedLayer(&in, &out, &q, NULL);

  BNNSLayerParametersFullyConnected p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(3, NULL);
  p.o_desc = vec(2, NULL);
  p.w_desc = vec(3, w);
  p.w_desc.layout = BNNSDataLayoutRowMajorMatrix;
  p.w_desc.size[1] = 2;
  BNNSFilter b = BNNSFilterCreateLayerFullyConnected(&p, NULL);

  int status = BNNSFilterApply(a, x, old);
  status |= BNNSFilterApply(b, x, today);
  printf("2016: %g %g, today: %g %g\n", old[0], old[1], today[0], today[1]);
  BNNSFilterDestroy(a);
  BNNSFilterDestroy(b);
  return status;
}
