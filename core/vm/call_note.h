// CallNote: the record that an asynchronous launch was made of, as far as an error needs it to name the op, its
// argument and its shapes. It is filled at the submission and read only after a failure. Internal to the library.
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

// Per operand of a descriptor, 4 bits: the input of the record that it is; kNoInput: none.
constexpr uint64_t kNoInput = 15;
constexpr uint64_t kNoInputs = ~uint64_t{0};

struct CallNote {
  const OpName* called = nullptr;  // as in CallSite
  uint64_t operand_inputs = kNoInputs;
  std::vector<int64_t> inputs;  // per input: its dtype and rank (input_word), then its dims; -1: absent
};

inline int64_t input_word(int32_t dtype, int32_t rank) { return int64_t{dtype} << 8 | rank; }

// "gather(f32 [3, 2], i64 [1])"
std::string call_text(std::string_view op, std::span<const int64_t> inputs);

// The name of operand `operand` of the descriptor among the arguments of `name`; empty if that is not known.
std::string_view argument_name(const OpName& name, uint64_t operand_inputs, int32_t operand);

// The error of a fault: invalid_argument, since the caller gave the bad data, whenever and by whomever it is found.
// `argument`: the name of the operand that the fault speaks of; may be empty. A fault of code 0 says nothing.
Status fault_status(const ep_fault& fault, std::string_view argument);

}  // namespace tenon::vm
