// Dump: the stages of one graph as files, for TENON_DUMP=folder. Internal to core/graph.
//
// A folder of its own in that folder, "4711-3-recording_3__bert.onnx_", has the text of each stage: 00-recorded.txt,
// and 04-layer_norm.txt for a pass that changed it; constants.bin has the large constants of all of them. `tenon graph
// FILE --run` runs each.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::graph {

// Made before the first pass; it writes nothing if `folder` is empty. Threads: one.
// Errors: invalid_argument for a folder or a file that cannot be written, with the setting that names it.
class TENON_API Dump {
 public:
  Dump(const std::string& folder, const Graph& graph);

  // Writes `graph` as the stage `name`, the `number`-th, if it differs from the stage before.
  void stage(size_t number, std::string_view name, const Graph& graph);
  // Writes what a pass said, 17-fuse.log.
  void note(size_t number, std::string_view name, const std::string& text) const;

  // The folder of this graph; empty: nothing is written.
  const std::string& folder() const { return folder_; }

 private:
  void keep_constants(const Graph& graph);

  std::string folder_;
  std::string last_;                            // the text of the stage before
  std::map<const TensorImpl*, size_t> places_;  // of constants, in constants.bin
  TensorList kept_;                             // so that no other tensor gets their addresses
  size_t bytes_ = 0;                            // of constants.bin
};

// A new folder "4711-3-name" in `parent`, which nobody else can have prepared, for its owner alone; and bytes at the
// end of a file there. Errors: as Dump's.
TENON_API std::string new_dump_folder(const std::string& parent, std::string_view name);
TENON_API void append_dump(const std::string& path, const std::string& bytes);

// `name` as a part of a file name: at most 64 letters, digits, '-', '_' and '.', of which none is first; others become
// '_'.
TENON_API std::string file_name_of(std::string_view name);

}  // namespace tenon::graph
