// Record: named texts encoded as bytes. The host and the helper that probes plug-ins exchange records, and the cache
// stores them. A record marks its end, so that damaged or incomplete bytes are detected.
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
  // Nothing if `bytes` is not exactly an output of encode.
  static std::optional<Record> decode(std::string_view bytes);

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace tenon::loader
