// Cache: keeps the results of probes in the user's cache folder, so that an unchanged plug-in starts no process.
// Without a folder that can be written and trusted nothing is kept, and each probe starts a process.
//
// A result expires after some time. It also becomes invalid if one of the files it depends on changes (the plug-in, the
// helper, every library that the helper had mapped, including the driver's), or if the machine is restarted (the
// driver's part in the kernel may change).
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
  // `question` holds everything that the result depends on besides files. `folder` may be empty.
  ProbeCache(std::string folder, const std::string& provider, std::string question);

  // Ok: the plug-in may be loaded. A failure: the probe refused it with this error. Nothing: there is no valid result.
  std::optional<Status> load() const;
  void store(const Status& answer, const std::vector<std::string>& files, std::chrono::seconds lifetime) const;

 private:
  bool holds(const Record& record) const;

  std::string folder_, path_, question_;
};

// Identifies the current contents of the file `path`, in one line that ends in `path`. Empty if it is not a regular
// file.
std::string file_state(const std::string& path);

}  // namespace tenon::loader
