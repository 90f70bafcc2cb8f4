#include "providers/cpu/modules/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace tenon::provider::cpu {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half machine = EM_AARCH64;
#else
constexpr Elf64_Half machine = EM_NONE;
#endif

bool is_library_of_ours(const std::string& bytes) {
  Elf64_Ehdr head{};
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
         head.e_type == ET_DYN && head.e_machine == machine;
}

bool write_all(int file, const std::string& bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<size_t>(count);
  }
  return true;
}

// Returns a new path for the descriptor `file`. The C library treats equal paths as one library, and descriptor numbers
// are reused; so a count is encoded in slashes and dots.
std::string fresh_path(int file) {
  static std::atomic<uint32_t> loaded{0};
  std::string path = "/proc/self/fd/";
  for (uint32_t rest = loaded.fetch_add(1, std::memory_order_relaxed); rest != 0; rest >>= 1) {
    path += (rest & 1) != 0 ? ".//" : "./";
  }
  return fmt::format("{}{}", path, file);
}

}  // namespace

std::unique_ptr<Library> Library::load(const std::string& bytes, std::string* why_not) {
  if (!is_library_of_ours(bytes)) {
    *why_not = fmt::format("its {} bytes are not a shared object for this processor", bytes.size());
    return nullptr;
  }
  const int file = memfd_create("tenon-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || !write_all(file, bytes)) {
    *why_not = std::strerror(errno);
    if (file >= 0) close(file);
    return nullptr;
  }
  void* handle = dlopen(fresh_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* said = dlerror();
    *why_not = said != nullptr ? said : "it cannot be loaded";
  }
  close(file);
  return handle != nullptr ? std::unique_ptr<Library>(new Library(handle)) : nullptr;
}

Library::~Library() { dlclose(handle_); }

// dlsym also finds functions in the libraries that this one depends on; they are excluded.
void* Library::function(const std::string& name) const {
  void* const address = dlsym(handle_, name.c_str());
  Dl_info info{};
  link_map* map = nullptr;
  if (address == nullptr || dladdr(address, &info) == 0 || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  return reinterpret_cast<uintptr_t>(info.dli_fbase) == map->l_addr ? address : nullptr;
}

}  // namespace tenon::provider::cpu
