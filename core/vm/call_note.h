// CallNote: the parts of a record that an error of an asynchronous launch needs to name the op, its argument and its
// shapes. It is filled at submission and read only after a failure. Internal to the library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/call_site.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::vm {

// 4 bits per operand of a descriptor: the number of the record's input that the operand is; kNoInput: none.
constexpr uint64_t kNoInput = 15;
constexpr uint64_t kNoInputs = ~uint64_t{0};

struct CallNote {
  const OpName* called = nullptr;  // as in CallSite
  uint64_t operand_inputs = kNoInputs;
  std::vector<int64_t> inputs;  // per input: its dtype and rank (input_word), then its dims; -1: absent
};

inline int64_t input_word(int32_t dtype, int32_t rank) { return int64_t{dtype} << 8 | rank; }

// "(f32 [3, 2], i64 [1])"
std::string arguments_text(std::span<const int64_t> inputs);
// "gather(f32 [3, 2], i64 [1])"
std::string call_text(std::string_view op, std::span<const int64_t> inputs);

// The argument of `name` that operand `operand` of the descriptor is; empty if unknown.
std::string_view argument_name(const OpName& name, uint64_t operand_inputs, int32_t operand);

// The error of a fault: always invalid_argument, since the caller gave the bad data. `argument`: the name of the
// operand at fault; may be empty. A fault of code 0 gives no details.
Status fault_status(const ep_fault& fault, std::string_view argument);

}  // namespace tenon::vm
