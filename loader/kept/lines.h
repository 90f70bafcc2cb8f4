// Kept lines: a file in the user's cache folder to which several processes append whole lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::loader {

// The lines of the file `path` after the first line, which must be `head`. No lines if the file is missing, could have
// been written by another user, is larger than `most` bytes, or has another first line. An incomplete last line
// (without a newline) is ignored.
std::vector<std::string> read_lines(const std::string& path, std::string_view head, uint64_t most);

// Appends `line`, which contains no newline, to the file `path`. Makes the file and its folders if they are missing. A
// file with another first line than `head` is replaced. If the file would become larger than `most` bytes, the older
// half of its lines is removed. Processes that append at the same time lose no line. Returns false if nothing was
// written: the file cannot be written, could have been written by another user, or was locked for too long.
bool append_line(const std::string& path, std::string_view head, std::string_view line, uint64_t most);

}  // namespace tenon::loader
