// What every provider does with the description of a module before and after it is compiled.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider {

// "GLSL"; "dialect 99" for an unknown one.
std::string dialect_name(int32_t dialect);

// Why `desc` cannot be compiled on a device of one dialect, which it describes by `info`: INVALID_ARGUMENT for what no
// description may say, UNSUPPORTED for what is beyond the device. OK: nothing is wrong.
ep_status check_module(const ep_host* host, const ep_module_desc& desc, const ep_dialect_info& info, ep_error** error);

// `text` for a message: at most 64 characters, and none that is not printed.
std::string shown(ep_string text);

// A line `#define NAME value` for each constant of `desc`, in its dialect. Floats are exact; integers have 64 bits.
std::string constants_of(const ep_module_desc& desc);

// The line of a compiler's first error, without the word "error" where that comes first: "line 3:5: ...". The text
// was called "kernel", or 0 as GLSL does.
std::string first_error(const std::string& output);

// `output`, if there is any, to the one who asked.
void diagnose(const ep_module_desc& desc, const std::string& output);

// The error of a text that `compiler` refuses, with the first error of `output`.
ep_status refuse_text(const ep_host* host, const ep_module_desc& desc, const std::string& compiler,
                      const std::string& output, ep_error** error);

// The types of `stdint.h` as the C compilers with __INT8_TYPE__ and the like know them.
extern const char* const c_integers;

}  // namespace tenon::provider
