#include "sdk/conformance/contract/module_texts.h"

namespace tenon::conformance {
namespace {

// The kernels for CUDA C and OpenCL C; `front` defines the words that differ. Signed sums are computed as unsigned,
// since OpenCL C has no option that makes signed sums wrap.
constexpr std::string_view reals = R"(
ENTRY reals(GLOBAL const float* x, GLOBAL float* y, struct count p) {
  const int64_t i = ITEM;
  if (i < p.count) y[i] = x[i] * x[i] - HALF;
}
)";
constexpr std::string_view doubles = R"(
ENTRY doubles(GLOBAL const float* x, GLOBAL double* z, struct count p) {
  const int64_t i = ITEM;
  if (i < p.count) z[i] = (double)x[i] / THIRD;
}
)";
constexpr std::string_view integers = R"(
ENTRY integers(GLOBAL const float* x, GLOBAL int64_t* n, struct count p) {
  const int64_t i = ITEM;
  if (i < p.count) n[i] = (int64_t)((uint64_t)MOST + (uint64_t)(int64_t)x[i]);
}
)";
constexpr std::string_view vectors = R"(
ENTRY vectors(GLOBAL const float* x, GLOBAL float* y, struct count p) {
  const int64_t i = ITEM;
  if (i >= p.count) return;
  const float4 v = ((GLOBAL const float4*)x)[i];
  float4 w;
  w.x = v.x * v.x - v.x;
  w.y = v.y * v.y - v.y;
  w.z = v.z * v.z - v.z;
  w.w = v.w * v.w - v.w;
  ((GLOBAL float4*)y)[i] = w;
}
)";
constexpr std::string_view rooms = R"(
ENTRY rooms(GLOBAL int64_t* y, GLOBAL int64_t* workspace, GLOBAL const int64_t* scratch, struct numbers p) {
  SHARED int64_t mine[120];
  const int64_t i = ITEM;
  for (int64_t j = PLACE; j < p.used; j += 64) mine[j] = p.all[j];
  SYNC;
  if (i >= p.count) return;
  int64_t sum = scratch[i % 8];
  for (int64_t j = 0; j < p.used; ++j) sum += mine[j] * (i + 1);
  workspace[i] = sum;
  y[i] = workspace[i];
}
)";
constexpr std::string_view faults = R"(
ENTRY faults(GLOBAL const int64_t* x, GLOBAL int64_t* y, struct count p, EP_FAULT_PARAMETER) {
  const int64_t i = ITEM;
  if (i >= p.count) return;
  if (x[i] >= 1000) ep_raise(1, 0, x[i], 1000);
  y[i] = x[i] + 1;
}
)";

constexpr DialectRow rows[] = {
    {EP_DIALECT_C,
     "C",
     1,
     false,
     R"(
typedef float lanes __attribute__((vector_size(16)));
struct numbers { int64_t count; int64_t used; int64_t all[120]; };
)",
     {R"(
void reals(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const float* x = buffers[0];
  float* y = buffers[1];
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * x[i] - HALF;
}
)",
      R"(
void doubles(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const float* x = buffers[0];
  double* z = buffers[1];
  for (int64_t i = begin; i < end; ++i) z[i] = (double)x[i] / THIRD;
}
)",
      R"(
void integers(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const float* x = buffers[0];
  int64_t* n = buffers[1];
  for (int64_t i = begin; i < end; ++i) n[i] = MOST + (int64_t)x[i];
}
)",
      R"(
void vectors(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const float* x = buffers[0];
  float* y = buffers[1];
  for (int64_t i = begin; i < end; ++i) {
    lanes v;
    __builtin_memcpy(&v, x + 4 * i, sizeof v);
    v = v * v - v;
    __builtin_memcpy(y + 4 * i, &v, sizeof v);
  }
}
)",
      R"(
void rooms(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const struct numbers* p = parameters;
  int64_t* y = buffers[0];
  int64_t* workspace = buffers[1];
  const int64_t* scratch = buffers[2];
  int64_t* mine = local;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < p->used; ++j) mine[j] = p->all[j] * (i + 1);
    int64_t sum = scratch[i % 8] + (__INTPTR_TYPE__)local % 64 + (__INTPTR_TYPE__)workspace % 256;
    for (int64_t j = 0; j < p->used; ++j) sum += mine[j];
    workspace[i] = sum;
    y[i] = workspace[i];
  }
}
)",
      R"(
void faults(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local, EP_FAULT_PARAMETER) {
  const int64_t* x = buffers[0];
  int64_t* y = buffers[1];
  for (int64_t i = begin; i < end; ++i) {
    if (x[i] >= 1000) ep_raise(1, 0, x[i], 1000);
    y[i] = x[i] + 1;
  }
}
)"},
     "// one\n// two\nvoid f(void* const* b, const void* p, int64_t i, int64_t n, void* l) { missing(; }\n"},
    {EP_DIALECT_CUDA_C,
     "CUDA C",
     64,
     false,
     R"(
#define ENTRY extern "C" __global__ void
#define GLOBAL
#define SHARED __shared__
#define ITEM ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define PLACE threadIdx.x
#define SYNC __syncthreads()
struct count { int64_t count; };
struct numbers { int64_t count; int64_t used; int64_t all[120]; };
)",
     {reals, doubles, integers, vectors, rooms, faults},
     "// one\n// two\nextern \"C\" __global__ void f() { missing(; }\n"},
    {EP_DIALECT_OPENCL_C,
     "OpenCL C",
     64,
     false,
     R"(
#define ENTRY __kernel void
#define GLOBAL __global
#define SHARED __local
#define ITEM ((int64_t)get_group_id(0) * get_local_size(0) + get_local_id(0))
#define PLACE get_local_id(0)
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
struct count { int64_t count; };
struct numbers { int64_t count; int64_t used; int64_t all[120]; };
)",
     {reals, doubles, integers, vectors, rooms, faults},
     "// one\n// two\n__kernel void f() { missing(; }\n"},
    {EP_DIALECT_GLSL,
     "GLSL",
     64,
     true,
     R"(
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Quads { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { int64_t v[]; };
#define ITEM (gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x)
)",
     {R"(
struct Parameters { int64_t count; };
EP_PARAMETERS
void reals() {
  const uint i = ITEM;
  if (i >= ep_parameters.count) return;
  const float x = Floats(ep_buffers[0]).v[i];
  Floats(ep_buffers[1]).v[i] = x * x - HALF;
}
)",
      R"(
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Doubles { double v[]; };
struct Parameters { int64_t count; };
EP_PARAMETERS
void doubles() {
  const uint i = ITEM;
  if (i < ep_parameters.count) Doubles(ep_buffers[1]).v[i] = double(Floats(ep_buffers[0]).v[i]) / THIRD;
}
)",
      R"(
struct Parameters { int64_t count; };
EP_PARAMETERS
void integers() {
  const uint i = ITEM;
  if (i < ep_parameters.count) Longs(ep_buffers[1]).v[i] = MOST + int64_t(Floats(ep_buffers[0]).v[i]);
}
)",
      R"(
struct Parameters { int64_t count; };
EP_PARAMETERS
void vectors() {
  const uint i = ITEM;
  if (i >= ep_parameters.count) return;
  const vec4 v = Quads(ep_buffers[0]).v[i];
  Quads(ep_buffers[1]).v[i] = v * v - v;
}
)",
      R"(
struct Parameters { int64_t count; int64_t used; int64_t all[120]; };
EP_PARAMETERS
shared int64_t mine[120];
void rooms() {
  const uint i = ITEM;
  for (uint j = gl_LocalInvocationID.x; j < ep_parameters.used; j += gl_WorkGroupSize.x) mine[j] = ep_parameters.all[j];
  memoryBarrierShared();
  barrier();
  if (i >= ep_parameters.count) return;
  int64_t sum = Longs(ep_buffers[2]).v[i % 8] + int64_t(ep_buffers[1] % 256ul);
  for (uint j = 0; j < ep_parameters.used; ++j) sum += mine[j] * int64_t(i + 1);
  Longs(ep_buffers[1]).v[i] = sum;
  Longs(ep_buffers[0]).v[i] = Longs(ep_buffers[1]).v[i];
}
)",
      R"(
struct Parameters { int64_t count; };
EP_PARAMETERS
void faults() {
  const uint i = ITEM;
  if (i >= ep_parameters.count) return;
  const int64_t x = Longs(ep_buffers[0]).v[i];
  if (x >= 1000) ep_raise(1, 0, x, 1000);
  Longs(ep_buffers[1]).v[i] = x + 1;
}
)"},
     "// one\nEP_PARAMETERS\nvoid f() { missing(; }\n"},
};

}  // namespace

const DialectRow* dialect_row(int32_t dialect) {
  for (const DialectRow& row : rows) {
    if (row.dialect == dialect) return &row;
  }
  return nullptr;
}

std::string text_of(const DialectRow& row, const std::vector<size_t>& kernels) {
  std::string text(row.front);
  for (const size_t kernel : kernels) text += row.kernels[kernel];
  return text;
}

}  // namespace tenon::conformance
