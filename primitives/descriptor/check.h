// What the parts of check_descriptor share; not for others.
#pragma once

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"
#include "primitives/status/sentence.h"
#include "primitives/table/table.h"

namespace tenon::descriptor {

using Desc = ep_primitive_desc;
using Operand = ep_operand_desc;

template <class... Parts>
Status wrong(const Desc& desc, const Parts&... parts) {
  return Status(Code::invalid_argument, sentence(table::kind_name(desc.kind), ": ", parts...));
}

template <class... Parts>
Status unsupported(const Desc& desc, const Parts&... parts) {
  return Status(Code::unsupported, sentence(table::kind_name(desc.kind), ": ", parts...));
}

inline DType type_of(const Operand& operand) { return static_cast<DType>(operand.dtype); }
inline Dims dims_of(const Operand& operand) { return Dims({operand.dims, static_cast<size_t>(operand.rank)}); }
inline bool is_scalar(const Operand& operand) { return operand.flags & EP_OPERAND_FLAG_SCALAR; }
inline const Operand& get(const Desc& desc, int32_t role) { return *find_operand(desc, role); }

inline bool agree(int64_t a, int64_t b) { return a == b || a == EP_ANY || b == EP_ANY; }

// Two operands of equal dims, EP_ANY equal to all; of equal dtype.
Status same_dims(const Desc& desc, const Operand& a, const Operand& b);
Status same_type(const Desc& desc, const Operand& a, const Operand& b);

// The rules of one kind (kinds.cpp). Kind, roles and each operand by itself have been checked.
Status check_kind(const Desc& desc);

}  // namespace tenon::descriptor
