#include "tests/fakes/nccl/wires.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "primitives/text/format.h"

namespace tenon::fakes {
namespace {

void write_whole(const std::string& path, const std::string& bytes) {
  const std::string unfinished = path + ".part";
  std::ofstream(unfinished, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::error_code ignored;
  std::filesystem::rename(unfinished, path, ignored);
}

std::optional<std::string> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Wires::Wires(std::string folder, int rank, int size, const std::string& says)
    : folder_(std::move(folder)),
      rank_(rank),
      size_(size),
      sent_(static_cast<size_t>(size)),
      received_(static_cast<size_t>(size)) {
  std::filesystem::create_directories(folder_);
  write_whole(file("come", rank_), says);
}

std::string Wires::file(const char* kind, int from) const { return fmt::format("{}/{}_{}", folder_, kind, from); }

std::string Wires::message(int from, int to, uint64_t number) const {
  return fmt::format("{}/{}_to_{}_{}", folder_, from, to, number);
}

std::vector<std::string> Wires::all_said() const {
  std::vector<std::string> all;
  for (int rank = 0; rank < size_; ++rank) {
    const std::optional<std::string> said = read_whole(file("come", rank));
    if (!said) return {};
    all.push_back(*said);
  }
  return all;
}

void Wires::send(int to, const std::string& bytes) {
  write_whole(message(rank_, to, ++sent_[static_cast<size_t>(to)]), bytes);
}

bool Wires::receive(int from, std::string* bytes, const std::atomic<bool>& stop) {
  const std::string path = message(from, rank_, ++received_[static_cast<size_t>(from)]);
  while (!stop) {
    const bool has_left = std::filesystem::exists(file("left", from));
    if (const std::optional<std::string> come = read_whole(path)) {
      std::filesystem::remove(path);
      *bytes = *come;
      return true;
    }
    if (has_left) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return false;
}

void Wires::leave() {
  write_whole(file("left", rank_), {});
  for (int rank = 0; rank < size_; ++rank) {
    if (!std::filesystem::exists(file("left", rank))) return;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace tenon::fakes
