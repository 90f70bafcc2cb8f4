// The part of the oneDNN interface that differs between versions: how a program makes primitive descriptors. oneDNN 2.6
// (Debian 12) builds a descriptor struct first; 3.x takes the same arguments in one constructor.
#pragma once

#include <dnnl.hpp>
#include <string>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// "2.6.3"
std::string onednn_version();

// True if the processor has an instruction that multiplies pairs of bf16 and adds them in f32.
bool has_bf16_products();

// True if oneDNN uses AMX for bf16.
bool has_tiles();

// Limits oneDNN to the instructions of `level`. oneDNN has one limit per process, and none is accepted after its first
// use. If DNNL_MAX_CPU_ISA is set, that limit stays.
void limit_instructions(SimdLevel level);

// Switches off oneDNN's primitive cache. It would keep the last thousand primitives of the process, at some hundred
// kilobytes each. The host has its own cache, which is bounded by bytes.
void switch_off_primitive_cache();

// Geometry of a convolution. As in oneDNN, dilation counts the zeros between taps (0: none).
struct Window {
  dnnl::memory::dims kernel, stride, dilation, pad_low, pad_high;
};

// Each function returns an empty descriptor if oneDNN has no implementation. `bias` may be a zero descriptor.
dnnl::primitive_desc_base make_matmul(const dnnl::engine& engine, const dnnl::memory::desc& src,
                                      const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                      const dnnl::memory::desc& dst, const dnnl::primitive_attr& attr);
dnnl::primitive_desc_base make_convolution(const dnnl::engine& engine, bool transposed, const Window& window,
                                           const dnnl::memory::desc& src, const dnnl::memory::desc& weights,
                                           const dnnl::memory::desc& bias, const dnnl::memory::desc& dst,
                                           const dnnl::primitive_attr& attr);
// a += b, where dims of length 1 of `b` are repeated.
dnnl::primitive_desc_base make_add(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                   const dnnl::memory::desc& b);
dnnl::primitive_desc_base make_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                       const dnnl::memory::desc& to);

// "brg:avx512_core", "gemm:jit", "ref:any"
std::string implementation_of(const dnnl::primitive_desc_base& desc);

// Gives a memory object the address of an operand. The address changes with every launch.
inline bool set_address(const dnnl::memory& memory, void* address) {
  return dnnl_memory_set_data_handle(memory.get(), address) == dnnl_success;
}

}  // namespace tenon::provider::cpu
