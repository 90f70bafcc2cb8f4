#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>

#include "loader/library/library.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

struct MappedFile {
  unsigned major = 0, minor = 0;
  uint64_t inode = 0;
  friend bool operator==(const MappedFile&, const MappedFile&) = default;
};

std::optional<MappedFile> file_mapped_at(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    MappedFile file;
    const int read = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &begin, &end,
                                 &file.major, &file.minor, &file.inode);
    if (read == 5 && begin <= wanted && wanted < end) return file;
  }
  return std::nullopt;
}

}  // namespace

// Some file systems (overlays, subvolumes) show other device and inode numbers in the maps than in stat. So the checked
// file is mapped too, and the two lines of the maps are compared.
Status check_mapping(const void* address, const CheckedFile& file) {
  constexpr size_t one_page = 4096;
  void* own = mmap(nullptr, one_page, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (own == MAP_FAILED)
    return Status(Code::internal, fmt::format("the checked file '{}' cannot be mapped.", file.path));
  const std::optional<MappedFile> checked = file_mapped_at(own);
  const std::optional<MappedFile> loaded = file_mapped_at(address);
  munmap(own, one_page);
  if (!checked || !loaded) {
    return Status(Code::internal, fmt::format("/proc/self/maps does not show what was loaded from '{}'.", file.path),
                  "Mount /proc.");
  }
  if (*checked == *loaded) return {};
  return Status(
      Code::invalid_argument,
      fmt::format("what was loaded from '{}' is not the file that was checked: it was replaced meanwhile.", file.path),
      "Find out who replaced it, then try again.");
}

}  // namespace tenon::loader
