#include <fmt/core.h>

#include <cstdlib>

#include "providers/cpu/onednn/version.h"

namespace tenon::provider::cpu {
namespace {

template <class Desc, class... Args>
dnnl::primitive_desc_base make(const dnnl::engine& engine, const dnnl::primitive_attr& attr, const Args&... args) try {
  const typename Desc::desc desc(args...);
  return typename Desc::primitive_desc(desc, attr, engine, true);
} catch (const dnnl::error&) {
  return {};
}

bool has_instructions(dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);  // a bit set
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

bool has_bf16_products() {
  static const bool has = has_instructions(dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

bool has_tiles() {
  static const bool has = has_instructions(dnnl::cpu_isa::avx512_core_amx);
  return has;
}

void limit_instructions(SimdLevel level) {
  if (level == SimdLevel::avx3 || std::getenv("DNNL_MAX_CPU_ISA") != nullptr) return;
  dnnl_set_max_cpu_isa(level == SimdLevel::avx2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41);
}

void switch_off_primitive_cache() { dnnl_set_primitive_cache_capacity(0); }

dnnl::primitive_desc_base make_matmul(const dnnl::engine& engine, const dnnl::memory::desc& src,
                                      const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                      const dnnl::memory::desc& dst, const dnnl::primitive_attr& attr) {
  if (bias.is_zero()) return make<dnnl::matmul>(engine, attr, src, weights, dst);
  return make<dnnl::matmul>(engine, attr, src, weights, bias, dst);
}

dnnl::primitive_desc_base make_convolution(const dnnl::engine& engine, bool transposed, const Window& window,
                                           const dnnl::memory::desc& src, const dnnl::memory::desc& weights,
                                           const dnnl::memory::desc& bias, const dnnl::memory::desc& dst,
                                           const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto make_with = [&](auto tag, auto algorithm) {
    using Desc = decltype(tag);
    if (bias.is_zero()) {
      return make<Desc>(engine, attr, kind, algorithm, src, weights, dst, window.stride, window.dilation,
                        window.pad_low, window.pad_high);
    }
    return make<Desc>(engine, attr, kind, algorithm, src, weights, bias, dst, window.stride, window.dilation,
                      window.pad_low, window.pad_high);
  };
  if (transposed) return make_with(dnnl::deconvolution_forward(), dnnl::algorithm::deconvolution_direct);
  return make_with(dnnl::convolution_forward(), dnnl::algorithm::convolution_direct);
}

dnnl::primitive_desc_base make_add(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                   const dnnl::memory::desc& b) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return make<dnnl::binary>(engine, attr, dnnl::algorithm::binary_add, a, b, a);
}

dnnl::primitive_desc_base make_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                       const dnnl::memory::desc& to) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return dnnl::reorder::primitive_desc(engine, from, engine, to, attr, true);
}

std::string implementation_of(const dnnl::primitive_desc_base& desc) {
  const char* text = nullptr;
  dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &text);
  return text == nullptr ? "" : text;
}

}  // namespace tenon::provider::cpu
