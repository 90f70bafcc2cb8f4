// Gradients of matrix products.
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

// True if a matrix is stored by columns, like the transpose of a row-major one. While a program is recorded, the
// strides are hints; only the order of the result in memory depends on them.
bool lies_by_columns(const Tensor& matrix) {
  const Dims& strides = matrix.impl()->strides;
  return strides[0] == 1 && strides[1] > 1;
}

// A^T G for a batch of matrices that are all multiplied by the same matrix B. Stacked on top of each other, the
// matrices of the batch are one matrix, so the product sums over the batch. The result has the layout of B, since the
// gradient of a parameter is added to a tensor in the parameter's layout.
Tensor gradient_of_shared(const Tensor& first, const Tensor& grad, const Tensor& second) {
  const Tensor rows = tenon::flatten(first, 0, -2);
  const Tensor of_rows = tenon::flatten(grad, 0, -2);
  if (lies_by_columns(second)) {
    return tenon::transpose(tenon::matmul(tenon::transpose(of_rows, 0, 1), rows), 0, 1);
  }
  return tenon::matmul(tenon::transpose(rows, 0, 1), of_rows);
}

}  // namespace

// With A and B as matrices: dA = G B^T, dB = A^T G. A 1-d argument is treated as a row or a column.
void matmul(const autograd::Backward& b) {
  const Tensor first = b.input(0);
  const Tensor second = b.input(1);
  const bool row = first.rank() == 1;
  const bool column = second.rank() == 1;
  Tensor grad = b.grad();
  if (column) grad = tenon::unsqueeze(grad, -1);
  if (row) grad = tenon::unsqueeze(grad, -2);
  if (b.wants(0)) {
    const Tensor matrix = column ? tenon::unsqueeze(second, -1) : second;
    const Tensor product = tenon::matmul(grad, tenon::transpose(matrix, -2, -1));
    b.give(0, row ? tenon::squeeze(product, -2) : product);
  }
  if (b.wants(1)) {
    const Tensor matrix = row ? tenon::unsqueeze(first, 0) : first;
    const Tensor product = second.rank() > 2
                               ? tenon::matmul(tenon::transpose(matrix, -2, -1), grad)
                               : gradient_of_shared(matrix, grad, column ? tenon::unsqueeze(second, -1) : second);
    b.give(1, column ? tenon::squeeze(product, -1) : product);
  }
}

}  // namespace tenon::gradients
