// Matrix products.
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {

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
    const Tensor product = tenon::matmul(tenon::transpose(matrix, -2, -1), grad);
    b.give(1, column ? tenon::squeeze(product, -1) : product);
  }
}

}  // namespace tenon::gradients
