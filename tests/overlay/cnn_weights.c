// Runs examples/cnn.c as it is, then prints the hash of the weights it ended with, as examples/overlay_digits.cc does.

#include <stdint.h>

int cnn_main(void);
#define main cnn_main
#include "examples/cnn.c"
#undef main

int main(void) {
  static const size_t counts[PARAMETERS] = {9 * CHANNELS, CHANNELS, CHANNELS, FEATURES * CLASSES, CLASSES};
  const int result = cnn_main();
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (int i = 0; i < PARAMETERS; i++) {
    const unsigned char* bytes = (const unsigned char*)memory[0][i];
    for (size_t k = 0; k < counts[i] * sizeof(float); k++) hash = (hash ^ bytes[k]) * 1099511628211u;
  }
  printf("weights %016llx\n", (unsigned long long)hash);
  return result;
}
