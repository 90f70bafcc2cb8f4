// Tensors with a part of their elements replaced.
#include "core/ops/functors/apply.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// `src` in the dtype of `input`.
Tensor as_part(std::string_view op, const Tensor& input, const Tensor& src) {
  require_defined(op, "input", input);
  require_defined(op, "src", src);
  return tenon::cast(src, input.dtype());
}

}  // namespace

Tensor slice_scatter(const Tensor& input, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  const Tensor part = as_part("slice_scatter", input, src);
  if (input.rank() == 0) refuse("slice_scatter: a tensor of rank 0 has no axis to slice.");
  if (step < 1) refuse("slice_scatter: step is {}; it must be at least 1.", step);
  SliceAttributes attributes{};
  attributes.axis = axis_of("slice_scatter", dim, input.rank());
  attributes.start = start.value_or(0);
  attributes.end = end.value_or(INT64_MAX);
  attributes.step = step;
  return apply(OpId::slice_scatter, {&input, &part}, &attributes);
}

Tensor select_scatter(const Tensor& input, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor part = as_part("select_scatter", input, src);
  SelectAttributes attributes{};
  attributes.axis = dim;
  attributes.index = index;
  return apply(OpId::select_scatter, {&input, &part}, &attributes);
}

}  // namespace tenon::functors
