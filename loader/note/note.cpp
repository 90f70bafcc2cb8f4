#include "loader/note/note.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <vector>

#include "ep_api/ep_api.h"
#include "loader/note/segments.h"
#include "loader/settings/value.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uint64_t most_note_bytes = 1 << 20;  // limit for all segments together
constexpr uint16_t most_headers = 1024;

#if defined(__x86_64__)
constexpr uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t this_machine = EM_AARCH64;
#else
#error "the note reader knows the machines x86-64 and aarch64"
#endif

Status not_elf(const std::string& reason) {
  return Status(Code::invalid_argument, fmt::format("it is not a shared library of this machine: {}.", reason),
                "Put a provider built for this machine in its place, or remove the file.");
}

Status no_note() {
  return Status(
             Code::invalid_argument, "it is not a Tenon provider: it holds no note named '" EP_NOTE_OWNER "'",
             "To make the file a provider, write EP_PLUGIN_NOTE(name, version, flags) once at file scope and build it "
             "again.")
      .with_rule("N01");
}

Status bad_note(const std::string& reason) {
  return Status(Code::invalid_argument, fmt::format("its Tenon note is malformed: {}", reason),
                "Build the provider with the header of the Tenon that is to load it.")
      .with_rule("N01");
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "x86";
    case EM_ARM: return "arm";
    case EM_RISCV: return "risc-v";
    case EM_PPC64: return "ppc64";
    case EM_S390: return "s390";
    default: return fmt::format("machine {}", machine);
  }
}

// The error for a file that begins with these bytes, which are not ELF's.
Status other_format(const unsigned char* magic) {
  // Mach-O: 32 and 64 bits in either byte order, and several machines in one file.
  constexpr uint32_t mach_o[] = {0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe, 0xcafebabe, 0xbebafeca};
  uint32_t word = 0;
  std::memcpy(&word, magic, sizeof word);
  if (std::find(std::begin(mach_o), std::end(mach_o), word) != std::end(mach_o)) {
    return not_elf("it is a Mach-O file, as macOS has them, and this host loads ELF files");
  }
  if (magic[0] == 'M' && magic[1] == 'Z') {
    return not_elf("it is a PE file, as Windows has them, and this host loads ELF files");
  }
  return not_elf("it does not begin as an ELF file does");
}

Status check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return other_format(header.e_ident);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return not_elf("it is a 32-bit file, this is a 64-bit program");
  constexpr bool little = std::endian::native == std::endian::little;
  if (header.e_ident[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB)) {
    return not_elf(little ? "its byte order is big-endian, this machine's is little-endian"
                          : "its byte order is little-endian, this machine's is big-endian");
  }
  if (header.e_machine != this_machine) {
    return not_elf(fmt::format("it was built for {}, this machine is {}", machine_name(header.e_machine),
                               machine_name(this_machine)));
  }
  if (header.e_type != ET_DYN) return not_elf(fmt::format("its ELF type is {}, not a library", header.e_type));
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return cut_short(fmt::format("its program headers have {} bytes each, not 56", header.e_phentsize));
  }
  if (header.e_phnum > most_headers) {
    return cut_short(fmt::format("it claims {} program headers, at most 1024 are read", header.e_phnum));
  }
  return {};
}

// A zero-terminated text in a field of fixed size; empty if the terminator is missing.
template <size_t size>
std::string field_text(const char (&field)[size]) {
  const size_t length = strnlen(field, size);
  return length < size ? std::string(field, length) : std::string();
}

bool is_printable(const std::string& text) {
  for (char c : text) {
    if (!std::isprint(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

// The first fields never move. A shorter note leaves the rest zero; the tail of a longer note is ignored.
Result<PluginNote> decode(const uint8_t* bytes, size_t size) {
  constexpr size_t smallest = offsetof(ep_plugin_note, toolchain);
  ep_plugin_note raw{};
  if (size < smallest) return bad_note(fmt::format("it has {} bytes, at least 80 are needed", size));
  std::memcpy(&raw, bytes, std::min(size, sizeof raw));
  if (raw.struct_size < smallest || raw.struct_size > size) {
    return bad_note(fmt::format("it says it has {} bytes, there are {}", raw.struct_size, size));
  }
  PluginNote note{field_text(raw.name),
                  field_text(raw.version),
                  field_text(raw.toolchain),
                  raw.abi_major,
                  raw.abi_minor,
                  raw.flags,
                  raw.sanitizer,
                  raw.kind};
  if (!is_provider_name(note.name)) {
    return bad_note("its name must be 1 to 31 lower-case letters, digits and underscores");
  }
  if (note.version.empty() || !is_printable(note.version)) {
    return bad_note("its version must be 1 to 31 printable characters");
  }
  if (!is_printable(note.toolchain)) note.toolchain.clear();
  return note;
}

constexpr uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// Searches the notes of one segment for ours; not_found if it is not there.
Result<PluginNote> find_in_segment(const std::vector<uint8_t>& bytes, uint64_t alignment) {
  uint64_t offset = 0;
  while (bytes.size() - offset >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header{};
    std::memcpy(&header, bytes.data() + offset, sizeof header);
    const uint64_t name_at = offset + sizeof header;
    const uint64_t desc_at = round_up(name_at + header.n_namesz, alignment);
    const uint64_t end = desc_at + header.n_descsz;
    if (end > bytes.size()) return cut_short("a note reaches past the end of its segment");
    const bool ours = header.n_type == EP_NOTE_TYPE && header.n_namesz == sizeof(EP_NOTE_OWNER) &&
                      std::memcmp(bytes.data() + name_at, EP_NOTE_OWNER, sizeof(EP_NOTE_OWNER)) == 0;
    if (ours) return decode(bytes.data() + desc_at, header.n_descsz);
    offset = std::min<uint64_t>(round_up(end, alignment), bytes.size());
  }
  return Status(Code::not_found, "this segment holds no Tenon note.");
}

std::string sanitizer_name(uint32_t sanitizer) {
  switch (sanitizer) {
    case EP_SANITIZER_ADDRESS: return "the address sanitizer";
    case EP_SANITIZER_THREAD: return "the thread sanitizer";
    case EP_SANITIZER_MEMORY: return "the memory sanitizer";
    default: return fmt::format("the unknown sanitizer {}", sanitizer);
  }
}

// The reason why a plug-in of one known kind cannot be used as the other.
const char* why_not_other(uint32_t kind) {
  return kind == EP_PLUGIN_KIND_DEVICES ? "it has devices, and carries no data between processes."
                                        : "it carries data between processes, and has no devices.";
}

}  // namespace

Result<PluginNote> read_note(uint64_t file_size, const ReadAt& read_at) {
  Elf64_Ehdr header{};
  if (file_size < SELFMAG || !read_at(0, &header, std::min<uint64_t>(file_size, sizeof header))) {
    return not_elf(fmt::format("it has only {} bytes", file_size));
  }
  if (file_size < sizeof header) {
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return other_format(header.e_ident);
    return cut_short(fmt::format("it has {} bytes, its header alone takes 64", file_size));
  }
  TENON_RETURN_IF_ERROR(check_header(header));
  const uint64_t table_size = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phoff > file_size || table_size > file_size - header.e_phoff) {
    return cut_short("its program headers lie past its end");
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (table_size && !read_at(header.e_phoff, segments.data(), table_size)) {
    return cut_short("its program headers cannot be read");
  }
  TENON_RETURN_IF_ERROR(check_segments(segments, file_size, read_at));
  uint64_t read_so_far = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_offset > file_size || segment.p_filesz > file_size - segment.p_offset) {
      return cut_short("a note segment lies past its end");
    }
    if (segment.p_filesz > most_note_bytes - read_so_far) return cut_short("its notes are larger than 1 MiB");
    read_so_far += segment.p_filesz;
    std::vector<uint8_t> bytes(segment.p_filesz);
    if (!bytes.empty() && !read_at(segment.p_offset, bytes.data(), bytes.size())) {
      return cut_short("a note segment cannot be read");
    }
    Result<PluginNote> found = find_in_segment(bytes, segment.p_align == 8 ? 8 : 4);
    if (found.ok() || found.status().code() != Code::not_found) return found;
  }
  return no_note();
}

Result<PluginNote> read_note(int descriptor, uint64_t file_size) {
  return read_note(file_size, [descriptor](uint64_t offset, void* target, size_t size) {
    auto* bytes = static_cast<char*>(target);
    while (size > 0) {
      const ssize_t count = pread(descriptor, bytes, size, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes += count;
      offset += static_cast<uint64_t>(count);
      size -= static_cast<size_t>(count);
    }
    return true;
  });
}

Status check_note(const PluginNote& note, const std::string& file_name, uint32_t kind) {
  if (note.name != file_name) {
    return Status(Code::invalid_argument,
                  fmt::format("its note names the provider '{}', the file must then be called libtenon_{}.so, not "
                              "libtenon_{}.so",
                              note.name, note.name, file_name),
                  "Rename the file.")
        .with_rule("N05");
  }
  if (note.abi_major != EP_ABI_MAJOR || !EP_ABI_MINORS_AGREE(note.abi_minor, EP_ABI_MINOR)) {
    return Status(Code::version,
                  fmt::format("it was built for ABI {}.{}, this host speaks {}.{}", note.abi_major, note.abi_minor,
                              EP_ABI_MAJOR, EP_ABI_MINOR),
                  "Build the provider against this Tenon, or use the Tenon it was built for; while the ABI is 0.x both "
                  "must have the same minor version.")
        .with_rule("N02");
  }
  if (note.kind != EP_PLUGIN_KIND_DEVICES && note.kind != EP_PLUGIN_KIND_COLLECTIVES) {
    return Status(Code::unsupported,
                  fmt::format(
                      "it is a plug-in of unknown kind {}; this host loads plug-ins for devices and for collectives",
                      note.kind),
                  "Use a newer Tenon that knows this kind.")
        .with_rule("N07");
  }
  if (note.kind != kind) {
    return Status(Code::cancelled, why_not_other(note.kind));
  }
  if (note.sanitizer != EP_SANITIZER_NONE && note.sanitizer != EP_SANITIZER_OF_THIS_BUILD) {
    return Status(Code::unsupported,
                  fmt::format("it was built with {}, which this program was not built with",
                              sanitizer_name(note.sanitizer)),
                  "Build the provider without it, or the program with it.")
        .with_rule("N03");
  }
  return {};
}

}  // namespace tenon::loader
