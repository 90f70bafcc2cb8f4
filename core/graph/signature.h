// Signature: checks if a recorded graph serves given inputs. Its symbols get the sizes of the inputs; then its guards
// decide if the recording holds for them. A caller keeps several recordings of one function and uses the first that
// fits.
//
//   symbolic::Values sizes(graph.arena());
//   std::string why = graph::why_not(graph, inputs, &sizes);
//   if (why.empty()) executable = graph::prepare(graph, &sizes);    // else: another recording, or a new one
#pragma once

#include <span>
#include <string>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/symbolic/values.h"
#include "core/tensor/tensor.h"

namespace tenon::graph {

// Binds the symbols in the dims of the inputs of `graph` to the dims of `inputs`. Errors: invalid_argument if the
// number of inputs, a dtype, rank, device or dim differs, if one symbol gets two sizes, or if the symbol excludes the
// size.
TENON_API Status bind_sizes(const Graph& graph, std::span<const Tensor> inputs, symbolic::Values* sizes);

// The first guard that does not hold for `sizes`, as a sentence with the values: "recording 3 was made for S0 == 7
// (dims()), but S0 (batch, axis 0 of input 'x') is 5."; empty if all guards hold.
TENON_API std::string broken_guard(const Graph& graph, symbolic::Values* sizes);

// Calls bind_sizes and broken_guard. Returns the reason why `graph` does not serve `inputs`, or "" if it does; `sizes`
// then has the values of all symbols.
TENON_API std::string why_not(const Graph& graph, std::span<const Tensor> inputs, symbolic::Values* sizes);

// The guards of `graph`, one per line: "S0 % 8 == 0 (reshape)".
TENON_API std::string guards(const Graph& graph);

}  // namespace tenon::graph
