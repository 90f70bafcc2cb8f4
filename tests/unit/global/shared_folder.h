// SharedFolder: a folder for one test that all ranks share.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/global/communicator.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::global {

// Every rank constructs and destroys it; after the last rank has destroyed it, it is deleted.
class SharedFolder {
 public:
  SharedFolder() {
    std::array<char, 512> path{};
    if (world().rank() == 0) made_.emplace().path().copy(path.data(), path.size() - 1);
    throw_if_error(world().broadcast(path.data(), path.size(), DType::u8, 0));
    path_ = path.data();
  }
  ~SharedFolder() { static_cast<void>(world().barrier()); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  static Communicator& world() { return *value_or_throw(Communicator::world()); }

  std::optional<ScratchFolder> made_;  // on the first rank
  std::filesystem::path path_;
};

}  // namespace tenon::global
