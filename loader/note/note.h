// The note: what a plug-in says of itself in its ELF file (EP_PLUGIN_NOTE), read before any of its code runs.
//
// The file is read through a descriptor, never mapped, so a file that shrinks meanwhile gives an error and no signal.
// Nothing in the file is believed: every offset and size is compared with the file's length, and every read is bounded.
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

// Copies `size` bytes at `offset` into `target`; false if they are not all there.
using ReadAt = std::function<bool(uint64_t offset, void* target, size_t size)>;

// Finds the note in an ELF file of `file_size` bytes. Errors: no ELF file (Mach-O and PE are named); of another word
// size, byte order or machine; cut short; no note ("not a Tenon provider"); a note that is malformed.
Result<PluginNote> read_note(uint64_t file_size, const ReadAt& read_at);
Result<PluginNote> read_note(int descriptor, uint64_t file_size);

// Whether this host may load what the note describes as a plug-in of `kind` (EP_PLUGIN_KIND_*), for a file called
// libtenon_<file_name>.so. Errors: another name; another ABI version; a kind that this host does not load; CANCELLED
// for a kind that it knows, but does not look for here; a sanitizer that this program was not built with.
Status check_note(const PluginNote& note, const std::string& file_name, uint32_t kind = EP_PLUGIN_KIND_DEVICES);

}  // namespace tenon::loader
