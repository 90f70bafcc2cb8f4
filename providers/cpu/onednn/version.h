// What differs between versions of oneDNN: how primitive descriptors are made. Everything else of onednn/ is written
// once. 2.6 (Debian 12) builds a descriptor struct first; 3.x takes the same arguments in one constructor.
#pragma once

#include <dnnl.hpp>
#include <string>

namespace tenon::provider::cpu {

// "2.6.3"
std::string onednn_version();

// oneDNN keeps the last thousand primitives it made, some hundred kilobytes each, for whoever asks for the same again.
// The host has a cache of its own, bounded by bytes; this one is the process's, so it is switched off.
void switch_off_primitive_cache();

// Geometry of a convolution; dilation counts the zeros between taps (0: none), as oneDNN does.
struct Window {
  dnnl::memory::dims kernel, stride, dilation, pad_low, pad_high;
};

// The descriptors below are empty where oneDNN has no implementation. `bias` may be a zero descriptor.
dnnl::primitive_desc_base make_matmul(const dnnl::engine& engine, const dnnl::memory::desc& src,
                                      const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                      const dnnl::memory::desc& dst, const dnnl::primitive_attr& attr);
dnnl::primitive_desc_base make_convolution(const dnnl::engine& engine, bool transposed, const Window& window,
                                           const dnnl::memory::desc& src, const dnnl::memory::desc& weights,
                                           const dnnl::memory::desc& bias, const dnnl::memory::desc& dst,
                                           const dnnl::primitive_attr& attr);
dnnl::primitive_desc_base make_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                       const dnnl::memory::desc& to);

// "brg:avx512_core", "gemm:jit", "ref:any"
std::string implementation_of(const dnnl::primitive_desc_base& desc);

// The address a memory object stands for changes with every launch.
inline bool set_address(const dnnl::memory& memory, void* address) {
  return dnnl_memory_set_data_handle(memory.get(), address) == dnnl_success;
}

}  // namespace tenon::provider::cpu
