// vDSP: the vector functions that programs beside BNNS use, in f32 and (suffix D) f64. libAccelerate has them.
//
// Elements are A[n IA], n = 0 .. N - 1: a stride of 1 is a dense vector, a negative one goes backwards from A, 0
// repeats A[0]. An output may be one of the inputs with the same stride; other overlaps are not allowed. Nothing
// outside the named elements is read or written. Every function is re-entrant and runs on the calling thread.

#ifndef VECLIB_VDSP_HEADER
#define VECLIB_VDSP_HEADER

#include <stddef.h>

#define VECLIB_API __attribute__((visibility("default")))
#ifdef __cplusplus
#define VECLIB_NOEXCEPT noexcept
extern "C" {
#else
#define VECLIB_NOEXCEPT
#endif
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnullability-extension"
#pragma clang diagnostic ignored "-Wnullability-completeness"
#define VECLIB_NULLABLE _Nullable
#else
#define VECLIB_NULLABLE
#endif

typedef unsigned long vDSP_Length;
typedef long vDSP_Stride;

// ---- Two vectors ----------------------------------------------------------------------------------------------------

/// C = A + B
VECLIB_API void vDSP_vadd(const float* __A, vDSP_Stride __IA, const float* __B, vDSP_Stride __IB, float* __C,
                          vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vaddD(const double* __A, vDSP_Stride __IA, const double* __B, vDSP_Stride __IB, double* __C,
                           vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A - B. The first argument is B, what is taken away
VECLIB_API void vDSP_vsub(const float* __B, vDSP_Stride __IB, const float* __A, vDSP_Stride __IA, float* __C,
                          vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsubD(const double* __B, vDSP_Stride __IB, const double* __A, vDSP_Stride __IA, double* __C,
                           vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A B
VECLIB_API void vDSP_vmul(const float* __A, vDSP_Stride __IA, const float* __B, vDSP_Stride __IB, float* __C,
                          vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vmulD(const double* __A, vDSP_Stride __IA, const double* __B, vDSP_Stride __IB, double* __C,
                           vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A / B. The first argument is B, the divisor
VECLIB_API void vDSP_vdiv(const float* __B, vDSP_Stride __IB, const float* __A, vDSP_Stride __IA, float* __C,
                          vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vdivD(const double* __B, vDSP_Stride __IB, const double* __A, vDSP_Stride __IA, double* __C,
                           vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;

/// D = A B + C
VECLIB_API void vDSP_vma(const float* __A, vDSP_Stride __IA, const float* __B, vDSP_Stride __IB, const float* __C,
                         vDSP_Stride __IC, float* __D, vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vmaD(const double* __A, vDSP_Stride __IA, const double* __B, vDSP_Stride __IB, const double* __C,
                          vDSP_Stride __IC, double* __D, vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- A vector and a number ------------------------------------------------------------------------------------------

/// C = A + *B
VECLIB_API void vDSP_vsadd(const float* __A, vDSP_Stride __IA, const float* __B, float* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsaddD(const double* __A, vDSP_Stride __IA, const double* __B, double* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A *B
VECLIB_API void vDSP_vsmul(const float* __A, vDSP_Stride __IA, const float* __B, float* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsmulD(const double* __A, vDSP_Stride __IA, const double* __B, double* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A / *B
VECLIB_API void vDSP_vsdiv(const float* __A, vDSP_Stride __IA, const float* __B, float* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsdivD(const double* __A, vDSP_Stride __IA, const double* __B, double* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

/// D = A *B + C
VECLIB_API void vDSP_vsma(const float* __A, vDSP_Stride __IA, const float* __B, const float* __C, vDSP_Stride __IC,
                          float* __D, vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsmaD(const double* __A, vDSP_Stride __IA, const double* __B, const double* __C, vDSP_Stride __IC,
                           double* __D, vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;

/// D = A *B + *C
VECLIB_API void vDSP_vsmsa(const float* __A, vDSP_Stride __IA, const float* __B, const float* __C, float* __D,
                           vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsmsaD(const double* __A, vDSP_Stride __IA, const double* __B, const double* __C, double* __D,
                            vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- One vector -----------------------------------------------------------------------------------------------------

/// C = A A
VECLIB_API void vDSP_vsq(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                         vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsqD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                          vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = |A|
VECLIB_API void vDSP_vabs(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                          vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vabsD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = -A
VECLIB_API void vDSP_vneg(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                          vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vnegD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;

/// D = A limited to [*B, *C]; NaN stays
VECLIB_API void vDSP_vclip(const float* __A, vDSP_Stride __IA, const float* __B, const float* __C, float* __D,
                           vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vclipD(const double* __A, vDSP_Stride __IA, const double* __B, const double* __C, double* __D,
                            vDSP_Stride __ID, vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A where A >= *B, else *B
VECLIB_API void vDSP_vthr(const float* __A, vDSP_Stride __IA, const float* __B, float* __C, vDSP_Stride __IC,
                          vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vthrD(const double* __A, vDSP_Stride __IA, const double* __B, double* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A where A >= *B, else 0
VECLIB_API void vDSP_vthres(const float* __A, vDSP_Stride __IA, const float* __B, float* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vthresD(const double* __A, vDSP_Stride __IA, const double* __B, double* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;

/// *Mean, *StandardDeviation (of the population: divided by N), and C = (A - mean) / deviation unless C is NULL
VECLIB_API void vDSP_normalize(const float* __A, vDSP_Stride __IA, float* VECLIB_NULLABLE __C, vDSP_Stride __IC,
                               float* __Mean, float* __StandardDeviation, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_normalizeD(const double* __A, vDSP_Stride __IA, double* VECLIB_NULLABLE __C, vDSP_Stride __IC,
                                double* __Mean, double* __StandardDeviation, vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- Filling --------------------------------------------------------------------------------------------------------

/// C = *A
VECLIB_API void vDSP_vfill(const float* __A, float* __C, vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfillD(const double* __A, double* __C, vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = 0
VECLIB_API void vDSP_vclr(float* __C, vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vclrD(double* __C, vDSP_Stride __IC, vDSP_Length __N) VECLIB_NOEXCEPT;

/// C[n] = *A + n *B
VECLIB_API void vDSP_vramp(const float* __A, const float* __B, float* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vrampD(const double* __A, const double* __B, double* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- Sums. f32 sums blocks of 512 in f32 and the blocks in double ---------------------------------------------------

/// *C = sum of A
VECLIB_API void vDSP_sve(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_sveD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = sum of A A
VECLIB_API void vDSP_svesq(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_svesqD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = mean of A; NaN for N = 0
VECLIB_API void vDSP_meanv(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_meanvD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = mean of A A; NaN for N = 0
VECLIB_API void vDSP_measqv(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_measqvD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = square root of the mean of A A; NaN for N = 0
VECLIB_API void vDSP_rmsqv(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_rmsqvD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = sum of A B
VECLIB_API void vDSP_dotpr(const float* __A, vDSP_Stride __IA, const float* __B, vDSP_Stride __IB, float* __C,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_dotprD(const double* __A, vDSP_Stride __IA, const double* __B, vDSP_Stride __IB, double* __C,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = sum of (A - B)^2
VECLIB_API void vDSP_distancesq(const float* __A, vDSP_Stride __IA, const float* __B, vDSP_Stride __IB, float* __C,
                                vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_distancesqD(const double* __A, vDSP_Stride __IA, const double* __B, vDSP_Stride __IB, double* __C,
                                 vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- Extremes. NaN is passed over -----------------------------------------------------------------------------------

/// *C = largest of A; -infinity for N = 0
VECLIB_API void vDSP_maxv(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_maxvD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = smallest of A; infinity for N = 0
VECLIB_API void vDSP_minv(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_minvD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = largest of |A|; 0 for N = 0
VECLIB_API void vDSP_maxmgv(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_maxmgvD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = largest of A, *I = n IA of the first n that has it; -infinity and 0 for N = 0
VECLIB_API void vDSP_maxvi(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length* __I,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_maxviD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length* __I,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

/// *C = smallest of A, *I = n IA of the first n that has it; infinity and 0 for N = 0
VECLIB_API void vDSP_minvi(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Length* __I,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_minviD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Length* __I,
                            vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- Matrices, row after row ----------------------------------------------------------------------------------------

/// C (M x N) = A (M x P) B (P x N). C must not overlap A or B
VECLIB_API void vDSP_mmul(const float* __A, vDSP_Stride __IA, const float* __B, vDSP_Stride __IB, float* __C,
                          vDSP_Stride __IC, vDSP_Length __M, vDSP_Length __N, vDSP_Length __P) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_mmulD(const double* __A, vDSP_Stride __IA, const double* __B, vDSP_Stride __IB, double* __C,
                           vDSP_Stride __IC, vDSP_Length __M, vDSP_Length __N, vDSP_Length __P) VECLIB_NOEXCEPT;

/// C (M x N) = transpose of A (N x M). C must not overlap A
VECLIB_API void vDSP_mtrans(const float* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC, vDSP_Length __M,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_mtransD(const double* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC, vDSP_Length __M,
                             vDSP_Length __N) VECLIB_NOEXCEPT;

// ---- Sorting in place ----------------------------------------------------------------------------------------------

/// Sorts C: ascending if Order is 1, descending if -1. NaN comes last.
VECLIB_API void vDSP_vsort(float* __C, vDSP_Length __N, int __Order) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vsortD(double* __C, vDSP_Length __N, int __Order) VECLIB_NOEXCEPT;

// ---- Types. Numbers that an integer type cannot hold give its nearest one, NaN gives 0 -----------------------------

/// C = A as integers of 8, 16 and 32 bits, rounded towards zero
VECLIB_API void vDSP_vfix8(const float* __A, vDSP_Stride __IA, char* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfix8D(const double* __A, vDSP_Stride __IA, char* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfix16(const float* __A, vDSP_Stride __IA, short* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfix16D(const double* __A, vDSP_Stride __IA, short* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfix32(const float* __A, vDSP_Stride __IA, int* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfix32D(const double* __A, vDSP_Stride __IA, int* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A as unsigned integers of 8, 16 and 32 bits, rounded towards zero
VECLIB_API void vDSP_vfixu8(const float* __A, vDSP_Stride __IA, unsigned char* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixu8D(const double* __A, vDSP_Stride __IA, unsigned char* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixu16(const float* __A, vDSP_Stride __IA, unsigned short* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixu16D(const double* __A, vDSP_Stride __IA, unsigned short* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixu32(const float* __A, vDSP_Stride __IA, unsigned int* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixu32D(const double* __A, vDSP_Stride __IA, unsigned int* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A as integers of 8, 16 and 32 bits, rounded to the nearest, halves to even
VECLIB_API void vDSP_vfixr8(const float* __A, vDSP_Stride __IA, char* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixr8D(const double* __A, vDSP_Stride __IA, char* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixr16(const float* __A, vDSP_Stride __IA, short* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixr16D(const double* __A, vDSP_Stride __IA, short* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixr32(const float* __A, vDSP_Stride __IA, int* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixr32D(const double* __A, vDSP_Stride __IA, int* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A as unsigned integers of 8, 16 and 32 bits, rounded to the nearest, halves to even
VECLIB_API void vDSP_vfixru8(const float* __A, vDSP_Stride __IA, unsigned char* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixru8D(const double* __A, vDSP_Stride __IA, unsigned char* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixru16(const float* __A, vDSP_Stride __IA, unsigned short* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixru16D(const double* __A, vDSP_Stride __IA, unsigned short* __C, vDSP_Stride __IC,
                               vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixru32(const float* __A, vDSP_Stride __IA, unsigned int* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfixru32D(const double* __A, vDSP_Stride __IA, unsigned int* __C, vDSP_Stride __IC,
                               vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A, integers of 8, 16 and 32 bits, as floating-point numbers
VECLIB_API void vDSP_vflt8(const char* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vflt8D(const char* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vflt16(const short* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vflt16D(const short* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vflt32(const int* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vflt32D(const int* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A, unsigned integers of 8, 16 and 32 bits, as floating-point numbers
VECLIB_API void vDSP_vfltu8(const unsigned char* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                            vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfltu8D(const unsigned char* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfltu16(const unsigned short* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfltu16D(const unsigned short* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfltu32(const unsigned int* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                             vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vfltu32D(const unsigned int* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                              vDSP_Length __N) VECLIB_NOEXCEPT;

/// C = A in the other precision
VECLIB_API void vDSP_vspdp(const float* __A, vDSP_Stride __IA, double* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;
VECLIB_API void vDSP_vdpsp(const double* __A, vDSP_Stride __IA, float* __C, vDSP_Stride __IC,
                           vDSP_Length __N) VECLIB_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
#undef VECLIB_API
#undef VECLIB_NOEXCEPT
#undef VECLIB_NULLABLE
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif  // VECLIB_VDSP_HEADER
