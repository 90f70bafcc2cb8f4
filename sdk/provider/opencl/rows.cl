// Every scalar function of ep_api/scalar_ops.def on EP_T (prelude.cl), selected by id. If the id is a constant, the
// compiler keeps only that function. A function whose result is BOOL returns 1 or 0.

static inline EP_T ep_unary_row(int op, EP_T x, EP_T a, EP_T b) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id: return (EP_T)(expression);
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return x;
  }
}
static inline EP_T ep_binary_row(int op, EP_T x, EP_T y) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) \
  case id: return (EP_T)(expression);
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return x;
  }
}
static inline EP_T ep_ternary_row(int op, EP_T x, EP_T y, EP_T z) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id: return (EP_T)(expression);
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: return x;
  }
}
static inline EP_T ep_reduce_init(int op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id: return init;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return 0;
  }
}
static inline EP_T ep_reduce_map(int op, EP_T x) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id: return map;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return x;
  }
}
static inline EP_T ep_reduce_combine(int op, EP_T x, EP_T y) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id: return combine;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return x;
  }
}
static inline EP_T ep_reduce_finish(int op, EP_T x, EP_T n) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id: return finish;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return x;
  }
}
