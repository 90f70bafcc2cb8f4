// Writes through views, as values: the new value of a view's input if the view is overwritten.
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "core/ops/rules.h"
#include "core/ops/sized_ops.h"

namespace tenon::ops {
namespace {

// Views that contain every element once, in the order of their input.
Tensor reshaped(const Tensor& base, const Tensor& value) { return reshape(value, functors::ShapeOf(base).list()); }

// A number of the attributes of `view`; its expression if there is one.
SymDim size_in(const OpCall& view, const int64_t& field) {
  const auto word = static_cast<uint32_t>(&field - static_cast<const int64_t*>(view.attributes));
  if (view.patches != nullptr) {
    for (const Patch& patch : view.patches->list) {
      if (patch.word == word) return patch.size;
    }
  }
  return SymDim::saturated(field);
}

}  // namespace

Tensor write_reshape(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }
Tensor write_squeeze(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }
Tensor write_unsqueeze(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }

// An expanded view that repeats an element may not be written, so this view only adds axes of length 1.
Tensor write_expand(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }

Tensor write_permute(const OpCall& view, const Tensor& base, const Tensor& value) {
  const auto axes = view.attributes_as<PermuteAttributes>().axes.span();
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    back[static_cast<size_t>(axes[i] < 0 ? axes[i] + base.rank() : axes[i])] = static_cast<int64_t>(i);
  }
  return permute(value, back);
}

Tensor write_slice(const OpCall& view, const Tensor& base, const Tensor& value) {
  const auto& at = view.attributes_as<SliceAttributes>();
  return sized::slice_scatter(base, value, at.axis, size_in(view, at.start), size_in(view, at.end), at.step);
}

Tensor write_select(const OpCall& view, const Tensor& base, const Tensor& value) {
  const auto& at = view.attributes_as<SelectAttributes>();
  return sized::select_scatter(base, value, at.axis, size_in(view, at.index));
}

}  // namespace tenon::ops
