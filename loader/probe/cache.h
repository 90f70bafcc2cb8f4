// Cache: what probing found out, kept in the user's cache folder, so that a plug-in that was not changed starts no
// process. Without a folder that can be written and trusted nothing is kept, and each probing starts a process.
//
// An answer holds for a while, as long as each file that had a part in it is the same (the plug-in, the helper, every
// library that the helper had mapped, so the driver's too), and until the machine is started anew (the driver's part in
// the kernel).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "loader/probe/record.h"
#include "primitives/status/status.h"

namespace tenon::loader {

class ProbeCache {
 public:
  // `question` is all that an answer depends on besides files. `folder` may be empty.
  ProbeCache(std::string folder, const std::string& provider, std::string question);

  // Ok: the plug-in may be loaded. A failure: it was refused so. Nothing: no answer is known, or it holds no more.
  std::optional<Status> load() const;
  void store(const Status& answer, const std::vector<std::string>& files, std::chrono::seconds lifetime) const;

 private:
  bool holds(const Record& record) const;

  std::string folder_, path_, question_;
};

// Which file `path` is now, in one line that ends in `path`. Empty if it is no regular file.
std::string file_state(const std::string& path);

}  // namespace tenon::loader
