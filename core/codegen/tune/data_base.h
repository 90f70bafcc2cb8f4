// The data base: which tiles were found for kernels of a device, on this machine and for this user.
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

// One file, of lines of JSON: its head, and a line per kernel, of which the last one counts. Damaged lines count as
// none, and so does a file that another user could have written. Threads: any.
class DataBase {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{4} << 20;  // then the older half goes

  // `path` empty: nothing is kept.
  DataBase(std::string path, std::string head);

  std::optional<TunedLine> find(std::string_view space) const;
  // False: it stays for this process alone.
  bool keep(const TunedLine& tuned);
  const std::string& path() const { return path_; }

 private:
  const std::string path_, head_;
  mutable std::mutex mutex_;
  std::map<std::string, TunedLine, std::less<>> lines_;  // by space
};

// That of a device and a dialect, below the user's cache folder: the file's head names the device's fingerprint and the
// compiler in full. It is read at the first call, once in the process.
DataBase& data_base_of(const DeviceState* device, const Dialect& dialect);

}  // namespace tenon::codegen
