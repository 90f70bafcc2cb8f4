#include "sdk/provider/modules/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sdk/provider/error.h"

namespace tenon::provider {
namespace {

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

// Floats are written as bits, because no decimal literal is exact in every dialect.
std::string real(double value, bool wide, int32_t dialect) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  uint64_t wide_bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  std::memcpy(&wide_bits, &value, sizeof wide_bits);
  const bool finite = std::isfinite(value);
  switch (dialect) {
    case EP_DIALECT_GLSL:
      if (!wide) return fmt::format("uintBitsToFloat({:#x}u)", bits);
      return fmt::format("packDouble2x32(uvec2({:#x}u, {:#x}u))", wide_bits & UINT32_MAX, wide_bits >> 32);
    case EP_DIALECT_OPENCL_C:
      if (finite) break;
      return wide ? fmt::format("as_double({:#x}UL)", wide_bits) : fmt::format("as_float({:#x}u)", bits);
    case EP_DIALECT_CUDA_C:
      if (finite) break;
      return wide ? fmt::format("__longlong_as_double({:#x}ull)", wide_bits)
                  : fmt::format("__uint_as_float({:#x}u)", bits);
    default: {
      if (finite) break;
      const char* sign = std::signbit(value) ? "-" : "";
      const char* suffix = wide ? "" : "f";
      return std::isnan(value) ? fmt::format("({}__builtin_nan{}(\"\"))", sign, suffix)
                               : fmt::format("({}__builtin_inf{}())", sign, suffix);
    }
  }
  return fmt::format("({:a}{})", value, wide ? "" : "f");
}

// The number as an expression, exact: floats other than f64 are float, integers have 64 bits.
std::string literal(const ep_scalar& scalar, int32_t dialect) {
  const bool one_letter = dialect == EP_DIALECT_OPENCL_C || dialect == EP_DIALECT_GLSL;
  const char* suffix = one_letter ? "l" : "ll";
  switch (number_of(scalar.dtype)) {
    case Number::real: return real(scalar.value.f64, scalar.dtype == EP_DTYPE_f64, dialect);
    case Number::natural: return fmt::format("({}u{})", scalar.value.u64, suffix);
    case Number::whole:
    case Number::none: break;
  }
  const int64_t value = scalar.value.i64;
  if (value == INT64_MIN) return fmt::format("(-9223372036854775807{0} - 1{0})", suffix);
  return fmt::format("({}{})", value, suffix);
}

struct Check {
  const ep_host* host;
  ep_error** error;
  std::string module;

  ep_status refuse(ep_status status, const std::string& reason) const {
    return fail_text(host, error, status, fmt::format("The module '{}' {}.", module, reason));
  }
};

ep_status check_entry(const Check& check, const ep_module_entry& entry, const ep_dialect_info& info) {
  constexpr uint64_t known = EP_ENTRY_FLAG_FAULTS | EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH;
  if (!is_identifier(to_view(entry.name))) {
    return check.refuse(EP_STATUS_INVALID_ARGUMENT,
                        fmt::format("names the entry '{}', which is not a C identifier", shown(entry.name)));
  }
  const std::string name = shown(entry.name);
  if ((entry.flags & ~known) != 0) {
    return check.refuse(EP_STATUS_UNSUPPORTED,
                        fmt::format("gives the entry {} the flags 0x{:x}, of which 0x{:x} are unknown", name,
                                    entry.flags, entry.flags & ~known));
  }
  const uint32_t* const group = entry.group;
  const auto least = *std::min_element(group, group + 3);
  bool fits =
      uint64_t{group[0]} * group[1] <= info.group_items && uint64_t{group[0]} * group[1] * group[2] <= info.group_items;
  for (int axis = 0; axis < 3; ++axis) fits = fits && group[axis] <= info.group_dims[axis];
  if (least == 0 || !fits) {
    return check.refuse(
        least == 0 ? EP_STATUS_INVALID_ARGUMENT : EP_STATUS_UNSUPPORTED,
        fmt::format(
            "gives the entry {} groups of {} x {} x {}; at most {} x {} x {} and {} work-items in all are possible",
            name, group[0], group[1], group[2], info.group_dims[0], info.group_dims[1], info.group_dims[2],
            info.group_items));
  }
  if (uint64_t{entry.buffer_count} + 2 > info.greatest_buffers) {
    return check.refuse(EP_STATUS_UNSUPPORTED, fmt::format("gives the entry {} {} buffers; at most {} are possible",
                                                           name, entry.buffer_count, info.greatest_buffers - 2));
  }
  if (entry.parameter_bytes > info.parameter_bytes) {
    return check.refuse(EP_STATUS_UNSUPPORTED,
                        fmt::format("gives the entry {} {} bytes of parameters; at most {} are possible", name,
                                    entry.parameter_bytes, info.parameter_bytes));
  }
  if (entry.shared_bytes > info.shared_bytes) {
    return check.refuse(EP_STATUS_UNSUPPORTED,
                        fmt::format("gives the entry {} {} bytes of shared memory; at most {} are possible", name,
                                    entry.shared_bytes, info.shared_bytes));
  }
  return EP_STATUS_OK;
}

}  // namespace

const char* const c_integers = R"(typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
)";

std::string dialect_name(int32_t dialect) {
  switch (dialect) {
    case EP_DIALECT_C: return "C";
    case EP_DIALECT_CUDA_C: return "CUDA C";
    case EP_DIALECT_OPENCL_C: return "OpenCL C";
    case EP_DIALECT_GLSL: return "GLSL";
    default: return fmt::format("dialect {}", dialect);
  }
}

ep_status check_module(const ep_host* host, const ep_module_desc& desc, const ep_dialect_info& info, ep_error** error) {
  const Check check{host, error, shown(desc.name)};
  if (desc.next != nullptr) return check.refuse(EP_STATUS_UNSUPPORTED, "has an extension that is unknown");
  if (desc.dialect != info.dialect) {
    return check.refuse(EP_STATUS_UNSUPPORTED, fmt::format("is of dialect {}; this device compiles dialect {} ({})",
                                                           desc.dialect, info.dialect, dialect_name(info.dialect)));
  }
  if (desc.entry_count == 0) return check.refuse(EP_STATUS_INVALID_ARGUMENT, "has no entry");
  if (desc.dialect == EP_DIALECT_GLSL && desc.entry_count > 1) {
    return check.refuse(EP_STATUS_INVALID_ARGUMENT,
                        fmt::format("has {} entries; in GLSL it has one", desc.entry_count));
  }
  for (uint32_t i = 0; i < desc.entry_count; ++i) {
    if (const ep_status status = check_entry(check, desc.entries[i], info); status != EP_STATUS_OK) return status;
  }
  for (uint32_t i = 0; i < desc.constant_count; ++i) {
    const ep_module_constant& constant = desc.constants[i];
    if (!is_identifier(to_view(constant.name))) {
      return check.refuse(EP_STATUS_INVALID_ARGUMENT,
                          fmt::format("names the constant '{}', which is not a C identifier", shown(constant.name)));
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

std::string constants_of(const ep_module_desc& desc) {
  std::string lines;
  for (uint32_t i = 0; i < desc.constant_count; ++i) {
    lines +=
        fmt::format("#define {} {}\n", to_view(desc.constants[i].name), literal(desc.constants[i].value, desc.dialect));
  }
  return lines;
}

// Compilers print "kernel:3:5: error: no", "error: kernel:3:5: no", "kernel(3): error: no" or "ERROR: 0:3: no".
std::string first_error(const std::string& output) {
  std::string lower = output;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t at = lower.find("error: ");
  if (at == std::string::npos) return output.substr(0, output.find('\n'));
  const size_t begin = output.rfind('\n', at) + 1;  // 0 if no newline precedes it
  std::string line = output.substr(begin, output.find('\n', at) - begin);
  if (at == begin) line.erase(0, std::string_view("error: ").size());
  for (const std::string_view name : {"kernel:", "kernel(", "0:"}) {
    if (line.rfind(name, 0) == 0) line = "line " + line.substr(name.size());
  }
  if (const size_t closing = line.find("): "); line.rfind("line ", 0) == 0 && closing < 16) line.erase(closing, 1);
  return line;
}

void diagnose(const ep_module_desc& desc, const std::string& output) {
  if (desc.diagnose != nullptr && !output.empty()) desc.diagnose(desc.context, to_ep_string(output));
}

ep_status refuse_text(const ep_host* host, const ep_module_desc& desc, const std::string& compiler,
                      const std::string& output, ep_error** error) {
  return fail_text(
      host, error, EP_STATUS_INVALID_ARGUMENT,
      fmt::format("The compiler ({}) refuses the module '{}': {}.", compiler, shown(desc.name), first_error(output)));
}

}  // namespace tenon::provider
