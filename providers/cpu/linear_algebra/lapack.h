// The LAPACK functions that this folder calls, declared as in the Fortran interface; overloads serve f32 and f64 under
// one name. Matrices are column-major. The hidden string lengths are the last arguments.
#pragma once

#include <cstddef>

extern "C" {
#define TENON_LAPACK(T, p)                                                                                             \
  void p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                            \
  void p##getrs_(const char* trans, const int* n, const int* columns, const T* a, const int* lda, const int* pivots,   \
                 T* b, const int* ldb, int* info, size_t trans_length);                                                \
  void p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, size_t uplo_length);                 \
  void p##trtrs_(const char* uplo, const char* trans, const char* diagonal, const int* n, const int* columns,          \
                 const T* a, const int* lda, T* b, const int* ldb, int* info, size_t uplo_length, size_t trans_length, \
                 size_t diagonal_length);                                                                              \
  void p##gelsy_(const int* m, const int* n, const int* columns, T* a, const int* lda, T* b, const int* ldb,           \
                 int* pivots, const T* least, int* rank, T* work, const int* work_length, int* info);                  \
  void p##geqp3_(const int* m, const int* n, T* a, const int* lda, int* order, T* scales, T* work,                     \
                 const int* work_length, int* info);                                                                   \
  void p##laic1_(const int* job, const int* count, const T* x, const T* estimate, const T* w, const T* gamma, T* next, \
                 T* sine, T* cosine);                                                                                  \
  void p##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* work_length,            \
                 int* info);                                                                                           \
  void p##orgqr_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,                \
                 const int* work_length, int* info);                                                                   \
  void p##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu, T* vh, \
                 const int* ldvh, T* work, const int* work_length, int* integers, int* info, size_t job_length);       \
  void p##syevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, T* values, T* work,            \
                 const int* work_length, int* integers, const int* integers_length, int* info, size_t job_length,      \
                 size_t uplo_length);                                                                                  \
  void p##stedc_(const char* job, const int* n, T* diagonal, T* beside, T* z, const int* ldz, T* work,                 \
                 const int* work_length, int* integers, const int* integers_length, int* info, size_t job_length);     \
  void p##sterf_(const int* n, T* diagonal, T* beside, int* info);                                                     \
  void p##bdsdc_(const char* uplo, const char* job, const int* n, T* diagonal, T* beside, T* u, const int* ldu, T* vh, \
                 const int* ldvh, T* q, int* iq, T* work, int* integers, int* info, size_t uplo_length,                \
                 size_t job_length);                                                                                   \
  void p##bdsqr_(const char* uplo, const int* n, const int* vh_columns, const int* u_rows, const int* c_columns,       \
                 T* diagonal, T* beside, T* vh, const int* ldvh, T* u, const int* ldu, T* c, const int* ldc, T* work,  \
                 int* info, size_t uplo_length);
TENON_LAPACK(float, s)
TENON_LAPACK(double, d)
#undef TENON_LAPACK
}

namespace tenon::provider::cpu {

template <class T>
struct Lapack;

template <>
struct Lapack<float> {
  static constexpr auto getrf = sgetrf_;
  static constexpr auto getrs = sgetrs_;
  static constexpr auto potrf = spotrf_;
  static constexpr auto trtrs = strtrs_;
  static constexpr auto gelsy = sgelsy_;
  static constexpr auto geqp3 = sgeqp3_;
  static constexpr auto laic1 = slaic1_;
  static constexpr auto geqrf = sgeqrf_;
  static constexpr auto orgqr = sorgqr_;
  static constexpr auto gesdd = sgesdd_;
  static constexpr auto syevd = ssyevd_;
  static constexpr auto stedc = sstedc_;
  static constexpr auto sterf = ssterf_;
  static constexpr auto bdsdc = sbdsdc_;
  static constexpr auto bdsqr = sbdsqr_;
};

template <>
struct Lapack<double> {
  static constexpr auto getrf = dgetrf_;
  static constexpr auto getrs = dgetrs_;
  static constexpr auto potrf = dpotrf_;
  static constexpr auto trtrs = dtrtrs_;
  static constexpr auto gelsy = dgelsy_;
  static constexpr auto geqp3 = dgeqp3_;
  static constexpr auto laic1 = dlaic1_;
  static constexpr auto geqrf = dgeqrf_;
  static constexpr auto orgqr = dorgqr_;
  static constexpr auto gesdd = dgesdd_;
  static constexpr auto syevd = dsyevd_;
  static constexpr auto stedc = dstedc_;
  static constexpr auto sterf = dsterf_;
  static constexpr auto bdsdc = dbdsdc_;
  static constexpr auto bdsqr = dbdsqr_;
};

}  // namespace tenon::provider::cpu
