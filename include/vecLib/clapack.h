// LAPACK by its Fortran names, as Accelerate declares it: matrices column after column, every argument by pointer. The
// functions are the system's own (Debian: liblapack.so.3); -lAccelerate brings them along. They return in *info, and
// the value of the call has no meaning.

#ifndef VECLIB_CLAPACK_HEADER
#define VECLIB_CLAPACK_HEADER

#ifdef __cplusplus
extern "C" {
#endif

typedef int __LAPACK_int;
typedef int __CLPK_integer;
typedef int __CLPK_logical;
typedef float __CLPK_real;
typedef double __CLPK_doublereal;

// A X = B by LU; LU, its use and the inverse
int sgesv_(const __LAPACK_int* n, const __LAPACK_int* nrhs, float* a, const __LAPACK_int* lda, __LAPACK_int* ipiv,
           float* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int dgesv_(const __LAPACK_int* n, const __LAPACK_int* nrhs, double* a, const __LAPACK_int* lda, __LAPACK_int* ipiv,
           double* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int sgetrf_(const __LAPACK_int* m, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, __LAPACK_int* ipiv,
            __LAPACK_int* info);
int dgetrf_(const __LAPACK_int* m, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, __LAPACK_int* ipiv,
            __LAPACK_int* info);
int sgetrs_(const char* trans, const __LAPACK_int* n, const __LAPACK_int* nrhs, const float* a, const __LAPACK_int* lda,
            const __LAPACK_int* ipiv, float* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int dgetrs_(const char* trans, const __LAPACK_int* n, const __LAPACK_int* nrhs, const double* a,
            const __LAPACK_int* lda, const __LAPACK_int* ipiv, double* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int sgetri_(const __LAPACK_int* n, float* a, const __LAPACK_int* lda, const __LAPACK_int* ipiv, float* work,
            const __LAPACK_int* lwork, __LAPACK_int* info);
int dgetri_(const __LAPACK_int* n, double* a, const __LAPACK_int* lda, const __LAPACK_int* ipiv, double* work,
            const __LAPACK_int* lwork, __LAPACK_int* info);

// Symmetric positive definite: Cholesky
int sposv_(const char* uplo, const __LAPACK_int* n, const __LAPACK_int* nrhs, float* a, const __LAPACK_int* lda,
           float* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int dposv_(const char* uplo, const __LAPACK_int* n, const __LAPACK_int* nrhs, double* a, const __LAPACK_int* lda,
           double* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int spotrf_(const char* uplo, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, __LAPACK_int* info);
int dpotrf_(const char* uplo, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, __LAPACK_int* info);
int spotrs_(const char* uplo, const __LAPACK_int* n, const __LAPACK_int* nrhs, const float* a, const __LAPACK_int* lda,
            float* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int dpotrs_(const char* uplo, const __LAPACK_int* n, const __LAPACK_int* nrhs, const double* a, const __LAPACK_int* lda,
            double* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int spotri_(const char* uplo, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, __LAPACK_int* info);
int dpotri_(const char* uplo, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, __LAPACK_int* info);

// Triangular
int strtrs_(const char* uplo, const char* trans, const char* diag, const __LAPACK_int* n, const __LAPACK_int* nrhs,
            const float* a, const __LAPACK_int* lda, float* b, const __LAPACK_int* ldb, __LAPACK_int* info);
int dtrtrs_(const char* uplo, const char* trans, const char* diag, const __LAPACK_int* n, const __LAPACK_int* nrhs,
            const double* a, const __LAPACK_int* lda, double* b, const __LAPACK_int* ldb, __LAPACK_int* info);

// Least squares, and QR
int sgels_(const char* trans, const __LAPACK_int* m, const __LAPACK_int* n, const __LAPACK_int* nrhs, float* a,
           const __LAPACK_int* lda, float* b, const __LAPACK_int* ldb, float* work, const __LAPACK_int* lwork,
           __LAPACK_int* info);
int dgels_(const char* trans, const __LAPACK_int* m, const __LAPACK_int* n, const __LAPACK_int* nrhs, double* a,
           const __LAPACK_int* lda, double* b, const __LAPACK_int* ldb, double* work, const __LAPACK_int* lwork,
           __LAPACK_int* info);
int sgelsd_(const __LAPACK_int* m, const __LAPACK_int* n, const __LAPACK_int* nrhs, float* a, const __LAPACK_int* lda,
            float* b, const __LAPACK_int* ldb, float* s, const float* rcond, __LAPACK_int* rank, float* work,
            const __LAPACK_int* lwork, __LAPACK_int* iwork, __LAPACK_int* info);
int dgelsd_(const __LAPACK_int* m, const __LAPACK_int* n, const __LAPACK_int* nrhs, double* a, const __LAPACK_int* lda,
            double* b, const __LAPACK_int* ldb, double* s, const double* rcond, __LAPACK_int* rank, double* work,
            const __LAPACK_int* lwork, __LAPACK_int* iwork, __LAPACK_int* info);
int sgeqrf_(const __LAPACK_int* m, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, float* tau, float* work,
            const __LAPACK_int* lwork, __LAPACK_int* info);
int dgeqrf_(const __LAPACK_int* m, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, double* tau, double* work,
            const __LAPACK_int* lwork, __LAPACK_int* info);
int sorgqr_(const __LAPACK_int* m, const __LAPACK_int* n, const __LAPACK_int* k, float* a, const __LAPACK_int* lda,
            const float* tau, float* work, const __LAPACK_int* lwork, __LAPACK_int* info);
int dorgqr_(const __LAPACK_int* m, const __LAPACK_int* n, const __LAPACK_int* k, double* a, const __LAPACK_int* lda,
            const double* tau, double* work, const __LAPACK_int* lwork, __LAPACK_int* info);

// Singular values
int sgesvd_(const char* jobu, const char* jobvt, const __LAPACK_int* m, const __LAPACK_int* n, float* a,
            const __LAPACK_int* lda, float* s, float* u, const __LAPACK_int* ldu, float* vt, const __LAPACK_int* ldvt,
            float* work, const __LAPACK_int* lwork, __LAPACK_int* info);
int dgesvd_(const char* jobu, const char* jobvt, const __LAPACK_int* m, const __LAPACK_int* n, double* a,
            const __LAPACK_int* lda, double* s, double* u, const __LAPACK_int* ldu, double* vt,
            const __LAPACK_int* ldvt, double* work, const __LAPACK_int* lwork, __LAPACK_int* info);
int sgesdd_(const char* jobz, const __LAPACK_int* m, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, float* s,
            float* u, const __LAPACK_int* ldu, float* vt, const __LAPACK_int* ldvt, float* work,
            const __LAPACK_int* lwork, __LAPACK_int* iwork, __LAPACK_int* info);
int dgesdd_(const char* jobz, const __LAPACK_int* m, const __LAPACK_int* n, double* a, const __LAPACK_int* lda,
            double* s, double* u, const __LAPACK_int* ldu, double* vt, const __LAPACK_int* ldvt, double* work,
            const __LAPACK_int* lwork, __LAPACK_int* iwork, __LAPACK_int* info);

// Eigenvalues
int ssyev_(const char* jobz, const char* uplo, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, float* w,
           float* work, const __LAPACK_int* lwork, __LAPACK_int* info);
int dsyev_(const char* jobz, const char* uplo, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, double* w,
           double* work, const __LAPACK_int* lwork, __LAPACK_int* info);
int ssyevd_(const char* jobz, const char* uplo, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, float* w,
            float* work, const __LAPACK_int* lwork, __LAPACK_int* iwork, const __LAPACK_int* liwork,
            __LAPACK_int* info);
int dsyevd_(const char* jobz, const char* uplo, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, double* w,
            double* work, const __LAPACK_int* lwork, __LAPACK_int* iwork, const __LAPACK_int* liwork,
            __LAPACK_int* info);
int ssyevr_(const char* jobz, const char* range, const char* uplo, const __LAPACK_int* n, float* a,
            const __LAPACK_int* lda, const float* vl, const float* vu, const __LAPACK_int* il, const __LAPACK_int* iu,
            const float* abstol, __LAPACK_int* m, float* w, float* z, const __LAPACK_int* ldz, __LAPACK_int* isuppz,
            float* work, const __LAPACK_int* lwork, __LAPACK_int* iwork, const __LAPACK_int* liwork,
            __LAPACK_int* info);
int dsyevr_(const char* jobz, const char* range, const char* uplo, const __LAPACK_int* n, double* a,
            const __LAPACK_int* lda, const double* vl, const double* vu, const __LAPACK_int* il, const __LAPACK_int* iu,
            const double* abstol, __LAPACK_int* m, double* w, double* z, const __LAPACK_int* ldz, __LAPACK_int* isuppz,
            double* work, const __LAPACK_int* lwork, __LAPACK_int* iwork, const __LAPACK_int* liwork,
            __LAPACK_int* info);
int sgeev_(const char* jobvl, const char* jobvr, const __LAPACK_int* n, float* a, const __LAPACK_int* lda, float* wr,
           float* wi, float* vl, const __LAPACK_int* ldvl, float* vr, const __LAPACK_int* ldvr, float* work,
           const __LAPACK_int* lwork, __LAPACK_int* info);
int dgeev_(const char* jobvl, const char* jobvr, const __LAPACK_int* n, double* a, const __LAPACK_int* lda, double* wr,
           double* wi, double* vl, const __LAPACK_int* ldvl, double* vr, const __LAPACK_int* ldvr, double* work,
           const __LAPACK_int* lwork, __LAPACK_int* info);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // VECLIB_CLAPACK_HEADER
