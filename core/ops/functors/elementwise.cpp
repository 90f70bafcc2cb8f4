#include "core/ops/functors/elementwise.h"

#include "core/ops/functors/apply.h"
#include "core/ops/sizes.h"
#include "primitives/infer/broadcast-inl.h"
#include "primitives/text/format.h"

namespace tenon::elementwise {
namespace {

using functors::refuse;
using functors::require_defined;

// Throws for an `out` that cannot hold the result on `inputs`, which has dtype `dtype`.
void check_out(const OpInfo& op, const Tensor& out, DType dtype, std::span<const Tensor* const> inputs) {
  require_defined(op.name, "out", out);
  if (out.dtype() == dtype && has_room(out, inputs)) return;
  std::vector<SymDims> shapes;
  for (const Tensor* input : inputs) {
    if (input != nullptr) shapes.push_back(sizes(*input));
  }
  const SymDims dims = value_or_throw(infer::broadcast<SymDim>(op.name, shapes));
  functors::require_room(op.name, out, dims, dtype);
}

Tensor finish(const OpInfo& op, Tensor* out, infer::ScalarTypes types, std::span<const Tensor* const> inputs,
              Scalars scalars) {
  if (out == nullptr) return apply(op, inputs, scalars);
  check_out(op, *out, types.result, inputs);
  if (out->dtype() == types.result) {
    apply_into(op, *out, inputs, scalars);
  } else {
    copy_(*out, apply(op, inputs, scalars));
  }
  return {};
}

// `x` in `dtype`: `x` itself, or a copy stored in `copy`.
const Tensor& in_dtype(const Tensor& x, DType dtype, Tensor* copy) {
  if (x.dtype() == dtype) return x;
  *copy = cast(x, dtype);
  return *copy;
}

// The row that computes `op` for arguments that promote to `dtype`.
const OpInfo& row_on(const OpInfo& op, DType dtype) {
  return dtype == DType::boolean && op.on_bool != kNoOp ? op_row(static_cast<OpId>(op.on_bool)) : op;
}

infer::ScalarTypes binary_types(const OpInfo& op, DType dtype) {
  return value_or_throw(infer::binary(op.name, op.scalar_op, dtype, dtype));
}

}  // namespace

bool has_room(const Tensor& out, std::span<const Tensor* const> inputs) {
  if (is_open(out)) return false;
  const Dims& dims = out.dims();
  uint32_t reached = 0;  // the axes of `out` whose length some input has
  for (const Tensor* input : inputs) {
    if (input == nullptr) continue;
    const int32_t shift = dims.rank() - input->rank();
    if (is_open(*input) || shift < 0) return false;
    for (int32_t axis = 0; axis < input->rank(); ++axis) {
      const int64_t length = input->dims()[axis];
      if (length == dims[axis + shift]) {
        reached |= 1u << (axis + shift);
      } else if (length != 1) {
        return false;
      }
    }
  }
  return reached == (1u << dims.rank()) - 1;
}

void refuse_bool(const OpInfo& op, bool both) {
  const std::string_view why = both ? op.refuses_bools : op.refuses_bool;
  if (!why.empty()) refuse(op.name, "{}", why);
}

Tensor unary_slow(const OpInfo& op, uint32_t, Tensor* out, const Tensor& x, Scalars scalars) {
  require_defined(op.name, "input", x);
  if (x.dtype() == DType::boolean) refuse_bool(op, false);
  const infer::ScalarTypes types = value_or_throw(infer::unary(op.name, op.scalar_op, x.dtype()));
  Tensor copy;
  const Tensor* inputs[] = {&in_dtype(x, types.compute, &copy)};
  return finish(op, out, types, inputs, scalars);
}

Tensor binary_slow(const OpInfo& op, uint32_t, Tensor* out, const Tensor& input, const Tensor& other) {
  require_defined(op.name, "input", input);
  require_defined(op.name, "other", other);
  const DType dtype = functors::promote_tensors(input, other);
  if (input.dtype() == DType::boolean || other.dtype() == DType::boolean) refuse_bool(op, dtype == DType::boolean);
  const OpInfo& row = row_on(op, dtype);
  const infer::ScalarTypes types = binary_types(row, dtype);
  Tensor copies[2];
  const Tensor* inputs[] = {&in_dtype(input, types.compute, &copies[0]), &in_dtype(other, types.compute, &copies[1])};
  return finish(row, out, types, inputs, {});
}

// The number's class and the tensor's dtype give a first dtype; then the dtypes of the row decide.
Tensor binary_slow(const OpInfo& op, uint32_t, Tensor* out, const Tensor& input, const Scalar& other) {
  require_defined(op.name, "input", input);
  const DType dtype = functors::promote_with(input.dtype(), other);
  if (input.dtype() == DType::boolean) refuse_bool(op, dtype == DType::boolean);
  const OpInfo& row = row_on(op, dtype);
  const infer::ScalarTypes types = binary_types(row, dtype);
  Tensor copy;
  const Tensor* inputs[] = {&in_dtype(input, types.compute, &copy), nullptr};
  const Scalar scalars[] = {Scalar(), other};
  return finish(row, out, types, inputs, scalars);
}

Tensor binary_slow(const OpInfo& op, uint32_t, Tensor* out, const Scalar& input, const Tensor& other) {
  require_defined(op.name, "other", other);
  const DType dtype = functors::promote_with(other.dtype(), input);
  if (other.dtype() == DType::boolean) refuse_bool(op, dtype == DType::boolean);
  const OpInfo& row = row_on(op, dtype);
  const infer::ScalarTypes types = binary_types(row, dtype);
  Tensor copy;
  const Tensor* inputs[] = {nullptr, &in_dtype(other, types.compute, &copy)};
  const Scalar scalars[] = {input};
  return finish(row, out, types, inputs, scalars);
}

}  // namespace tenon::elementwise
