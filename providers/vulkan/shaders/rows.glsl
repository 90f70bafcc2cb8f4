// Every row of ep_api/scalar_ops.def as a function of T, chosen by its id: with an id that is a specialization constant
// one row is left. Rows that are not defined on T are compiled all the same and never asked for.
#include "prelude.glsl"

#define ep_lit(value) T(value)

T unary_row(const int op, T x, T a, T b) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) case id: return as_T(expression);
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
  }
  return x;
}

T binary_row(const int op, T x, T y) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) case id: return as_T(expression);
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
  }
  return x;
}

// `where` moves bits and stands in move.comp; here x has T too.
T ternary_row(const int op, T x, T y, T z) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) case id: return as_T(expression);
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
  }
  return x;
}

T reduce_init(const int op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return init;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return T(0);
}
T reduce_map(const int op, T x) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return map;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return x;
}
T reduce_combine(const int op, T x, T y) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return combine;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return x;
}
T reduce_finish(const int op, T x, T n) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return finish;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return x;
}
