// The common base of tactics: the axes of a kernel, and loops around its stages. Internal to core/codegen/tactics.
#pragma once

#include <vector>

#include "core/codegen/loop/ir.h"
#include "core/codegen/loop/places.h"

namespace tenon::codegen {

constexpr int64_t kSomeExtent = 4096;

class Tactic {
 public:
  explicit Tactic(Kernel* kernel) : kernel_(*kernel) {}
  virtual ~Tactic() = default;
  Tactic(const Tactic&) = delete;
  Tactic& operator=(const Tactic&) = delete;

 protected:
  // The axis of the next loop around `stage`, inside of loops over `done`.
  virtual Id next_axis(Id stage, const std::set<Id>& done) const = 0;
  // A loop over `axis` around `stages`, without its body.
  virtual Node loop_over(Id axis, const std::vector<Id>& stages) const = 0;

  // Merges pairs of axes until no pair is left whose indices can all be merged.
  void merge_axes();
  // Merges all axes that all stages share, except the lanes' axis, into one, to get as many items as possible: the
  // length of a symbolic size is unknown. If indices cannot be merged, an item computes its position by division.
  void merge_shared_axes();
  // Chooses the axis along which most memory is contiguous. Stores count twice, so they win a tie.
  void choose_vector();
  bool is_used(Id axis) const;
  // The axes that all stages have.
  std::vector<Id> shared_axes() const;
  // The smallest known upper bound of the extent.
  int64_t at_most(Id axis) const { return kernel_.arena.range(kernel_.axes[axis].extent).hi; }
  // Calls visit(stage, index, bytes of an element) for each load and store; stores count twice.
  template <class Visit>
  void each_access(const Visit& visit) const {
    for (const Stage& stage : kernel_.stages) {
      std::set<Id> seen;
      each_load(stage.value, &seen,
                [&](const Expr& expr) { visit(stage, expr.index, dtype_size(kernel_.buffers[expr.target].dtype)); });
      if (stage.kind == StageKind::store) visit(stage, stage.index, 2 * dtype_size(stage.dtype));
    }
  }

  // Calls visit(load) for each load in an expression, except loads in the stages that it reads.
  template <class Visit>
  void each_load(Id id, std::set<Id>* seen, const Visit& visit) const {
    if (!seen->insert(id).second) return;
    const Expr& expr = kernel_.exprs[id];
    for (size_t i = 0; i < arg_count(expr); ++i) each_load(expr.args[i], seen, visit);
    if (expr.kind == ExprKind::load) visit(expr);
  }

  // The stages that are not inlined.
  std::vector<Id> stages_to_run() const;
  // As few loops around `stages` as the order of their reads allows.
  std::vector<Node> nest(std::vector<Id> stages, const std::set<Id>& done) const;
  // The axes of a stage that are not in `done`, spatial ones first.
  std::vector<Id> left(Id stage, const std::set<Id>& done) const;
  // True if all readers of a stage are at its place, so that registers can hold it.
  bool is_near(const Place& place) const;
  // The cost of an expression, in additions.
  int64_t cost(Id expr, std::set<Id>* seen) const;

  Kernel& kernel_;
  Id vector_ = kNone;

 private:
  bool merges(Id outer, Id inner);
  // Number of elements that an access with `index` moves. An extent without a known bound counts as kSomeExtent.
  double accesses_at(SymDim index) const;
  double bytes_along(Id axis) const;
  bool reads_any(const Places& places, Id stage, const std::vector<bool>& others) const;
  std::vector<Node> nest(const Places& places, std::vector<Id> stages, const std::set<Id>& done) const;
};

}  // namespace tenon::codegen
