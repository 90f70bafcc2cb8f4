// Makes new tensors.
#include <cmath>

#include "core/ops/floating_point.h"
#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/functors/sized.h"
#include "core/ops/sized_ops.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

DType dtype_of_number(const Scalar& number) {
  return number.dtype() == DType::f64 ? DType::f32 : number.dtype() == DType::boolean ? DType::boolean : DType::i64;
}

DType chosen(DType dtype, const Tensor& like) { return dtype == DType::none ? like.dtype() : dtype; }

// Applies a record without inputs.
Tensor factory(OpId id, const Dims& dims, DType dtype, Scalars scalars, Device device) {
  FullAttributes attributes{};
  attributes.dims = DimsAttribute::of({dims.data(), dims.size()});
  attributes.dtype = dtype;
  Tensor result;
  OpCall call;
  call.op = &op_row(id);
  call.scalars = scalars;
  call.attributes = &attributes;
  call.device = device.state();
  call.outputs = {&result, 1};
  submit(call);
  return result;
}

Tensor open_factory(OpId id, const IntList& size, DType dtype, Scalars scalars, Device device) {
  Sized<FullAttributes> sized;
  sized.set(&sized.attributes.dims, value_or_throw(checked(op_row(id).name, sym_dims_of(op_row(id).name, size))));
  sized.attributes.dtype = dtype;
  return apply(id, {}, sized, scalars, nullptr, device.state());
}

// `count` numbers start, start + step, ...; made in a dtype that the record supports, then cast.
Tensor stepped(std::span<const Scalar, 3> bounds, int64_t count, DType made, DType wanted, Device device) {
  return tenon::cast(factory(OpId::arange, Dims{count}, made, bounds, device), wanted);
}

constexpr int64_t kMaxArange = int64_t{1} << 40;

Tensor range_of_ints(int64_t start, int64_t end, int64_t step, DType dtype, Device device) {
  if (step == 0) refuse("arange", "step is 0.");
  const auto low = static_cast<__int128>(start);
  const __int128 distance = static_cast<__int128>(end) - low;
  if (distance != 0 && (distance > 0) != (step > 0)) {
    refuse("arange", "a step of {} does not lead from {} to {}.", step, start, end);
  }
  const __int128 count = (distance + step + (step > 0 ? -1 : 1)) / step;
  if (count > kMaxArange)
    refuse("arange", "from {} to {} in steps of {} is more than {} elements.", start, end, step, int64_t{kMaxArange});
  const Scalar bounds[] = {Scalar(start), Scalar(end), Scalar(step)};
  const DType made = dtype == DType::i32 ? DType::i32 : DType::i64;
  return stepped(bounds, static_cast<int64_t>(count), made, dtype, device);
}

double steps_between(double start, double end, double step) {
  return in_default_state({start, end, step}, [](const volatile double* numbers) {
    return std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  });
}

Tensor range_of_floats(double start, double end, double step, DType dtype, Device device) {
  if (step == 0) refuse("arange", "step is 0.");
  const double count = steps_between(start, end, step);
  if (!(count >= 0)) refuse("arange", "a step of {} does not lead from {} to {}.", step, start, end);
  if (count > static_cast<double>(kMaxArange))
    refuse("arange", "from {} to {} in steps of {} is more than {} elements.", start, end, step, int64_t{kMaxArange});
  if (is_integer(dtype)) {
    // As in PyTorch: the floats determine the count, but the steps are whole numbers.
    const Scalar first(std::trunc(start)), by(std::trunc(step));
    if (by == Scalar(0.0)) refuse("arange", "a step of {} becomes 0 in an integer dtype.", step);
    const Tensor numbers = tenon::arange(Scalar(static_cast<int64_t>(count)), DType::i64, device);
    return tenon::cast(tenon::add(tenon::mul(numbers, Scalar(by.to_int())), Scalar(first.to_int())), dtype);
  }
  const Scalar bounds[] = {Scalar(start), Scalar(end), Scalar(step)};
  const DType made = dtype == DType::f64 ? DType::f64 : DType::f32;
  return stepped(bounds, static_cast<int64_t>(count), made, dtype, device);
}

// A tensor filled with one value. `op` is the name in errors.
Tensor filled(std::string_view op, IntList size, Scalar fill_value, DType dtype, Device device) {
  const DType made = dtype == DType::none ? dtype_of_number(fill_value) : dtype;
  if (is_open(size)) return open_factory(OpId::full, size, made, {&fill_value, 1}, device);
  const Dims dims = value_or_throw(infer::checked(op, dims_of(op, size)));
  return factory(OpId::full, dims, made, {&fill_value, 1}, device);
}

// `input`, whose elements must be in [0, number of classes). If the elements can be read without waiting, an element
// outside is an error here; otherwise the kernel that gathers them reports a fault.
Tensor within_classes(const Tensor& input, int64_t count) {
  if (input.device().synchronous() && current_interpreter().host_value_known(input)) {
    for (const Tensor& extreme : {tenon::amin(input), tenon::amax(input)}) {
      const Scalar value = extreme.item();
      if (value.to_double() >= 0 && value.to_int() < count) continue;
      refuse("one_hot", "input has the element {}, which is outside [0, {}): num_classes is {}.", value.to_int(), count,
             count);
    }
    return input;
  }
  const Tensor classes = tenon::arange(count, DType::i64, input.device());
  return tenon::gather_slices(classes, 0, as_index_from_start("one_hot", "input", input));
}

}  // namespace

Tensor empty(IntList size, DType dtype, Device device) {
  if (is_open(size)) return open_factory(OpId::empty, size, dtype, {}, device);
  return factory(OpId::empty, dims_of("empty", size), dtype, {}, device);
}

Tensor full(IntList size, Scalar fill_value, DType dtype, Device device) {
  return filled("full", size, fill_value, dtype, device);
}
Tensor zeros(IntList size, DType dtype, Device device) { return filled("zeros", size, Scalar(0), dtype, device); }
Tensor ones(IntList size, DType dtype, Device device) { return filled("ones", size, Scalar(1), dtype, device); }

Tensor empty_like(const Tensor& input, DType dtype) {
  require_defined("empty_like", "input", input);
  return tenon::empty(ShapeOf(input).list(), chosen(dtype, input), input.device());
}
Tensor full_like(const Tensor& input, Scalar fill_value, DType dtype) {
  require_defined("full_like", "input", input);
  return tenon::full(ShapeOf(input).list(), fill_value, chosen(dtype, input), input.device());
}
Tensor zeros_like(const Tensor& input, DType dtype) {
  require_defined("zeros_like", "input", input);
  return tenon::full(ShapeOf(input).list(), Scalar(0), chosen(dtype, input), input.device());
}
Tensor ones_like(const Tensor& input, DType dtype) {
  require_defined("ones_like", "input", input);
  return tenon::full(ShapeOf(input).list(), Scalar(1), chosen(dtype, input), input.device());
}

Tensor arange(Scalar end, DType dtype, Device device) {
  return tenon::arange(Scalar(0), end, Scalar(1), dtype, device);
}

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype, Device device) {
  const bool floating = start.dtype() == DType::f64 || end.dtype() == DType::f64 || step.dtype() == DType::f64;
  if (dtype == DType::none) dtype = floating ? DType::f32 : DType::i64;
  if (floating) return range_of_floats(start.to_double(), end.to_double(), step.to_double(), dtype, device);
  return range_of_ints(start.to_int(), end.to_int(), step.to_int(), dtype, device);
}

Tensor eye(int64_t n, std::optional<int64_t> m, DType dtype, Device device) {
  const Dims dims = value_or_throw(infer::checked("eye", Dims{n, m.value_or(n)}));
  return tenon::one_hot_values(tenon::arange(dims[0], DType::i64, device), dims[1], -1, Scalar(0), Scalar(1), dtype);
}

namespace {

// Half of the numbers are computed from the start and half from the end, so that both ends are exact.
Tensor spaced(std::string_view op, double start, double end, int64_t steps, DType made, Device device) {
  if (steps < 0) refuse(op, "steps is {}; it must be at least 0.", steps);
  if (steps < 2) return tenon::full(steps, Scalar(start), made, device);
  const double step = in_default_state({start, end, static_cast<double>(steps)}, [](const volatile double* numbers) {
    return (numbers[1] - numbers[0]) / (numbers[2] - 1);
  });
  const Tensor up = tenon::arange(Scalar(steps), made, device);
  const Tensor down = tenon::sub(Scalar(static_cast<double>(steps - 1)), up);
  return tenon::where(tenon::lt(up, Scalar(steps / 2)), tenon::add(tenon::mul(up, Scalar(step)), Scalar(start)),
                      tenon::sub(Scalar(end), tenon::mul(down, Scalar(step))));
}

// As in PyTorch, bounds of integers are truncated to whole numbers.
double bound_in(const Scalar& number, DType dtype) {
  return is_integer(dtype) ? static_cast<double>(number.to_int()) : number.to_double();
}

DType made_in(DType dtype) { return dtype == DType::f64 || is_integer(dtype) ? DType::f64 : DType::f32; }

}  // namespace

Tensor linspace(Scalar start, Scalar end, int64_t steps, DType dtype, Device device) {
  const DType wanted = dtype == DType::none ? DType::f32 : dtype;
  return tenon::cast(spaced("linspace", bound_in(start, wanted), bound_in(end, wanted), steps, made_in(wanted), device),
                     wanted);
}

Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, DType dtype, Device device) {
  const DType wanted = dtype == DType::none ? DType::f32 : dtype;
  const Tensor powers =
      spaced("logspace", bound_in(start, wanted), bound_in(end, wanted), steps, made_in(wanted), device);
  return tenon::cast(tenon::pow(Scalar(base), powers), wanted);
}

Tensor one_hot(const Tensor& input, int64_t num_classes, DType dtype) {
  require_defined("one_hot", "input", input);
  if (num_classes < 1) refuse("one_hot", "num_classes is {}; it must be at least 1.", num_classes);
  if (!is_integer(input.dtype())) {
    refuse("one_hot", "input must be integers, not {}.", dtype_name(input.dtype()));
  }
  const Tensor checked = is_empty(input) ? input : within_classes(input, num_classes);
  return tenon::one_hot_values(checked, num_classes, -1, Scalar(0), Scalar(1), dtype);
}

}  // namespace tenon::functors

namespace tenon::sized {

Tensor positions(SymDim count, Device device) {
  if (count.is_number()) return tenon::arange(Scalar(count.number()), DType::i64, device);
  const Scalar bounds[] = {Scalar(0), Scalar(hint_of(count)), Scalar(1)};
  return functors::open_factory(OpId::arange, SizeList{count}, DType::i64, bounds, device);
}

}  // namespace tenon::sized
