// Makes text: fmt::format("columns of a ({}) do not match.", k). The compiler checks each format against its arguments.
// A type with a to_string in its namespace (Dims) can be an argument. Installed headers never include this file: fmt
// stays inside our libraries.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <string>

namespace tenon::text_detail {

void to_string();  // hides to_string of the enclosing namespaces, so that only the type's own namespace is searched

// A function of its own, not a template for any type, such as fmt has.
template <class T>
concept HasToString = requires(const T& value) {
  { to_string(value) } -> std::same_as<std::string>;
}
&&!requires(const T& value) { to_string<T>(value); };

template <HasToString T>
std::string text_of(const T& value) {
  return to_string(value);
}

}  // namespace tenon::text_detail

template <tenon::text_detail::HasToString T>
struct fmt::formatter<T, char> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  auto format(const T& value, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", tenon::text_detail::text_of(value));
  }
};
