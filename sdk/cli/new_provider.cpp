#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "core/interpreter/execution_report.h"
#include "loader/loader.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t longest_name = 31;  // ep_plugin_note::name has one more byte, for the end

// A project to copy under another name. `name` is its own name.
struct Template {
  const char* folder;  // below TENON_TEMPLATES_FROM_PROGRAM
  const char* name;
  const char* file;  // a file whose presence shows that the folder exists
};
constexpr Template sample = {"provider", "sample", "sample.c"};
constexpr Template skeleton = {"async_provider", "skeleton", "skeleton.cpp"};

void check_name(const std::string& name) {
  const bool letters = std::all_of(name.begin(), name.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (letters && !name.empty() && name[0] >= 'a' && name.size() <= longest_name) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("new-provider: '{}' is not a name for a provider: it begins with a lower-case letter and has at "
                  "most {} lower-case letters, digits and underscores.",
                  name, longest_name),
      "Names like it: 'foo', 'my_npu2'. It becomes libtenon_<name>.so and the device <name>:0.");
}

// Refuses reserved words, which reports, settings or file names use in the place of a provider's name.
void check_not_reserved(const std::string& name) {
  std::set<std::string_view> words = {"tenon", "onnx", "default"};
  for (const Rung rung : {Rung::native, Rung::decomposed, Rung::compiled, Rung::host}) words.insert(rung_name(rung));
  if (!words.contains(name)) return;
  throw Error(Code::invalid_argument, fmt::format("new-provider: '{}' is a reserved name of Tenon.", name),
              "Choose another name.");
}

// If several files have the same provider name, the loader uses the first and ignores the others.
void check_not_taken(const std::string& name) {
  for (const loader::Candidate& candidate : loader::explain(loader::Stage::found)) {
    if (candidate.provider != name) continue;
    throw Error(Code::invalid_argument,
                fmt::format("new-provider: there is a provider '{}' already ({}, {}), and the loader uses only "
                            "the first one that it finds.",
                            name, candidate.path, candidate.source),
                "Choose another name, or use --force to replace that provider.");
  }
}

// Finds the template relative to this program, so that an installation can be moved.
fs::path folder_of(const Template& from) {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path folder = (program.parent_path() / TENON_TEMPLATES_FROM_PROGRAM / from.folder).lexically_normal();
  if (!failed && fs::is_regular_file(folder / from.file, failed)) return folder;
  throw Error(Code::not_found,
              fmt::format("new-provider: the template '{}' is not installed: {} does not exist.", from.name,
                          (folder / from.file).string()),
              "Install the whole package (cmake --install), and run the tool from there.");
}

void make_empty_folder(const fs::path& folder) {
  std::error_code failed;
  const fs::file_status status = fs::status(folder, failed);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw Error(Code::invalid_argument, fmt::format("new-provider: {} is a file, not a folder.", folder.string()),
                "Name another folder with --to.");
  }
  if (fs::is_directory(status)) {
    const bool empty = fs::is_empty(folder, failed);
    if (!failed && empty) return;
    if (failed) {
      throw Error(Code::invalid_argument,
                  fmt::format("new-provider: the folder {} cannot be read: {}.", folder.string(), failed.message()),
                  "Name another folder with --to.");
    }
    throw Error(Code::invalid_argument,
                fmt::format("new-provider: the folder {} is not empty (it holds '{}'), and nothing is overwritten.",
                            folder.string(), fs::directory_iterator(folder)->path().filename().string()),
                "Name another folder with --to.");
  }
  fs::create_directories(folder, failed);
  if (!failed) return;
  throw Error(Code::invalid_argument,
              fmt::format("new-provider: the folder {} cannot be made: {}.", folder.string(), failed.message()),
              "Name a folder that you may write to with --to.");
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t position = 0; (position = text.find(from, position)) != std::string::npos; position += to.size()) {
    text.replace(position, from.size(), to);
  }
}

// Returns the spellings of a name: foo, Foo, FOO.
std::array<std::string, 3> spellings(const std::string& name) {
  std::string upper = name, capital = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  capital[0] = upper[0];
  return {name, capital, upper};
}

// Replaces every spelling of the template's name by the same spelling of the new name.
std::string renamed(std::string text, const Template& from, const std::string& name) {
  if (text.find('\0') != std::string::npos) return text;
  const auto before = spellings(from.name), after = spellings(name);
  for (size_t i = 0; i < before.size(); ++i) replace_all(text, before[i], after[i]);
  return text;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file) return text;
  throw Error(Code::not_found, fmt::format("new-provider: {} cannot be read.", path.string()),
              "Install the package again.");
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (file.flush()) return;
  throw Error(Code::invalid_argument, fmt::format("new-provider: {} cannot be written.", path.string()),
              "Name a folder that you may write to, with room on its disk, with --to.");
}

std::string quoted(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '+';
  });
  return plain ? path : '"' + path + '"';
}

// Prints the next steps, with paths relative to the current folder.
void print_what_next(const fs::path& folder, const std::string& name, const fs::path& prefix) {
  const std::string source = quoted(folder.string()), build = quoted((folder / "build").string());
  const std::string plugins = quoted(fs::absolute(folder / "build").lexically_normal().string());
  std::printf(
      "\nBuild it, see it, check it (%s says what to fill in):\n"
      "  cmake -S %s -B %s -DCMAKE_PREFIX_PATH=%s\n"
      "  cmake --build %s\n"
      "  TENON_PLUGIN_PATH=%s tenon devices\n"
      "  tenon conform %s\n"
      "  TENON_PLUGIN_PATH=%s tenon run %s --input x=random --device %s --report\n",
      quoted((folder / "README.md").string()).c_str(), source.c_str(), build.c_str(), quoted(prefix.string()).c_str(),
      build.c_str(), plugins.c_str(), quoted((folder / "build" / fmt::format("libtenon_{}.so", name)).string()).c_str(),
      plugins.c_str(), quoted((folder / "model.onnx").string()).c_str(), name.c_str());
}

}  // namespace

int new_provider(const NewProviderOptions& options) {
  check_name(options.name);
  check_not_reserved(options.name);
  if (!options.force) check_not_taken(options.name);
  const Template& from = options.async ? skeleton : sample;
  const fs::path source = folder_of(from);
  const fs::path folder = options.to.empty() ? fs::path(options.name) : fs::path(options.to);
  make_empty_folder(folder);
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(source)) files.insert(entry.path());
  for (const fs::path& file : files) {
    const fs::path target = folder / renamed(file.filename().string(), from, options.name);
    write_file(target, renamed(read_file(file), from, options.name));
    std::printf("wrote %s\n", target.string().c_str());
  }
  print_what_next(folder, options.name, fs::read_symlink("/proc/self/exe").parent_path().parent_path());
  return 0;
}

}  // namespace tenon::cli
