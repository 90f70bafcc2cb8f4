#include "core/codegen/artifact/variants.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/codegen/emit/narrow.h"
#include "core/codegen/loop/places.h"
#include "core/codegen/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

// Two rows of this many four-byte numbers fit into the local memory of an item on a CPU.
constexpr int64_t kShortRow = 8192;
// On a device of groups: rows this short need only a few work-items.
constexpr int64_t kRowOfFew = 64;

using Conditions = std::vector<Condition>;

// The sizes that a variant serves.
struct Bucket {
  Conditions conditions;
  IndexBits bits = IndexBits::wide;
};

// The order in which the reductions of a scheduled kernel add up, for all sizes. The number of work-items is left out,
// because work-items beyond a length add nothing.
std::string order_of_sums(const Kernel& kernel) {
  const Places places(kernel);
  std::string text;
  for (Id id = 0; id < kernel.stages.size(); ++id) {
    const Stage& stage = kernel.stages[id];
    if (stage.kind != StageKind::reduce) continue;
    text += stage.name;
    for (const Node* loop : places.of(id).front()->loops) {
      if (std::find(stage.reduce_axes.begin(), stage.reduce_axes.end(), loop->axis) == stage.reduce_axes.end())
        continue;
      text += fmt::format(" {} {} by {} and {} along {}", kernel.axes[loop->axis].name, static_cast<int>(loop->kind),
                          loop->step, loop->unroll, loop->dim);
    }
    text += '\n';
  }
  return text;
}

// `plain` with the knowledge of the arena of `scheduled`, which was made from it.
Kernel with_sizes_of(const Kernel& plain, const Kernel& scheduled) {
  Kernel made(plain.name, scheduled.arena);
  made.parameters = plain.parameters;
  made.axes = plain.axes;
  made.buffers = plain.buffers;
  made.exprs = plain.exprs;
  made.stages = plain.stages;
  return made;
}

class Maker {
 public:
  Maker(const Kernel& kernel, const ep_dialect_info& dialect, const TilesOf& tiles_of)
      : plain_(kernel), dialect_(dialect), tiles_of_(tiles_of) {}

  Result<std::vector<Variant>> make() {
    const bool in_groups = dialect_.dialect != EP_DIALECT_C;
    std::optional<Kernel> scheduled;
    TENON_ASSIGN_OR_RETURN(Variant general, make({}, {}, &scheduled));
    sums_ = order_of_sums(*scheduled);
    if (in_groups) plain_ = with_sizes_of(plain_, *scheduled);
    keep({}, std::move(general));
    TENON_RETURN_IF_ERROR(in_groups ? add_for_groups(*scheduled) : add({short_rows(kShortRow), IndexBits::wide}));
    std::reverse(kept_.begin(), kept_.end());
    std::vector<Variant> variants;
    for (auto& [bucket, variant] : kept_) {
      if (tiles_of_ != nullptr) {
        TENON_ASSIGN_OR_RETURN(variant, make(bucket, tiles_of_(variant.name), nullptr));
      }
      variants.push_back(std::move(variant));
    }
    return variants;
  }

 private:
  using Lengths = std::vector<SymDim>;

  // From the most general to the most specialised.
  Status add_for_groups(const Kernel& scheduled) {
    TENON_RETURN_IF_ERROR(add({{}, IndexBits::narrow}));
    // Two rows of this many four-byte numbers fit into a group's shared memory.
    const auto row = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(shared_for_values(dialect_) / 8)));
    const Conditions shared = short_rows(row), few = short_rows(kRowOfFew), whole = whole_packs(scheduled);
    if (whole.empty()) {
      if (!shared.empty()) TENON_RETURN_IF_ERROR(add({shared, IndexBits::narrow}));
      return few.empty() ? Status() : add({few, IndexBits::narrow});
    }
    TENON_RETURN_IF_ERROR(add({whole, IndexBits::narrow}));
    if (!shared.empty()) TENON_RETURN_IF_ERROR(add({shared, IndexBits::narrow}));
    for (Conditions lengths : {shared, few}) {
      if (lengths.empty()) continue;
      lengths.insert(lengths.end(), whole.begin(), whole.end());
      TENON_RETURN_IF_ERROR(add({std::move(lengths), IndexBits::narrow}));
    }
    return {};
  }

  // The conditions that all reduced rows that may be longer have at most `most` numbers.
  Conditions short_rows(int64_t most) const {
    Conditions conditions;
    for (Id axis = 0; axis < plain_.axes.size(); ++axis) {
      const SymDim extent = plain_.axes[axis].extent;
      const bool is_long = !extent.is_number() && plain_.arena.range(extent).hi > most;
      const bool in_rows = std::any_of(plain_.stages.begin(), plain_.stages.end(),
                                       [&](const Stage& stage) { return contains(stage.reduce_axes, axis); });
      if (is_long && in_rows) conditions.push_back(extent <= SymDim(most));
    }
    return conditions;
  }

  // The condition that the axis that adjacent work-items take is a multiple of the pack, unless that is known.
  Conditions whole_packs(const Kernel& scheduled) {
    const Id axis = axis_of_lanes(scheduled.body);
    if (axis == kNone) return {};
    const int64_t pack = pack_along(scheduled, axis, std::min<int64_t>(dialect_.vector_bytes, kWidestAccess));
    const SymDim extent = scheduled.axes[axis].extent;
    if (pack == 1 || extent.is_number() || scheduled.arena.divisor(extent) % pack == 0) return {};
    const symbolic::ArenaScope scope(plain_.arena);
    return {modulo(extent, pack) == SymDim(0)};
  }
  static Id axis_of_lanes(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (node.kind == LoopKind::work_items && node.dim == 0) return node.axis;
      if (const Id found = axis_of_lanes(node.body); found != kNone) return found;
    }
    return kNone;
  }

  // Keeps the text of `bucket`, unless it equals the text for all sizes, would add in another order, or cannot be made.
  Status add(Bucket bucket) {
    if (bucket.conditions.empty() && bucket.bits == IndexBits::wide) return {};
    std::optional<Kernel> scheduled;
    Result<Variant> made = make(bucket, {}, &scheduled);
    if (!made.ok()) return made.status().code() == Code::unsupported ? Status() : made.status();
    const bool same_text = made.value().text.text == kept_.back().second.text.text;
    if (same_text || order_of_sums(*scheduled) != sums_) return {};
    if (made.value().name.empty()) kept_.clear();  // 32 bits are always enough
    keep(std::move(bucket), std::move(made).value());
    return {};
  }
  void keep(Bucket bucket, Variant variant) { kept_.emplace_back(std::move(bucket), std::move(variant)); }

  // The variant for `bucket`. It uses `tiles` if they add in the same order as the default loops.
  Result<Variant> make(const Bucket& bucket, const Tiles& tiles, std::optional<Kernel>* out_scheduled) const {
    Kernel kernel = plain_;
    {
      const symbolic::ArenaScope scope(kernel.arena);
      for (const Condition& condition : bucket.conditions) kernel.arena.assume(condition);
    }
    Variant variant;
    std::optional<Kernel> other;
    if (!(tiles == Tiles())) other = kernel;
    TENON_ASSIGN_OR_RETURN(variant.text, print_for(&kernel, dialect_, {}, bucket.bits));
    if (other) {
      Result<KernelText> text = print_for(&*other, dialect_, tiles, bucket.bits);
      if (text.ok() && sums_text(*other) == sums_text(kernel)) {
        variant.text = std::move(text).value();
        variant.tiles = tiles;
        kernel = std::move(*other);
      }
    }
    TENON_RETURN_IF_ERROR(describe(&kernel, bucket, &variant));
    if (out_scheduled != nullptr) *out_scheduled = std::move(kernel);
    return variant;
  }

  // Fills in a variant except its text. `kernel` is scheduled.
  static Status describe(Kernel* kernel, const Bucket& bucket, Variant* variant) {
    Conditions conditions = bucket.conditions;
    variant->wide = bucket.bits == IndexBits::wide;
    if (!variant->wide) {
      const std::optional<Conditions> narrow = narrow_conditions(kernel);
      if (!narrow) return {Code::unsupported, "32 bits are not enough for the indices."};
      conditions.insert(conditions.end(), narrow->begin(), narrow->end());
    }
    for (const Condition& condition : conditions) {
      variant->name += (variant->name.empty() ? "" : " and ") + kernel->arena.text(condition);
    }
    TENON_ASSIGN_OR_RETURN(variant->holds, Program::all(*kernel, conditions));
    TENON_ASSIGN_OR_RETURN(const Program extent, Program::of(*kernel, kernel->axes[kernel->body[0].axis].extent));
    variant->items = extent.chunks(kernel->body[0].step);
    variant->schedule = to_string(*kernel);
    variant->map = map_facts(*kernel);
    return {};
  }

  Kernel plain_;
  const ep_dialect_info& dialect_;
  const TilesOf& tiles_of_;
  std::string sums_;
  std::vector<std::pair<Bucket, Variant>> kept_;
};

}  // namespace

Result<std::vector<Variant>> make_variants(const Kernel& kernel, const ep_dialect_info& dialect,
                                           const TilesOf& tiles_of) {
  return Maker(kernel, dialect, tiles_of).make();
}

}  // namespace tenon::codegen
