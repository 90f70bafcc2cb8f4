// Parses text as a value of each type of settings.def. If that fails, says why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loader/settings/settings.h"

namespace tenon::loader {

// 1 to 31 lower-case letters, digits and underscores.
bool is_provider_name(std::string_view name);

// Each parse function sets `value` from `text`. If it cannot, it returns the reason, which follows "is invalid: " in
// the message.
using Reason = std::string;
Reason parse_text(std::string_view text, std::string& value);
Reason parse_names(std::string_view text, std::vector<std::string>& value);
Reason parse_folders(std::string_view text, std::vector<std::string>& value);
Reason parse_count(std::string_view text, int32_t& value);
Reason parse_bytes(std::string_view text, uint64_t& value);
Reason parse_log_spec(std::string_view text, std::string& value);

// The words of a TENON_CHOICES row: "native, decompose" gives two.
std::vector<std::string> choice_words(std::string_view choices);
// Sets `value` to the index of `text` among the words of `choices`.
Reason parse_choice(std::string_view text, std::string_view choices, uint8_t& value);

}  // namespace tenon::loader
