// The note reader. For any bytes it returns a sound note or a sentence, reads nothing outside the file, and reads no
// more than its stated limits. This file repeats the limits: if it took them from the reader, it would not notice that
// a limit no longer holds.
#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

#include "loader/note/note.h"
#include "loader/settings/value.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr uint64_t most_bytes = 1 << 20;  // bytes of all notes together, and of a dynamic section
constexpr size_t most_headers = 1024;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "the note reader broke a rule: %s\n", what);
  std::abort();
}

// Checks that an accepted file contains everything that will be mapped, and that nothing exceeds a limit.
void require_segments(const uint8_t* data, size_t size) {
  Elf64_Ehdr header{};
  std::memcpy(&header, data, sizeof header);
  require(header.e_phnum <= most_headers, "more program headers than it says it reads");
  for (size_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, data + header.e_phoff + index * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    require(segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset, "a segment that is not there");
    require(segment.p_type != PT_DYNAMIC || segment.p_filesz <= most_bytes, "a dynamic section larger than it says");
  }
}

// Sums the sizes of the notes that the reader reads. It reads the header, the program headers and each dynamic section
// once, in this order, and then only notes. The position of bytes does not matter: a note and a dynamic section may
// share them.
class NoteBytes {
 public:
  NoteBytes(const uint8_t* data, size_t size) {
    Elf64_Ehdr header{};
    if (size < sizeof header) return;
    std::memcpy(&header, data, sizeof header);
    if (header.e_phnum > 0) ++reads_before_;
    for (size_t index = 0; index < header.e_phnum; ++index) {
      const uint64_t at = header.e_phoff + index * sizeof(Elf64_Phdr);
      if (at > size || sizeof(Elf64_Phdr) > size - at) return;
      Elf64_Phdr segment{};
      std::memcpy(&segment, data + at, sizeof segment);
      if (segment.p_type == PT_DYNAMIC && segment.p_filesz >= sizeof(Elf64_Dyn)) ++reads_before_;
    }
  }

  void read(size_t count) {
    if (reads_before_ > 0) {
      --reads_before_;
      return;
    }
    sum_ += count;
    require(sum_ <= most_bytes, "it read more bytes of notes than it says");
  }

 private:
  size_t reads_before_ = 1;
  uint64_t sum_ = 0;
};

struct Region {
  size_t begin, size;
};

// Chooses the header, the program headers, a note segment or the dynamic section: only these few bytes are read.
Region region_that_is_read(const uint8_t* data, size_t size, unsigned choice) {
  Elf64_Ehdr header{};
  if (size < sizeof header) return {0, size};
  std::memcpy(&header, data, sizeof header);
  const Region whole_header{0, sizeof header};
  const size_t table = size_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phoff >= size || table > size - header.e_phoff) return whole_header;
  if (choice % 4 == 0) return whole_header;
  if (choice % 4 == 1) return {header.e_phoff, table};
  for (size_t tried = 0; tried < header.e_phnum; ++tried) {
    const size_t index = (choice / 4 + tried) % header.e_phnum;
    Elf64_Phdr segment{};
    std::memcpy(&segment, data + header.e_phoff + index * sizeof segment, sizeof segment);
    if ((segment.p_type != PT_NOTE && segment.p_type != PT_DYNAMIC) || segment.p_offset >= size) continue;
    return {segment.p_offset, std::min<size_t>(segment.p_filesz, size - segment.p_offset)};
  }
  return {header.e_phoff, table};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  NoteBytes notes(data, size);
  const tenon::Result<tenon::loader::PluginNote> note =
      tenon::loader::read_note(size, [&](uint64_t offset, void* target, size_t count) {
        require(offset <= size && count <= size - offset, "it asked for bytes outside the file");
        notes.read(count);
        std::memcpy(target, data + offset, count);
        return true;
      });
  if (!note.ok()) {
    require(!note.status().message().empty(), "a refusal without a sentence");
    require(note.status().message().back() == '.', "a sentence without an end");
    return 0;
  }
  require_segments(data, size);
  require(tenon::loader::is_provider_name(note->name), "an invalid name");
  require(!note->version.empty() && note->version.size() < 32, "an invalid version");
  const tenon::Status checked = tenon::loader::check_note(note.value(), note->name);
  require(checked.ok() || !checked.message().empty(), "a refusal without a sentence");
  return 0;
}

namespace {

struct Field {
  size_t at, width;
};

// Chooses a number of the header, of a program header, or of a note that is a count, a size or an offset.
Field number_that_is_read(const uint8_t* data, size_t size, std::minstd_rand& random) {
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() >> 8) % limit; };
  Elf64_Ehdr header{};
  std::memcpy(&header, data, sizeof header);
  const Field of_header[] = {{offsetof(Elf64_Ehdr, e_phoff), 8}, {offsetof(Elf64_Ehdr, e_phnum), 2}};
  const Field of_segment[] = {{offsetof(Elf64_Phdr, p_offset), 8}, {offsetof(Elf64_Phdr, p_filesz), 8}};
  const size_t used = std::min<size_t>(header.e_phnum, 16);  // later ones test nothing new
  const size_t begin = used == 0 ? size : header.e_phoff + below(used) * sizeof(Elf64_Phdr);
  if (below(3) == 0 || begin > size || sizeof(Elf64_Phdr) > size - begin) return of_header[below(2)];
  Elf64_Phdr segment{};
  std::memcpy(&segment, data + begin, sizeof segment);
  const bool has_note = segment.p_offset <= size && sizeof(Elf64_Nhdr) <= size - segment.p_offset;
  if (segment.p_type == PT_NOTE && has_note && below(2) == 0) return {segment.p_offset + 4 * below(2), 4};
  const Field field = of_segment[below(2)];
  return {begin + field.at, field.width};
}

// Changes a number by one step, so that it can exceed a limit.
void step(uint8_t* data, size_t size, std::minstd_rand& random) {
  const Field field = number_that_is_read(data, size, random);
  uint64_t number = 0;
  std::memcpy(&number, data + field.at, field.width);
  const uint64_t by = uint64_t{1} << (random() >> 8) % 5;
  number += (random() >> 8) % 2 == 0 ? by : -by;
  std::memcpy(data + field.at, &number, field.width);
}

// Overwrites some of the bytes that are read with other bytes, or with numbers that cause overflow.
void overwrite(uint8_t* data, const Region& region, std::minstd_rand& random) {
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() >> 8) % limit; };
  constexpr uint64_t numbers[] = {0, 1, 4, 8, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_MAX - 7};
  const size_t at = below(region.size);
  const size_t width = std::min<size_t>(size_t{1} << below(4), region.size - at);
  if (below(2) == 0) {
    data[region.begin + at] = static_cast<uint8_t>(random() >> 8);
  } else {
    std::memcpy(data + region.begin + at, &numbers[below(std::size(numbers))], width);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() >> 8) % limit; };
  const Region region = region_that_is_read(data, size, static_cast<unsigned>(below(4096)));
  const size_t choice = below(3);
  if (size < sizeof(Elf64_Ehdr) || region.size == 0 || choice == 0) return LLVMFuzzerMutate(data, size, max_size);
  if (choice == 1) {
    step(data, size, random);
  } else {
    for (size_t left = 1 + below(3); left > 0; --left) overwrite(data, region, random);
  }
  return size;
}
