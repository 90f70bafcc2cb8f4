// Primitives that change the loops and the storage of a kernel.
#include <algorithm>

#include "core/codegen/schedule/change.h"
#include "core/codegen/schedule/schedule.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

// Finds the loops around the step of a stage, the outermost first, and the step itself. `path` is empty if the loops do
// not run the stage.
bool find(std::vector<Node>& nodes, Id stage, std::vector<Node*>* path) {
  for (Node& node : nodes) {
    path->push_back(&node);
    if (node.is_loop() ? find(node.body, stage, path) : node.stage == stage) return true;
    path->pop_back();
  }
  return false;
}
std::vector<Node*> path_to(Kernel* kernel, Id stage) {
  std::vector<Node*> path;
  find(kernel->body, stage, &path);
  return path;
}

Status no_step(const char* what, const Kernel& kernel, Id stage) {
  return refused(
      fmt::format("{}: the loops of kernel {} do not run stage {}.", what, kernel.name, kernel.stages[stage].name));
}

// The innermost loop over `axis` around a stage, or null.
Node* loop_over(Kernel* kernel, Id stage, Id axis) {
  Node* found = nullptr;
  for (Node* node : path_to(kernel, stage)) {
    if (node->is_loop() && node->axis == axis) found = node;
  }
  return found;
}
Status no_loop(const char* what, const Kernel& kernel, Id stage, Id axis) {
  return refused(
      fmt::format("{}: no loop over {} encloses stage {}.", what, kernel.axes[axis].name, kernel.stages[stage].name));
}

void erase_step(std::vector<Node>* nodes, Id stage) {
  for (Node& node : *nodes) {
    if (node.is_loop()) erase_step(&node.body, stage);
  }
  nodes->erase(
      std::remove_if(nodes->begin(), nodes->end(),
                     [&](const Node& node) { return node.is_loop() ? node.body.empty() : node.stage == stage; }),
      nodes->end());
}

bool reads(const Kernel& kernel, Id expr, Id stage) {
  const Expr& each = kernel.exprs[expr];
  if (each.kind == ExprKind::stage) return each.target == stage;
  for (size_t i = 0; i < arg_count(each); ++i) {
    if (reads(kernel, each.args[i], stage)) return true;
  }
  return false;
}

}  // namespace

Status inline_stage(Kernel* kernel, Id stage) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    copy->stages[stage].storage = Storage::inlined;
    erase_step(&copy->body, stage);
    return {};
  });
}

Status hold(Kernel* kernel, Id stage, Storage storage) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    if (storage == Storage::inlined || copy->stages[stage].storage == Storage::inlined) {
      return refused(
          fmt::format("hold: stage {} is or would be inlined; use inline_stage instead.", copy->stages[stage].name));
    }
    copy->stages[stage].storage = storage;
    return {};
  });
}

Status make_loops(Kernel* kernel, Id items) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    if (copy->scheduled()) return refused(fmt::format("make_loops: kernel {} has loops already.", copy->name));
    Node root;
    root.kind = LoopKind::items;
    root.axis = items;
    for (size_t id = 0; id < copy->stages.size(); ++id) {
      Stage& stage = copy->stages[id];
      if (stage.storage == Storage::inlined) continue;
      if (stage.kind != StageKind::store) stage.storage = Storage::row;
      std::vector<Id> axes = stage.axes;
      axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
      axes.erase(std::remove(axes.begin(), axes.end(), items), axes.end());
      Node step;
      step.stage = static_cast<Id>(id);
      for (size_t i = axes.size(); i-- > 0;) {
        Node loop;
        loop.axis = axes[i];
        loop.body = {std::move(step)};
        step = std::move(loop);
      }
      root.body.push_back(std::move(step));
    }
    copy->body = {std::move(root)};
    return {};
  });
}

Status tile(Kernel* kernel, Id stage, Id axis, int64_t step) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    Node* loop = loop_over(copy, stage, axis);
    if (loop == nullptr) return no_loop("tile", *copy, stage, axis);
    if (step < 2) return refused(fmt::format("tile: the step must be at least 2, but it is {}.", step));
    Node inner;
    inner.axis = axis;
    inner.kind = loop->kind == LoopKind::vector ? LoopKind::vector : LoopKind::serial;
    inner.unroll = loop->unroll;
    inner.body = std::move(loop->body);
    if (loop->kind == LoopKind::vector) loop->kind = LoopKind::serial;
    loop->unroll = 1;
    loop->step = step;
    loop->body = {std::move(inner)};
    return {};
  });
}

Status vectorise(Kernel* kernel, Id stage, Id axis, int64_t unroll) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    Node* loop = loop_over(copy, stage, axis);
    if (loop == nullptr) return no_loop("vectorise", *copy, stage, axis);
    if (loop->kind == LoopKind::items) {
      return refused(fmt::format("vectorise: the positions of {} are the items of a launch; tile it first.",
                                 copy->axes[axis].name));
    }
    loop->kind = LoopKind::vector;
    loop->unroll = unroll;
    return {};
  });
}

Status reorder(Kernel* kernel, Id stage, Id axis) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    Node* loop = loop_over(copy, stage, axis);
    if (loop == nullptr) return no_loop("reorder", *copy, stage, axis);
    if (loop->body.size() != 1 || !loop->body[0].is_loop()) {
      return refused(fmt::format("reorder: the loop over {} around stage {} must contain one loop and nothing else.",
                                 copy->axes[axis].name, copy->stages[stage].name));
    }
    Node inner = std::move(loop->body[0]);
    if (loop->kind == LoopKind::items || inner.axis == axis) {
      return refused(fmt::format("reorder: the loop over {} around stage {} must stay outside.", copy->axes[axis].name,
                                 copy->stages[stage].name));
    }
    loop->body = std::move(inner.body);
    Node outer = std::move(*loop);
    inner.body = {std::move(outer)};
    *loop = std::move(inner);
    return {};
  });
}

Status compute_at(Kernel* kernel, Id stage, Id other) {
  return changed(kernel, [&](Kernel* copy) -> Status {
    if (path_to(copy, stage).empty()) return no_step("compute_at", *copy, stage);
    erase_step(&copy->body, stage);
    const std::vector<Node*> path = path_to(copy, other);
    if (path.size() < 2) return no_step("compute_at", *copy, other);
    std::vector<Node>& body = path[path.size() - 2]->body;
    const bool behind = reads(*copy, copy->stages[stage].value, other);
    const auto at = std::find_if(body.begin(), body.end(), [&](const Node& node) { return &node == path.back(); });
    Node step;
    step.stage = stage;
    body.insert(behind ? at + 1 : at, std::move(step));
    return {};
  });
}

}  // namespace tenon::codegen
