// Functions on module descriptions that every provider uses before and after compiling.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider {

// "GLSL"; "dialect 99" for an unknown one.
std::string dialect_name(int32_t dialect);

// Checks `desc` for a device with one dialect, described by `info`. Returns INVALID_ARGUMENT for an invalid
// description, UNSUPPORTED if it exceeds the device's limits, else OK.
ep_status check_module(const ep_host* host, const ep_module_desc& desc, const ep_dialect_info& info, ep_error** error);

// Returns `text` for a message: at most 64 characters, only printable ones.
std::string shown(ep_string text);

// A line `#define NAME value` for each constant of `desc`, in its dialect. Floats are exact; integers have 64 bits.
std::string constants_of(const ep_module_desc& desc);

// Returns the compiler's first error with its line, without a leading "error": "line 3:5: ...". In `output` the text is
// named "kernel", or 0 in GLSL.
std::string first_error(const std::string& output);

// Passes `output` to desc.diagnose, if both exist.
void diagnose(const ep_module_desc& desc, const std::string& output);

// Makes the error for a text that `compiler` rejected, with the first error of `output`.
ep_status refuse_text(const ep_host* host, const ep_module_desc& desc, const std::string& compiler,
                      const std::string& output, ep_error** error);

// Definitions of the types of `stdint.h`, for C compilers that predefine __INT8_TYPE__ and the like.
extern const char* const c_integers;

}  // namespace tenon::provider
