// Views: the gradient of the whole is the gradient of the part, and 0 elsewhere.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/ops.h"
#include "core/ops/sized_ops.h"
#include "primitives/infer/view.h"

namespace tenon::gradients {
namespace {

// `x` [p, length, q] placed into an axis of `size` at start, start + step, ..., with zeros elsewhere.
Tensor placed(Tensor x, const infer::SliceRange& range, int64_t size) {
  int64_t length = range.length;
  if (range.step > 1 && length > 0) {
    const Tensor apart = tenon::reshape(x, {x.dim(0), length, 1, x.dim(2)});
    length *= range.step;
    x = tenon::reshape(tenon::pad(apart, {0, 0, 0, range.step - 1}), {x.dim(0), length, x.dim(2)});
    const int64_t used = std::min(length, size - range.start);
    x = tenon::narrow(x, 1, 0, used);
    length = used;
  }
  return tenon::pad(x, {0, 0, range.start, size - range.start - length});
}

// The gradient of a slice along `axis` of a tensor of `dims`.
Tensor of_slice(const Tensor& grad, const Dims& dims, int32_t axis, const infer::SliceRange& range) {
  int64_t before = 1;
  for (int32_t i = 0; i < axis; ++i) before *= dims[i];
  int64_t behind = 1;
  for (int32_t i = axis + 1; i < dims.rank(); ++i) behind *= dims[i];
  if (element_count(dims) == 0 || range.length == 0) return tenon::zeros(dims, grad.dtype(), grad.device());
  return tenon::reshape(placed(tenon::reshape(grad, {before, range.length, behind}), range, dims[axis]), dims);
}

}  // namespace

void reshaped(const autograd::Backward& b) {
  b.give(0, b.general(0, [&](const IntList& dims) { return tenon::reshape(b.grad(), dims); }));
}

void permute(const autograd::Backward& b) {
  const Dims axes = b.attributes<PermuteAttributes>().axes.dims();
  Dims back = axes;
  for (int32_t i = 0; i < axes.rank(); ++i) back[axes[i] < 0 ? axes[i] + axes.rank() : axes[i]] = i;
  b.give(0, tenon::permute(b.grad(), back));
}

// Zeros to write the part into, for open sizes of a recording.
static Tensor zeros(const autograd::Backward& b) {
  return b.general(0, [&](const IntList& dims) { return tenon::zeros(dims, b.grad().dtype(), b.grad().device()); });
}

void slice(const autograd::Backward& b) {
  if (b.is_open(0)) {
    const auto& at = b.general_attributes<SliceAttributes>();
    return b.give(0,
                  sized::slice_scatter(zeros(b), b.grad(), at.axis, b.size_of(at.start), b.size_of(at.end), at.step));
  }
  const auto& attributes = b.attributes<SliceAttributes>();
  const Dims& dims = b.dims(0);
  const infer::SliceRange range = value_or_throw(
      infer::slice_range(b.op().name, dims[attributes.axis], attributes.start, attributes.end, attributes.step));
  b.give(0, of_slice(b.grad(), dims, attributes.axis, range));
}

void select(const autograd::Backward& b) {
  if (b.is_open(0)) {
    const auto& at = b.general_attributes<SelectAttributes>();
    return b.give(0, sized::select_scatter(zeros(b), b.grad(), at.axis, b.size_of(at.index)));
  }
  const auto& attributes = b.attributes<SelectAttributes>();
  const Dims& dims = b.dims(0);
  const auto axis = static_cast<int32_t>(attributes.axis < 0 ? attributes.axis + dims.rank() : attributes.axis);
  const int64_t index = attributes.index < 0 ? attributes.index + dims[axis] : attributes.index;
  b.give(0, of_slice(b.grad(), dims, axis, {index, 1, 1}));
}

void slice_scatter(const autograd::Backward& b) {
  const auto& a = b.attributes<SliceAttributes>();
  const Tensor part = tenon::slice(b.grad(), a.axis, a.start, a.end, a.step);
  if (b.wants(0)) b.give(0, tenon::slice_scatter(b.grad(), tenon::zeros_like(part), a.axis, a.start, a.end, a.step));
  if (b.wants(1)) b.give(1, part);
}

void select_scatter(const autograd::Backward& b) {
  const auto& a = b.attributes<SelectAttributes>();
  const Tensor part = tenon::select(b.grad(), a.axis, a.index);
  if (b.wants(0)) b.give(0, tenon::select_scatter(b.grad(), tenon::zeros_like(part), a.axis, a.index));
  if (b.wants(1)) b.give(1, part);
}

}  // namespace tenon::gradients
