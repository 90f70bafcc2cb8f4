// Checks an ELF file before the dynamic linker reads it: everything that the linker maps and reads must lie in the
// file. Otherwise a missing segment causes a SIGBUS inside dlopen, and a wrong dynamic section a crash or an abort.
#pragma once

#include <elf.h>

#include <string>
#include <vector>

#include "loader/note/note.h"

namespace tenon::loader {

// "the ELF file is cut short or damaged: <what>."
Status cut_short(const std::string& what);

// Errors: a segment to be mapped, or the dynamic section, exceeds the file; the dynamic section has no end, lies in no
// segment, or names a table outside all segments or with entries of another size. The check finds a partly copied file
// and some other damage. It does not check the contents of the tables.
Status check_segments(const std::vector<Elf64_Phdr>& segments, uint64_t file_size, const ReadAt& read_at);

}  // namespace tenon::loader
