// What operators do with strings in UTF-8: case by ICU, patterns by RE2. The importer's only user of either.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx::text {

enum class Case : uint8_t { keep, lower, upper };

// `text` in the case of a locale such as "en_US" (empty: of no language). What is no UTF-8 becomes U+FFFD.
std::string in_case(std::string_view text, Case wanted, const std::string& locale);

// A pattern of RE2. Errors: invalid_argument (no pattern, with what is wrong).
class Pattern {
 public:
  explicit Pattern(const std::string& pattern);
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern();
  // Whether the whole of `text` matches.
  bool matches(std::string_view text) const;
  // The first match in `text` that begins at `from` or later; none if there is none.
  struct Match {
    size_t begin, size;
  };
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Impl;
  Impl* impl_;
};

// The characters of `text`; a byte that is no UTF-8 is one too.
std::vector<std::string> characters(std::string_view text);

// `text` cut at `delimiter`; at runs of white space if that is empty. At most `most` cuts (none: any number).
std::vector<std::string> split(std::string_view text, std::string_view delimiter, std::optional<int64_t> most);

// The number that ONNX's Cast reads in a string: "1.5", "-inf", "NaN", "1e3". None if it is no number.
std::optional<double> to_number(std::string_view text);
std::optional<int64_t> to_integer(std::string_view text);
// The shortest text of which the same f32 or f64 is read.
std::string to_text(double value, bool single);

}  // namespace tenon::onnx::text
