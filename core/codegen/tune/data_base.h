// The data base stores the tiles that were found for the kernels of a device, on this machine and for this user.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/codegen/tune/line.h"
#include "core/primitive/compiled_module.h"

namespace tenon::codegen {

// One file with lines of JSON: a head, and one line per kernel; the last line for a kernel counts. Ignores damaged
// lines, and files that another user could have written. Threads: any.
class DataBase {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{4} << 20;  // beyond this the older half is dropped

  // With an empty `path` nothing is stored.
  DataBase(std::string path, std::string head);

  std::optional<TunedLine> find(std::string_view space) const;
  // Returns false if the line is only kept in this process.
  bool keep(const TunedLine& tuned);
  const std::string& path() const { return path_; }

 private:
  const std::string path_, head_;
  mutable std::mutex mutex_;
  std::map<std::string, TunedLine, std::less<>> lines_;  // indexed by space
};

// The data base of a device and a dialect, below the user's cache folder. The file's head names the device's
// fingerprint and the compiler in full. The file is read at the first call, once per process.
DataBase& data_base_of(const DeviceState* device, const Dialect& dialect);

}  // namespace tenon::codegen
