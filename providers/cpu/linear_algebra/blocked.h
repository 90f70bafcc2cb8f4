// LU and QR factors and triangular solves of one large f32 matrix. Most of the work is matrix products, which oneDNN
// computes on several threads; LAPACK factors the remaining small parts. LU and triangles are halved recursively (S.
// Toledo, "Locality of reference in LU decomposition with partial pivoting", 1997). QR processes blocks of columns and
// combines the reflections of a block into one product (R. Schreiber, C. Van Loan, "A storage-efficient WY
// representation for products of Householder transformations", 1989).
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Resources for the work on one matrix: the SIMD level and the number of threads.
struct Workers {
  SimdLevel simd;
  int32_t count;
};

// A part of a column-major matrix. Columns are `stride` elements apart.
struct MatrixPart {
  float* data;
  int rows, columns, stride;

  MatrixPart part(int row, int column, int m, int n) const {
    return {data + row + static_cast<ptrdiff_t>(column) * stride, m, n, stride};
  }
};

// The least side of a matrix, and the least number of columns of a right-hand side, for which halving pays.
inline constexpr int least_halved = 192;
inline constexpr int least_halved_columns = 32;

// Like LAPACK's getrf: replaces `a` by its factors. `pivots` has min(rows, columns) entries, which count from 1.
// Returns LAPACK's info.
int factor_by_halves(const MatrixPart& a, int* pivots, const Workers& workers);

// Swaps row i of `a` with row pivots[i] - 1, for i in ascending order.
void swap_rows(const MatrixPart& a, const int* pivots, int count, const Workers& workers);

// Replaces b by the inverse of the triangle times b. With `unit`, all diagonal elements count as 1; otherwise none may
// be 0.
void solve_by_halves(bool upper, bool unit, const MatrixPart& triangle, const MatrixPart& b, const Workers& workers);

// Computes the QR factors of `a`, with the signs of LAPACK's geqrf. The upper triangle of `a` becomes R; the elements
// below are undefined. `q`, which has as many rows as `a` and at least min(rows, columns) columns, becomes the first
// columns of Q.
void factor_by_blocks(const MatrixPart& a, const MatrixPart& q, const Workers& workers);

// The result that replaces `b`: Q b, Q' b or b Q'.
enum class Reflect : uint8_t { plain, turned, turned_from_right };

// Q is a product of reflections in the form of LAPACK's geqrf: reflection i is 1 at row i of column i, and its other
// elements are below.
void reflect_by_blocks(const MatrixPart& reflections, const float* scales, Reflect how, const MatrixPart& b,
                       const Workers& workers);

// c = a b.
void multiply_matrices(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c, const Workers& workers);
// c -= a b'.
void subtract_product_with_turned(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c,
                                  const Workers& workers);

}  // namespace tenon::provider::cpu
