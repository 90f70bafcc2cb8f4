#include "core/ops/functors/apply.h"

#include "core/ops/functors/sized.h"
#include "primitives/text/format.h"

namespace tenon::functors {

void require_defined(std::string_view op, std::string_view name, const Tensor& tensor) {
  if (!tensor.defined()) refuse(op, "argument '{}' is an undefined tensor.", name);
}

Tensor floating(const Tensor& input) { return is_floating(input.dtype()) ? input : tenon::cast(input, DType::f32); }

Tensor floating(std::string_view op, std::string_view name, const Tensor& input) {
  require_defined(op, name, input);
  return floating(input);
}

void require_rank_0(std::string_view op, std::string_view name, const Tensor& tensor) {
  require_defined(op, name, tensor);
  if (tensor.rank() != 0) {
    refuse(op, "{} has shape {}; it must be a number or a tensor of rank 0.", name, tensor.dims());
  }
}

Dims dims_of(std::string_view op, IntList list) {
  if (list.size() > EP_MAX_RANK) refuse(op, "rank {} is more than {}.", list.size(), EP_MAX_RANK);
  return Dims(std::span<const int64_t>(list));
}

SymDims sym_dims_of(std::string_view op, const IntList& list) {
  if (list.size() > EP_MAX_RANK) refuse(op, "rank {} is more than {}.", list.size(), EP_MAX_RANK);
  if (list.sizes() != nullptr) return SymDims(std::span<const SymDim>(list.sizes()->sizes()));
  SymDims dims;
  for (const int64_t number : list) dims.push_back(SymDim::saturated(number));
  return dims;
}

int32_t axis_of(std::string_view op, int64_t axis, int32_t rank) { return value_or_throw(infer::axis(op, axis, rank)); }

Tensor apply(OpId id, std::initializer_list<const Tensor*> inputs, const void* attributes, Scalars scalars,
             Tensor* out) {
  Tensor result;
  OpCall call;
  call.op = &op_row(id);
  call.inputs = {inputs.begin(), inputs.size()};
  call.scalars = scalars;
  call.attributes = attributes;
  call.outputs = {out == nullptr ? &result : out, 1};
  submit(call);
  return result;
}

Tensor apply(OpId id, const Tensor& input, const void* attributes) {
  Tensor result;
  const Tensor* inputs[] = {&input};
  OpCall call;
  call.op = &op_row(id);
  call.inputs = inputs;
  call.attributes = attributes;
  call.outputs = {&result, 1};
  submit(call);
  return result;
}

void apply(OpId id, std::span<const Tensor* const> inputs, const void* attributes, std::span<Tensor> outputs,
           Scalars scalars) {
  OpCall call;
  call.op = &op_row(id);
  call.inputs = inputs;
  call.scalars = scalars;
  call.attributes = attributes;
  call.outputs = outputs;
  submit(call);
}

namespace {

int class_order(DTypeClass type_class) {
  return type_class == DTypeClass::BOOL ? 0 : type_class == DTypeClass::FLOAT ? 2 : 1;
}

}  // namespace

void require_room(std::string_view op, const Tensor& out, const SymDims& dims, DType dtype) {
  if (!same_sizes(sizes(out), dims)) {
    refuse(op, "the result of shape {} cannot be written into a tensor of shape {}.", dims, sizes(out));
  }
  if (class_order(dtype_info(out.dtype()).type_class) < class_order(dtype_info(dtype).type_class)) {
    refuse(op, "the result is {}, which cannot be stored in a tensor of {}.", dtype_name(dtype),
           dtype_name(out.dtype()));
  }
}

void overwrite(std::string_view op, Tensor& input, const Tensor& result) {
  if (result.impl() == input.impl()) return;
  require_room(op, input, sizes(result), result.dtype());
  tenon::copy_(input, result);
}

Scalar in_dtype(const Scalar& number, DType dtype) {
  if (is_floating(dtype)) return Scalar(number.to_double());
  if (dtype == DType::boolean) return Scalar(number.to_double() != 0);
  const DTypeInfo& info = dtype_info(dtype);
  const bool has_sign = info.type_class == DTypeClass::INT;
  const uint64_t most = ~uint64_t{0} >> (64 - info.bits + (has_sign ? 1 : 0));
  const double value = number.to_double();
  if (value >= static_cast<double>(most)) return has_sign ? Scalar(static_cast<int64_t>(most)) : Scalar(most);
  if (!has_sign && !(value > 0)) return Scalar(0);
  const double least = -static_cast<double>(most) - 1;
  if (has_sign && value <= least) return Scalar(-static_cast<int64_t>(most) - 1);
  if (number.dtype() != DType::f64) return number;
  return has_sign ? Scalar(static_cast<int64_t>(value)) : Scalar(static_cast<uint64_t>(value));
}

Tensor with_history_of(const Tensor& input, Tensor result) {
  if (!wants_gradient(input) || !is_floating(result.dtype())) return result;
  return tenon::add(result, tenon::cast(tenon::sum(input), result.dtype()));
}

Tensor without_history(const Tensor& x) { return wants_gradient(x) ? x.detach() : x; }

Tensor at_least(const Tensor& x, double least) {
  const Tensor value = tenon::maximum(without_history(x), least);
  if (!wants_gradient(x)) return value;
  return tenon::where(tenon::lt(x, least), tenon::add(tenon::sub(x, x.detach()), value), x);
}

DType promote_tensors(const Tensor& a, const Tensor& b) {
  const int order_a = class_order(dtype_info(a.dtype()).type_class);
  const int order_b = class_order(dtype_info(b.dtype()).type_class);
  if (a.rank() == 0 && b.rank() > 0 && order_a <= order_b) return b.dtype();
  if (b.rank() == 0 && a.rank() > 0 && order_b <= order_a) return a.dtype();
  return promote(a.dtype(), b.dtype());
}

DType promote_with(DType dtype, const Scalar& number) {
  const DTypeClass type_class = dtype_info(number.dtype()).type_class;
  return infer::promote_number(dtype, type_class == DTypeClass::UINT ? DTypeClass::INT : type_class);
}

void refuse_size(std::string_view op) {
  throw Error(Subject{op}, Code::unsupported,
              "the size of its result depends on data, which a program that is "
              "recorded does not have.");
}

int64_t size_from(std::string_view op, const Tensor& count) {
  if (!current_interpreter().host_value_known(count)) refuse_size(op);
  return count.item().to_int();
}

}  // namespace tenon::functors
