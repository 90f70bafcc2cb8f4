// Graphs as text. Every text that print() writes parses back to an equal graph and runs: a failing graph is kept so.
//
//   graph "recording 3 (bert.onnx)"
//   symbol S0 "axis 0 of input 'x'" in [2, ] hint 4            the arena: symbols, guards, checks
//   %1 = input f32[S0, 8] on cpu:0
//   %2 = constant f32[8] on cpu:0 = 0000803f...                the elements' bytes in hex, row-major
//   %3 = constant f32[768, 768] on cpu:0 = file 4096           or where they begin in the file of constants
//   %4 = matmul(%1, %3) then add(%2), relu : f32[S0, 8] label "node 2 (/MatMul)"
//   %5 = cond(%4, %1, %2) : f32[S0, 8]                         control flow: the programs of its functions follow,
//     region then                                              with names of their own; each ends with `return`
//       %1 = input f32[S0, 8] on cpu:0
//       ...
//       return %1
//     region else
//       ...
//   return %5
//
// After a node's arguments come, as far as it has them: `scalars (0.5, _)`, `{attributes}` that are not 0, `then` its
// epilogues, `precision full`, `on` its device, `:` the types of its results, `label`.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::graph {

struct TextOptions {
  // Constants of more bytes than this go to `constants` (appended, at multiples of 64), if it is given.
  size_t most_bytes = 256;
  std::string* constants = nullptr;
  // Where constants begin that are in the file already; those that are appended are noted. The file has the bytes up to
  // `file_bytes` before those of `constants`.
  std::map<const TensorImpl*, size_t>* written = nullptr;
  size_t file_bytes = 0;
  bool labels = true;  // of nodes
};

TENON_API std::string print(const Graph& graph, const TextOptions& options = {});

// Reads what print() wrote; `constants` is what it appended. Nothing in the text is trusted.
// Errors: invalid_argument, with the line; those of the ops' rules; not_found for a device or an op that is not there.
TENON_API Graph parse(std::string_view text, std::string_view constants = {});

}  // namespace tenon::graph
