// Linear algebra. The last two axes are the matrices.
#include <algorithm>
#include <vector>

#include "core/ops/functors/apply.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

Tensor matrices(std::string_view op, const Tensor& input, bool square) {
  require_defined(op, "input", input);
  const int32_t rank = input.rank();
  if (rank < 2) refuse(op, "input of shape {} must have at least 2 axes.", input.dims());
  const int64_t m = input.dims()[rank - 2];
  const int64_t n = input.dims()[rank - 1];
  if (square && m != n) refuse(op, "input of shape {} must hold square matrices.", input.dims());
  return is_floating(input.dtype()) ? input : tenon::cast(input, DType::f32);
}

// True if the matrices have no elements, so that no kernel is needed.
bool has_empty_matrices(const Tensor& matrices) {
  return matrices.dims()[matrices.rank() - 2] == 0 || matrices.dims()[matrices.rank() - 1] == 0;
}

LinearAlgebraAttributes attributes_of(int32_t kind, const Tensor& input, int32_t flags = 0) {
  LinearAlgebraAttributes attributes{};
  attributes.how = {kind, flags};
  attributes.k = std::min(input.dims()[input.rank() - 2], input.dims()[input.rank() - 1]);
  return attributes;
}

Tensor one(OpId id, int32_t kind, const Tensor& input, bool square, int32_t flags = 0) {
  const Tensor source = matrices(op_row(id).name, input, square);
  if (has_empty_matrices(source)) return tenon::clone(source);
  const LinearAlgebraAttributes attributes = attributes_of(kind, source, flags);
  return apply(id, {&source}, &attributes);
}

std::tuple<Tensor, Tensor> two(OpId id, const Tensor& source, const LinearAlgebraAttributes& attributes) {
  const Tensor* inputs[] = {&source};
  Tensor outputs[2];
  apply(id, inputs, &attributes, outputs);
  return {outputs[0], outputs[1]};
}

Dims with_sides(const Dims& batch, int64_t rows, int64_t columns) {
  Dims dims = batch;
  dims.push_back(rows);
  dims.push_back(columns);
  return dims;
}

Dims batch_of(const Tensor& tensor) {
  Dims dims = tensor.dims();
  dims.resize(tensor.rank() - 2);
  return dims;
}

// Zeros with the batch, dtype and device of `matrices`, which have no elements, followed by the dims `sides`.
Tensor zeros_of(const Tensor& matrices, std::initializer_list<int64_t> sides, DType dtype = DType::none) {
  Dims dims = batch_of(matrices);
  for (const int64_t side : sides) dims.push_back(side);
  const DType made = dtype == DType::none ? matrices.dtype() : dtype;
  return with_history_of(matrices, tenon::zeros(dims, made, matrices.device()));
}

// Solves `input` X = `other`; `kind` gives the structure of `input`.
Tensor solved(OpId id, int32_t kind, const Tensor& input, const Tensor& other, int32_t flags) {
  const std::string_view op = op_row(id).name;
  Tensor a = matrices(op, input, kind != EP_LINEAR_LEAST_SQUARES);
  require_defined(op, "other", other);
  Dims rows = a.dims();
  rows.resize(a.rank() - 1);
  const bool vectors = other.rank() == 1 || (other.rank() == a.rank() - 1 && other.dims() == rows);
  Tensor b = tenon::cast(vectors ? tenon::unsqueeze(other, -1) : other, promote_tensors(a, other));
  if (!is_floating(b.dtype())) b = tenon::cast(b, a.dtype());
  a = tenon::cast(a, b.dtype());
  if (b.rank() < 2 || b.dims()[b.rank() - 2] != a.dims()[a.rank() - 2]) {
    refuse(op, "other of shape {} must have as many rows as input of shape {}.", other.dims(), input.dims());
  }
  const Dims batch = value_or_throw(infer::broadcast(op, batch_of(a), batch_of(b)));
  const int64_t columns = b.dims()[b.rank() - 1];
  const Dims left = with_sides(batch, a.dims()[a.rank() - 2], a.dims()[a.rank() - 1]);
  const Dims right = with_sides(batch, b.dims()[b.rank() - 2], columns);
  if (a.dims() != left) a = tenon::expand(a, left);
  if (b.dims() != right) b = tenon::expand(b, right);
  const LinearAlgebraAttributes attributes = attributes_of(kind, a, flags);
  const Tensor result = has_empty_matrices(a) ? with_history_of(b, zeros_of(a, {a.dims()[a.rank() - 1], columns}))
                                              : apply(id, {&a, &b}, &attributes);
  return vectors ? tenon::squeeze(result, -1) : result;
}

// The threshold up to which singular values count as 0.
Tensor least_value(const Tensor& input, const Tensor& values) {
  const auto side = static_cast<double>(std::max(input.dims()[input.rank() - 2], input.dims()[input.rank() - 1]));
  return tenon::mul(tenon::narrow(values, -1, 0, 1), Scalar(side * epsilon(values.dtype())));
}

}  // namespace

Tensor linalg_cholesky(const Tensor& input, bool upper) {
  return one(OpId::linalg_cholesky, EP_LINEAR_CHOLESKY, input, true, upper ? EP_LINEAR_FLAG_UPPER : 0);
}
Tensor linalg_inv(const Tensor& input) { return one(OpId::linalg_inv, EP_LINEAR_INVERSE, input, true); }
Tensor linalg_det(const Tensor& input) {
  const Tensor source = matrices("linalg_det", input, true);
  if (has_empty_matrices(source)) return tenon::prod(source, {-2, -1});
  return one(OpId::linalg_det, EP_LINEAR_DETERMINANT, source, true);
}
Tensor linalg_svdvals(const Tensor& input) {
  const Tensor source = matrices("linalg_svdvals", input, false);
  if (has_empty_matrices(source)) return zeros_of(source, {0});
  return one(OpId::linalg_svdvals, EP_LINEAR_SVD, source, false);
}

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& input) {
  const Tensor source = matrices("linalg_slogdet", input, true);
  if (has_empty_matrices(source)) return {tenon::prod(source, {-2, -1}), tenon::sum(source, {-2, -1})};
  return two(OpId::linalg_slogdet, source, attributes_of(EP_LINEAR_LOG_DETERMINANT, source));
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& input) {
  const Tensor source = matrices("linalg_lu_factor", input, false);
  if (has_empty_matrices(source)) return {tenon::clone(source), zeros_of(source, {0}, DType::i32)};
  return two(OpId::linalg_lu_factor, source, attributes_of(EP_LINEAR_LU, source));
}

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& input, std::string_view mode) {
  const Tensor source = matrices("linalg_qr", input, false);
  if (mode != "reduced" && mode != "complete") {
    refuse("linalg_qr", "mode is '{}'; it may be reduced or complete.", mode);
  }
  LinearAlgebraAttributes attributes = attributes_of(EP_LINEAR_QR, source);
  const int64_t m = source.dims()[source.rank() - 2];
  if (mode == "complete") attributes.k = m;
  if (has_empty_matrices(source)) {
    const Tensor q = zeros_of(source, {m, attributes.k});
    const Tensor r = zeros_of(source, {attributes.k, source.dims()[source.rank() - 1]});
    return {attributes.k == 0 ? q : tenon::add(q, tenon::eye(m, std::nullopt, q.dtype(), q.device())), r};
  }
  return two(OpId::linalg_qr, source, attributes);
}

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& input, bool upper) {
  const Tensor source = matrices("linalg_eigh", input, true);
  if (has_empty_matrices(source)) return {zeros_of(source, {0}), tenon::clone(source)};
  return two(OpId::linalg_eigh, source, attributes_of(EP_LINEAR_EIGEN, source, upper ? EP_LINEAR_FLAG_UPPER : 0));
}

Tensor linalg_eigvalsh(const Tensor& input, bool upper) {
  const Tensor source = matrices("linalg_eigvalsh", input, true);
  if (has_empty_matrices(source)) return zeros_of(source, {0});
  return one(OpId::linalg_eigvalsh, EP_LINEAR_EIGEN, source, true, upper ? EP_LINEAR_FLAG_UPPER : 0);
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd_reduced(const Tensor& input) {
  const Tensor source = matrices("linalg_svd_reduced", input, false);
  const LinearAlgebraAttributes attributes = attributes_of(EP_LINEAR_SVD, source);
  if (has_empty_matrices(source)) {
    const int64_t m = source.dims()[source.rank() - 2], n = source.dims()[source.rank() - 1];
    return {zeros_of(source, {0}), zeros_of(source, {m, 0}), zeros_of(source, {0, n})};
  }
  const Tensor* inputs[] = {&source};
  Tensor outputs[3];
  apply(OpId::linalg_svd_reduced, inputs, &attributes, outputs);
  return {outputs[0], outputs[1], outputs[2]};
}

// The additional columns of U, and rows of V transposed, come from the reflections of a QR. They are one choice among
// many, so they have no gradient.
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& input, bool full_matrices) {
  auto [values, u, vh] = tenon::linalg_svd_reduced(input);
  if (!full_matrices) return {u, values, vh};
  const int64_t m = input.dims()[input.rank() - 2];
  const int64_t n = input.dims()[input.rank() - 1];
  const auto completed = [](const Tensor& columns, int64_t side, int64_t k) {
    const Tensor q = std::get<0>(tenon::linalg_qr(without_history(columns), "complete"));
    return tenon::concat(std::vector<Tensor>{columns, tenon::narrow(q, -1, k, side - k)}, -1);
  };
  if (m > n) u = completed(u, m, n);
  if (n > m) vh = tenon::transpose(completed(tenon::transpose(vh, -2, -1), n, m), -2, -1);
  return {u, values, vh};
}

Tensor linalg_solve(const Tensor& input, const Tensor& other) {
  return solved(OpId::linalg_solve, EP_LINEAR_SOLVE, input, other, 0);
}
Tensor linalg_solve_triangular(const Tensor& input, const Tensor& other, bool upper, bool unitriangular) {
  return solved(OpId::linalg_solve_triangular, EP_LINEAR_TRIANGULAR_SOLVE, input, other,
                (upper ? EP_LINEAR_FLAG_UPPER : 0) | (unitriangular ? EP_LINEAR_FLAG_UNIT : 0));
}
Tensor linalg_lstsq(const Tensor& input, const Tensor& other) {
  return solved(OpId::linalg_lstsq, EP_LINEAR_LEAST_SQUARES, input, other, 0);
}

Tensor linalg_matrix_power(const Tensor& input, int64_t n) {
  Tensor base = matrices("linalg_matrix_power", input, true);
  if (n < 0) base = tenon::linalg_inv(base);
  if (n >= 0 && input.dtype() != DType::boolean) base = input;  // products of integers are integers
  uint64_t rest = n < 0 ? uint64_t{0} - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  if (rest == 0) {
    const Tensor one = tenon::eye(base.dims()[base.rank() - 1], std::nullopt, base.dtype(), base.device());
    return tenon::where(tenon::zeros_like(base, DType::boolean), base, one);  // gives the result the history of `base`
  }
  Tensor result;
  for (; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result = result.defined() ? tenon::matmul(result, base) : base;
    if (rest > 1) base = tenon::matmul(base, base);
  }
  return result;
}

Tensor linalg_pinv(const Tensor& input) {
  const Tensor source = matrices("linalg_pinv", input, false);
  if (has_empty_matrices(source)) return tenon::clone(tenon::transpose(source, -2, -1));
  const auto [values, u, vh] = tenon::linalg_svd_reduced(source);
  const Tensor kept = tenon::gt(values, least_value(source, values));
  const Tensor inverses = tenon::where(kept, tenon::reciprocal(values), Scalar(0.0));
  const Tensor v = tenon::mul(tenon::transpose(vh, -2, -1), tenon::unsqueeze(inverses, -2));
  return tenon::matmul(v, tenon::transpose(u, -2, -1));
}

Tensor linalg_matrix_rank(const Tensor& input) {
  const Tensor source = matrices("linalg_matrix_rank", input, false);
  if (has_empty_matrices(source)) return zeros_of(source, {}, DType::i64);
  const Tensor values = tenon::linalg_svdvals(source);
  return tenon::sum(tenon::cast(tenon::gt(values, least_value(source, values)), DType::i64), {-1});
}

Tensor linalg_cond(const Tensor& input) {
  if (has_empty_matrices(matrices("linalg_cond", input, false))) {
    refuse("linalg_cond", "the matrices of input, of shape {}, have no elements.", input.dims());
  }
  const Tensor values = tenon::linalg_svdvals(input);
  return tenon::div(tenon::select(values, -1, 0), tenon::select(values, -1, -1));
}

Tensor cholesky(const Tensor& input, bool upper) { return tenon::linalg_cholesky(input, upper); }
Tensor inverse(const Tensor& input) { return tenon::linalg_inv(input); }
Tensor det(const Tensor& input) { return tenon::linalg_det(input); }
std::tuple<Tensor, Tensor> slogdet(const Tensor& input) { return tenon::linalg_slogdet(input); }
Tensor matrix_power(const Tensor& input, int64_t n) { return tenon::linalg_matrix_power(input, n); }
Tensor pinverse(const Tensor& input) { return tenon::linalg_pinv(input); }

Tensor logdet(const Tensor& input) {
  const auto [sign, logarithm] = tenon::linalg_slogdet(input);
  return tenon::where(tenon::lt(sign, Scalar(0.0)), tenon::log(sign), logarithm);
}

Tensor cholesky_solve(const Tensor& input, const Tensor& input2, bool upper) {
  const Tensor factor = matrices("cholesky_solve", input2, true);
  const Tensor turned = tenon::transpose(factor, -2, -1);
  const Tensor half = tenon::linalg_solve_triangular(upper ? turned : factor, input, false);
  return tenon::linalg_solve_triangular(upper ? factor : turned, half, true);
}

}  // namespace tenon::functors
