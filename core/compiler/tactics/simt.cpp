// Loops for devices of groups of work-items.
#include <bit>

#include "core/compiler/schedule/schedule.h"
#include "core/compiler/tactics/tactic.h"
#include "core/compiler/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kWorkItems = 256;  // of a group
constexpr int64_t kPerWorkItem = 4;  // positions of a flat loop
constexpr int64_t kColumns = 32;     // of a group; the other work-items share the rows
constexpr int64_t kCheap = 6;        // additions that cost less than shared memory and a barrier

class GroupTactic : public Tactic {
 public:
  GroupTactic(Kernel* kernel, const GroupLimits& limits) : Tactic(kernel), limits_(limits) {}

  Status run() {
    TENON_RETURN_IF_ERROR(verify(kernel_));
    if (limits_.work_items < 1) return {Code::unsupported, "The device has no groups of work-items."};
    merge_axes();
    const symbolic::ArenaScope scope(kernel_.arena);
    choose_vector();
    choose_items();
    choose_widths();
    set_loops();
    while (place_values()) set_loops();
    add_barriers();
    return verify(kernel_);
  }

 private:
  bool reduces() const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                       [](const Stage& stage) { return stage.kind == StageKind::reduce; });
  }

  void choose_items() {
    const std::vector<Id> shared = shared_axes();
    for (const Id axis : shared) {
      if (axis != vector_ && (items_ == kNone || at_most(axis) > at_most(items_))) items_ = axis;
    }
    if (items_ == kNone && contains(shared, vector_)) items_ = vector_;
    if (items_ == kNone) items_ = add_unit_axis(&kernel_);
    if (vector_ == kNone) vector_ = items_;
    // Columns: a long axis that is contiguous in memory, and few of the others.
    if (items_ != vector_ && contains(shared, vector_) && at_most(items_) < 16 && at_most(vector_) > kWorkItems) {
      items_ = vector_;
    }
  }

  // No more work-items along an axis than it has positions; more would add up nothing, and change no sum.
  int64_t width_over(Id axis, int64_t most) const {
    const auto positions = static_cast<uint64_t>(std::clamp<int64_t>(at_most(axis), 1, most));
    return std::min<int64_t>(most, static_cast<int64_t>(std::bit_ceil(positions)));
  }

  void choose_widths() {
    const int64_t work_items = std::min<int64_t>(kWorkItems, static_cast<int64_t>(std::bit_floor(limits_.work_items)));
    if (items_ == vector_) {
      const Id other = longest_other();
      if (other == kNone) {
        widths_[0] = work_items;
        step_ = work_items * kPerWorkItem;
        return;
      }
      widths_[0] = width_over(vector_, std::min(kColumns, work_items));
      step_ = widths_[0];
      second_ = other;
    } else {
      widths_[0] = width_over(vector_, work_items);
      second_ = items_;
      step_ = work_items / widths_[0];
    }
    widths_[1] = width_over(second_, work_items / widths_[0]);
    if (second_ == items_) step_ = widths_[1];
  }

  // The longest axis but that of the lanes, one that is reduced before all others; none if there is no other.
  Id longest_other() const {
    Id found = kNone;
    bool found_reduced = false;
    for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
      if (axis == vector_ || !is_used(axis)) continue;
      const bool reduced = std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                                       [&](const Stage& stage) { return contains(stage.reduce_axes, axis); });
      const bool longer = found == kNone || at_most(axis) > at_most(found);
      if (found == kNone || (reduced && !found_reduced) || (reduced == found_reduced && longer)) {
        found = axis;
        found_reduced = reduced;
      }
    }
    return found;
  }

  // The items first, where a group has several; then other axes, spatial ones before reduced ones, and last those that
  // are dealt to work-items.
  Id next_axis(Id stage, const std::set<Id>& done) const override {
    const std::vector<Id> axes = left(stage, done);
    if (contains(axes, items_)) return items_;
    for (const Id axis : axes) {
      if (axis != vector_ && axis != second_) return axis;
    }
    return second_ != kNone && contains(axes, second_) ? second_ : vector_;
  }

  Node loop_over(Id axis, const std::vector<Id>&) const override {
    Node loop;
    loop.axis = axis;
    if (axis != vector_ && axis != second_) return loop;
    loop.kind = LoopKind::work_items;
    loop.dim = axis == vector_ ? 0 : 1;
    loop.width = widths_[static_cast<size_t>(loop.dim)];
    return loop;
  }

  void set_loops() {
    Node items;
    items.kind = LoopKind::items;
    items.axis = items_;
    items.step = step_;
    items.body = nest(stages_to_run(), step_ == 1 ? std::set<Id>{items_} : std::set<Id>{});
    kernel_.body = {std::move(items)};
    const Places places(kernel_);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.storage == Storage::inlined) continue;
      const bool near = is_near(*places.of(static_cast<Id>(id)).front());
      stage.storage = near || stage.kind == StageKind::store ? Storage::registers : Storage::shared;
    }
  }

  // Inlines a shared value that is cheap, or for which the shared memory is too short. Whether it did.
  bool place_values() {
    int64_t bytes = 0;
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.storage != Storage::shared) continue;
      std::set<Id> seen;
      const bool cheap = stage.kind == StageKind::value && cost(stage.value, &seen) <= kCheap;
      const int64_t more = shared_bytes(stage);
      if (!cheap && bytes + more <= limits_.shared_bytes) {
        bytes += more;
        continue;
      }
      if (stage.kind != StageKind::value) {
        throw Error(Code::unsupported,
                    fmt::format("Stage {} needs {} bytes of shared memory, beside {}, and a group of "
                                "the device has {}.",
                                stage.name, more, bytes, limits_.shared_bytes));
      }
      stage.storage = Storage::inlined;
      return true;
    }
    return false;
  }

  int64_t shared_bytes(const Stage& stage) const {
    int64_t bytes = 8;
    for (const Id axis : stage.axes) {
      const int64_t positions = axis == items_ ? step_ : at_most(axis);
      if (positions > limits_.shared_bytes || __builtin_mul_overflow(bytes, std::max<int64_t>(positions, 1), &bytes)) {
        return limits_.shared_bytes + 1;
      }
    }
    return bytes;
  }

  // In front of each read that the verifier would refuse without one.
  void add_barriers() {
    Status status = verify(kernel_);
    for (size_t tries = 0; !status.ok() && tries < kernel_.stages.size(); ++tries) {
      if (!add_barrier(&kernel_.body.front().body)) return;
      status = verify(kernel_);
    }
  }
  // Behind the first loop that writes into shared storage and has none behind it.
  bool add_barrier(std::vector<Node>* nodes) const {
    for (size_t i = 0; i + 1 < nodes->size(); ++i) {
      if (!writes_shared((*nodes)[i]) || (*nodes)[i + 1].is_barrier) continue;
      Node barrier;
      barrier.is_barrier = true;
      nodes->insert(nodes->begin() + static_cast<ptrdiff_t>(i) + 1, std::move(barrier));
      return true;
    }
    for (Node& node : *nodes) {
      if (node.is_loop() && node.axis == items_ && add_barrier(&node.body)) return true;
    }
    return false;
  }
  bool writes_shared(const Node& node) const {
    if (node.is_barrier) return false;
    if (!node.is_loop()) return kernel_.stages[node.stage].storage == Storage::shared;
    return std::any_of(node.body.begin(), node.body.end(), [&](const Node& each) { return writes_shared(each); });
  }

  GroupLimits limits_;
  Id items_ = kNone;
  Id second_ = kNone;  // the axis along dim 1
  int64_t step_ = 1;
  std::array<int64_t, 2> widths_{1, 1};
};

}  // namespace

Status schedule_for_groups(Kernel* kernel, const GroupLimits& limits) {
  if (kernel->scheduled()) {
    return {Code::invalid_argument, fmt::format("Kernel {} has loops already.", kernel->name)};
  }
  Kernel copy = *kernel;
  try {
    TENON_RETURN_IF_ERROR(GroupTactic(&copy, limits).run());
  } catch (const Error& error) {
    return error.status();
  }
  *kernel = std::move(copy);
  return {};
}

}  // namespace tenon::compiler
