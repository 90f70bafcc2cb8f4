#include "loader/library/scope.h"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// True if the process has the functions of a sanitizer's run-time library. They must come first in every library.
bool has_sanitizer() {
  constexpr const char* marks[] = {"__asan_init", "__hwasan_init", "__msan_init", "__tsan_init"};
  for (const char* mark : marks) {
    if (dlsym(RTLD_DEFAULT, mark)) return true;
  }
  return false;
}

const link_map* library_of(const void* address) {
  Dl_info info{};
  void* library = nullptr;
  if (dladdr1(address, &info, &library, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<const link_map*>(library);
}

// False for the main program, whose name is empty.
bool is_library(const link_map* library) { return library && library->l_name && library->l_name[0] != '\0'; }

// True if `address` is a function defined in that library or program. A program that is linked to a fixed address, such
// as Debian's python3, has entries of its own for functions of other libraries, and dlsym finds these.
bool is_defined_there(const void* address) {
  Dl_info info{};
  void* symbol = nullptr;
  if (dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr) return true;
  return static_cast<const ElfW(Sym)*>(symbol)->st_shndx != SHN_UNDEF;
}

// The library that defines the malloc of the process: the first in the order of the global scope.
const link_map* allocator() {
  const void* found = dlsym(RTLD_DEFAULT, "malloc");
  const link_map* owner = library_of(found);
  if (owner == nullptr || is_library(owner) || is_defined_there(found)) return owner;
  for (const link_map* library = owner->l_next; library != nullptr; library = library->l_next) {
    void* handle = is_library(library) ? dlopen(library->l_name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (handle == nullptr) continue;
    const bool defines = library_of(dlsym(handle, "malloc")) == library;
    dlclose(handle);
    if (defines) return library;
  }
  return owner;
}

bool has_own_malloc(const link_map* library) {
  return library == library_of(reinterpret_cast<const void*>(&gnu_get_libc_version));
}

#if defined(__x86_64__)
constexpr uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t this_machine = EM_AARCH64;
#endif

// The start of a stub's file. Each part lies at its offset in the file, and is mapped at that address.
struct StubHead {
  Elf64_Ehdr header;
  Elf64_Phdr segments[3];
  Elf64_Sym no_symbol;
  uint32_t hash[4];  // one bucket, one chain, both empty
};

Elf64_Phdr segment(uint32_t type, uint64_t offset, uint64_t size) {
  Elf64_Phdr part{};
  part.p_type = type;
  part.p_flags = PF_R | PF_W;
  part.p_offset = part.p_vaddr = part.p_paddr = offset;
  part.p_filesz = part.p_memsz = size;
  part.p_align = type == PT_LOAD ? 0x10000 : 8;
  return part;
}

void fill(StubHead* head, uint64_t dynamic_at, uint64_t dynamic_size, uint64_t size) {
  std::memcpy(head->header.e_ident, ELFMAG, SELFMAG);
  head->header.e_ident[EI_CLASS] = ELFCLASS64;
  head->header.e_ident[EI_DATA] = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  head->header.e_ident[EI_VERSION] = EV_CURRENT;
  head->header.e_type = ET_DYN;
  head->header.e_machine = this_machine;
  head->header.e_version = EV_CURRENT;
  head->header.e_phoff = offsetof(StubHead, segments);
  head->header.e_ehsize = sizeof(Elf64_Ehdr);
  head->header.e_phentsize = sizeof(Elf64_Phdr);
  head->header.e_phnum = 3;
  head->segments[0] = segment(PT_LOAD, 0, size);
  head->segments[1] = segment(PT_DYNAMIC, dynamic_at, dynamic_size);
  head->segments[2] = segment(PT_GNU_STACK, 0, 0);
  head->hash[0] = head->hash[1] = 1;
}

}  // namespace

std::string stub_library(const std::vector<std::string>& libraries) {
  std::string names(1, '\0');
  std::vector<Elf64_Dyn> dynamic;
  const auto add = [&](int64_t tag, uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic.push_back(entry);
  };
  for (const std::string& library : libraries) {
    add(DT_NEEDED, names.size());
    names.append(library).push_back('\0');
  }
  const uint64_t dynamic_at = sizeof(StubHead);
  const uint64_t dynamic_size = (libraries.size() + 6) * sizeof(Elf64_Dyn);
  add(DT_HASH, offsetof(StubHead, hash));
  add(DT_SYMTAB, offsetof(StubHead, no_symbol));
  add(DT_SYMENT, sizeof(Elf64_Sym));
  add(DT_STRTAB, dynamic_at + dynamic_size);
  add(DT_STRSZ, names.size());
  add(DT_NULL, 0);
  StubHead head{};
  fill(&head, dynamic_at, dynamic_size, dynamic_at + dynamic_size + names.size());
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(dynamic.data()), dynamic_size);
  return bytes + names;
}

int plain_mapping_mode() {
  const bool is_plain = has_own_malloc(allocator()) && !has_sanitizer();
  return RTLD_NOW | RTLD_LOCAL | (is_plain ? RTLD_DEEPBIND : 0);
}

// A stub cannot name an allocator that is linked into the program itself.
Scope scope_of(const std::string& plugin_path) {
  Scope scope{plugin_path, plain_mapping_mode(), {}};
  const link_map* library = allocator();
  if ((scope.mode & RTLD_DEEPBIND) != 0 || has_sanitizer() || !is_library(library)) return scope;
  const std::string bytes = stub_library({library->l_name, plugin_path});
  Descriptor stub(memfd_create("tenon stub", MFD_CLOEXEC));
  if (write(stub.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return scope;
  scope.path = fmt::format("/proc/self/fd/{}", stub.get());
  scope.mode |= RTLD_DEEPBIND;
  scope.stub = std::move(stub);
  return scope;
}

}  // namespace tenon::loader
