// The note reader: any bytes give a note that can be believed, or a sentence; nothing is read outside the file.
#include <elf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "loader/note/note.h"
#include "loader/settings/value.h"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "the note reader broke a rule: %s\n", what);
  std::abort();
}

// Of an accepted file everything that will be mapped is there.
void require_segments(const uint8_t* data, size_t size) {
  Elf64_Ehdr header{};
  std::memcpy(&header, data, sizeof header);
  for (size_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, data + header.e_phoff + index * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    require(segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset, "a segment that is not there");
  }
}

struct Region {
  size_t begin, size;
};

// The header, the program headers, a note segment or the dynamic section: the few bytes among thousands that are read
// at all.
Region region_that_is_read(const uint8_t* data, size_t size, unsigned choice) {
  Elf64_Ehdr header{};
  if (size < sizeof header) return {0, size};
  std::memcpy(&header, data, sizeof header);
  const Region whole_header{0, sizeof header};
  const size_t table = size_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phoff >= size || table > size - header.e_phoff) return whole_header;
  if (choice % 4 == 0) return whole_header;
  if (choice % 4 == 1) return {header.e_phoff, table};
  for (size_t index = choice / 4 % (header.e_phnum + 1u); index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, data + header.e_phoff + index * sizeof segment, sizeof segment);
    if ((segment.p_type != PT_NOTE && segment.p_type != PT_DYNAMIC) || segment.p_offset >= size) continue;
    return {segment.p_offset, std::min<size_t>(segment.p_filesz, size - segment.p_offset)};
  }
  return {header.e_phoff, table};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tenon::Result<tenon::loader::PluginNote> note =
      tenon::loader::read_note(size, [&](uint64_t offset, void* target, size_t count) {
        require(offset <= size && count <= size - offset, "it asked for bytes outside the file");
        std::memcpy(target, data + offset, count);
        return true;
      });
  if (!note.ok()) {
    require(!note.status().message().empty(), "a refusal without a sentence");
    require(note.status().message().back() == '.', "a sentence without an end");
    return 0;
  }
  require_segments(data, size);
  require(tenon::loader::is_provider_name(note->name), "a name that is none");
  require(!note->version.empty() && note->version.size() < 32, "a version that is none");
  const tenon::Status checked = tenon::loader::check_note(note.value(), note->name);
  require(checked.ok() || !checked.message().empty(), "a refusal without a sentence");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t, unsigned int seed) {
  const Region region = region_that_is_read(data, size, seed);
  if (region.size == 0) return size;
  constexpr uint64_t numbers[] = {0, 1, 4, 8, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_MAX - 7};
  unsigned state = seed * 2654435761u + 12345u;
  for (unsigned left = 1 + (seed >> 8) % 3; left > 0; --left) {
    state = state * 1664525u + 1013904223u;
    const size_t at = (state >> 8) % region.size;
    state = state * 1664525u + 1013904223u;
    if ((state >> 20) & 1) {
      data[region.begin + at] = static_cast<uint8_t>(state >> 24);
      continue;
    }
    const size_t width = std::min<size_t>(size_t{1} << ((state >> 16) & 3), region.size - at);
    std::memcpy(data + region.begin + at, &numbers[(state >> 24) % std::size(numbers)], width);
  }
  return size;
}
