// What the dynamic linker maps and reads of an ELF file, held against the file before it is given to it: a segment that
// is not there is a SIGBUS inside dlopen, a dynamic section that points elsewhere a crash or an abort.
#pragma once

#include <elf.h>

#include <string>
#include <vector>

#include "loader/note/note.h"

namespace tenon::loader {

// "the ELF file is cut short or damaged: <what>."
Status cut_short(const std::string& what);

// Errors: a segment to be mapped, or the dynamic section, reaches past the end of the file; the dynamic section has no
// end, lies in no segment, or says what cannot be: a table outside all segments, entries of another size. It finds the
// damage that a partial copy does, and some other; it cannot vouch for what the tables hold.
Status check_segments(const std::vector<Elf64_Phdr>& segments, uint64_t file_size, const ReadAt& read_at);

}  // namespace tenon::loader
