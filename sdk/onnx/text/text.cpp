#include "sdk/onnx/text/text.h"

#include <re2/re2.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::onnx::text {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::vector<std::string> split_at_space(std::string_view text, std::optional<int64_t> most) {
  std::vector<std::string> parts;
  size_t at = text.find_first_not_of(kSpace);
  while (at != std::string_view::npos) {
    const bool last = most && static_cast<int64_t>(parts.size()) >= *most;
    const size_t end = last ? text.size() : std::min(text.find_first_of(kSpace, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(kSpace, end);
  }
  return parts;
}

}  // namespace

std::string in_case(std::string_view text, Case wanted, const std::string& locale) {
  if (wanted == Case::keep) return std::string(text);
  icu::UnicodeString letters =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  const icu::Locale language = locale.empty() ? icu::Locale::getRoot() : icu::Locale(locale.c_str());
  if (wanted == Case::lower) {
    letters.toLower(language);
  } else {
    letters.toUpper(language);
  }
  std::string result;
  letters.toUTF8String(result);
  return result;
}

struct Pattern::Impl {
  explicit Impl(const std::string& pattern) : re(pattern, RE2::Quiet) {}
  RE2 re;
};

Pattern::Pattern(const std::string& pattern) : impl_(new Impl(pattern)) {
  if (impl_->re.ok()) return;
  const std::string error = impl_->re.error();
  delete impl_;
  throw Error(Code::invalid_argument, fmt::format("'{}' is not a valid RE2 pattern: {}.", pattern, error));
}

Pattern::~Pattern() { delete impl_; }

bool Pattern::matches(std::string_view text) const {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), impl_->re);
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, size_t from) const {
  re2::StringPiece found;
  const re2::StringPiece whole(text.data(), text.size());
  if (from > text.size() || !impl_->re.Match(whole, from, text.size(), RE2::UNANCHORED, &found, 1)) return std::nullopt;
  return Match{static_cast<size_t>(found.data() - text.data()), found.size()};
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> list;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<uint8_t>(text[at]);
    size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 1;
    for (size_t i = 1; i < length; ++i) {
      if (at + i >= text.size() || (static_cast<uint8_t>(text[at + i]) & 0xc0) != 0x80) length = 1;
    }
    list.emplace_back(text.substr(at, length));
    at += length;
  }
  return list;
}

std::vector<std::string> split(std::string_view text, std::string_view delimiter, std::optional<int64_t> most) {
  if (delimiter.empty()) return split_at_space(text, most);
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  while (!most || static_cast<int64_t>(parts.size()) < *most) {
    const size_t end = text.find(delimiter);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  parts.emplace_back(text);
  return parts;
}

std::optional<double> to_number(std::string_view given) {
  std::string_view text = trimmed(given);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '+' || negative)) text.remove_prefix(1);
  double value = 0;
  if (equals_ignoring_case(text, "inf") || equals_ignoring_case(text, "infinity")) {
    value = std::numeric_limits<double>::infinity();
  } else if (equals_ignoring_case(text, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ptr != text.data() + text.size()) return std::nullopt;
    if (read.ec == std::errc::result_out_of_range) value = std::numeric_limits<double>::infinity();
    if (read.ec == std::errc::invalid_argument) return std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<int64_t> to_integer(std::string_view given) {
  std::string_view text = trimmed(given);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size()) return value;
  return std::nullopt;
}

std::string to_text(double value, bool single) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  char buffer[64];
  const auto end = single ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value))
                          : std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

}  // namespace tenon::onnx::text
