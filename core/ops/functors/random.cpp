// Random numbers: of a seed and an offset, or the next ones of the default generator.
#include "core/ops/functors/apply.h"
#include "core/tensor/generator.h"
#include "core/tensor/host_watch.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

bool holds_normals(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

Tensor numbers(OpId id, IntList size, RandomRange range, DType dtype, Device device) {
  const std::string_view op = op_row(id).name;
  const bool normal = id == OpId::philox_normal;
  if (!holds_normals(dtype) && dtype != DType::f64) {
    refuse("{}: random numbers are f32, f64, f16 or bf16, not {}.", op, dtype_name(dtype));
  }
  if (normal && dtype == DType::f64) return tenon::cast(numbers(id, size, range, DType::f32, device), dtype);
  const Dims dims = value_or_throw(infer::checked(op, dims_of(op, size)));
  RandomAttributes attributes{};
  attributes.dims = DimsAttribute::of({dims.data(), dims.size()});
  attributes.dtype = dtype;
  attributes.distribution = normal ? EP_RANDOM_NORMAL : EP_RANDOM_UNIFORM;
  const Scalar scalars[] = {Scalar(static_cast<int64_t>(range.seed)), Scalar(static_cast<int64_t>(range.offset))};
  Tensor result;
  OpCall call;
  call.op = &op_row(id);
  call.scalars = scalars;
  call.attributes = &attributes;
  call.device = device.state();
  call.outputs = {&result, 1};
  current_interpreter().apply(call);
  return result;
}

RandomRange given(int64_t seed, int64_t offset) { return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)}; }

// The range of the next numbers for a tensor of shape `size`.
RandomRange next(std::string_view op, IntList size, DType dtype) {
  const Dims dims = value_or_throw(infer::checked(op, dims_of(op, size)));
  const auto count = static_cast<uint64_t>(element_count(dims));
  const uint64_t per_block = dtype == DType::f64 ? 2 : 4;
  const uint64_t blocks = count / per_block + (count % per_block != 0 ? 1 : 0);
  return host_watch != nullptr ? host_watch->draw(blocks) : default_generator().reserve(blocks);
}

}  // namespace

Tensor philox_uniform(IntList size, int64_t seed, int64_t offset, DType dtype, Device device) {
  return numbers(OpId::philox_uniform, size, given(seed, offset), dtype, device);
}

Tensor philox_normal(IntList size, int64_t seed, int64_t offset, DType dtype, Device device) {
  return numbers(OpId::philox_normal, size, given(seed, offset), dtype, device);
}

Tensor rand(IntList size, DType dtype, Device device) {
  return numbers(OpId::philox_uniform, size, next("rand", size, dtype), dtype, device);
}

Tensor randn(IntList size, DType dtype, Device device) {
  return numbers(OpId::philox_normal, size, next("randn", size, DType::f32), dtype, device);
}

Tensor rand_like(const Tensor& input, DType dtype) {
  require_defined("rand_like", "input", input);
  return tenon::rand(input.dims(), dtype == DType::none ? input.dtype() : dtype, input.device());
}

Tensor randn_like(const Tensor& input, DType dtype) {
  require_defined("randn_like", "input", input);
  return tenon::randn(input.dims(), dtype == DType::none ? input.dtype() : dtype, input.device());
}

Tensor bernoulli(const Tensor& input) {
  require_defined("bernoulli", "input", input);
  if (!is_floating(input.dtype())) {
    refuse("bernoulli: input must be floating-point probabilities, not {}.", dtype_name(input.dtype()));
  }
  return tenon::cast(tenon::lt(tenon::rand(input.dims(), DType::f32, input.device()), input), input.dtype());
}

Tensor bernoulli(const Tensor& input, double p) {
  require_defined("bernoulli", "input", input);
  if (!(p >= 0 && p <= 1)) refuse("bernoulli: p is {}; it must be within 0 and 1.", p);
  return tenon::cast(tenon::lt(tenon::rand(input.dims(), DType::f32, input.device()), Scalar(p)), input.dtype());
}

Tensor dropout(const Tensor& input, double p, bool training) {
  require_defined("dropout", "input", input);
  if (!(p >= 0 && p <= 1)) refuse("dropout: p is {}; it must be within 0 and 1.", p);
  if (!training || p == 0) return input;
  if (p == 1) return tenon::mul(input, Scalar(0.0));
  const Tensor kept = tenon::ge(tenon::rand(input.dims(), DType::f32, input.device()), Scalar(p));
  return tenon::where(kept, tenon::mul(input, Scalar(1 / (1 - p))), Scalar(0.0));
}

}  // namespace tenon::functors
