// The C interface of BLAS, as Accelerate names it. The functions are the system's own (Debian: libblas.so.3, which
// OpenBLAS replaces where it is installed); -lAccelerate brings them along. The guard is that of the usual <cblas.h>,
// so that a program may include both.

#ifndef CBLAS_H
#define CBLAS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CBLAS_INDEX size_t
enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 };
enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 };
enum CBLAS_DIAG { CblasNonUnit = 131, CblasUnit = 132 };
enum CBLAS_SIDE { CblasLeft = 141, CblasRight = 142 };
#ifndef __cplusplus
typedef enum CBLAS_ORDER CBLAS_ORDER;
typedef enum CBLAS_TRANSPOSE CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO CBLAS_UPLO;
typedef enum CBLAS_DIAG CBLAS_DIAG;
typedef enum CBLAS_SIDE CBLAS_SIDE;
#endif
#define CBLAS_LAYOUT CBLAS_ORDER

// Level 1
float cblas_sdot(int n, const float* x, int incx, const float* y, int incy);
double cblas_ddot(int n, const double* x, int incx, const double* y, int incy);
double cblas_dsdot(int n, const float* x, int incx, const float* y, int incy);
float cblas_sdsdot(int n, float alpha, const float* x, int incx, const float* y, int incy);
float cblas_snrm2(int n, const float* x, int incx);
double cblas_dnrm2(int n, const double* x, int incx);
float cblas_sasum(int n, const float* x, int incx);
double cblas_dasum(int n, const double* x, int incx);
CBLAS_INDEX cblas_isamax(int n, const float* x, int incx);
CBLAS_INDEX cblas_idamax(int n, const double* x, int incx);
CBLAS_INDEX cblas_icamax(int n, const void* x, int incx);
CBLAS_INDEX cblas_izamax(int n, const void* x, int incx);
void cblas_sswap(int n, float* x, int incx, float* y, int incy);
void cblas_dswap(int n, double* x, int incx, double* y, int incy);
void cblas_scopy(int n, const float* x, int incx, float* y, int incy);
void cblas_dcopy(int n, const double* x, int incx, double* y, int incy);
void cblas_saxpy(int n, float alpha, const float* x, int incx, float* y, int incy);
void cblas_daxpy(int n, double alpha, const double* x, int incx, double* y, int incy);
void cblas_sscal(int n, float alpha, float* x, int incx);
void cblas_dscal(int n, double alpha, double* x, int incx);
void cblas_srotg(float* a, float* b, float* c, float* s);
void cblas_drotg(double* a, double* b, double* c, double* s);
void cblas_srot(int n, float* x, int incx, float* y, int incy, float c, float s);
void cblas_drot(int n, double* x, int incx, double* y, int incy, double c, double s);
void cblas_cdotu_sub(int n, const void* x, int incx, const void* y, int incy, void* result);
void cblas_cdotc_sub(int n, const void* x, int incx, const void* y, int incy, void* result);
void cblas_caxpy(int n, const void* alpha, const void* x, int incx, void* y, int incy);
void cblas_cscal(int n, const void* alpha, void* x, int incx);
void cblas_zdotu_sub(int n, const void* x, int incx, const void* y, int incy, void* result);
void cblas_zdotc_sub(int n, const void* x, int incx, const void* y, int incy, void* result);
void cblas_zaxpy(int n, const void* alpha, const void* x, int incx, void* y, int incy);
void cblas_zscal(int n, const void* alpha, void* x, int incx);

// Level 2
void cblas_sgemv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float* a, int lda,
                 const float* x, int incx, float beta, float* y, int incy);
void cblas_dgemv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, double alpha, const double* a,
                 int lda, const double* x, int incx, double beta, double* y, int incy);
void cblas_sgbmv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, int kl, int ku, float alpha,
                 const float* a, int lda, const float* x, int incx, float beta, float* y, int incy);
void cblas_dgbmv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, int kl, int ku, double alpha,
                 const double* a, int lda, const double* x, int incx, double beta, double* y, int incy);
void cblas_sger(enum CBLAS_ORDER order, int m, int n, float alpha, const float* x, int incx, const float* y, int incy,
                float* a, int lda);
void cblas_dger(enum CBLAS_ORDER order, int m, int n, double alpha, const double* x, int incx, const double* y,
                int incy, double* a, int lda);
void cblas_ssymv(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, int n, float alpha, const float* a, int lda,
                 const float* x, int incx, float beta, float* y, int incy);
void cblas_dsymv(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, int n, double alpha, const double* a, int lda,
                 const double* x, int incx, double beta, double* y, int incy);
void cblas_ssyr(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, int n, float alpha, const float* x, int incx, float* a,
                int lda);
void cblas_dsyr(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, int n, double alpha, const double* x, int incx, double* a,
                int lda);
void cblas_ssyr2(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, int n, float alpha, const float* x, int incx,
                 const float* y, int incy, float* a, int lda);
void cblas_dsyr2(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, int n, double alpha, const double* x, int incx,
                 const double* y, int incy, double* a, int lda);
void cblas_strmv(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, enum CBLAS_DIAG diag, int n,
                 const float* a, int lda, float* x, int incx);
void cblas_dtrmv(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, enum CBLAS_DIAG diag, int n,
                 const double* a, int lda, double* x, int incx);
void cblas_strsv(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, enum CBLAS_DIAG diag, int n,
                 const float* a, int lda, float* x, int incx);
void cblas_dtrsv(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, enum CBLAS_DIAG diag, int n,
                 const double* a, int lda, double* x, int incx);
void cblas_cgemv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, const void* alpha, const void* a,
                 int lda, const void* x, int incx, const void* beta, void* y, int incy);
void cblas_zgemv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, const void* alpha, const void* a,
                 int lda, const void* x, int incx, const void* beta, void* y, int incy);

// Level 3
void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transa, enum CBLAS_TRANSPOSE transb, int m, int n, int k,
                 float alpha, const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
void cblas_dgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transa, enum CBLAS_TRANSPOSE transb, int m, int n, int k,
                 double alpha, const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc);
void cblas_ssymm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, int m, int n, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
void cblas_dsymm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, int m, int n, double alpha,
                 const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc);
void cblas_ssyrk(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, int n, int k, float alpha,
                 const float* a, int lda, float beta, float* c, int ldc);
void cblas_dsyrk(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, int n, int k, double alpha,
                 const double* a, int lda, double beta, double* c, int ldc);
void cblas_ssyr2k(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, int n, int k, float alpha,
                  const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
void cblas_dsyr2k(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, int n, int k, double alpha,
                  const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc);
void cblas_strmm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE transa,
                 enum CBLAS_DIAG diag, int m, int n, float alpha, const float* a, int lda, float* b, int ldb);
void cblas_dtrmm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE transa,
                 enum CBLAS_DIAG diag, int m, int n, double alpha, const double* a, int lda, double* b, int ldb);
void cblas_strsm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE transa,
                 enum CBLAS_DIAG diag, int m, int n, float alpha, const float* a, int lda, float* b, int ldb);
void cblas_dtrsm(enum CBLAS_ORDER order, enum CBLAS_SIDE side, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE transa,
                 enum CBLAS_DIAG diag, int m, int n, double alpha, const double* a, int lda, double* b, int ldb);
void cblas_cgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transa, enum CBLAS_TRANSPOSE transb, int m, int n, int k,
                 const void* alpha, const void* a, int lda, const void* b, int ldb, const void* beta, void* c, int ldc);
void cblas_zgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transa, enum CBLAS_TRANSPOSE transb, int m, int n, int k,
                 const void* alpha, const void* a, int lda, const void* b, int ldb, const void* beta, void* c, int ldc);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // CBLAS_H
