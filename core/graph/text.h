// Graphs as text. Every text that print() writes can be parsed back to an equal graph and run, so a failing graph can
// be saved as a file.
//
//   graph "recording 3 (bert.onnx)"
//   symbol S0 "axis 0 of input 'x'" in [2, ] hint 4            the arena: symbols, guards, checks
//   %1 = input f32[S0, 8] on cpu:0
//   %2 = constant f32[8] on cpu:0 = 0000803f...                the elements' bytes in hex, row-major
//   %3 = constant f32[768, 768] on cpu:0 = file 4096           or their offset in the file of constants
//   %4 = matmul(%1, %3) then add(%2), relu : f32[S0, 8] label "node 2 (/MatMul)"
//   %5 = cond(%4, %1, %2) : f32[S0, 8]                         control flow: the regions follow, each with its own
//     region then                                              value numbers; each ends with `return`
//       %1 = input f32[S0, 8] on cpu:0
//       ...
//       return %1
//     region else
//       ...
//   return %5
//
// After a node's arguments come, if it has them: `scalars (0.5, _)`, `{attributes}` that are not 0, `then` its
// epilogues, `precision full`, `on` its device, `:` the types of its results, `label`.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::graph {

struct TextOptions {
  // Constants of more bytes than this are appended to `constants`, at multiples of 64, if `constants` is not null.
  size_t most_bytes = 256;
  std::string* constants = nullptr;
  // Offsets of the constants that are already in the file; newly appended ones are added. The file has `file_bytes`
  // bytes before those of `constants`.
  std::map<const TensorImpl*, size_t>* written = nullptr;
  size_t file_bytes = 0;
  bool labels = true;  // keeps the labels of nodes
};

TENON_API std::string print(const Graph& graph, const TextOptions& options = {});

// Parses a text of print(); `constants` is the data that print() appended. The text is not trusted. Errors:
// invalid_argument, with the line; those of the ops' rules; not_found for an unknown device or op.
TENON_API Graph parse(std::string_view text, std::string_view constants = {});

}  // namespace tenon::graph
