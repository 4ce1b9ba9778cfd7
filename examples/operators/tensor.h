// What every program of this folder needs: a descriptor in one line, and numbers in one line.
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <string.h>

// Sizes as BNNS counts them: size0 is the fastest axis. Those past the rank of the layout are 0.
static inline BNNSNDArrayDescriptor tensor(BNNSDataLayout layout, void* data, size_t size0, size_t size1, size_t size2,
                                           size_t size3) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = layout;
  d.size[0] = size0;
  d.size[1] = size1;
  d.size[2] = size2;
  d.size[3] = size3;
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}
static inline BNNSNDArrayDescriptor vec(size_t n, void* data) {
  return tensor(BNNSDataLayoutVector, data, n, 0, 0, 0);
}
static inline BNNSNDArrayDescriptor matrix(size_t columns, size_t rows, void* data) {
  return tensor(BNNSDataLayoutRowMajorMatrix, data, columns, rows, 0, 0);
}
static inline BNNSNDArrayDescriptor image(size_t width, size_t height, size_t channels, void* data) {
  return tensor(BNNSDataLayoutImageCHW, data, width, height, channels, 0);
}
static inline void show(const char* name, const float* x, size_t n) {
  printf("%s =", name);
  for (size_t i = 0; i < n; i++) printf(" %g", (double)x[i]);
  printf("\n");
}
