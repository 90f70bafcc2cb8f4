// Casts, copies, and writes into existing tensors.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "primitives/infer/broadcast-inl.h"
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

// `input` with its channels innermost: a row-major copy of [n, d.., c], viewed as [n, c, d..].
Tensor channels_last(const Tensor& input, std::string_view memory_format) {
  const int32_t rank = memory_format == "channels_last" ? 4 : memory_format == "channels_last_3d" ? 5 : 0;
  if (rank == 0) {
    refuse("contiguous", "memory_format is '{}'; it may be 'contiguous_format', 'channels_last' or 'channels_last_3d'.",
           memory_format);
  }
  if (input.rank() != rank) {
    refuse("contiguous", "memory_format '{}' is of rank {}, but input has shape {}.", memory_format, rank,
           input.dims());
  }
  constexpr int64_t to_last[] = {0, 2, 3, 1}, from_last[] = {0, 3, 1, 2};
  constexpr int64_t to_last_3d[] = {0, 2, 3, 4, 1}, from_last_3d[] = {0, 4, 1, 2, 3};
  const Tensor seen = tenon::permute(input, rank == 4 ? IntList(to_last) : IntList(to_last_3d));
  if (seen.impl()->contiguous) {
    note_layout(seen, seen);
    return input;
  }
  return tenon::permute(tenon::contiguous(seen), rank == 4 ? IntList(from_last) : IntList(from_last_3d));
}

}  // namespace

Tensor cast(const Tensor& input, DType dtype) {
  require_defined("cast", "input", input);
  if (dtype_info(dtype).bits == 0) refuse("cast", "the dtype to cast to is not given.");
  return input.dtype() == dtype ? input : copied(input, dtype, Order::kept);
}

Tensor contiguous(const Tensor& input, std::string_view memory_format) {
  require_defined("contiguous", "input", input);
  if (memory_format == "contiguous_format") {
    const Tensor result = input.impl()->contiguous ? input : copied(input, input.dtype(), Order::row_major);
    note_layout(input, result);
    return result;
  }
  return channels_last(input, memory_format);
}

Tensor clone(const Tensor& input) {
  require_defined("clone", "input", input);
  return copied(input, input.dtype(), Order::row_major);
}

Tensor& copy_(Tensor& input, const Tensor& src) {
  require_defined("copy_", "input", input);
  require_defined("copy_", "src", src);
  const bool open = is_open(src) || is_open(input);
  if (!open && !infer::broadcasts_to(src.dims(), input.dims())) {
    refuse("copy_", "shape {} of src does not broadcast to shape {} of input.", src.dims(), input.dims());
  }
  Tensor source = tenon::to(src, input.device());
  const SharedStorage storage = source.impl()->storage;
  if (storage != nullptr && storage == input.impl()->storage) source = tenon::clone(source);
  if (!(open ? identical(sizes(source), sizes(input)) : source.dims() == input.dims())) {
    source = tenon::expand(source, ShapeOf(input).list());
  }
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

Tensor& fill_(Tensor& input, const Tensor& value) {
  require_defined("fill_", "input", input);
  require_rank_0("fill_", "value", value);
  return tenon::copy_(input, value);
}

Tensor& fill_(Tensor& input, Scalar value) {
  require_defined("fill_", "input", input);
  Sized<FullAttributes> sized;
  sized.set(&sized.attributes.dims, sizes(input));
  sized.attributes.dtype = input.dtype();
  apply(OpId::full, {}, sized, {&value, 1}, &input);
  return input;
}

Tensor& zero_(Tensor& input) { return tenon::fill_(input, Scalar(0)); }

}  // namespace tenon::functors
