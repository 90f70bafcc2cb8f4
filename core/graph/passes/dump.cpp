#include "core/graph/passes/dump.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "core/graph/regions/regions.h"
#include "core/graph/text.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

constexpr size_t kLongestName = 64;

Error cannot(const std::string& path, const std::string& why) {
  return Error(Code::invalid_argument, fmt::format("TENON_DUMP: '{}' cannot be written: {}.", path, why),
               "Name a folder that you may write, or unset TENON_DUMP.");
}

}  // namespace

std::string file_name_of(std::string_view name) {
  std::string safe(name.substr(0, kLongestName));
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  std::replace_if(
      safe.begin(), safe.end(), [&](char c) { return !allowed(c); }, '_');
  if (!safe.empty() && (safe[0] == '.' || safe[0] == '-')) safe[0] = '_';
  return safe;
}

// Only the owner can access it, because constants may be secret.
std::string new_dump_folder(const std::string& parent, std::string_view name) {
  namespace fs = std::filesystem;
  static std::atomic<uint32_t> count{0};
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) throw cannot(parent, error.message());
  while (true) {
    const std::string path = fmt::format("{}/{}-{}-{}", parent, getpid(), ++count, file_name_of(name));
    if (fs::create_directory(path, error)) {
      fs::permissions(path, fs::perms::owner_all, error);
      if (error) throw cannot(path, error.message());
      return path;
    }
    if (error) throw cannot(path, error.message());
  }
}

void append_dump(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
    throw cannot(path, "writing to the file failed");
  }
}

Dump::Dump(const std::string& folder, const Graph& graph) {
  if (folder.empty()) return;
  folder_ = new_dump_folder(folder, graph.arena().name());
  stage(0, "recorded", graph);
}

void Dump::keep_constants(const Graph& graph) {
  for (ValueId id = 1; id < graph.value_count(); ++id) {
    if (graph[id].constant.defined()) kept_.push_back(graph[id].constant);
  }
  for_each_region(graph, [&](const Graph& region) { keep_constants(region); });
}

void Dump::stage(size_t number, std::string_view name, const Graph& graph) {
  if (folder_.empty()) return;
  const size_t known = places_.size();
  std::string constants;
  const std::string text = print(graph, {.constants = &constants, .written = &places_, .file_bytes = bytes_});
  if (places_.size() != known) keep_constants(graph);
  if (text == last_) return;
  last_ = text;
  if (!constants.empty()) append_dump(folder_ + "/constants.bin", constants);
  bytes_ += constants.size();
  append_dump(fmt::format("{}/{:02}-{}.txt", folder_, number, file_name_of(name)), text);
}

void Dump::note(size_t number, std::string_view name, const std::string& text) const {
  if (folder_.empty() || text.empty()) return;
  append_dump(fmt::format("{}/{:02}-{}.log", folder_, number, file_name_of(name)), text);
}

}  // namespace tenon::graph
