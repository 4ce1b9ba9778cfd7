// A program written for Accelerate: one header, one library. BNNS, BLAS, LAPACK, vDSP and vForce. Compiled as C99, C11,
// C++17 and Objective-C, by gcc and clang.
#include <Accelerate/Accelerate.h>

static int near(double got, double want, const char* what) {
  if (fabs(got - want) <= 1e-5 * (1 + fabs(want))) return 1;
  fprintf(stderr, "accelerate: %s is %g, expected %g\n", what, got, want);
  exit(1);
}

int main(void) {
  // BLAS: c = a b
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[4];
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1.0f, a, 2, b, 2, 0.0f, c, 2);
  near(c[0], 19, "cblas_sgemm");
  near(cblas_sdot(4, a, 1, b, 1), 70, "cblas_sdot");

  // LAPACK: 2 x + y = 5, x + 3 y = 10
  double m[] = {2, 1, 1, 3}, v[] = {5, 10};
  __LAPACK_int n = 2, one = 1, pivots[2], info = -1;
  dgesv_(&n, &one, m, &n, pivots, v, &n, &info);
  near(info, 0, "info of dgesv_"), near(v[0], 1, "dgesv_"), near(v[1], 3, "dgesv_");

  // vDSP and vForce
  float sum, largest, y[4];
  vDSP_Length index;
  const int four = 4;
  vDSP_vadd(a, 1, b, 1, y, 1, 4);
  vDSP_sve(y, 1, &sum, 4);
  near(sum, 36, "vDSP_sve");
  vDSP_maxvi(b, 1, &largest, &index, 4);
  near((double)index, 3, "vDSP_maxvi");
  vvexpf(y, a, &four);
  near(y[1], exp(2.0), "vvexpf");

  // BNNS
  BNNSLayerParametersActivation layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc.layout = layer.o_desc.layout = BNNSDataLayoutVector;
  layer.i_desc.size[0] = layer.o_desc.size[0] = 4;
  layer.i_desc.data_type = layer.o_desc.data_type = BNNSDataTypeFloat32;
  layer.activation.function = BNNSActivationFunctionTanh;
  BNNSFilter filter = BNNSFilterCreateLayerActivation(&layer, NULL);
  near(BNNSFilterApply(filter, a, y), 0, "BNNSFilterApply");
  near(y[0], tanh(1.0), "tanh");
  BNNSFilterDestroy(filter);
  return 0;
}
