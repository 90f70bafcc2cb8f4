#include "core/codegen/emit/rows.h"

namespace tenon::codegen {

std::string_view unary_text(int32_t op) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id:                                             \
    return #expression;
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return {};
  }
}

std::string_view binary_text(int32_t op) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) \
  case id:                                                     \
    return #expression;
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return {};
  }
}

std::string_view ternary_text(int32_t op) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id:                                               \
    return #expression;
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: return {};
  }
}

ReduceText reduce_text(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return {#init, #map, #combine, #finish};
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return {};
  }
}

}  // namespace tenon::codegen
