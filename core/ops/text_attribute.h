// TextAttribute: a short text inside an attribute struct.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tenon {

struct TextAttribute {
  static constexpr size_t kMost = 23;
  char bytes[kMost + 1];  // the rest are zeros

  // At most kMost bytes.
  static TextAttribute of(std::string_view text) {
    TextAttribute attribute{};
    std::copy(text.begin(), text.end(), attribute.bytes);
    return attribute;
  }
  std::string_view view() const { return bytes; }
};

}  // namespace tenon
