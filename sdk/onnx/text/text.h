// Operations on UTF-8 strings: case by ICU, patterns by RE2. Only this folder uses these libraries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx::text {

enum class Case : uint8_t { keep, lower, upper };

// `text` in upper or lower case for a locale such as "en_US" (empty: no language). Invalid UTF-8 becomes U+FFFD.
std::string in_case(std::string_view text, Case wanted, const std::string& locale);

// A pattern of RE2. Errors: invalid_argument with the reason if the pattern is invalid.
class Pattern {
 public:
  explicit Pattern(const std::string& pattern);
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern();
  // True if the pattern matches all of `text`.
  bool matches(std::string_view text) const;
  // The first match in `text` that begins at `from` or later, if there is one.
  struct Match {
    size_t begin, size;
  };
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Impl;
  Impl* impl_;
};

// The characters of `text`; a byte that is not valid UTF-8 counts as one.
std::vector<std::string> characters(std::string_view text);

// Splits `text` at `delimiter`, or at runs of white space if it is empty. `most` limits the number of cuts.
std::vector<std::string> split(std::string_view text, std::string_view delimiter, std::optional<int64_t> most);

// The number that ONNX's Cast reads from a string: "1.5", "-inf", "NaN", "1e3". None if it is not a number.
std::optional<double> to_number(std::string_view text);
std::optional<int64_t> to_integer(std::string_view text);
// The shortest text that reads back as the same f32 or f64.
std::string to_text(double value, bool single);

}  // namespace tenon::onnx::text
