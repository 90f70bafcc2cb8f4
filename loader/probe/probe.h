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
  const std::map<std::string, std::string>& values;  // the settings of the plug-in
};

// Ok: the plug-in may be loaded in this process. Either it answered in a child process (an error is an answer too), or
// the setting `probe` requires no probe. A failure: it crashed, hung, or gave no answer. If the helper cannot be found
// or started, a warning is logged and the plug-in is loaded as if it were not flagged.
Status probe_plugin(const ProbedPlugin& plugin);

// The path of the helper program for the library (or the program) in `folder`. Empty if it is not installed.
std::string find_probe_helper(const std::string& folder);

}  // namespace tenon::loader
