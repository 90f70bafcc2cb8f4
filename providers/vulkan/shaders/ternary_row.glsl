// T ROW_FUNCTION(T x, T y, T z): the ternary scalar function with the id ROW_OP. `where` is in move.comp.
T ROW_FUNCTION(T x, T y, T z) {
  switch (ROW_OP) {
#define EP_TERNARY(name, id, domain, result, expression) case id: return as_T(expression);
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
  }
  return x;
}
#undef ROW_FUNCTION
#undef ROW_OP
