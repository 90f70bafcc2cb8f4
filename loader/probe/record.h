// Record: named texts as bytes, in which the host and the helper that probes plug-ins talk, and which the cache keeps.
// A record says where it ends, so that bytes that are no record, or only a part of one, are told from a record.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::loader {

class Record {
 public:
  void add(std::string key, std::string value) { fields_.emplace_back(std::move(key), std::move(value)); }
  // The first value of `key`; empty if there is none.
  std::string get(std::string_view key) const;
  // Every value of `key`, in the order in which they were added.
  std::vector<std::string> all(std::string_view key) const;

  std::string encode() const;
  // Nothing if `bytes` is not exactly what encode gives.
  static std::optional<Record> decode(std::string_view bytes);

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace tenon::loader
