// Writes through views, as values: what the input of a view becomes if the view is overwritten.
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/functors/apply.h"
#include "core/ops/rules.h"

namespace tenon::ops {
namespace {

// Views that see every element once, in the order of their input.
Tensor reshaped(const Tensor& base, const Tensor& value) { return reshape(value, base.dims()); }

}  // namespace

Tensor write_reshape(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }
Tensor write_squeeze(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }
Tensor write_unsqueeze(const OpCall&, const Tensor& base, const Tensor& value) { return reshaped(base, value); }

// An expanded view that repeats an element may not be written, so this one only has more axes of length 1.
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
  return slice_scatter(base, value, at.axis, at.start, at.end, at.step);
}

Tensor write_select(const OpCall& view, const Tensor& base, const Tensor& value) {
  const auto& at = view.attributes_as<SelectAttributes>();
  return select_scatter(base, value, at.axis, at.index);
}

}  // namespace tenon::ops
