// Rules of views, and of ops that move elements.
#include <algorithm>

#include "core/global/rules/spread.h"
#include "core/ops/attributes.h"
#include "core/ops/sbp_rules.h"

namespace tenon::global {
namespace {

using Moved = std::optional<int32_t>;

bool holds(std::span<const int64_t> axes, int32_t axis, int32_t rank) {
  return std::any_of(axes.begin(), axes.end(), [&](int64_t each) { return from_front(each, rank) == axis; });
}

}  // namespace

// Elements keep their order. Axes form groups of equal size. The first axis of a group can be split if all parts begin
// at the same elements before and after.
void sbp_reshape(const CallFacts& facts, Signatures* signatures) {
  const Dims &from = facts.dims(0), &to = facts.outputs[0].dims;
  add_partial(signatures);
  if (element_count(from) == 0) return;
  for (int32_t i = 0, j = 0; i < from.rank() && j < to.rank();) {
    if (from[i] == 1) {
      ++i;
      continue;
    }
    if (to[j] == 1) {
      ++j;
      continue;
    }
    const bool even = from[i] % facts.ranks == 0 && to[j] % facts.ranks == 0;
    if (from[i] == to[j] || even) signatures->add({Sbp::split(i)}, {Sbp::split(j)});
    int64_t left = from[i++], right = to[j++];
    while (left != right) {
      int64_t& less = left < right ? left : right;
      less *= left < right ? from[i++] : to[j++];
    }
  }
}

void sbp_permute(const CallFacts& facts, Signatures* signatures) {
  const auto axes = facts.attributes<PermuteAttributes>().axes.span();
  const int32_t rank = facts.rank(0);
  add_partial(signatures);
  add_moved(facts, signatures, [&](int32_t axis) -> Moved {
    for (int32_t to = 0; to < rank; ++to) {
      if (from_front(axes[static_cast<size_t>(to)], rank) == axis) return to;
    }
    return std::nullopt;
  });
}

void sbp_squeeze(const CallFacts& facts, Signatures* signatures) {
  const auto axes = facts.attributes<AxesAttributes>().axes.span();
  const Dims& dims = facts.dims(0);
  const auto goes = [&](int32_t axis) { return dims[axis] == 1 && (axes.empty() || holds(axes, axis, dims.rank())); };
  add_partial(signatures);
  int32_t to = 0;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (!goes(axis)) signatures->add({Sbp::split(axis)}, {Sbp::split(to++)});
  }
}

void sbp_unsqueeze(const CallFacts& facts, Signatures* signatures) {
  const auto axes = facts.attributes<AxesAttributes>().axes.span();
  const int32_t rank = facts.outputs[0].dims.rank();
  add_partial(signatures);
  int32_t from = 0;
  for (int32_t axis = 0; axis < rank; ++axis) {
    if (!holds(axes, axis, rank)) signatures->add({Sbp::split(from++)}, {Sbp::split(axis)});
  }
}

void sbp_expand(const CallFacts& facts, Signatures* signatures) {
  const Dims& dims = facts.outputs[0].dims;
  add_partial(signatures);
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    signatures->add({aligned(facts.dims(0), dims, axis)}, {Sbp::split(axis)});
  }
}

void sbp_slice(const CallFacts& facts, Signatures* signatures) {
  add_partial(signatures);
  add_same_axis(facts, from_front(facts.attributes<SliceAttributes>().axis, facts.rank(0)), signatures);
}

void sbp_select(const CallFacts& facts, Signatures* signatures) {
  const int32_t gone = from_front(facts.attributes<SelectAttributes>().axis, facts.rank(0));
  add_partial(signatures);
  add_moved(facts, signatures, [&](int32_t axis) -> Moved {
    if (axis == gone) return std::nullopt;
    return axis < gone ? axis : axis - 1;
  });
}

// Inputs: input, and the new elements of the slice.
void sbp_slice_scatter(const CallFacts& facts, Signatures* signatures) { sbp_slice(facts, signatures); }

void sbp_select_scatter(const CallFacts& facts, Signatures* signatures) {
  const int32_t gone = from_front(facts.attributes<SelectAttributes>().axis, facts.rank(0));
  add_partial(signatures);
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    if (axis == gone) continue;
    signatures->add({Sbp::split(axis), Sbp::split(axis < gone ? axis : axis - 1)}, {Sbp::split(axis)});
  }
}

void sbp_concat(const CallFacts& facts, Signatures* signatures) {
  add_partial(signatures);
  add_same_axis(facts, facts.attributes<AxisAttributes>().axis, signatures);
}

void sbp_split(const CallFacts& facts, Signatures* signatures) {
  add_partial(signatures);
  add_same_axis(facts, facts.attributes<SplitSizesAttributes>().axis, signatures);
}

void sbp_pad(const CallFacts& facts, Signatures* signatures) {
  const auto& window = facts.attributes<PadAttributes>().window;
  add_moved(facts, signatures,
            [&](int32_t axis) { return window.low[axis] == 0 && window.high[axis] == 0 ? Moved(axis) : Moved(); });
}

void sbp_resize(const CallFacts& facts, Signatures* signatures) {
  const auto& grid = facts.attributes<ResizeAttributes>().grid;
  add_moved(facts, signatures, [&](int32_t axis) {
    const bool same =
        facts.dims(0)[axis] == facts.outputs[0].dims[axis] && grid.scale[axis] == 1 && grid.offset[axis] == 0;
    return same && facts.dims(0)[axis] >= facts.ranks ? Moved(axis) : Moved();
  });
}

// result[a.., i.., b..] = input[a.., index[i..], b..]
void sbp_gather_slices(const CallFacts& facts, Signatures* signatures) {
  const int32_t at = facts.attributes<AxisAttributes>().axis, inner = facts.rank(1);
  for (int32_t axis = 0; axis < inner; ++axis) signatures->add({{}, Sbp::split(axis)}, {Sbp::split(at + axis)});
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    if (axis != at) signatures->add({Sbp::split(axis), {}}, {Sbp::split(axis < at ? axis : axis + inner - 1)});
  }
  signatures->add({Sbp::partial(), {}}, {Sbp::partial()});
}

// result[.., i, ..] = input[.., index[.., i, ..], ..]
void sbp_gather(const CallFacts& facts, Signatures* signatures) {
  const int32_t at = facts.attributes<AxisAttributes>().axis;
  signatures->add({{}, Sbp::split(at)}, {Sbp::split(at)});
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    if (axis == at || facts.dims(0)[axis] != facts.dims(1)[axis]) continue;
    signatures->add({Sbp::split(axis), Sbp::split(axis)}, {Sbp::split(axis)});
  }
  signatures->add({Sbp::partial(), {}}, {Sbp::partial()});
}

// result[b.., i.., t..] = input[b.., indices[b.., i..]..., t..]
void sbp_gather_nd(const CallFacts& facts, Signatures* signatures) {
  const auto [batch, count] = facts.attributes<CoordinatesAttributes>();
  const int32_t rows = facts.rank(1) - 1;
  for (int32_t axis = 0; axis < batch; ++axis) {
    signatures->add({Sbp::split(axis), Sbp::split(axis)}, {Sbp::split(axis)});
  }
  for (int32_t axis = batch; axis < rows; ++axis) signatures->add({{}, Sbp::split(axis)}, {Sbp::split(axis)});
  for (int32_t axis = batch + count; axis < facts.rank(0); ++axis) {
    signatures->add({Sbp::split(axis), {}}, {Sbp::split(rows + axis - batch - count)});
  }
  signatures->add({Sbp::partial(), {}}, {Sbp::partial()});
}

// Inputs: input, index, new elements. The positions are as in the three kinds of gather.
void sbp_scatter(const CallFacts& facts, Signatures* signatures) {
  const auto& at = facts.attributes<ScatterAttributes>().scatter;
  const Dims &input = facts.dims(0), &index = facts.dims(1);
  const auto add = [&](int32_t axis, Sbp of_index, int32_t of_source) {
    signatures->add({Sbp::split(axis), of_index, Sbp::split(of_source)}, {Sbp::split(axis)});
  };
  if (at.mode == EP_GATHER_COORDINATES) {
    const int32_t count = input.rank() - at.axis + index.rank() - 1 - facts.rank(2);
    for (int32_t axis = 0; axis < at.axis; ++axis) add(axis, Sbp::split(axis), axis);
    for (int32_t axis = at.axis + count; axis < input.rank(); ++axis) {
      add(axis, Sbp(), index.rank() - 1 + axis - at.axis - count);
    }
  }
  for (int32_t axis = 0; at.mode != EP_GATHER_COORDINATES && axis < input.rank(); ++axis) {
    if (axis == at.axis) continue;
    if (at.mode == EP_GATHER_SLICES) {
      add(axis, Sbp(), axis < at.axis ? axis : axis + index.rank() - 1);
    } else if (input[axis] == index[axis]) {
      add(axis, Sbp::split(axis), axis);
    }
  }
  if (at.op == EP_SCATTER_ADD) signatures->add({Sbp::partial(), {}, Sbp::partial()}, {Sbp::partial()});
}

}  // namespace tenon::global
