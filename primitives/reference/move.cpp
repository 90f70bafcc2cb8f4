// gather, scatter, concat, split, pad: kernels that move elements.
#include <algorithm>
#include <vector>

#include "primitives/reference/call.h"
#include "primitives/reference/prelude.h"

namespace tenon::reference {
namespace {

void move_element(const Operand& dst, const int64_t* to, const Operand& src, const int64_t* from) {
  with_compute_type(src.dtype(), [&](auto type) { dst.set(to, src.get<decltype(type)>(from)); });
}

// Copies `part` to or from the range of `whole` that begins at `start` along `axis`.
void copy_part(const Operand& whole, const Operand& part, int32_t axis, int64_t start, bool into_whole) {
  for_each_index(part.dims(), [&](const int64_t* index) {
    int64_t at[EP_MAX_RANK];
    std::copy_n(index, part.rank(), at);
    at[axis] += start;
    if (into_whole) {
      move_element(whole, at, part, index);
    } else {
      move_element(part, index, whole, at);
    }
  });
}

// The source index of element `at` of the padded axis; -1 if the element is the padding value.
int64_t pad_source(int32_t mode, int64_t at, int64_t dim) {
  if (at >= 0 && at < dim) return at;
  if (mode == EP_PAD_EDGE) return at < 0 ? 0 : dim - 1;
  if (mode == EP_PAD_REFLECT) return at < 0 ? -at : 2 * (dim - 1) - at;
  return -1;
}

// taken_from for EP_GATHER_COORDINATES. `index` has `batch` axes, then the axes of the places, then the axes of the
// slices.
bool taken_at_coordinates(Call& call, int32_t batch, const Operand& src, const int64_t* index, int64_t* from) {
  const Operand indices = call[EP_ROLE_INDICES];
  const int32_t places = indices.rank() - 1;
  const int64_t count = indices.dim(places);
  std::copy_n(index, batch, from);
  int64_t at[EP_MAX_RANK];
  std::copy_n(index, places, at);
  for (int64_t i = 0; i < count; ++i) {
    at[places] = i;
    const auto given = indices.get<int64_t>(at);
    const int64_t length = src.dim(batch + i);
    const int64_t position = given < 0 ? given + length : given;
    if (position < 0 || position >= length) {
      call.report(EP_FAULT_INDEX_OUT_OF_RANGE, EP_ROLE_INDICES, given, length);
      return false;
    }
    from[batch + i] = position;
  }
  std::copy_n(index + places, src.rank() - batch - count, from + batch + count);
  return true;
}

// Sets `from` to the position in SRC of element `index` of the gathered (or scattered) tensor. Reports a bad index and
// returns false.
bool taken_from(Call& call, int32_t axis, int32_t mode, const Operand& src, const int64_t* index, int64_t* from) {
  if (mode == EP_GATHER_COORDINATES) return taken_at_coordinates(call, axis, src, index, from);
  const Operand indices = call[EP_ROLE_INDICES];
  const bool slices = mode == EP_GATHER_SLICES;
  const int64_t length = src.dim(axis);
  const auto given = indices.get<int64_t>(slices ? index + axis : index);
  const int64_t position = given < 0 ? given + length : given;
  if (position < 0 || position >= length) {
    call.report(EP_FAULT_INDEX_OUT_OF_RANGE, EP_ROLE_INDICES, given, length);
    return false;
  }
  std::copy_n(index, axis + 1, from);
  from[axis] = position;
  const int64_t* after = slices ? index + axis + indices.rank() : index + axis + 1;
  std::copy_n(after, src.rank() - axis - 1, from + axis + 1);
  return true;
}

template <class T>
T combined(int32_t op, T x, T update) {
  switch (op) {
    case EP_SCATTER_ADD: return prelude::ep_add(x, update);
    case EP_SCATTER_MUL: return prelude::ep_mul(x, update);
    case EP_SCATTER_MIN: return prelude::ep_min(x, update);
    case EP_SCATTER_MAX: return prelude::ep_max(x, update);
    default: return update;
  }
}

}  // namespace

void run_gather(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const ep_gather_attributes& attributes = call.desc.attributes.gather;
  for_each_index(dst.dims(), [&](const int64_t* out) {
    int64_t from[EP_MAX_RANK];
    if (taken_from(call, attributes.axis, attributes.mode, src, out, from)) return move_element(dst, out, src, from);
    dst.set<int64_t>(out, 0);
  });
}

void run_scatter(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand updates = call[EP_ROLE_SRC_B];
  const ep_scatter_attributes& attributes = call.desc.attributes.scatter;
  const auto number = [&](const int64_t* at) {
    int64_t position = 0;
    for (int32_t axis = 0; axis < dst.rank(); ++axis) position = position * dst.dim(axis) + at[axis];
    return static_cast<size_t>(position);
  };
  with_compute_type(dst.dtype(), [&](auto type) {
    using T = decltype(type);
    std::vector<T> sums;
    for_each_index(src.dims(), [&](const int64_t* at) { sums.push_back(src.get<T>(at)); });
    for_each_index(updates.dims(), [&](const int64_t* index) {
      int64_t to[EP_MAX_RANK];
      if (!taken_from(call, attributes.axis, attributes.mode, dst, index, to)) return;
      T& element = sums[number(to)];
      element = combined(attributes.op, element, updates.get<T>(index));
    });
    for_each_index(dst.dims(), [&](const int64_t* at) { dst.set(at, sums[number(at)]); });
  });
}

void run_concat(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const int32_t axis = call.desc.attributes.concat.axis;
  int64_t start = 0;
  for (int32_t i = 0; i < EP_MAX_OPERANDS; ++i) {
    const Operand part = call[EP_ROLE_SRC_0 + i];
    if (!part) return;
    copy_part(dst, part, axis, start, true);
    start += part.dim(axis);
  }
}

void run_split(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const int32_t axis = call.desc.attributes.split.axis;
  int64_t start = 0;
  for (int32_t i = 0; i < EP_MAX_OPERANDS; ++i) {
    const Operand part = call[EP_ROLE_DST_0 + i];
    if (!part) return;
    copy_part(src, part, axis, start, false);
    start += part.dim(axis);
  }
}

void run_pad(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const ep_pad_attributes& attributes = call.desc.attributes.pad;
  for_each_index(dst.dims(), [&](const int64_t* out) {
    int64_t from[EP_MAX_RANK];
    bool outside = false;
    for (int32_t axis = 0; axis < src.rank(); ++axis) {
      from[axis] = pad_source(attributes.mode, out[axis] - attributes.low[axis], src.dim(axis));
      outside = outside || from[axis] < 0;
    }
    if (!outside) return move_element(dst, out, src, from);
    with_compute_type(dst.dtype(), [&](auto type) { dst.set(out, call.parameter<decltype(type)>(0)); });
  });
}

}  // namespace tenon::reference
