// Where the loops of a scheduled kernel run its stages.
#pragma once

#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// Where a stage runs. `loops` are those around it, the outermost first. Its result is whole in the body of
// loops[result - 1]: a reduction's outside of all loops that it reduces over, any other stage's where it runs. All its
// readers share the first `level` of its loops, which are no more than `result`. So in the body of loops[level - 1] a
// row of its numbers lives.
struct Place {
  Id stage = kNone;
  size_t number = 0;  // in the order of the text
  std::vector<const Node*> loops;
  size_t result = 0;
  size_t level = 0;
};

// Of a kernel that outlives it and does not change meanwhile.
class Places {
 public:
  explicit Places(const Kernel& kernel);

  // One, in a verified kernel; none for a stage that is inlined.
  std::vector<const Place*> of(Id stage) const;
  // The stages whose storage `stage` reads: through inlined ones too.
  const std::vector<Id>& reads(Id stage) const { return reads_[stage]; }
  // Whether the loops inside of which a reduction's result is not whole yet are all loops that it reduces over: then
  // one number is enough to add up in.
  bool adds_in_one_number(Id stage) const;
  // The reductions that begin where `loop` stands, in a body at `depth`: with the outermost loop that they reduce over,
  // and those that add up in a row with the outermost loop that their row spans.
  std::vector<Id> starting(const Node& loop, size_t depth) const;
  // Whether work-items add up a reduction together: a loop that it reduces over is one of work_items.
  bool adds_across(Id stage) const;
  // Whether a reduction over work-items is whole behind `loop`, in a body at `depth`.
  bool ends_together(const Node& loop, size_t depth) const;
  // Whether all of the group goes through the loop step by step, since a barrier or such a reduction is inside.
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
