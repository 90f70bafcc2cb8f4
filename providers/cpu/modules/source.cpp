#include "providers/cpu/modules/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "sdk/provider/error.h"

namespace tenon::provider::cpu {
namespace {

// The members of FaultSink in their order; `ep_sink` is the name that EP_FAULT_PARAMETER gives.
constexpr const char* prefix = R"(typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t;
struct ep_fault_sink { int32_t raised, code, operand, reserved; int64_t value, limit; };
#define EP_FAULT_PARAMETER struct ep_fault_sink* ep_sink
static inline void ep_raise_into(struct ep_fault_sink* sink, int32_t code, int32_t operand, int64_t value, int64_t limit) {
  if (__atomic_exchange_n(&sink->raised, 1, __ATOMIC_RELAXED) != 0) return;
  sink->code = code;
  sink->operand = operand;
  sink->value = value;
  sink->limit = limit;
}
#define ep_raise(code, operand, value, limit) ep_raise_into(ep_sink, (code), (operand), (value), (limit))
)";

bool is_identifier(std::string_view name) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits) &&
         std::isdigit(static_cast<unsigned char>(name[0])) == 0;
}

enum class Number : uint8_t { none, whole, natural, real };

Number number_of(int32_t dtype) {
  switch (dtype) {
#define EP_DTYPE_BOOL Number::natural
#define EP_DTYPE_INT Number::whole
#define EP_DTYPE_UINT Number::natural
#define EP_DTYPE_FLOAT Number::real
#define EP_DTYPE(name, id, bits, type_class) \
  case id:                                   \
    return EP_DTYPE_##type_class;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
#undef EP_DTYPE_FLOAT
#undef EP_DTYPE_UINT
#undef EP_DTYPE_INT
#undef EP_DTYPE_BOOL
    default: return Number::none;
  }
}

std::string real(double value, const char* suffix) {
  const char* sign = std::signbit(value) ? "-" : "";
  if (std::isnan(value)) return fmt::format("({}__builtin_nan{}(\"\"))", sign, suffix);
  if (std::isinf(value)) return fmt::format("({}__builtin_inf{}())", sign, suffix);
  return fmt::format("({:a}{})", value, suffix);
}

// The number as a C expression, exact: floats other than f64 are float, integers have 64 bits.
std::string literal(const ep_scalar& scalar) {
  switch (number_of(scalar.dtype)) {
    case Number::real: return real(scalar.value.f64, scalar.dtype == EP_DTYPE_f64 ? "" : "f");
    case Number::natural: return fmt::format("({}ull)", scalar.value.u64);
    case Number::whole:
    case Number::none: break;
  }
  const int64_t value = scalar.value.i64;
  return value == INT64_MIN ? "(-9223372036854775807ll - 1)" : fmt::format("({}ll)", value);
}

struct Check {
  const ep_host* host;
  ep_error** error;
  std::string module;

  ep_status refuse(ep_status status, const std::string& reason) const {
    return fail_text(host, error, status, fmt::format("The module '{}' {}.", module, reason));
  }
};

ep_status check_entry(const Check& check, const ep_module_entry& entry) {
  constexpr uint64_t known = EP_ENTRY_FLAG_FAULTS | EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH;
  if (!is_identifier(to_view(entry.name))) {
    return check.refuse(EP_STATUS_INVALID_ARGUMENT,
                        fmt::format("names the entry '{}', which is no C identifier", shown(entry.name)));
  }
  const std::string name = shown(entry.name);
  if ((entry.flags & ~known) != 0) {
    return check.refuse(EP_STATUS_UNSUPPORTED,
                        fmt::format("gives the entry {} the flags 0x{:x}, of which 0x{:x} are unknown", name,
                                    entry.flags, entry.flags & ~known));
  }
  if (entry.group[0] != 1 || entry.group[1] != 1 || entry.group[2] != 1) {
    return check.refuse(EP_STATUS_UNSUPPORTED,
                        fmt::format("gives the entry {} groups of {} x {} x {}; in C they are 1 x 1 x 1", name,
                                    entry.group[0], entry.group[1], entry.group[2]));
  }
  if (entry.buffer_count + 2 > most_buffers) {
    return check.refuse(EP_STATUS_UNSUPPORTED, fmt::format("gives the entry {} {} buffers; {} are possible", name,
                                                           entry.buffer_count, most_buffers - 2));
  }
  if (entry.parameter_bytes > most_parameter_bytes) {
    return check.refuse(EP_STATUS_UNSUPPORTED, fmt::format("gives the entry {} {} bytes of parameters; {} are possible",
                                                           name, entry.parameter_bytes, most_parameter_bytes));
  }
  if (entry.shared_bytes > most_local_bytes) {
    return check.refuse(EP_STATUS_UNSUPPORTED,
                        fmt::format("gives the entry {} {} bytes of local memory; {} are possible", name,
                                    entry.shared_bytes, most_local_bytes));
  }
  return EP_STATUS_OK;
}

}  // namespace

ep_status check_module(const ep_host* host, const ep_module_desc& desc, ep_error** error) {
  const Check check{host, error, shown(desc.name)};
  if (desc.next != nullptr) return check.refuse(EP_STATUS_UNSUPPORTED, "has an extension that is unknown");
  if (desc.dialect != EP_DIALECT_C) {
    return check.refuse(EP_STATUS_UNSUPPORTED, fmt::format("is of dialect {}; this device compiles dialect {} (C)",
                                                           desc.dialect, EP_DIALECT_C));
  }
  if (desc.entry_count == 0) return check.refuse(EP_STATUS_INVALID_ARGUMENT, "has no entry");
  for (uint32_t i = 0; i < desc.entry_count; ++i) {
    if (const ep_status status = check_entry(check, desc.entries[i]); status != EP_STATUS_OK) return status;
  }
  for (uint32_t i = 0; i < desc.constant_count; ++i) {
    const ep_module_constant& constant = desc.constants[i];
    if (!is_identifier(to_view(constant.name))) {
      return check.refuse(EP_STATUS_INVALID_ARGUMENT,
                          fmt::format("names the constant '{}', which is no C identifier", shown(constant.name)));
    }
    if (number_of(constant.value.dtype) == Number::none) {
      return check.refuse(EP_STATUS_UNSUPPORTED, fmt::format("gives the constant {} the unknown element type {}",
                                                             shown(constant.name), constant.value.dtype));
    }
  }
  if (to_view(desc.text).find('\0') != std::string_view::npos) {
    return check.refuse(EP_STATUS_INVALID_ARGUMENT, "has a text with a zero byte in it");
  }
  return EP_STATUS_OK;
}

std::string shown(ep_string text) {
  std::string made(to_view(text).substr(0, 64));
  std::replace_if(
      made.begin(), made.end(), [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; }, '?');
  return made;
}

std::string source_of(const ep_module_desc& desc) {
  std::string source = prefix;
  for (uint32_t i = 0; i < desc.constant_count; ++i) {
    source += fmt::format("#define {} {}\n", to_view(desc.constants[i].name), literal(desc.constants[i].value));
  }
  source += "#line 1 \"kernel\"\n";
  source += to_view(desc.text);
  return source;
}

}  // namespace tenon::provider::cpu
