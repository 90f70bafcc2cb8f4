// What check.cpp and kinds.cpp share. Nobody else includes this file.
#pragma once

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
  return Status(Code::invalid_argument,
                fmt::format("{}: {}", table::kind_name(desc.kind), fmt::format(text, parts...)));
}

template <class... Parts>
Status unsupported(const Desc& desc, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::unsupported, fmt::format("{}: {}", table::kind_name(desc.kind), fmt::format(text, parts...)));
}

inline DType type_of(const Operand& operand) { return static_cast<DType>(operand.dtype); }
inline Dims dims_of(const Operand& operand) { return Dims({operand.dims, static_cast<size_t>(operand.rank)}); }
inline bool is_scalar(const Operand& operand) { return operand.flags & EP_OPERAND_FLAG_SCALAR; }
inline const Operand& get(const Desc& desc, int32_t role) { return *find_operand(desc, role); }

inline bool agree(int64_t a, int64_t b) { return a == b || a == EP_ANY || b == EP_ANY; }

// same_dims: Ok if the dims of both operands are equal; EP_ANY equals every dim. same_type: Ok if their dtypes are.
Status same_dims(const Desc& desc, const Operand& a, const Operand& b);
Status same_type(const Desc& desc, const Operand& a, const Operand& b);

// Ok if `operand`, a bias or an operand of an epilogue, has the dtype of the result: DST's, or f32 where DST is
// quantised.
Status has_result_type(const Desc& desc, const Operand& operand);

// Checks the rules of one kind (kinds.cpp), after check.cpp has checked the kind, the roles and each operand by itself.
Status check_kind(const Desc& desc);

}  // namespace tenon::descriptor
