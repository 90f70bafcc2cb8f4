#include "core/vm/call_note.h"

#include <limits>

#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"
#include "primitives/text/format.h"

namespace tenon::vm {

std::string call_text(std::string_view op, std::span<const int64_t> inputs) {
  return std::string(op) + arguments_text(inputs);
}

std::string arguments_text(std::span<const int64_t> inputs) {
  std::string text;
  std::string_view separator = "(";
  for (size_t at = 0; at < inputs.size();) {
    text += separator;
    separator = ", ";
    const int64_t word = inputs[at++];
    if (word < 0) {
      text += '-';
      continue;
    }
    const auto rank = static_cast<size_t>(word & 0xff);
    const Dims dims(inputs.subspan(at, rank));
    text += fmt::format("{} {}", dtype_name(static_cast<DType>(word >> 8)), dims);
    at += rank;
  }
  return text + (inputs.empty() ? "()" : ")");
}

std::string_view argument_name(const OpName& name, uint64_t operand_inputs, int32_t operand) {
  if (operand < 0 || operand >= EP_MAX_OPERANDS) return {};
  const uint64_t input = operand_inputs >> 4 * operand & kNoInput;
  return input < name.arguments.size() ? name.arguments[input] : std::string_view();
}

namespace {

// Returns the index that the user gave: clears the sign bit, which ops that do not accept negative indices set. No axis
// is that long.
int64_t given_index(int64_t index) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return index > most / 2 ? index - most - 1 : index;
}

std::string fault_sentence(const ep_fault& fault, std::string_view argument) {
  const int64_t value = fault.value;
  const std::string where = argument.empty() ? std::string() : fmt::format(" (argument '{}')", argument);
  switch (fault.code) {
    case 0: return "the kernel found invalid data; the provider gives no details.";
    case EP_FAULT_INDEX_OUT_OF_RANGE:
      return fmt::format("index {} is out of range for an axis of length {}{}.", given_index(value), fault.limit,
                         where);
    case EP_FAULT_DIVISION_BY_ZERO: return fmt::format("integer division by zero{}.", where);
    case EP_FAULT_INTEGER_OVERFLOW: return fmt::format("the integer result for {} does not fit its type.", value);
    case EP_FAULT_BAD_MATRIX:
      return fmt::format("matrix {} of the batch{} is singular, not positive definite, or not finite.", value, where);
    default: return fmt::format("the kernel found invalid data{}: fault code {}, value {}.", where, fault.code, value);
  }
}

}  // namespace

Status fault_status(const ep_fault& fault, std::string_view argument) {
  return Status(Code::invalid_argument, fault_sentence(fault, argument));
}

}  // namespace tenon::vm
