// Split: the two halves of a program that was recorded forward and backward in one. Internal.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::lazy {

struct Halves {
  graph::Graph forward;              // its outputs: those of the program, then what backward reads
  graph::Graph backward;             // its inputs: what it reads of forward, in the order of `read`, then `gradients`
  std::vector<graph::ValueId> read;  // values of the program that backward reads
  std::vector<bool> is_argument;     // for each: an input that may be read where it is, and is no output of forward
};

// The first `results` outputs of `program` belong to forward, the others to backward, which begins with node `begin`
// and takes the inputs `gradients`. written[i]: input i is overwritten after forward, so it is kept for backward.
Halves split(const graph::Graph& program, size_t results, graph::NodeId begin,
             std::span<const graph::ValueId> gradients, const std::vector<bool>& written);

// What backward computes if not all of its gradients come.
struct PartOfBackward {
  graph::Graph graph;
  std::vector<std::optional<size_t>> outputs;  // of each output of backward the number in `graph`; none: nothing comes
};

// `backward`, whose inputs from number `first` on are gradients, for calls where only those come for which `comes` says
// so; the others are no inputs of it. What depends on no gradient that comes is not computed, as in an eager run, in
// which a factor of such a gradient may be infinite.
PartOfBackward part_of(const graph::Graph& backward, size_t first, const std::vector<bool>& comes);

}  // namespace tenon::lazy
