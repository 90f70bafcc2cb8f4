// Implementations are listed, not registered: one ordered array per kind, best first. Each entry can give the reason
// why it refuses.
//
//   constexpr Implementation matmul_list[] = {
//       {"onednn", onednn_why_not, onednn_make},
//       {"plain", plain_why_not, plain_make},
//   };
//
// The first implementation that does not refuse is used. Each earlier refusal is a line of the log topic `dispatch`
// ("matmul cpu onednn: bf16 needs avx512_core_bf16"). If all refuse, the error lists the refusals. If an implementation
// accepts the primitive and then cannot make it (no memory, an error of the compiler), the call fails: no other
// implementation is tried, since a slower one would hide the failure.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>

#include "sdk/provider/descriptor.h"
#include "sdk/provider/error.h"
#include "sdk/provider/negotiate.h"

namespace tenon::provider {

// The reason why an implementation does not support a primitive: one clause that names the values. Empty if it does.
class Refusal {
 public:
  Refusal() { text_[0] = '\0'; }
  // The device or the implementation does not support the primitive.
  [[gnu::format(printf, 1, 2)]] static Refusal because(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const Refusal refusal(EP_STATUS_UNSUPPORTED, format, arguments);
    va_end(arguments);
    return refusal;
  }
  // The primitive is supported, but making it failed with `status`, such as OUT_OF_DEVICE_MEMORY or INTERNAL. For
  // `make`.
  [[gnu::format(printf, 2, 3)]] static Refusal failure(ep_status status, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const Refusal refusal(status, format, arguments);
    va_end(arguments);
    return refusal;
  }
  explicit operator bool() const { return text_[0] != '\0'; }
  const char* text() const { return text_; }
  ep_status status() const { return status_; }

 private:
  Refusal(ep_status status, const char* format, va_list arguments) : status_(status) {
    std::vsnprintf(text_, sizeof text_, format, arguments);
  }

  ep_status status_ = EP_STATUS_UNSUPPORTED;
  char text_[400];
};

struct Implementation {
  const char* name;  // "onednn", "simd", "plain": static text
  // Fast and without side effects. If it accepts, it may set flags, baked scalars and alignments of `info`.
  Refusal (*why_not)(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  // Makes the primitive. May still refuse or fail, and then does not write `*out`. May set sizes of `info`.
  Refusal (*make)(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
  // True if it supports operands with scales and zero points. Other implementations never get such operands.
  bool knows_quantisation = false;
};

// The implementations of one kind, best first.
struct ImplementationList {
  int32_t kind;
  std::span<const Implementation> implementations;
};

// Calls attempt(implementation) for the implementations of `desc.kind`, in order, until one does not refuse, or fails.
template <class Attempt>
ep_status choose(const ep_host* host, const char* provider, std::span<const ImplementationList> lists,
                 const ep_primitive_desc& desc, ep_error** error, const Attempt& attempt) {
  std::string reasons;
  for (const ImplementationList& list : lists) {
    if (list.kind != desc.kind) continue;
    for (const Implementation& implementation : list.implementations) {
      const Refusal refusal = attempt(implementation);
      if (!refusal) return EP_STATUS_OK;
      if (refusal.status() != EP_STATUS_UNSUPPORTED) {
        return fail(host, error, refusal.status(), "%s: %s.", implementation.name, refusal.text());
      }
      log_line(host, EP_LOG_DEBUG, "dispatch", "%s %s %s: %s", kind_name(desc.kind), provider, implementation.name,
               refusal.text());
      if (!reasons.empty()) reasons += "; ";
      reasons.append(implementation.name).append(": ").append(refusal.text());
    }
  }
  if (reasons.empty()) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "%s has no implementation of kind %d (%s).", provider, desc.kind,
                kind_name(desc.kind));
  }
  return fail_text(host, error, EP_STATUS_UNSUPPORTED, reasons + ".");
}

// True for the scale or zero point of a quantised operand.
inline bool is_quantisation_role(int32_t role) { return role >= EP_ROLE_SRC_SCALE && role <= EP_ROLE_DST_ZERO_POINT; }

inline bool is_known_role(int32_t role) {
  const auto within = [role](int32_t first, int32_t count) { return role >= first && role < first + count; };
  return within(EP_ROLE_DST, EP_ROLE_DST_COUNT) || within(EP_ROLE_EPILOGUE_0, EP_MAX_EPILOGUES) ||
         within(EP_ROLE_SRC_0, EP_MAX_OPERANDS) || within(EP_ROLE_DST_0, EP_MAX_OPERANDS) ||
         within(EP_ROLE_SCALE_GRADIENT, EP_ROLE_LOG_SUM - EP_ROLE_SCALE_GRADIENT + 1) ||
         within(EP_ROLE_RECURRENT_WEIGHT, EP_ROLE_DST_CELL - EP_ROLE_RECURRENT_WEIGHT + 1) ||
         within(EP_ROLE_DST_R, EP_ROLE_DST_LOG - EP_ROLE_DST_R + 1) || is_quantisation_role(role);
}

// Refuses flags, roles and extensions that our ep_api.h does not have. A provider must not guess their meaning.
inline Refusal unknown_parts(const ep_primitive_desc& desc) {
  if ((desc.flags & ~EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0) {
    return Refusal::because("unknown flags 0x%llx", static_cast<unsigned long long>(desc.flags));
  }
  if ((desc.extensions[0] & UINT64_C(0xffffffff)) != 0) {
    return Refusal::because("unknown extension 0x%llx",
                            static_cast<unsigned long long>(desc.extensions[0] & 0xffffffffU));
  }
  if (desc.operand_count > EP_MAX_OPERANDS) return Refusal::because("%u operands", desc.operand_count);
  if (desc.precision < EP_PRECISION_DEFAULT || desc.precision > EP_PRECISION_FULL) {
    return Refusal::because("unknown precision %d", desc.precision);
  }
  if (desc.accumulate_dtype != 0 && dtype_class(desc.accumulate_dtype) == DTypeClass::NONE) {
    return Refusal::because("unknown accumulation dtype %d", desc.accumulate_dtype);
  }
  if (desc.epilogue_count != 0 && desc.kind != EP_PRIMITIVE_matmul && desc.kind != EP_PRIMITIVE_convolution) {
    return Refusal::because("%u epilogues, which the kind does not have", desc.epilogue_count);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if ((operand.flags & ~(EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT)) != 0) {
      return Refusal::because("operand %u has unknown flags 0x%llx", i, static_cast<unsigned long long>(operand.flags));
    }
    if (!is_known_role(operand.role)) return Refusal::because("operand %u has unknown role %d", i, operand.role);
    if (dtype_class(operand.dtype) == DTypeClass::NONE) return Refusal::because("unknown dtype %d", operand.dtype);
    if (operand.rank < 0 || operand.rank > EP_MAX_RANK) return Refusal::because("rank %d", operand.rank);
  }
  return {};
}

// Refuses quantised operands, for implementations that do not support them.
inline Refusal quantised_operands(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const int32_t role = desc.operands[i].role;
    if (is_quantisation_role(role)) return Refusal::because("operand %u has role %d: quantised operands", i, role);
  }
  return {};
}

}  // namespace tenon::provider
