// vForce: elementary functions of vectors, in f32 (suffix f) and f64. libAccelerate has them; docs/veclib.md has their
// accuracy. *n is the number of elements; 0 or less: nothing is done. An output may be one of the inputs.

#ifndef VECLIB_VFORCE_HEADER
#define VECLIB_VFORCE_HEADER

#define VECLIB_API __attribute__((visibility("default")))
#ifdef __cplusplus
#define VECLIB_NOEXCEPT noexcept
extern "C" {
#else
#define VECLIB_NOEXCEPT
#endif

/// y = e^x
VECLIB_API void vvexpf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvexp(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = natural logarithm of x
VECLIB_API void vvlogf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvlog(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = sin x
VECLIB_API void vvsinf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvsin(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = cos x
VECLIB_API void vvcosf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvcos(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = tanh x
VECLIB_API void vvtanhf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvtanh(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = square root of x
VECLIB_API void vvsqrtf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvsqrt(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = 1 / square root of x
VECLIB_API void vvrsqrtf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvrsqrt(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = 1 / x
VECLIB_API void vvrecf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvrec(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = |x|
VECLIB_API void vvfabsf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvfabs(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = the largest integer that is at most x
VECLIB_API void vvfloorf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvfloor(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = the smallest integer that is at least x
VECLIB_API void vvceilf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvceil(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// y = x rounded to the nearest integer, halves to even
VECLIB_API void vvnintf(float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvnint(double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

/// z = x^y: the second argument is the exponents, the third the bases
VECLIB_API void vvpowf(float* __z, const float* __y, const float* __x, const int* __n) VECLIB_NOEXCEPT;
VECLIB_API void vvpow(double* __z, const double* __y, const double* __x, const int* __n) VECLIB_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
#undef VECLIB_API
#undef VECLIB_NOEXCEPT

#endif  // VECLIB_VFORCE_HEADER
