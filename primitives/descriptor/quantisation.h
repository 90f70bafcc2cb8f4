// How the numbers of a quantised operand stand for real numbers ("Quantisation" in ep_api.h).
#pragma once

#include <span>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::descriptor {

// The `offset` of an operand that has one scale and no attributes.
constexpr size_t kOneScale = ~size_t{0};

// An operand that may be quantised in its kind, with the place of its scale, its zero point and its attributes.
struct Quantisable {
  int32_t kind;
  int32_t role;
  int32_t scale_role;
  int32_t zero_point_role;
  size_t offset;  // the offset of its ep_quantisation in ep_attributes, or kOneScale
};

// The row of operand `role`; null if this operand of `kind` cannot be quantised.
const Quantisable* quantisable(int32_t kind, int32_t role);

// True if `desc` has the scale or the zero point of operand `role`. Without `role`: of any operand.
bool is_quantised(const ep_primitive_desc& desc, int32_t role);
bool is_quantised(const ep_primitive_desc& desc);

ep_quantisation quantisation_of(const ep_primitive_desc& desc, const Quantisable& row);

// The number of consecutive elements along `axis` that share one scale. 0 if all of them do.
int64_t shared_along(const ep_quantisation& how, int32_t axis);

// Ok if scales, zero points and their attributes follow ep_api.h. Each operand has already been checked by itself.
Status check_quantisation(const ep_primitive_desc& desc);

}  // namespace tenon::descriptor
