#include <cmath>

#include "providers/mpi/plugin.h"
#include "sdk/provider/descriptor.h"
#include "sdk/provider/float_formats.h"

namespace tenon::provider::mpi {
namespace {

// Conversions between narrow floats and f32.
struct Half {
  static float load(uint16_t bits) { return F16::to_f32(bits); }
  static uint16_t store(float value) { return static_cast<uint16_t>(F16::from_f32(value)); }
};
struct Brain {
  static float load(uint16_t bits) { return bf16_to_f32(bits); }
  static uint16_t store(float value) { return bf16_from_f32(value); }
};

// Returns NaN if either is NaN, as everywhere in Tenon.
template <class T>
T greater(T a, T b) {
  return a > b || std::isnan(a) ? a : b;
}
template <class T>
T lesser(T a, T b) {
  return a < b || std::isnan(a) ? a : b;
}
float sum(float a, float b) { return a + b; }
float product(float a, float b) { return a * b; }

template <class T, T (*combine)(T, T)>
void of_floats(void* in, void* in_out, int* count, MPI_Datatype*) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(in_out);
  for (int i = 0; i < *count; ++i) to[i] = combine(to[i], from[i]);
}

template <class Format, float (*combine)(float, float)>
void of_narrow(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const uint16_t*>(in);
  auto* to = static_cast<uint16_t*>(in_out);
  for (int i = 0; i < *count; ++i) to[i] = Format::store(combine(Format::load(to[i]), Format::load(from[i])));
}

struct OwnOp {
  int32_t dtype, reduction;
  MPI_User_function* function;
};

constexpr OwnOp own_ops[] = {
    {EP_DTYPE_f32, EP_REDUCE_max, of_floats<float, greater<float>>},
    {EP_DTYPE_f32, EP_REDUCE_min, of_floats<float, lesser<float>>},
    {EP_DTYPE_f64, EP_REDUCE_max, of_floats<double, greater<double>>},
    {EP_DTYPE_f64, EP_REDUCE_min, of_floats<double, lesser<double>>},
    {EP_DTYPE_f16, EP_REDUCE_sum, of_narrow<Half, sum>},
    {EP_DTYPE_f16, EP_REDUCE_prod, of_narrow<Half, product>},
    {EP_DTYPE_f16, EP_REDUCE_max, of_narrow<Half, greater<float>>},
    {EP_DTYPE_f16, EP_REDUCE_min, of_narrow<Half, lesser<float>>},
    {EP_DTYPE_bf16, EP_REDUCE_sum, of_narrow<Brain, sum>},
    {EP_DTYPE_bf16, EP_REDUCE_prod, of_narrow<Brain, product>},
    {EP_DTYPE_bf16, EP_REDUCE_max, of_narrow<Brain, greater<float>>},
    {EP_DTYPE_bf16, EP_REDUCE_min, of_narrow<Brain, lesser<float>>},
};

MPI_Op built_in_op(int32_t reduction) {
  switch (reduction) {
    case EP_REDUCE_sum: return MPI_SUM;
    case EP_REDUCE_prod: return MPI_PROD;
    case EP_REDUCE_max: return MPI_MAX;
    case EP_REDUCE_min: return MPI_MIN;
    default: return MPI_OP_NULL;
  }
}

// MPI's own number type; for bool, the type of its bytes.
MPI_Datatype number_type(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool: return MPI_UINT8_T;
    case EP_DTYPE_i8: return MPI_INT8_T;
    case EP_DTYPE_i16: return MPI_INT16_T;
    case EP_DTYPE_i32: return MPI_INT32_T;
    case EP_DTYPE_i64: return MPI_INT64_T;
    case EP_DTYPE_u8: return MPI_UINT8_T;
    case EP_DTYPE_u16: return MPI_UINT16_T;
    case EP_DTYPE_u32: return MPI_UINT32_T;
    case EP_DTYPE_u64: return MPI_UINT64_T;
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16: return MPI_UINT16_T;  // with our own operations
    case EP_DTYPE_f32: return MPI_FLOAT;
    case EP_DTYPE_f64: return MPI_DOUBLE;
    default: return MPI_DATATYPE_NULL;
  }
}

template <class Test>
uint64_t dtypes_where(const Test& test) {
  uint64_t mask = 0;
  for (int32_t dtype = 1; dtype < 64; ++dtype) {
    if (test(dtype)) mask |= UINT64_C(1) << dtype;
  }
  return mask;
}

}  // namespace

MPI_Datatype carried_type(int32_t dtype) {
  switch (dtype_size(dtype)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    case 8: return MPI_UINT64_T;
    default: return MPI_DATATYPE_NULL;
  }
}

bool reduced_type(ep_collectives& plugin, int32_t dtype, int32_t reduction, MPI_Datatype* type, MPI_Op* op) {
  *type = number_type(dtype);
  if (*type == MPI_DATATYPE_NULL) return false;
  if (dtype == EP_DTYPE_bool) {  // any and all are the greater and the lesser byte
    if (reduction != EP_REDUCE_any && reduction != EP_REDUCE_all) return false;
    *op = reduction == EP_REDUCE_any ? MPI_MAX : MPI_MIN;
    return true;
  }
  const auto own = plugin.own_ops.find({dtype, reduction});
  *op = own != plugin.own_ops.end() ? own->second : built_in_op(reduction);
  return *op != MPI_OP_NULL;
}

uint64_t carried_dtypes() {
  return dtypes_where([](int32_t dtype) { return carried_type(dtype) != MPI_DATATYPE_NULL; });
}

uint64_t reduced_dtypes() {
  return dtypes_where([](int32_t dtype) { return number_type(dtype) != MPI_DATATYPE_NULL; });
}

uint64_t known_reductions() {
  uint64_t mask = UINT64_C(1) << EP_REDUCE_any | UINT64_C(1) << EP_REDUCE_all;
  for (int32_t reduction = 1; reduction < 64; ++reduction) {
    if (built_in_op(reduction) != MPI_OP_NULL) mask |= UINT64_C(1) << reduction;
  }
  return mask;
}

int make_own_ops(ep_collectives& plugin) {
  for (const OwnOp& own : own_ops) {
    MPI_Op op = MPI_OP_NULL;
    const int code = MPI_Op_create(own.function, 1, &op);
    if (code != MPI_SUCCESS) return code;
    plugin.own_ops[{own.dtype, own.reduction}] = op;
  }
  return MPI_SUCCESS;
}

void free_own_ops(ep_collectives& plugin) {
  for (auto& [key, op] : plugin.own_ops) MPI_Op_free(&op);
  plugin.own_ops.clear();
}

}  // namespace tenon::provider::mpi
