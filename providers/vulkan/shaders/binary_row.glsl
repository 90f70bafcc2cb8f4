// T ROW_FUNCTION(T x, T y): the binary scalar function with the id ROW_OP. Included once per value of ROW_FUNCTION.
T ROW_FUNCTION(T x, T y) {
  switch (ROW_OP) {
#define EP_BINARY(name, id, domain, result, check, expression) case id: return as_T(expression);
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
  }
  return x;
}
#undef ROW_FUNCTION
#undef ROW_OP
