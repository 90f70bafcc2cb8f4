// Kept lines: a file in the user's cache folder to which processes append lines, each of them whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::loader {

// The lines of the file `path` behind its first one, which must be `head`; none if the file is not there, may be
// another's, is larger than `most` bytes, or begins otherwise. What stands behind the last end of a line was never
// whole and is left out.
std::vector<std::string> read_lines(const std::string& path, std::string_view head, uint64_t most);

// Appends `line`, which has no end of line in it, to the file `path`, and makes it and its folders if they are not
// there; a file that begins otherwise than with `head` is replaced. A file that would be larger than `most` bytes keeps
// the younger half of its lines. Processes that append at once lose no line. False: nothing was kept, since the file
// cannot be written, may be another's, or is in use for too long.
bool append_line(const std::string& path, std::string_view head, std::string_view line, uint64_t most);

}  // namespace tenon::loader
