// gather, concat, split, pad: kernels that move elements without changing them.
#include <algorithm>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

void move_element(const Operand& dst, const int64_t* to, const Operand& src, const int64_t* from) {
  with_compute_type(src.dtype(), [&](auto type) { dst.set(to, src.get<decltype(type)>(from)); });
}

// Copies `part` to or from the stretch of `whole` that begins at `start` along `axis`.
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

// The index in the source of element `at` of the padded axis; -1: the element is the padding value.
int64_t pad_source(int32_t mode, int64_t at, int64_t dim) {
  if (at >= 0 && at < dim) return at;
  if (mode == EP_PAD_EDGE) return at < 0 ? 0 : dim - 1;
  if (mode == EP_PAD_REFLECT) return at < 0 ? -at : 2 * (dim - 1) - at;
  return -1;
}

}  // namespace

void run_gather(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand indices = call[EP_ROLE_INDICES];
  const int32_t axis = call.desc.attributes.gather.axis;
  const bool slices = call.desc.attributes.gather.mode == EP_GATHER_SLICES;
  const int64_t length = src.dim(axis);
  for_each_index(dst.dims(), [&](const int64_t* out) {
    const int64_t given = indices.get<int64_t>(slices ? out + axis : out);
    const int64_t position = given < 0 ? given + length : given;
    if (position < 0 || position >= length) {
      call.report(EP_FAULT_INDEX_OUT_OF_RANGE, EP_ROLE_INDICES, given, length);
      dst.set<int64_t>(out, 0);
      return;
    }
    int64_t from[EP_MAX_RANK];
    std::copy_n(out, axis + 1, from);
    from[axis] = position;
    const int64_t* after = slices ? out + axis + indices.rank() : out + axis + 1;
    std::copy_n(after, src.rank() - axis - 1, from + axis + 1);
    move_element(dst, out, src, from);
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
