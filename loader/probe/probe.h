// Probe: asks a plug-in for its devices in a child process, before this process loads it.
#pragma once

#include <map>
#include <string>

#include "loader/trust/trust.h"
#include "primitives/status/status.h"

namespace tenon::loader {

struct ProbedPlugin {
  std::string provider;
  const CheckedFile& file;
  bool is_flagged = false;                           // its note has EP_NOTE_FLAG_PROBE_IN_CHILD
  const std::map<std::string, std::string>& values;  // its settings
};

// Ok: the plug-in may be loaded here, since it ended its answers in a child process (they may be errors), or needs no
// probing by the setting `probe`. A failure: it crashed, hung, or gave no answer. A helper that cannot be found or
// started is a warning in the log, and the plug-in is loaded as if it were not flagged.
Status probe_plugin(const ProbedPlugin& plugin);

// The helper program that belongs to the library (or the program) in `folder`. Empty: it is not installed.
std::string find_probe_helper(const std::string& folder);

}  // namespace tenon::loader
