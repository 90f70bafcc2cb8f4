// Dump: writes the stages of one graph as files, for TENON_DUMP=folder. Internal to core/graph.
//
// Each graph gets a new folder in that folder, such as "4711-3-recording_3__bert.onnx_". It has the text of each stage:
// 00-recorded.txt, and 04-layer_norm.txt for a pass that changed the graph. constants.bin has the large constants of
// all stages. `tenon graph FILE --run` runs a stage.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::graph {

// Made before the first pass. Writes nothing if `folder` is empty. Threads: one at a time. Errors: invalid_argument if
// a folder or file cannot be written, with the setting that names it.
class TENON_API Dump {
 public:
  Dump(const std::string& folder, const Graph& graph);

  // Writes `graph` as stage number `number` with the name `name`, if it differs from the stage before.
  void stage(size_t number, std::string_view name, const Graph& graph);
  // Writes the log of a pass, such as 17-fuse.log.
  void note(size_t number, std::string_view name, const std::string& text) const;

  // The folder of this graph; empty if nothing is written.
  const std::string& folder() const { return folder_; }

 private:
  void keep_constants(const Graph& graph);

  std::string folder_;
  std::string last_;                            // the text of the stage before
  std::map<const TensorImpl*, size_t> places_;  // offsets of constants in constants.bin
  TensorList kept_;                             // kept alive so that their addresses are not reused
  size_t bytes_ = 0;                            // size of constants.bin
};

// new_dump_folder makes a new folder "4711-3-name" in `parent` that only its owner can access and that nobody else can
// have prepared. append_dump appends bytes to a file there. Errors: like Dump's.
TENON_API std::string new_dump_folder(const std::string& parent, std::string_view name);
TENON_API void append_dump(const std::string& path, const std::string& bytes);

// `name` as a part of a file name: at most 64 letters, digits, '-', '_' and '.'; other characters become '_', and so
// does a '.' or '-' at the start.
TENON_API std::string file_name_of(std::string_view name);

}  // namespace tenon::graph
