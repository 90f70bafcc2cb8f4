// Prints sizes with a kernel's names: the arena calls its symbols S0, S1; the kernel gave them names.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// Writes sizes like "768*i + r". A symbol without a name in the kernel keeps the arena's name.
class SizeWriter {
 public:
  explicit SizeWriter(const Kernel& kernel);
  std::string operator()(SymDim size) const;

 private:
  const symbolic::Arena& arena_;
  std::map<std::string, std::string, std::less<>> names_;  // by the arena's name
};

// Reads text of a SizeWriter, in the open arena of `kernel`. Errors: invalid_argument.
Result<SymDim> read_size(Kernel& kernel, std::string_view text);

// The C identifier at the start of `text`; empty if there is none.
std::string_view leading_name(std::string_view text);

// `text` with each word replaced for which `replacement` has a value.
template <class Replacement>
std::string with_words_replaced(std::string_view text, const Replacement& replacement) {
  std::string result;
  while (!text.empty()) {
    const std::string_view word = leading_name(text);
    if (word.empty()) {
      const size_t digits = text.find_first_not_of("0123456789");
      const size_t count = digits == 0 ? 1 : digits == std::string_view::npos ? text.size() : digits;
      result += text.substr(0, count);
      text.remove_prefix(count);
    } else {
      result += replacement(word);
      text.remove_prefix(word.size());
    }
  }
  return result;
}

}  // namespace tenon::codegen
