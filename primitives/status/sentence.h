// sentence("matmul: columns of a (", k, ") do not match ..."): puts the text of a message together. A part is a text,
// an integer, or anything with a to_string of its own (Dims).
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace tenon {
namespace sentence_detail {

inline void append(std::string& text, std::string_view part) { text.append(part); }
inline void append(std::string& text, char part) { text.push_back(part); }
template <std::integral T>
void append(std::string& text, T part) {
  text.append(std::to_string(part));
}
template <class T>
requires requires(const T& part) {
  { to_string(part) } -> std::same_as<std::string>;
}
void append(std::string& text, const T& part) { text.append(to_string(part)); }

}  // namespace sentence_detail

template <class... Parts>
std::string sentence(const Parts&... parts) {
  std::string text;
  (sentence_detail::append(text, parts), ...);
  return text;
}

}  // namespace tenon
