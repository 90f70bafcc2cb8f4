// Casts, copies, and writes into existing tensors.
#include "core/ops/functors/apply.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

enum class Order { kept, row_major };

Tensor copied(const Tensor& input, DType dtype, Order order, Tensor* out = nullptr) {
  CastAttributes attributes{};
  attributes.dtype = dtype;
  attributes.row_major = order == Order::row_major;
  return apply(OpId::cast, {&input}, &attributes, {}, out);
}

}  // namespace

Tensor cast(const Tensor& input, DType dtype) {
  require_defined("cast", "input", input);
  if (dtype_info(dtype).bits == 0) refuse("cast: the dtype to cast to is not given.");
  return input.dtype() == dtype ? input : copied(input, dtype, Order::kept);
}

Tensor contiguous(const Tensor& input) {
  require_defined("contiguous", "input", input);
  return input.contiguous() ? input : copied(input, input.dtype(), Order::row_major);
}

Tensor clone(const Tensor& input) {
  require_defined("clone", "input", input);
  return copied(input, input.dtype(), Order::row_major);
}

Tensor& copy_(Tensor& input, const Tensor& src) {
  require_defined("copy_", "input", input);
  require_defined("copy_", "src", src);
  if (!infer::broadcasts_to(src.dims(), input.dims())) {
    refuse("copy_: shape {} of src does not broadcast to shape {} of input.", src.dims(), input.dims());
  }
  Tensor source = tenon::to(src, input.device());
  const SharedStorage storage = source.impl()->storage;
  if (storage != nullptr && storage == input.impl()->storage) source = tenon::clone(source);
  if (!(source.dims() == input.dims())) source = tenon::expand(source, input.dims());
  copied(source, input.dtype(), Order::kept, &input);
  return input;
}

Tensor to(const Tensor& input, Device device) {
  require_defined("to", "input", input);
  if (!device || device.state() == input.impl()->device) return input;
  Tensor result;
  const Tensor* inputs[] = {&input};
  OpCall call;
  call.op = &op_row(OpId::to);
  call.inputs = inputs;
  call.device = device.state();
  call.outputs = {&result, 1};
  submit(call);
  return result;
}

Tensor& copy_from(Tensor& input, const Tensor& src) {
  require_defined("copy_from", "input", input);
  require_defined("copy_from", "src", src);
  apply(OpId::copy_from, {&src}, nullptr, {}, &input);
  return input;
}

Tensor& fill_(Tensor& input, Scalar value) {
  require_defined("fill_", "input", input);
  FillAttributes attributes{};
  attributes.dims = DimsAttribute::of({input.dims().data(), input.dims().size()});
  attributes.dtype = input.dtype();
  apply(OpId::full, {}, &attributes, {&value, 1}, &input);
  return input;
}

Tensor& zero_(Tensor& input) { return tenon::fill_(input, Scalar(0)); }

}  // namespace tenon::functors
