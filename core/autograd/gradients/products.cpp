// Matrix products.
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

// Whether a matrix lies column by column, as the transpose of a row-major one does. While a program is recorded, the
// strides are those of its hints, and nothing depends on them but the order of the result in memory.
bool lies_by_columns(const Tensor& matrix) {
  const Dims& strides = matrix.impl()->strides;
  return strides[0] == 1 && strides[1] > 1;
}

// A^T G, where each matrix of a batch is multiplied by the same matrix B: the matrices of the batch one above the other
// are one matrix, so the product adds up over them. The result lies as B does, since the gradient of a parameter is
// added to what lies as the parameter does.
Tensor gradient_of_shared(const Tensor& first, const Tensor& grad, const Tensor& second) {
  const Tensor rows = tenon::flatten(first, 0, -2);
  const Tensor of_rows = tenon::flatten(grad, 0, -2);
  if (lies_by_columns(second)) {
    return tenon::transpose(tenon::matmul(tenon::transpose(of_rows, 0, 1), rows), 0, 1);
  }
  return tenon::matmul(tenon::transpose(rows, 0, 1), of_rows);
}

}  // namespace

// With A and B as matrices: dA = G B^T, dB = A^T G. A 1-d argument is a row or a column.
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
    b.give(0, tenon::matmul(grad, tenon::transpose(matrix, -2, -1)));
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
