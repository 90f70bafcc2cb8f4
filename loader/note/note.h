// The note: the plug-in's description of itself in its ELF file (EP_PLUGIN_NOTE), read before any of its code runs.
//
// The file is read through a descriptor and never mapped, so a file that shrinks meanwhile causes an error and no
// signal. The contents are not trusted: every offset and size is compared with the file's length, and every read is
// bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::loader {

struct PluginNote {
  std::string name, version, toolchain;
  uint16_t abi_major = 0, abi_minor = 0;
  uint32_t flags = 0;      // EP_NOTE_FLAG_*
  uint32_t sanitizer = 0;  // EP_SANITIZER_*
  uint32_t kind = 0;       // EP_PLUGIN_KIND_*
};

// Copies `size` bytes at `offset` into `target`. Returns false if the file has fewer bytes there.
using ReadAt = std::function<bool(uint64_t offset, void* target, size_t size)>;

// Finds the note in an ELF file of `file_size` bytes. Errors: not an ELF file (the message names Mach-O and PE);
// another word size, byte order or machine; a truncated file; no note ("not a Tenon provider"); a malformed note.
Result<PluginNote> read_note(uint64_t file_size, const ReadAt& read_at);
Result<PluginNote> read_note(int descriptor, uint64_t file_size);

// Ok if this host may load the plug-in with this note as a plug-in of `kind` (EP_PLUGIN_KIND_*). The file is called
// libtenon_<file_name>.so. Errors: the note has another name; another ABI version; a kind that this host does not know;
// CANCELLED for a known kind other than `kind`; a sanitizer that this program was not built with.
Status check_note(const PluginNote& note, const std::string& file_name, uint32_t kind = EP_PLUGIN_KIND_DEVICES);

}  // namespace tenon::loader
