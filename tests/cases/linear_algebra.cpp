// Cases of linear_algebra. The matrices are chosen so that rounding hardly changes a result: they have a dominant
// diagonal where a matrix is solved or decomposed into eigen- or singular values.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Shape {
  std::string_view name;
  Dims batch;
  int64_t m, n;
};

// The results and inputs of `op` besides SRC and DST; c: columns of the right side.
struct Op {
  std::string_view name;
  int32_t op;
  int32_t flags;
  bool square;
  Fill fill;
};

Dims matrix(const Shape& shape, int64_t rows, int64_t columns) {
  Dims dims = shape.batch;
  if (rows > 0) dims.push_back(rows);
  if (columns > 0) dims.push_back(columns);
  if (dims.rank() == 0) dims.push_back(1);
  return dims;
}

void add_outputs(Case* made, const Shape& shape, const Op& op, DType dtype, bool more) {
  const int64_t k = std::min(shape.m, shape.n);
  const auto add = [&](int32_t role, int64_t rows, int64_t columns) {
    add_operand(made->desc, role, role == EP_ROLE_DST_PIVOTS ? DType::i32 : dtype, matrix(shape, rows, columns));
  };
  switch (op.op) {
    case EP_LINEAR_SOLVE:
    case EP_LINEAR_TRIANGULAR_SOLVE:
    case EP_LINEAR_LEAST_SQUARES: return add(EP_ROLE_DST, shape.n, 3);
    case EP_LINEAR_DETERMINANT: return add(EP_ROLE_DST, 0, 0);
    case EP_LINEAR_LOG_DETERMINANT: add(EP_ROLE_DST, 0, 0); return add(EP_ROLE_DST_LOG, 0, 0);
    case EP_LINEAR_LU: add(EP_ROLE_DST, shape.m, shape.n); return add(EP_ROLE_DST_PIVOTS, k, 0);
    case EP_LINEAR_QR:
      add(EP_ROLE_DST, shape.m, more ? shape.m : k);
      return add(EP_ROLE_DST_R, more ? shape.m : k, shape.n);
    case EP_LINEAR_SVD:
      add(EP_ROLE_DST, k, 0);
      if (more) add(EP_ROLE_DST_VECTORS, shape.m, k);
      if (more) add(EP_ROLE_DST_VECTORS_H, k, shape.n);
      return;
    case EP_LINEAR_EIGEN:
      add(EP_ROLE_DST, k, 0);
      if (more) add(EP_ROLE_DST_VECTORS, k, k);
      return;
    default: return add(EP_ROLE_DST, shape.n, shape.n);
  }
}

Case linear_case(const Shape& shape, const Op& op, DType dtype, bool more, std::string_view suffix) {
  Case made = {
      fmt::format("linear_algebra/{}{}/{}/{}{}", op.name, more ? "_more" : "", dtype_name(dtype), shape.name, suffix),
      make_desc(EP_PRIMITIVE_linear_algebra),
      {},
      {},
      {},
      0};
  made.desc.attributes.linear_algebra = {op.op, op.flags};
  add_outputs(&made, shape, op, dtype, more);
  made.values.assign(made.desc.operand_count, {});
  add_operand(made.desc, EP_ROLE_SRC, dtype, matrix(shape, shape.m, shape.n));
  // Magnitudes below the diagonal stay far smaller than the diagonal: 1 / 8 each, at most 40 of them, with a diagonal
  // of at least 8.
  made.values.push_back(op.fill == Fill::DIAGONAL ? Values{op.fill, -0.125, 8} : Values{op.fill, -1, 1});
  if (op.op == EP_LINEAR_DETERMINANT) made.values.back() = {op.fill, -0.125, 0.5};
  if (op.op <= EP_LINEAR_LEAST_SQUARES) {
    add_operand(made.desc, EP_ROLE_SRC_B, dtype, matrix(shape, shape.m, 3));
    made.values.push_back({Fill::RANDOM, -1, 1});
  }
  const auto n = static_cast<double>(std::max(shape.m, shape.n));
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    const double more_ulps = beyond_full("product", tier, dtype).ulps + beyond_full("div", tier, dtype).ulps;
    return {dtype_info(dtype).bits < 32 ? 2.0 : 64.0, 512 * n * (1 + more_ulps), 0};
  });
  return made;
}

Case strided_case(const Shape& shape, const Op& op) {
  Case made = linear_case(shape, op, DType::f32, false, "_columns");
  for (uint32_t i = 0; i < made.desc.operand_count; ++i) {
    ep_operand_desc& operand = made.desc.operands[i];
    if (operand.rank != 2) continue;
    operand.strides[0] = 1;
    operand.strides[1] = operand.dims[0] + 1;
  }
  return made;
}

}  // namespace

void add_linear_algebra_cases(std::vector<Case>* cases) {
  const Op ops[] = {
      {"solve", EP_LINEAR_SOLVE, 0, true, Fill::DIAGONAL},
      {"triangular_solve", EP_LINEAR_TRIANGULAR_SOLVE, 0, true, Fill::DIAGONAL},
      {"triangular_solve_upper", EP_LINEAR_TRIANGULAR_SOLVE, EP_LINEAR_FLAG_UPPER, true, Fill::DIAGONAL},
      {"triangular_solve_unit", EP_LINEAR_TRIANGULAR_SOLVE, EP_LINEAR_FLAG_UNIT, true, Fill::DIAGONAL},
      {"least_squares", EP_LINEAR_LEAST_SQUARES, 0, false, Fill::DIAGONAL},
      {"cholesky", EP_LINEAR_CHOLESKY, 0, true, Fill::DIAGONAL},
      {"cholesky_upper", EP_LINEAR_CHOLESKY, EP_LINEAR_FLAG_UPPER, true, Fill::DIAGONAL},
      {"inverse", EP_LINEAR_INVERSE, 0, true, Fill::DIAGONAL},
      {"determinant", EP_LINEAR_DETERMINANT, 0, true, Fill::DIAGONAL},
      {"log_determinant", EP_LINEAR_LOG_DETERMINANT, 0, true, Fill::DIAGONAL},
      {"lu", EP_LINEAR_LU, 0, false, Fill::RANDOM},
      {"qr", EP_LINEAR_QR, 0, false, Fill::DIAGONAL},
      {"svd", EP_LINEAR_SVD, 0, false, Fill::DIAGONAL},
      {"eigen", EP_LINEAR_EIGEN, 0, true, Fill::DIAGONAL},
      {"eigen_upper", EP_LINEAR_EIGEN, EP_LINEAR_FLAG_UPPER, true, Fill::DIAGONAL},
  };
  const Shape shapes[] = {{"one", {}, 1, 1},  {"small", {}, 5, 5}, {"batch", {2, 3}, 4, 4},
                          {"tall", {}, 9, 4}, {"wide", {2}, 3, 8}, {"large", {}, 33, 33}};
  for (const Op& op : ops) {
    const bool choice = op.op == EP_LINEAR_QR || op.op == EP_LINEAR_SVD || op.op == EP_LINEAR_EIGEN;
    for (const Shape& shape : shapes) {
      if (op.square && shape.m != shape.n) continue;
      for (bool more : {false, true}) {
        if (more && !choice) continue;
        cases->push_back(linear_case(shape, op, DType::f32, more, ""));
        if (shape.name == "small") {
          for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
            cases->push_back(linear_case(shape, op, dtype, more, ""));
          }
        }
      }
    }
    cases->push_back(strided_case(shapes[1], op));
  }
  for (const Op& op : {ops[0], ops[5], ops[7]}) {
    Case fault = linear_case(shapes[2], op, DType::f32, false, "_zero");
    for (uint32_t i = 0; i < fault.desc.operand_count; ++i) {
      if (fault.desc.operands[i].role == EP_ROLE_SRC) fault.values[i] = {Fill::LAST, 0, 0};
    }
    fault.fault = EP_FAULT_BAD_MATRIX;
    cases->push_back(fault);
  }
}

}  // namespace tenon::cases
