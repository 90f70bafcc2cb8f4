// Primitives that change the axes of a kernel without loops.
#include <algorithm>

#include "core/codegen/schedule/change.h"
#include "core/codegen/schedule/schedule.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

void substitute_everywhere(Kernel* kernel, const std::map<uint32_t, SymDim>& replacements) {
  for (Expr& expr : kernel->exprs) expr.index = substitute(kernel->arena, expr.index, replacements);
  for (Stage& stage : kernel->stages) stage.index = substitute(kernel->arena, stage.index, replacements);
}

std::string fresh_name(const Kernel& kernel, const std::string& base) {
  std::set<std::string> taken{kernel.name};
  for (const Parameter& each : kernel.parameters) taken.insert(each.name);
  for (const Axis& each : kernel.axes) taken.insert(each.name);
  for (const Buffer& each : kernel.buffers) taken.insert(each.name);
  for (const Stage& each : kernel.stages) taken.insert(each.name);
  std::string name = base.size() <= 48 ? base : "axis";
  for (int i = 2; taken.contains(name); ++i) name = fmt::format("{}_{}", base.size() <= 48 ? base : "axis", i);
  return name;
}

Status no_loops(const Kernel& kernel, const char* what) {
  if (!kernel.scheduled()) return {};
  return refused(fmt::format("{}: kernel {} has loops already.", what, kernel.name));
}

}  // namespace

Status align(Kernel* kernel, Id axis, Id with) {
  TENON_RETURN_IF_ERROR(no_loops(*kernel, "align"));
  return changed(kernel, [&](Kernel* copy) -> Status {
    const Axis& from = copy->axes[axis];
    const Axis& to = copy->axes[with];
    if (axis == with || !copy->arena.known(from.extent == to.extent).value_or(false)) {
      return refused(fmt::format("align: axis {} has extent {}, but axis {} has extent {}.", from.name,
                                 to_string(from.extent), to.name, to_string(to.extent)));
    }
    for (Stage& stage : copy->stages) {
      const bool has = contains(stage.axes, axis) || contains(stage.reduce_axes, axis);
      if (has && (contains(stage.axes, with) || contains(stage.reduce_axes, with))) {
        return refused(fmt::format("align: stage {} has both {} and {}.", stage.name, from.name, to.name));
      }
      std::replace(stage.axes.begin(), stage.axes.end(), axis, with);
      std::replace(stage.reduce_axes.begin(), stage.reduce_axes.end(), axis, with);
    }
    substitute_everywhere(copy, {{from.symbol.index(), to.symbol}});
    return {};
  });
}

Result<Id> merge(Kernel* kernel, Id outer, Id inner) {
  TENON_RETURN_IF_ERROR(no_loops(*kernel, "merge"));
  Id merged = kNone;
  TENON_RETURN_IF_ERROR(changed(kernel, [&](Kernel* copy) -> Status {
    const std::string names = fmt::format("{} and {}", copy->axes[outer].name, copy->axes[inner].name);
    const auto replace = [&](const Stage& stage, std::vector<Id>* axes) -> Status {
      if (contains(*axes, outer) != contains(*axes, inner)) {
        return refused(fmt::format("merge: stage {} has one of the axes {} without the other.", stage.name, names));
      }
      std::replace(axes->begin(), axes->end(), outer, merged);
      axes->erase(std::remove(axes->begin(), axes->end(), inner), axes->end());
      return {};
    };
    if (outer == inner) return refused(fmt::format("merge: both axes are {}.", names));
    merged = copy->add_axis(fresh_name(*copy, copy->axes[outer].name + "_" + copy->axes[inner].name),
                            copy->axes[outer].extent * copy->axes[inner].extent);
    for (Stage& stage : copy->stages) {
      TENON_RETURN_IF_ERROR(replace(stage, &stage.axes));
      TENON_RETURN_IF_ERROR(replace(stage, &stage.reduce_axes));
    }
    const SymDim position = copy->at(merged);
    const SymDim extent = copy->axes[inner].extent;
    substitute_everywhere(copy, {{copy->at(outer).index(), floor_div(position, extent)},
                                 {copy->at(inner).index(), modulo(position, extent)}});
    return {};
  }));
  return merged;
}

Id add_unit_axis(Kernel* kernel) {
  const Id axis = kernel->add_axis(fresh_name(*kernel, "one"), 1);
  for (Stage& stage : kernel->stages) stage.axes.insert(stage.axes.begin(), axis);
  return axis;
}

Result<Id> reduce_in_two_steps(Kernel* kernel, Id stage, Id axis, int64_t chunks) {
  TENON_RETURN_IF_ERROR(no_loops(*kernel, "reduce_in_two_steps"));
  TENON_RETURN_IF_ERROR(changed(kernel, [&](Kernel* copy) -> Status {
    const std::string name = copy->stages[stage].name;
    const std::string_view row = copy->stages[stage].kind == StageKind::reduce
                                     ? table::reduce_row(copy->stages[stage].op)->name
                                     : std::string_view("no reduction");
    for (const std::string_view plain : {"sum", "prod", "max", "min", "any", "all"}) {
      if (row != plain) continue;
      const SymDim extent = copy->axes[axis].extent;
      if (!contains(copy->stages[stage].reduce_axes, axis)) {
        return refused(
            fmt::format("reduce_in_two_steps: stage {} does not reduce over {}.", name, copy->axes[axis].name));
      }
      if (chunks < 1 || !copy->arena.known(modulo(extent, chunks) == 0).value_or(false)) {
        return refused(fmt::format("reduce_in_two_steps: {} chunks do not divide the extent {} of axis {}.", chunks,
                                   to_string(extent), copy->axes[axis].name));
      }
      const SymDim length = floor_div(extent, chunks);
      const Id outer = copy->add_axis(fresh_name(*copy, copy->axes[axis].name + "_chunk"), chunks);
      const Id inner = copy->add_axis(fresh_name(*copy, copy->axes[axis].name + "_part"), length);
      for (const Stage& other : copy->stages) {
        const bool has = contains(other.axes, axis) || contains(other.reduce_axes, axis);
        if (has && &other != &copy->stages[stage]) {
          return refused(
              fmt::format("reduce_in_two_steps: stage {} has axis {} too.", other.name, copy->axes[axis].name));
        }
      }
      Stage first = copy->stages[stage];
      first.name = fresh_name(*copy, name + "_part");
      first.axes.push_back(outer);
      std::replace(first.reduce_axes.begin(), first.reduce_axes.end(), axis, inner);
      substitute_everywhere(copy, {{copy->at(axis).index(), copy->at(outer) * length + copy->at(inner)}});
      copy->stages.insert(copy->stages.begin() + stage, first);
      for (Expr& expr : copy->exprs) {
        if (expr.kind == ExprKind::stage && expr.target >= stage) ++expr.target;
      }
      Stage& second = copy->stages[stage + 1];
      second.reduce_axes = {outer};
      second.value = copy->read(stage);
      return {};
    }
    return refused(
        fmt::format("reduce_in_two_steps: stage {} is a {}, which cannot reduce its own partial results.", name, row));
  }));
  return stage;
}

}  // namespace tenon::codegen
