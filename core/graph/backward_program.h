// Cuts a program that was recorded forward and backward into its two halves. Internal.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::graph {

struct Halves {
  Graph forward;              // outputs: those of the program, then the values that backward reads
  Graph backward;             // inputs: the values of forward that it reads, in the order of `read`, then `gradients`
  std::vector<ValueId> read;  // values of the program that backward reads
  // by value of `read`: true if it is an input that can be read in place and is not an output of forward
  std::vector<bool> is_argument;
};

// The first `results` outputs of `program` belong to forward, the others to backward. Backward begins with node `begin`
// and takes the inputs `gradients`. written[i] is true if input i is overwritten after forward; it is then saved for
// backward.
Halves split_program(const Graph& program, size_t results, NodeId begin, std::span<const ValueId> gradients,
                     const std::vector<bool>& written);

// The part of backward that runs if only some of its incoming gradients exist.
struct PartOfBackward {
  Graph graph;
  std::vector<std::optional<size_t>> outputs;  // by output of backward: its index in `graph`; none: no gradient
};

// The part of `backward` for calls in which only the gradients with `comes` true exist; the others are not inputs of
// it. The inputs from index `first` on are gradients. Values that depend on no existing gradient are not computed: a
// zero gradient times an infinite factor would give NaN, unlike in an eager run.
PartOfBackward part_of(const Graph& backward, size_t first, const std::vector<bool>& comes);

}  // namespace tenon::graph
