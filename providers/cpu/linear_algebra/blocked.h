// LU and QR factors and triangular solves of one large matrix over f32, so that most of the work is products, which
// oneDNN computes on several threads; LAPACK factors what is left. LU and triangles are halved again and again (S.
// Toledo, "Locality of reference in LU decomposition with partial pivoting", 1997). QR takes blocks of columns, whose
// reflections are one product (R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products of
// Householder transformations", 1989).
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// What the work on one matrix may use: vectors, and as many threads.
struct Workers {
  SimdLevel simd;
  int32_t count;
};

// A part of a matrix that lies in columns, `stride` elements apart.
struct MatrixPart {
  float* data;
  int rows, columns, stride;

  MatrixPart part(int row, int column, int m, int n) const {
    return {data + row + static_cast<ptrdiff_t>(column) * stride, m, n, stride};
  }
};

// The least side of a matrix that gains by halves, and the fewest columns of what it is solved for.
inline constexpr int least_halved = 192;
inline constexpr int least_halved_columns = 32;

// As LAPACK's getrf: `a` becomes its factors, and `pivots` (as many as the shorter side) count from 1. Returns info.
int factor_by_halves(const MatrixPart& a, int* pivots, const Workers& workers);

// Swaps row i of `a` with row pivots[i] - 1, one i after the other.
void swap_rows(const MatrixPart& a, const int* pivots, int count, const Workers& workers);

// b becomes the inverse of the triangle times b. No diagonal element is 0 unless all count as 1 (`unit`).
void solve_by_halves(bool upper, bool unit, const MatrixPart& triangle, const MatrixPart& b, const Workers& workers);

// The QR factors of `a`, with the signs of LAPACK's geqrf: `a` becomes R in its upper triangle, and holds anything
// below it. `q`, of as many rows and at least as many columns as `a` has in its shorter side, becomes the first columns
// of Q.
void factor_by_blocks(const MatrixPart& a, const MatrixPart& q, const Workers& workers);

// What `b` becomes: Q b, Q' b or b Q'.
enum class Reflect : uint8_t { plain, turned, turned_from_right };

// Q is the product of reflections in the form of LAPACK's geqrf: reflection i is 1 at row i of column i, and its other
// elements lie below it.
void reflect_by_blocks(const MatrixPart& reflections, const float* scales, Reflect how, const MatrixPart& b,
                       const Workers& workers);

// c = a b.
void multiply_matrices(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c, const Workers& workers);
// c -= a b'.
void subtract_product_with_turned(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c,
                                  const Workers& workers);

}  // namespace tenon::provider::cpu
