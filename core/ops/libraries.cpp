#include "core/ops/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <mutex>

#include "core/ops/op_rows.h"
#include "loader/library/floating_point.h"
#include "loader/library/library.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon {
namespace {

constexpr const char* kCardName = "tenon_ops_card";
constexpr std::string_view kFilePrefix = "libtenon_ops_", kFileSuffix = ".so";

// A library that was added, and the id of its first op.
struct Added {
  OpLibrary* library = nullptr;
  size_t first = 0;
};

constexpr size_t kMostLibraries = 256;
std::array<Added, kMostLibraries> added;
std::atomic<size_t> added_count{0};  // earlier entries are complete and constant
std::mutex adding;

std::span<const Added> all() { return {added.data(), added_count.load(std::memory_order_acquire)}; }

[[noreturn]] void refuse(Code code, std::string sentence, std::string remedy = {}) {
  throw Error(code, std::move(sentence), std::move(remedy));
}

void check_version(const OpLibraryCard& card, const std::string& origin) {
  if (std::string_view(card.version) != TENON_VERSION) {
    refuse(Code::version,
           fmt::format("{} was made for Tenon {}, and this is Tenon {}.", origin, card.version, TENON_VERSION),
           "Build the library again, against the package of this version.");
  }
  if (card.layout != kOpTableLayout) {
    refuse(Code::version,
           fmt::format("{} was made for another build of Tenon {}: its tables have another layout.", origin,
                       TENON_VERSION),
           "Build the library again, with the headers and the compiler of this build.");
  }
}

// Adds `library`, whose names must be new. The caller holds the lock `adding`.
void add(OpLibrary* library, const std::string& origin) {
  for (const Added& other : all()) {
    if (other.library == library) return;
    if (other.library->name == library->name) {
      refuse(Code::invalid_argument,
             fmt::format("{} holds the ops '{}', and another library of this name was loaded before.", origin,
                         library->name));
    }
  }
  const std::span<const Added> before = all();
  const size_t first = before.empty() ? op_table().size() : before.back().first + before.back().library->rows.size();
  if (before.size() == kMostLibraries || first + library->rows.size() >= kNoOp) {
    refuse(Code::unsupported, fmt::format("{}: there are too many ops in {} libraries.", origin, before.size()));
  }
  for (size_t i = 0; i < library->rows.size(); ++i) library->rows[i].id = static_cast<uint16_t>(first + i);
  added[before.size()] = {library, first};
  added_count.store(before.size() + 1, std::memory_order_release);
}

const OpLibrary& add_card(const OpLibraryCard& card, const std::string& origin) {
  check_version(card, origin);
  const std::lock_guard lock(adding);
  OpLibrary& library = card.library();
  add(&library, origin);
  return library;
}

void log_error(std::string_view sentence) { loader::log(loader::LogTopic::load, loader::LogLevel::error, sentence); }

// Loads the libraries in the folders of TENON_OPS_PATH. A refused library is logged as an error.
void load_listed() {
  [[maybe_unused]] static const bool once = [] {
    for (const std::string& folder : loader::settings().ops_path) {
      std::vector<std::string> files;
      std::error_code failed;
      for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(kFilePrefix) && name.ends_with(kFileSuffix)) files.push_back(entry.path().string());
      }
      if (failed) log_error(fmt::format("TENON_OPS_PATH names the folder {}: {}.", folder, failed.message()));
      std::sort(files.begin(), files.end());
      for (const std::string& file : files) {
        try {
          load_ops(file);
        } catch (const Error& error) {
          log_error(error.what());
        }
      }
    }
    return true;
  }();
}

std::string_view library_part(std::string_view name) { return name.substr(0, name.find("::")); }

}  // namespace

const OpLibrary& add_ops(const OpLibraryCard& card) { return add_card(card, "A library that the program links"); }

const OpLibrary& load_ops(const std::string& path) {
  const bool check_owners = loader::settings().trust == loader::Trust::owned;
  Result<loader::CheckedFile> file = loader::open_checked(path, check_owners);
  if (!file.ok()) throw Error(file.status());
  const std::string& resolved = file.value().path;
  const loader::KeptFloatingPoint floating_point;
  void* handle = dlopen(resolved.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    refuse(Code::not_found,
           fmt::format("{} cannot be loaded: {}.", resolved, why == nullptr ? "no reason given" : why));
  }
  const auto* card = static_cast<const OpLibraryCard*>(dlsym(handle, kCardName));
  if (card == nullptr) {
    dlclose(handle);
    refuse(Code::not_found, fmt::format("{} holds no ops: it has no {}.", resolved, kCardName),
           "A library of ops is made by tenon_add_ops of the CMake package.");
  }
  if (const Status mapped = loader::check_mapping(card, file.value()); !mapped.ok()) {
    dlclose(handle);
    throw Error(mapped.with_context(fmt::format("  while loading ops from '{}'", resolved)));
  }
  try {
    return add_card(*card, resolved);
  } catch (...) {
    dlclose(handle);  // a library that was already added stays mapped
    throw;
  }
}

std::vector<const OpLibrary*> op_libraries() {
  load_listed();
  std::vector<const OpLibrary*> libraries;
  for (const Added& each : all()) libraries.push_back(each.library);
  return libraries;
}

const OpInfo* find_library_row(std::string_view name) {
  if (name.find("::") == std::string_view::npos) return nullptr;
  for (const OpLibrary* library : op_libraries()) {
    if (library->name != library_part(name)) continue;
    for (const OpInfo& row : library->rows) {
      if (row.name == name) return &row;
    }
  }
  return nullptr;
}

const DynamicOp& find_library_op(std::string_view name) {
  std::string known;
  for (const OpLibrary* library : op_libraries()) {
    if (library->name == library_part(name)) return find_op(library->dynamic, name);
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", library->name);
  }
  refuse(Code::not_found,
         fmt::format("There is no op called '{}': no library of ops '{}' is loaded{}.", name, library_part(name),
                     known.empty() ? "" : fmt::format(", but {}", known)),
         "Load it by load_ops, or name its folder in TENON_OPS_PATH.");
}

LibraryRow library_row(uint16_t id) {
  const std::span<const Added> libraries = all();
  const auto next = std::upper_bound(libraries.begin(), libraries.end(), size_t{id},
                                     [](size_t wanted, const Added& each) { return wanted < each.first; });
  const Added& found = *std::prev(next);
  return {found.library, id - found.first};
}

bool is_of_library(const OpInfo& op) { return op.id != kNoOp && op.id >= op_table().size(); }

}  // namespace tenon
