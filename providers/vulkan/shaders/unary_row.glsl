// T ROW_FUNCTION(T x, T a, T b): the unary scalar function with the id ROW_OP. Included once per value of ROW_FUNCTION.
T ROW_FUNCTION(T x, T a, T b) {
  switch (ROW_OP) {
#define EP_UNARY(name, id, domain, result, expression) case id: return as_T(expression);
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
  }
  return x;
}
#undef ROW_FUNCTION
#undef ROW_OP
