#include "loader/note/note.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <vector>

#include "ep_api/ep_api.h"
#include "fixture.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// A small ELF file that begins with another note. A test may change its fields before it is built.
struct ElfFile {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  ep_note note{};
  std::string tail;

  ElfFile() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
#if defined(__x86_64__)
    header.e_machine = EM_X86_64;
#else
    header.e_machine = EM_AARCH64;
#endif
    header.e_type = ET_DYN;
    header.e_phentsize = sizeof segment;
    header.e_phnum = 1;
    header.e_phoff = sizeof header;
    segment.p_type = PT_NOTE;
    segment.p_align = 4;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = other_note().size() + sizeof note;
    note = {
        sizeof(EP_NOTE_OWNER),
        sizeof(ep_plugin_note),
        EP_NOTE_TYPE,
        EP_NOTE_OWNER,
        {sizeof(ep_plugin_note), 3, 7, 5, EP_SANITIZER_THREAD, "sample", "2.4.6", "gcc", EP_PLUGIN_KIND_DEVICES, 0}};
  }

  static std::string other_note() { return std::string("\4\0\0\0\5\0\0\0\3\0\0\0GNU\0abcde\0\0\0", 24); }

  std::string bytes() const {
    const auto raw = [](const auto& object) {
      return std::string(reinterpret_cast<const char*>(&object), sizeof object);
    };
    return raw(header) + raw(segment) + other_note() + raw(note) + tail;
  }
};

Result<PluginNote> read(const std::string& bytes) {
  return read_note(bytes.size(), [&](uint64_t offset, void* target, size_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return false;
    std::memcpy(target, bytes.data() + offset, size);
    return true;
  });
}

std::string sentence_for(const std::function<void(ElfFile&)>& change) {
  ElfFile file;
  change(file);
  const Result<PluginNote> note = read(file.bytes());
  return note.ok() ? "accepted" : note.status().message();
}

TEST(Note, ReadsEveryField) {
  const Result<PluginNote> note = read(ElfFile().bytes());
  ASSERT_TRUE(note.ok()) << note.status().message();
  EXPECT_EQ(note->name, "sample");
  EXPECT_EQ(note->version, "2.4.6");
  EXPECT_EQ(note->toolchain, "gcc");
  EXPECT_EQ(note->abi_major, 3);
  EXPECT_EQ(note->abi_minor, 7);
  EXPECT_EQ(note->flags, 5u);
  EXPECT_EQ(note->sanitizer, uint32_t{EP_SANITIZER_THREAD});
  EXPECT_EQ(note->kind, uint32_t{EP_PLUGIN_KIND_DEVICES});
}

TEST(Note, OfAnotherKindIsNotLoaded) {
  ElfFile file;
  file.note.desc = {sizeof(ep_plugin_note),
                    EP_ABI_MAJOR,
                    EP_ABI_MINOR,
                    0,
                    EP_SANITIZER_NONE,
                    "sample",
                    "1",
                    "gcc",
                    EP_PLUGIN_KIND_COLLECTIVES,
                    0};
  const Result<PluginNote> note = read(file.bytes());
  ASSERT_TRUE(note.ok()) << note.status().message();
  EXPECT_EQ(check_note(note.value(), "sample").message(), "it carries data between processes, and has no devices.");
  EXPECT_TRUE(check_note(note.value(), "sample", EP_PLUGIN_KIND_COLLECTIVES).ok());
  file.note.desc.kind = 99;
  EXPECT_EQ(check_note(read(file.bytes()).value(), "sample").message(),
            "it is a plug-in of unknown kind 99; this host loads plug-ins for devices and for collectives (rule "
            "N07).");
}

TEST(Note, ReadsWhatTheMacroWrites) {
  const std::string path = broken_folder() + "/libtenon_sound.so";
  const Descriptor file(open(path.c_str(), O_RDONLY));
  const Result<PluginNote> note = read_note(file.get(), std::filesystem::file_size(path));
  ASSERT_TRUE(note.ok()) << note.status().message();
  EXPECT_EQ(note->name, "sound");
  EXPECT_EQ(note->version, "1.0.0");
  EXPECT_EQ(note->abi_major, EP_ABI_MAJOR);
  EXPECT_EQ(note->abi_minor, EP_ABI_MINOR);
  EXPECT_EQ(note->sanitizer, uint32_t{EP_SANITIZER_OF_THIS_BUILD});
  EXPECT_FALSE(note->toolchain.empty());
  EXPECT_TRUE(check_note(note.value(), "sound").ok());
}

TEST(Note, RefusesOtherWordSizeByteOrderAndMachine) {
  const std::string begin = "it is not a shared library of this machine: ";
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_ident[EI_CLASS] = ELFCLASS32; }),
            begin + "it is a 32-bit file, this is a 64-bit program.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_ident[EI_DATA] = ELFDATA2MSB; }),
            begin + "its byte order is big-endian, this machine's is little-endian.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_machine = EM_RISCV; }).find(begin + "it was built for risc-v"),
            0u);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_machine = 4711; }).find(begin + "it was built for machine 4711"),
            0u);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_type = ET_REL; }), begin + "its ELF type is 1, not a library.");
  EXPECT_EQ(read("#!/bin/sh").status().message(), begin + "it does not begin as an ELF file does.");
  EXPECT_EQ(read(fmt::format("{}{:x<100}", "\xcf\xfa\xed\xfe", "")).status().message(),
            begin + "it is a Mach-O file, as macOS has them, and this host loads ELF files.");
  EXPECT_EQ(read(fmt::format("MZ{:x<100}", "")).status().message(),
            begin + "it is a PE file, as Windows has them, and this host loads ELF files.");
  EXPECT_EQ(read("").status().message(), begin + "it has only 0 bytes.");
  ElfFile file;
  file.header.e_phnum = 0;
  EXPECT_EQ(read(file.bytes().substr(0, 64)).status().message(),
            "it is not a Tenon provider: it holds no note named 'Tenon' (rule N01).");
  EXPECT_EQ(read(file.bytes().substr(0, 63)).status().message(),
            "the ELF file is cut short or damaged: it has 63 bytes, its header alone takes 64.");
}

TEST(Note, RefusesLyingHeaders) {
  const std::string begin = "the ELF file is cut short or damaged: ";
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_phoff = UINT64_MAX - 8; }),
            begin + "its program headers lie past its end.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_phnum = 1000; }), begin + "its program headers lie past its end.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_phnum = 0xffff; }),
            begin + "it claims 65535 program headers, at most 1024 are read.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_phentsize = 32; }),
            begin + "its program headers have 32 bytes each, not 56.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.segment.p_filesz = UINT64_MAX; }),
            begin + "a note segment lies past its end.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.segment.p_offset = UINT64_MAX; }),
            begin + "a note segment lies past its end.");
  EXPECT_EQ(sentence_for([](ElfFile& f) {
              f.tail.assign(2 << 20, '\0');
              f.segment.p_filesz += f.tail.size();
            }),
            begin + "its notes are larger than 1 MiB.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc_size = UINT32_MAX; }),
            begin + "a note reaches past the end of its segment.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.name_size = UINT32_MAX; }),
            begin + "a note reaches past the end of its segment.");
}

// Each stated limit: at the limit, and one beyond it.
TEST(Note, IsReadUpToTheLimitAndNotOneStepFurther) {
  const std::string end = "the ELF file is cut short or damaged: a note reaches past the end of its segment.";
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.segment.p_filesz -= 1; }), end);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.segment.p_filesz -= 4; }), end);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc_size += 1; }), end);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc_size += 4; }), end);
  EXPECT_EQ(sentence_for([](ElfFile& f) {
              f.tail = "1234";
              f.segment.p_filesz += 4;
              f.note.desc_size += 4;
            }),
            "accepted");
  const auto of_notes = [](uint64_t bytes) {
    return sentence_for([&](ElfFile& f) {
      f.tail.assign(bytes - f.segment.p_filesz, '\0');
      f.segment.p_filesz = bytes;
    });
  };
  EXPECT_EQ(of_notes(1 << 20), "accepted");
  EXPECT_EQ(of_notes((1 << 20) + 1), "the ELF file is cut short or damaged: its notes are larger than 1 MiB.");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_phnum = 1025; }),
            "the ELF file is cut short or damaged: it claims 1025 program headers, at most 1024 are read.");
  EXPECT_EQ(sentence_for([](ElfFile& f) {
              f.header.e_phnum = 1024;
              f.header.e_phoff = f.bytes().size();
              f.tail.assign(reinterpret_cast<const char*>(&f.segment), sizeof f.segment);
              f.tail.resize(1024 * sizeof f.segment);
            }),
            "accepted");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc_size = f.note.desc.struct_size = 79; }),
            "its Tenon note is malformed: it has 79 bytes, at least 80 are needed (rule N01).");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc.struct_size = 79; }),
            "its Tenon note is malformed: it says it has 79 bytes, there are 152 (rule N01).");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc.struct_size = 153; }),
            "its Tenon note is malformed: it says it has 153 bytes, there are 152 (rule N01).");
}

TEST(Note, RefusesMalformedNotes) {
  const std::string begin = "its Tenon note is malformed: ";
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc_size = 40; }),
            begin + "it has 40 bytes, at least 80 are needed (rule N01).");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc.struct_size = 4000; }),
            begin + "it says it has 4000 bytes, there are 152 (rule N01).");
  for (const char* name : {"", "Upper", "with space", "../../etc", "a-b"}) {
    EXPECT_EQ(sentence_for([&](ElfFile& f) {
                std::memset(f.note.desc.name, 0, sizeof f.note.desc.name);
                std::strncpy(f.note.desc.name, name, sizeof f.note.desc.name - 1);
              }),
              begin + "its name must be 1 to 31 lower-case letters, digits and underscores (rule N01).")
        << name;
  }
  EXPECT_NE(sentence_for([](ElfFile& f) { std::memset(f.note.desc.name, 'a', sizeof f.note.desc.name); }), "accepted");
  EXPECT_NE(sentence_for([](ElfFile& f) { std::memset(f.note.desc.version, 1, sizeof f.note.desc.version - 1); }),
            "accepted");
}

TEST(Note, RefusesFilesWithoutOne) {
  const std::string sentence = "it is not a Tenon provider: it holds no note named 'Tenon' (rule N01).";
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.segment.p_type = PT_LOAD; }), sentence);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.header.e_phnum = 0; }), sentence);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.owner[0] = 'V'; }), sentence);
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.type = 2; }), sentence);
}

TEST(Note, TakesLongerAndShorterNotesOfOtherVersions) {
  EXPECT_EQ(sentence_for([](ElfFile& f) {
              f.tail.assign(64, 'x');
              f.segment.p_filesz += 64;
              f.note.desc_size += 64;
              f.note.desc.struct_size += 64;
            }),
            "accepted");
  EXPECT_EQ(sentence_for([](ElfFile& f) { f.note.desc_size = f.note.desc.struct_size = 80; }), "accepted");
}

TEST(Note, EveryTruncationAndEveryChangedByteGivesAnAnswer) {
  const std::string whole = ElfFile().bytes();
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(whole.substr(0, size)).ok()) << size;
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<PluginNote> note = read(bytes);
    EXPECT_NE(note.ok(), !note.status().message().empty());
  }
}

struct RealFile {
  std::string bytes;
  std::vector<Elf64_Phdr> segments;
  uint64_t table_at = 0, last_mapped = 0;

  explicit RealFile(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
    Elf64_Ehdr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    table_at = header.e_phoff;
    segments.resize(header.e_phnum);
    std::memcpy(segments.data(), bytes.data() + table_at, segments.size() * sizeof(Elf64_Phdr));
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD) last_mapped = std::max(last_mapped, segment.p_offset + segment.p_filesz);
    }
  }

  Elf64_Phdr& first(uint32_t type) {
    return *std::find_if(segments.begin(), segments.end(), [&](const auto& s) { return s.p_type == type; });
  }
  std::string with_segments() const {
    std::string changed = bytes;
    std::memcpy(changed.data() + table_at, segments.data(), segments.size() * sizeof(Elf64_Phdr));
    return changed;
  }
  // Sets the entry `tag` of the dynamic section to `value`. With DT_NULL, turns the tag of every entry into DT_DEBUG.
  std::string with_dynamic(int64_t tag, uint64_t value) {
    std::string changed = bytes;
    const Elf64_Phdr& dynamic = first(PT_DYNAMIC);
    for (uint64_t at = dynamic.p_offset; at < dynamic.p_offset + dynamic.p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry{};
      std::memcpy(&entry, changed.data() + at, sizeof entry);
      if (tag == DT_NULL) entry.d_tag = DT_DEBUG;
      if (entry.d_tag == tag) entry.d_un.d_val = value;
      std::memcpy(changed.data() + at, &entry, sizeof entry);
    }
    return changed;
  }
};

std::string sound_path() { return broken_folder() + "/libtenon_sound.so"; }

TEST(Segments, SayWhereTheCutFileShouldEnd) {
  const RealFile file(sound_path());
  ASSERT_TRUE(read(file.bytes).ok());
  const std::string cut = file.bytes.substr(0, file.last_mapped - 1);
  const Status refused = read(cut).status();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_EQ(refused.message(), fmt::format("the file is cut short: a segment ends at byte {}, the file has {}.",
                                           file.last_mapped, cut.size()));
  EXPECT_EQ(refused.remedy(), "Copy the provider again.");
  EXPECT_TRUE(read(file.bytes.substr(0, file.last_mapped)).ok());
}

TEST(Segments, AreRefusedWhenTheyLie) {
  const std::string begin = "the ELF file is cut short or damaged: ";
  RealFile file(sound_path());
  file.first(PT_LOAD).p_filesz = UINT64_MAX - 3;
  EXPECT_NE(read(file.with_segments()).status().message().find("the file is cut short: a segment ends at byte 184467"),
            std::string::npos);
  file = RealFile(sound_path());
  file.first(PT_DYNAMIC).p_offset = file.bytes.size();
  EXPECT_NE(read(file.with_segments()).status().message().find("the file is cut short: its dynamic section ends at"),
            std::string::npos);
  file = RealFile(sound_path());
  file.first(PT_DYNAMIC).p_vaddr = UINT64_MAX / 2;
  EXPECT_EQ(read(file.with_segments()).status().message(), begin + "its dynamic section lies in no segment.");
}

TEST(Segments, AreRefusedWithADynamicSectionThatLies) {
  const std::string begin = "the ELF file is cut short or damaged: ";
  RealFile file(sound_path());
  EXPECT_EQ(read(file.with_dynamic(DT_SYMENT, 25)).status().message(),
            begin + "DT_SYMENT in its dynamic section is 25, not 24.");
  EXPECT_EQ(read(file.with_dynamic(DT_STRTAB, uint64_t{1} << 60)).status().message(),
            begin + "DT_STRTAB in its dynamic section points outside its segments.");
  EXPECT_EQ(read(file.with_dynamic(DT_STRSZ, UINT64_MAX)).status().message(),
            begin + "DT_STRTAB in its dynamic section points outside its segments.");
  EXPECT_EQ(read(file.with_dynamic(DT_NULL, 0)).status().message(), begin + "its dynamic section has no end.");
}

TEST(Segments, MayHaveATableUpToTheirLastByte) {
  RealFile file(sound_path());
  uint64_t end = 0;
  for (const Elf64_Phdr& segment : file.segments) {
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_vaddr + segment.p_memsz);
  }
  EXPECT_TRUE(read(file.with_dynamic(DT_SYMTAB, end - 1)).ok());
  EXPECT_EQ(read(file.with_dynamic(DT_SYMTAB, end)).status().message(),
            "the ELF file is cut short or damaged: DT_SYMTAB in its dynamic section points outside its segments.");
}

TEST(Segments, NoCutThatLacksMappedBytesIsAccepted) {
  const RealFile file(sound_path());
  for (size_t size = 0; size < file.last_mapped; ++size) {
    EXPECT_FALSE(read(file.bytes.substr(0, size)).ok()) << size;
  }
}

class CutFiles : public LoaderTest {};

TEST_F(CutFiles, AreRefusedAtTheNoteAndTheProcessLives) {
  const RealFile file(sound_path());
  std::vector<size_t> sizes = {file.last_mapped - 1, file.last_mapped};
  for (size_t size = 0; size <= 1024; size += 64) sizes.push_back(size);
  for (size_t part = 1; part <= 16; ++part) sizes.push_back(file.bytes.size() * part / 16);
  for (size_t size : sizes) {
    const std::string folder = fmt::format("cut{}", size);
    scratch().write(folder + "/libtenon_sound.so", file.bytes.substr(0, size));
    set("TENON_PLUGIN_PATH", fmt::format("{}/{}", scratch().path(), folder));
    restart();
    const Candidate candidate = candidate_of("sound");
    EXPECT_EQ(stage_name(candidate.stage), stage_name(size < file.last_mapped ? Stage::note : Stage::usable)) << size;
    EXPECT_EQ(candidate.remedy.empty(), size >= file.last_mapped) << size;
  }
}

TEST(CheckNote, RefusesWhatThisHostCannotLoad) {
  PluginNote note{"sample", "1.0", "gcc", EP_ABI_MAJOR, EP_ABI_MINOR, 0, EP_SANITIZER_NONE};
  EXPECT_TRUE(check_note(note, "sample").ok());
  EXPECT_EQ(check_note(note, "other").code(), Code::invalid_argument);
  note.abi_minor = EP_ABI_MINOR + 1;
  EXPECT_EQ(check_note(note, "sample").code(), Code::version);
  note.abi_minor = EP_ABI_MINOR;
  note.abi_major = EP_ABI_MAJOR + 1;
  EXPECT_EQ(check_note(note, "sample").code(), Code::version);
  note.abi_major = EP_ABI_MAJOR;
  note.sanitizer = EP_SANITIZER_MEMORY;
  EXPECT_EQ(check_note(note, "sample").code(), Code::unsupported);
  note.sanitizer = 77;
  EXPECT_EQ(check_note(note, "sample").message(),
            "it was built with the unknown sanitizer 77, which this program was not built with (rule N03).");
  note.sanitizer = EP_SANITIZER_OF_THIS_BUILD;
  EXPECT_TRUE(check_note(note, "sample").ok());
}

}  // namespace
}  // namespace tenon::loader
