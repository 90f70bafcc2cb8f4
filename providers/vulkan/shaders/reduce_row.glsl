// The reduction with the id OP: its initial value, its map of an element, its combination of two values, and its finish
// for the last value and the number n of elements.
T reduce_init() {
  switch (OP) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return init;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return T(0);
}
T reduce_map(T x) {
  switch (OP) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return map;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return x;
}
T reduce_combine(T x, T y) {
  switch (OP) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return combine;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return x;
}
T reduce_finish(T x, T n) {
  switch (OP) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) case id: return finish;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
  }
  return x;
}
