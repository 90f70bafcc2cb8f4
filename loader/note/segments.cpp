#include "loader/note/segments.h"

#include <algorithm>
#include <map>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uint64_t most_dynamic_bytes = 1 << 20;

struct Table {
  Elf64_Sxword address, size;  // the tags of its address and size; DT_NULL: it has no size
  const char* name;
};
constexpr Table tables[] = {
    {DT_STRTAB, DT_STRSZ, "DT_STRTAB"},
    {DT_SYMTAB, DT_NULL, "DT_SYMTAB"},
    {DT_HASH, DT_NULL, "DT_HASH"},
    {DT_GNU_HASH, DT_NULL, "DT_GNU_HASH"},
    {DT_RELA, DT_RELASZ, "DT_RELA"},
    {DT_JMPREL, DT_PLTRELSZ, "DT_JMPREL"},
    {DT_PLTGOT, DT_NULL, "DT_PLTGOT"},
    {DT_INIT, DT_NULL, "DT_INIT"},
    {DT_FINI, DT_NULL, "DT_FINI"},
    {DT_INIT_ARRAY, DT_INIT_ARRAYSZ, "DT_INIT_ARRAY"},
    {DT_FINI_ARRAY, DT_FINI_ARRAYSZ, "DT_FINI_ARRAY"},
    {DT_VERSYM, DT_NULL, "DT_VERSYM"},
    {DT_VERNEED, DT_NULL, "DT_VERNEED"},
    {DT_VERDEF, DT_NULL, "DT_VERDEF"},
};

struct Constant {
  Elf64_Sxword tag;
  uint64_t value;
  const char* name;
};
constexpr Constant constants[] = {
    {DT_RELAENT, sizeof(Elf64_Rela), "DT_RELAENT"},
    {DT_SYMENT, sizeof(Elf64_Sym), "DT_SYMENT"},
    {DT_PLTREL, DT_RELA, "DT_PLTREL"},
};

constexpr uint64_t end_of(uint64_t begin, uint64_t size) {
  return size > UINT64_MAX - begin ? UINT64_MAX : begin + size;
}

Status ends_past(const std::string& what, uint64_t end, uint64_t file_size) {
  return Status(Code::invalid_argument,
                fmt::format("the file is cut short: {} ends at byte {}, the file has {}.", what, end, file_size),
                "Copy the provider again.");
}

const Elf64_Phdr* segment_with(const std::vector<Elf64_Phdr>& segments, uint64_t address, uint64_t size,
                               Elf64_Xword Elf64_Phdr::*extent) {
  const auto found = std::find_if(segments.begin(), segments.end(), [&](const Elf64_Phdr& segment) {
    return segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
           end_of(address, size) <= end_of(segment.p_vaddr, segment.*extent);
  });
  return found == segments.end() ? nullptr : &*found;
}

using Entries = std::map<Elf64_Sxword, uint64_t>;

// The dynamic entries as they will be in memory, up to the terminating entry.
Result<Entries> read_dynamic(const std::vector<Elf64_Phdr>& segments, const Elf64_Phdr& dynamic,
                             const ReadAt& read_at) {
  const Elf64_Phdr* home = segment_with(segments, dynamic.p_vaddr, dynamic.p_filesz, &Elf64_Phdr::p_filesz);
  if (home == nullptr) return cut_short("its dynamic section lies in no segment");
  if (dynamic.p_filesz > most_dynamic_bytes) return cut_short("its dynamic section is larger than 1 MiB");
  std::vector<Elf64_Dyn> raw(dynamic.p_filesz / sizeof(Elf64_Dyn));
  const uint64_t offset = home->p_offset + (dynamic.p_vaddr - home->p_vaddr);
  if (!raw.empty() && !read_at(offset, raw.data(), raw.size() * sizeof(Elf64_Dyn))) {
    return cut_short("its dynamic section cannot be read");
  }
  Entries entries;
  for (const Elf64_Dyn& entry : raw) {
    if (entry.d_tag == DT_NULL) return entries;
    entries[entry.d_tag] = entry.d_un.d_val;
  }
  return cut_short("its dynamic section has no end");
}

Status check_dynamic(const std::vector<Elf64_Phdr>& segments, const Entries& entries) {
  for (const Constant& constant : constants) {
    const auto found = entries.find(constant.tag);
    if (found == entries.end() || found->second == constant.value) continue;
    return cut_short(
        fmt::format("{} in its dynamic section is {}, not {}", constant.name, found->second, constant.value));
  }
  for (const Table& table : tables) {
    const auto address = entries.find(table.address);
    if (address == entries.end() || address->second == 0) continue;
    const auto size = table.size == DT_NULL ? entries.end() : entries.find(table.size);
    const uint64_t bytes = size == entries.end() ? 1 : size->second;
    if (segment_with(segments, address->second, bytes, &Elf64_Phdr::p_memsz) != nullptr) continue;
    return cut_short(fmt::format("{} in its dynamic section points outside its segments", table.name));
  }
  return {};
}

}  // namespace

Status cut_short(const std::string& what) {
  return Status(Code::invalid_argument, fmt::format("the ELF file is cut short or damaged: {}.", what),
                "Copy the provider again.");
}

Status check_segments(const std::vector<Elf64_Phdr>& segments, uint64_t file_size, const ReadAt& read_at) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    const uint64_t end = end_of(segment.p_offset, segment.p_filesz);
    if (end > file_size) {
      return ends_past(segment.p_type == PT_LOAD ? "a segment" : "its dynamic section", end, file_size);
    }
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    TENON_ASSIGN_OR_RETURN(const Entries entries, read_dynamic(segments, segment, read_at));
    TENON_RETURN_IF_ERROR(check_dynamic(segments, entries));
  }
  return {};
}

}  // namespace tenon::loader
