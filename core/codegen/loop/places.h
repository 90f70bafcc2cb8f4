// Places: where the loops of a scheduled kernel run its stages.
#pragma once

#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// A place where a stage runs. `loops` are the enclosing loops, the outermost first. The result is complete in the body
// of loops[result - 1]: for a reduction this is outside of all loops that it reduces over, for any other stage it is
// where it runs. All readers share the first `level` of its loops, with `level` <= `result`. So a row of its numbers
// lives in the body of loops[level - 1].
struct Place {
  Id stage = kNone;
  size_t number = 0;  // in the order of the text
  std::vector<const Node*> loops;
  size_t result = 0;
  size_t level = 0;
};

// The places of `kernel`, which must outlive this object and must not change.
class Places {
 public:
  explicit Places(const Kernel& kernel);

  // The places of a stage: one in a verified kernel, none for an inlined stage.
  std::vector<const Place*> of(Id stage) const;
  // The stages whose storage `stage` reads, directly or through inlined stages.
  const std::vector<Id>& reads(Id stage) const { return reads_[stage]; }
  // True if every loop in which the result of the reduction is incomplete is a loop of the reduction. One number then
  // holds the sum.
  bool adds_in_one_number(Id stage) const;
  // The reductions that begin at `loop`, in a body at `depth`: `loop` is the outermost loop that they reduce over, or,
  // for those that add up in a row, the outermost loop that the row spans.
  std::vector<Id> starting(const Node& loop, size_t depth) const;
  // True if work-items add up the reduction together: it reduces over a work_items loop.
  bool adds_across(Id stage) const;
  // True if a reduction over work-items is complete after `loop`, in a body at `depth`.
  bool ends_together(const Node& loop, size_t depth) const;
  // True if the whole group must execute the loop together, step by step, because it contains a barrier or such a
  // reduction.
  bool runs_together(const Node& loop, size_t depth) const;

 private:
  void walk(const std::vector<Node>& nodes, std::vector<const Node*>* around);
  void find_level(Id stage);

  const Kernel& kernel_;
  size_t count_ = 0;
  std::vector<std::vector<Place>> places_;
  std::vector<std::vector<Id>> reads_;
};

}  // namespace tenon::codegen
