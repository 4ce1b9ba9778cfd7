/* Ends with 0 where CPUID leaf 0x1D describes AMX palette 1, as oneDNN needs it. Some virtual machines offer AMX and
   hide the leaf; oneDNN then dies at its first tile instruction. */
#if defined(__x86_64__)
#include <cpuid.h>
int main(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(0x1D, 0, &a, &b, &c, &d) && a >= 1 ? 0 : 1;
}
#else
int main(void) {
  return 1;
}
#endif
