#include "core/global/sbp.h"

#include <charconv>

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::global {

std::string to_string(Sbp sbp) {
  if (sbp.is_split()) return fmt::format("S({})", sbp.axis());
  return sbp.is_broadcast() ? "B" : "P";
}

std::string to_string(const NdSbp& sbp) {
  if (sbp.rank() == 1) return to_string(sbp[0]);
  std::string text = "[";
  for (const Sbp each : sbp) text += (text.size() > 1 ? ", " : "") + to_string(each);
  return text + "]";
}

Sbp sbp_from(std::string_view text) {
  if (text == "B") return Sbp::broadcast();
  if (text == "P") return Sbp::partial();
  if (text.starts_with("S(") && text.ends_with(")")) {
    const std::string_view digits = text.substr(2, text.size() - 3);
    int32_t axis = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), axis);
    if (error == std::errc() && end == digits.data() + digits.size() && axis >= 0 && axis < EP_MAX_RANK) {
      return Sbp::split(axis);
    }
  }
  throw Error(Code::invalid_argument,
              fmt::format("'{}' is not an SBP; use S(axis) with an axis from 0 to {}, B or P.", text, EP_MAX_RANK - 1));
}

}  // namespace tenon::global
