// Shared by the checks of this folder. Other folders do not include this file.
#pragma once

#include <initializer_list>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::descriptor {

using Desc = ep_primitive_desc;
using Operand = ep_operand_desc;

template <class... Parts>
Status wrong(const Desc& desc, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Subject{table::kind_name(desc.kind)}, Code::invalid_argument, fmt::format(text, parts...));
}

template <class... Parts>
Status unsupported(const Desc& desc, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Subject{table::kind_name(desc.kind)}, Code::unsupported, fmt::format(text, parts...));
}

inline DType type_of(const Operand& operand) { return static_cast<DType>(operand.dtype); }
inline Dims dims_of(const Operand& operand) { return Dims({operand.dims, static_cast<size_t>(operand.rank)}); }
inline bool is_scalar(const Operand& operand) { return operand.flags & EP_OPERAND_FLAG_SCALAR; }
inline const Operand& get(const Desc& desc, int32_t role) { return *find_operand(desc, role); }

inline bool agree(int64_t a, int64_t b) { return a == b || a == EP_ANY || b == EP_ANY; }

// same_dims: Ok if the dims of both operands are equal; EP_ANY equals every dim. same_type: Ok if the dtypes are equal.
Status same_dims(const Desc& desc, const Operand& a, const Operand& b);
Status same_type(const Desc& desc, const Operand& a, const Operand& b);

// same_dims_but_one: like same_dims, except along the axes of `mask`, where `a` must have length 1. is_type, is_float:
// Ok if the operand has that dtype, or a floating dtype. axis_in_rank: Ok if the axis is in [0, rank).
Status same_dims_but_one(const Desc& desc, const Operand& a, const Operand& b, uint32_t mask);
Status is_type(const Desc& desc, const Operand& operand, DType type);
Status is_float(const Desc& desc, const Operand& operand);
Status axis_in_rank(const Desc& desc, int32_t axis, int32_t rank);

// The dtype of the MEAN and INV_STD of `src`.
DType statistics_type(const Operand& src);

// Ok if `taken` is the result of a gather from `src` with INDICES.
Status check_taken(const Desc& desc, int32_t axis, int32_t mode, const Operand& src, const Operand& taken);

// --- norms (norms.cpp) ---

// Ok if the operand `role` is absent, or a list of floats with one element for each index of `axis` of `src`.
Status is_list(const Desc& desc, int32_t role, const Operand& src, int32_t axis);
// Ok if the operand `role` is absent, or a tensor of floats with the dims of `src` from `axis` on.
Status is_normalised(const Desc& desc, int32_t role, const Operand& src, int32_t axis);
// Ok if SRC is floating, and the operands of `roles` have its dtype and dims.
Status are_like_source(const Desc& desc, int32_t axis, std::initializer_list<int32_t> roles);

// --- windows, of convolutions and poolings (windows.cpp) ---

struct Windows {
  int32_t spatial_rank;
  const int64_t* stride;
  const int64_t* dilation;
  const int64_t* pad_low;
  const int64_t* pad_high;
};

// Ok if the numbers are in range and `wide`, over which the windows move, has their rank.
Status check_windows(const Desc& desc, const Windows& windows, const Operand& wide);
// Ok if `narrow` has the spatial dims that result from windows with the spatial dims of `weight`.
Status check_window_lengths(const Desc& desc, const Windows& windows, const Operand& wide, const Operand& narrow,
                            const Operand& weight);
// Ok if a pooling of `wide` can have the result `narrow`.
Status check_pooling_windows(const Desc& desc, const ep_pooling_attributes& at, const Operand& wide,
                             const Operand& narrow);

// Ok if `operand` has these dims; EP_ANY equals every dim.
Status has_dims(const Desc& desc, const Operand& operand, const Dims& dims);

// Ok if `operand`, a bias or an operand of an epilogue, has the dtype of the result: DST's, or f32 where DST is
// quantised.
Status has_result_type(const Desc& desc, const Operand& operand);

// The rules of each kind: check_matmul and so on.
#define EP_PRIMITIVE(name, id, attributes, alias) Status check_##name(const Desc& desc);
#include "ep_api/primitives.def"
#undef EP_PRIMITIVE

// Checks the rules of the descriptor's kind, after check.cpp has checked the kind, the roles and each operand by
// itself.
Status check_kind(const Desc& desc);

}  // namespace tenon::descriptor
