// cc -std=c99 random.c -o random -lbnns && ./random
// prints: the same four numbers
// The same seed, the same numbers; a state can be kept and restored.
#include "tensor.h"

int main(void) {
  float first[4], again[4];
  BNNSRandomGenerator generator = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 7, NULL);
  BNNSNDArrayDescriptor a = vec(4, first), b = vec(4, again);
  unsigned char state[64];
  const size_t size = BNNSRandomGeneratorStateSize(generator);
  int status = size <= sizeof state ? BNNSRandomGeneratorGetState(generator, size, state) : -1;
  status |= BNNSRandomFillNormalFloat(generator, &a, 0, 1);
  status |= BNNSRandomGeneratorSetState(generator, size, state);
  status |= BNNSRandomFillNormalFloat(generator, &b, 0, 1);
  printf("%s\n", memcmp(first, again, sizeof first) == 0 ? "the same four numbers" : "other numbers");
  BNNSDestroyRandomGenerator(generator);
  return status;
}
