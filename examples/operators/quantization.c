// cc -std=c99 quantization.c -o quantization -lbnns && ./quantization
// prints: quantized = 1 13 127
// prints: back = 0.1 1.3 12.7
// Floats to 8-bit integers and back.
#include "tensor.h"

int main(void) {
  float x[3] = {0.1f, 1.26f, 99}, scale = 10, back[3];
  int8_t q[3];
  BNNSLayerParametersQuantization p;
  memset(&p, 0, sizeof p);
  p.function = BNNSQuantizerFunctionQuantize;
  p.i_desc = vec(3, x);
  p.o_desc = vec(3, q);
  p.o_desc.data_type = BNNSDataTypeInt8;
  p.scale = vec(1, &scale);
  int status = BNNSDirectApplyQuantizer(&p, NULL, 1, 3, 3);
  printf("quantized = %d %d %d\n", q[0], q[1], q[2]);  // 990 does not fit: the nearest that does
  p.function = BNNSQuantizerFunctionDequantize;
  p.i_desc = vec(3, q);
  p.i_desc.data_type = BNNSDataTypeInt8;
  p.o_desc = vec(3, back);
  status |= BNNSDirectApplyQuantizer(&p, NULL, 1, 3, 3);
  show("back", back, 3);
  return status;
}
