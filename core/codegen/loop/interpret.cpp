#include "core/codegen/loop/interpret.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/codegen/loop/places.h"
#include "core/symbolic/evaluate.h"
#include "primitives/dtype/convert.h"
#include "primitives/reference/element.h"
#include "primitives/reference/scalar.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

// A number of a dtype: a double, or the bits of an int64 or uint64.
struct Number {
  double f = 0;
  int64_t i = 0;
};

template <class T>
T get(Number number) {
  if constexpr (std::is_same_v<T, double>) return number.f;
  return static_cast<T>(number.i);
}
template <class T>
Number number_of(T value) {
  if constexpr (std::is_same_v<T, double>) return {value, 0};
  return {0, static_cast<int64_t>(value)};
}

// `number` rounded or wrapped to an element of `dtype`.
template <class T>
Number as_element(DType dtype, T value) {
  if (dtype == DType::f64) return number_of(static_cast<double>(value));
  alignas(8) unsigned char bytes[8] = {};
  reference::store<T>(dtype, bytes, 0, value);
  return reference::with_compute_type(dtype,
                                      [&](auto t) { return number_of(reference::load<decltype(t)>(dtype, bytes, 0)); });
}

class Sizes {
 public:
  Sizes(const Kernel& kernel, std::span<const int64_t> parameters) : arena_(kernel.arena), values_(arena_.size()) {
    if (parameters.size() != kernel.parameters.size()) {
      throw Error(Code::invalid_argument, fmt::format("Kernel {} has {} parameters, but {} were given.", kernel.name,
                                                      kernel.parameters.size(), parameters.size()));
    }
    for (size_t i = 0; i < parameters.size(); ++i) bind(kernel.parameters[i].symbol, parameters[i]);
  }

  void bind(SymDim symbol, int64_t value) { values_[symbol.index()] = value; }

  int64_t of(SymDim size) const {
    if (size.is_number()) return size.number();
    const symbolic::Value value = find(size.index());
    if (!value.failure.empty()) {
      throw Error(Code::invalid_argument, fmt::format("The size {} {}.", arena_.text(size), value.failure));
    }
    return value.number;
  }

 private:
  symbolic::Value find(uint32_t index) const {
    if (values_[index]) return {*values_[index], {}};
    const symbolic::Node& node = arena_.node(arena_.atom(index));
    if (node.kind == symbolic::Kind::symbol) return {0, "has no value"};
    return symbolic::value_of(node, [this](uint32_t each) { return find(each); });
  }

  const symbolic::Arena& arena_;
  std::vector<std::optional<int64_t>> values_;
};

using Point = std::vector<int64_t>;

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const int64_t> parameters, std::span<void* const> buffers)
      : kernel_(kernel),
        sizes_(kernel, parameters),
        buffers_(buffers),
        places_(kernel),
        group_(group_of(kernel)),
        held_(kernel.stages.size() * static_cast<size_t>(group_[0] * group_[1])),
        shared_(kernel.stages.size()),
        stored_(kernel.buffers.size()) {
    if (buffers.size() != kernel.buffers.size()) {
      throw Error(Code::invalid_argument, fmt::format("Kernel {} has {} buffers, but {} were given.", kernel.name,
                                                      kernel.buffers.size(), buffers.size()));
    }
    for (const Axis& axis : kernel.axes) ranges_.push_back({0, sizes_.of(axis.extent)});
  }

  void run() {
    in_groups_ = held_.size() > kernel_.stages.size();
    if (kernel_.scheduled()) return in_groups_ ? launch(kernel_.body.front()) : run(kernel_.body, 0);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      std::vector<Id> axes = kernel_.stages[id].axes;
      axes.insert(axes.end(), kernel_.stages[id].reduce_axes.begin(), kernel_.stages[id].reduce_axes.end());
      whole(static_cast<Id>(id), axes, 0);
    }
  }

 private:
  // The numbers of a stage: one per point, or only the number of the last point if the stage is held in registers.
  struct Held {
    std::map<Point, Number> numbers;
  };

  void whole(Id id, const std::vector<Id>& axes, size_t depth) {
    if (depth == axes.size()) return step(id);
    for (int64_t i = 0; i < ranges_[axes[depth]].second; ++i) {
      sizes_.bind(kernel_.axes[axes[depth]].symbol, i);
      whole(id, axes, depth + 1);
    }
  }

  void run(const std::vector<Node>& nodes, size_t depth) {
    for (const Node& node : nodes) {
      if (node.is_barrier) continue;
      if (!node.is_loop()) {
        step(node.stage);
        continue;
      }
      const std::vector<Id> reductions = places_.starting(node, depth);
      for (const Id id : reductions) {
        if (kernel_.stages[id].storage != Storage::row) begin(id);
      }
      const auto range = ranges_[node.axis];
      const bool dealt = node.kind == LoopKind::work_items;
      const int64_t step = node.width * node.step;
      for (int64_t i = range.first + (dealt ? at_[static_cast<size_t>(node.dim)] * node.step : 0); i < range.second;
           i += step) {
        enter(node, i, range.second);
        run(node.body, depth + 1);
      }
      ranges_[node.axis] = range;
      for (const Id id : reductions) {
        if (kernel_.stages[id].storage == Storage::shared && (!in_groups_ || !places_.adds_across(id))) {
          share(id, total(id, point(id)));
        }
      }
    }
  }

  void enter(const Node& loop, int64_t i, int64_t end) {
    ranges_[loop.axis] = {i, std::min(end, i + loop.step)};
    sizes_.bind(kernel_.axes[loop.axis].symbol, i);
  }

  // --- Groups

  // Runs one group after another.
  void launch(const Node& items) {
    const auto range = ranges_[items.axis];
    for (int64_t i = range.first; i < range.second; i += items.step) {
      for (Held& held : held_) held.numbers.clear();
      for (Held& held : shared_) held.numbers.clear();
      enter(items, i, range.second);
      together(items.body, 1);
    }
    ranges_[items.axis] = range;
  }

  // Runs `nodes` on all work-items: one after another up to each point that all of them must reach.
  void together(const std::vector<Node>& nodes, size_t depth) {
    size_t begin = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      const bool in_steps = node.is_loop() && places_.runs_together(node, depth);
      if (!node.is_barrier && !in_steps && !(node.is_loop() && places_.ends_together(node, depth))) continue;
      each(nodes, begin, i, depth);
      begin = i + 1;
      if (node.is_barrier) {
        publish();
        continue;
      }
      if (in_steps) {
        in_step(node, depth);
      } else {
        each(nodes, i, i + 1, depth);
      }
      each_work_item([&] {
        for (const Id id : places_.starting(node, depth)) {
          if (kernel_.stages[id].storage == Storage::shared && places_.adds_across(id)) share(id, total(id, point(id)));
        }
      });
    }
    each(nodes, begin, nodes.size(), depth);
  }

  // Runs a loop whose steps all work-items execute together.
  void in_step(const Node& loop, size_t depth) {
    if (loop.kind == LoopKind::work_items) {
      around_.push_back(&loop);
      together(loop.body, depth + 1);
      around_.pop_back();
      return;
    }
    each_work_item([&] {
      for (const Id id : places_.starting(loop, depth)) begin(id);
    });
    const auto range = ranges_[loop.axis];
    for (int64_t i = range.first; i < range.second; i += loop.step) {
      enter(loop, i, range.second);
      together(loop.body, depth + 1);
    }
    ranges_[loop.axis] = range;
  }

  void each(const std::vector<Node>& nodes, size_t begin, size_t end, size_t depth) {
    if (begin == end) return;
    const std::vector<Node> part(nodes.begin() + static_cast<ptrdiff_t>(begin),
                                 nodes.begin() + static_cast<ptrdiff_t>(end));
    each_work_item([&] { run(part, depth); });
  }

  // Calls `work` for each work-item that has positions in the enclosing loops, the last one first.
  template <class Work>
  void each_work_item(const Work& work) {
    for (at_[1] = group_[1] - 1; at_[1] >= 0; --at_[1]) {
      for (at_[0] = group_[0] - 1; at_[0] >= 0; --at_[0]) {
        const auto ranges = ranges_;
        bool active = true;
        for (const Node* loop : around_) {
          const auto range = ranges_[loop->axis];
          const int64_t i = range.first + at_[static_cast<size_t>(loop->dim)];
          active = active && i < range.second;
          enter(*loop, i, range.second);
        }
        if (active) work();
        ranges_ = ranges;
      }
    }
    at_ = {0, 0};
  }

  // Resets a sum in registers. Shared storage keeps the numbers of other points.
  void begin(Id id) {
    if (kernel_.stages[id].storage == Storage::shared) {
      held(id).numbers.erase(point(id));
    } else {
      held(id).numbers.clear();
    }
  }

  // The numbers that the running work-item holds by itself.
  Held& held(Id id) { return held_[static_cast<size_t>(at_[1] * group_[0] + at_[0]) * kernel_.stages.size() + id]; }

  // True if the work-item is the first along each dim that has no loop around the result of `id`.
  bool is_first(Id id) const {
    const Place& place = *places_.of(id).front();
    for (size_t dim = 0; dim < 2; ++dim) {
      const bool dealt = std::any_of(
          place.loops.begin(), place.loops.begin() + static_cast<ptrdiff_t>(place.result),
          [&](const Node* loop) { return loop->kind == LoopKind::work_items && loop->dim == int64_t(dim); });
      if (!dealt && at_[dim] != 0) return false;
    }
    return true;
  }

  // The writing work-item sees the number at once, the others after the next barrier.
  void share(Id id, Number number) {
    if (!is_first(id)) return;
    held(id).numbers[point(id)] = number;
    written_.emplace_back(id, point(id), number);
  }
  void publish() {
    for (const auto& [id, at, number] : written_) shared_[id].numbers[at] = number;
    written_.clear();
  }

  // The sum of a reduction at a point: the sum of this work-item, or of all work-items that share the reduction.
  Number total(Id id, const Point& at) {
    const Stage& stage = kernel_.stages[id];
    std::array<int64_t, 2> begin = at_, end{at_[0] + 1, at_[1] + 1};
    const Place* place = in_groups_ ? places_.of(id).front() : nullptr;
    for (size_t i = place == nullptr ? 0 : place->result; place != nullptr && i < place->loops.size(); ++i) {
      if (place->loops[i]->kind != LoopKind::work_items) continue;
      const auto dim = static_cast<size_t>(place->loops[i]->dim);
      begin[dim] = 0;
      end[dim] = group_[dim];
    }
    return reference::with_compute_type(stage.dtype, [&](auto t) {
      using T = decltype(t);
      T sum = initial<T>(stage);
      for (int64_t y = begin[1]; y < end[1]; ++y) {
        for (int64_t x = begin[0]; x < end[0]; ++x) {
          const auto& numbers = held_[static_cast<size_t>(y * group_[0] + x) * kernel_.stages.size() + id].numbers;
          const auto found = numbers.find(at);
          if (found != numbers.end()) sum = reference::reduce_combine<T>(stage.op, sum, get<T>(found->second));
        }
      }
      return is_floating(stage.dtype) ? number_of(sum) : as_element(stage.dtype, sum);
    });
  }
  Point point(Id id) const { return point(kernel_.stages[id]); }

  Point point(const Stage& stage) const {
    Point result;
    for (const Id axis : stage.axes) result.push_back(sizes_.of(kernel_.axes[axis].symbol));
    return result;
  }

  void step(Id id) {
    const Stage& stage = kernel_.stages[id];
    if (stage.storage == Storage::inlined && kernel_.scheduled()) return;
    memo_.assign(kernel_.exprs.size(), std::nullopt);
    const Number value = eval(stage.value);
    if (stage.kind == StageKind::store) return in_groups_ && !is_first(id) ? void() : store(stage, value);
    std::map<Point, Number>& numbers = held(id).numbers;
    const Point at = point(stage);
    if (stage.kind == StageKind::value) {
      if (stage.storage == Storage::shared) return share(id, value);
      if (kernel_.scheduled() && stage.storage == Storage::registers) numbers.clear();
      numbers[at] = value;
      return;
    }
    reference::with_compute_type(stage.dtype, [&](auto t) {
      using T = decltype(t);
      const auto found = numbers.find(at);
      const T before = found == numbers.end() ? initial<T>(stage) : get<T>(found->second);
      const T after = reference::reduce_combine<T>(stage.op, before, reference::reduce_map<T>(stage.op, get<T>(value)));
      numbers[at] = is_floating(stage.dtype) ? number_of(after) : as_element(stage.dtype, after);
    });
  }

  // The result of an empty reduction: for a maximum the least number of the dtype.
  template <class T>
  static T initial(const Stage& stage) {
    const std::string_view row = table::reduce_row(stage.op)->name;
    if (!is_floating(stage.dtype) && (row == "max" || row == "min")) {
      const int bits = dtype_info(stage.dtype).bits;
      const bool is_signed = dtype_info(stage.dtype).type_class == DTypeClass::INT;
      const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      const uint64_t most = is_signed ? ones >> 1 : ones;
      if (row == "min") return static_cast<T>(most);
      return is_signed ? static_cast<T>(-static_cast<int64_t>(most) - 1) : static_cast<T>(0);
    }
    return reference::reduce_init<T>(stage.op);
  }

  void store(const Stage& stage, Number value) {
    const int64_t index = sizes_.of(stage.index);
    const Buffer& buffer = kernel_.buffers[stage.buffer];
    inside(stage.name, buffer, index);
    if (!stored_[stage.buffer].insert(index).second) {
      throw Error(Code::invalid_argument,
                  fmt::format("Stage {} stores element {} of buffer {} twice.", stage.name, index, buffer.name));
    }
    reference::with_compute_type(buffer.dtype, [&](auto t) {
      using T = decltype(t);
      reference::store<T>(buffer.dtype, buffers_[stage.buffer], index, get<T>(value));
    });
  }

  void inside(std::string_view what, const Buffer& buffer, int64_t index) const {
    const int64_t count = sizes_.of(buffer.elements);
    if (index >= 0 && index < count) return;
    throw Error(Code::invalid_argument,
                fmt::format("{} reaches element {} of buffer {}, which has {}.", what, index, buffer.name, count));
  }

  Number eval(Id id) {
    if (memo_[id]) return *memo_[id];
    const Number value = eval(kernel_.exprs[id]);
    memo_[id] = value;
    return value;
  }

  Number eval(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::constant:
        if (!is_floating(expr.dtype)) return {0, expr.integer};
        return as_element(expr.dtype, expr.a);
      case ExprKind::index: return {0, sizes_.of(expr.index)};
      case ExprKind::stage: return read(expr.target);
      case ExprKind::load: return load(expr);
      case ExprKind::cast: return cast(expr);
      case ExprKind::position: return position(expr);
      default: break;
    }
    const DType type = kernel_.exprs[expr.args[arg_count(expr) - 1]].dtype;
    return reference::with_compute_type(type, [&](auto t) { return scalar<decltype(t)>(expr, type); });
  }

  template <class T>
  Number scalar(const Expr& expr, DType type) {
    const T x = get<T>(eval(expr.args[0]));
    T result;
    if (expr.kind == ExprKind::unary) {
      result = reference::unary<T>(expr.op, x, static_cast<T>(expr.a), static_cast<T>(expr.b));
    } else if (expr.kind == ExprKind::binary) {
      const T y = get<T>(eval(expr.args[1]));
      const bool faults = !is_floating(type) && table::binary_row(expr.op)->check == table::Check::DIVISOR &&
                          reference::divisor_fault<T>(y) != 0;
      result = faults ? T{0} : reference::binary<T>(expr.op, x, y);
    } else if (table::ternary_row(expr.op)->domain == table::Domain::COND) {
      return eval(eval(expr.args[0]).i != 0 ? expr.args[1] : expr.args[2]);
    } else {
      result = reference::ternary<T>(expr.op, x, get<T>(eval(expr.args[1])), get<T>(eval(expr.args[2])));
    }
    if (expr.dtype == DType::boolean) return {0, result != T{0}};
    return as_element(expr.dtype, result);
  }

  Number load(const Expr& expr) {
    if (expr.args[0] != kNone && eval(expr.args[0]).i == 0) return {};
    const Buffer& buffer = kernel_.buffers[expr.target];
    const int64_t index = sizes_.of(expr.index);
    inside("A load", buffer, index);
    return reference::with_compute_type(buffer.dtype, [&](auto t) {
      return number_of(reference::load<decltype(t)>(buffer.dtype, buffers_[expr.target], index));
    });
  }

  Number position(const Expr& expr) {
    const int64_t at = eval(expr.args[0]).i, count = eval(expr.args[1]).i;
    if (at >= -count && at < count) return {0, at < 0 ? at + count : at};
    throw Error(Code::invalid_argument, fmt::format("Element {} of buffer {} is outside of [-{}, {}).", at,
                                                    kernel_.buffers[expr.target].name, count, count));
  }

  Number cast(const Expr& expr) {
    const Number value = eval(expr.args[0]);
    return reference::with_compute_type(kernel_.exprs[expr.args[0]].dtype,
                                        [&](auto t) { return as_element(expr.dtype, get<decltype(t)>(value)); });
  }

  Number read(Id id) {
    const Stage& stage = kernel_.stages[id];
    if (stage.storage == Storage::inlined && kernel_.scheduled()) return eval(stage.value);
    const Point at = point(stage);
    const bool shared = stage.storage == Storage::shared;
    const bool is_sum = stage.kind == StageKind::reduce && !shared;
    auto found = held(id).numbers.find(at);
    // The other work-items hold only their part of a shared sum.
    const bool is_part = shared && stage.kind == StageKind::reduce && !is_first(id);
    bool is_there = is_sum || (!is_part && found != held(id).numbers.end());
    if (!is_there && shared) {
      found = shared_[id].numbers.find(at);
      is_there = found != shared_[id].numbers.end();
    }
    if (!is_there) {
      throw Error(Code::invalid_argument, fmt::format("Stage {} is read at a point that was not stored.", stage.name));
    }
    if (stage.kind == StageKind::value) return found->second;
    const Number added = is_sum ? total(id, at) : found->second;
    int64_t count = 1;
    for (const Id axis : stage.reduce_axes) count *= sizes_.of(kernel_.axes[axis].extent);
    return reference::with_compute_type(stage.dtype, [&](auto t) {
      using T = decltype(t);
      return as_element(stage.dtype, reference::reduce_finish<T>(stage.op, get<T>(added), count));
    });
  }

  const Kernel& kernel_;
  Sizes sizes_;
  std::span<void* const> buffers_;
  Places places_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // by axis: the range that the enclosing loops left
  std::array<int64_t, 2> group_;                     // number of work-items of a group
  std::array<int64_t, 2> at_{};                      // the running work-item
  std::vector<const Node*> around_;  // enclosing loops of work-items that the whole group executes together
  bool in_groups_ = false;
  std::vector<Held> held_;  // by work-item and stage
  std::vector<Held> shared_;
  std::vector<std::tuple<Id, Point, Number>> written_;  // writes to shared storage since the last barrier
  std::vector<std::unordered_set<int64_t>> stored_;
  std::vector<std::optional<Number>> memo_;
};

}  // namespace

Status interpret(const Kernel& kernel, std::span<const int64_t> parameters, std::span<void* const> buffers) {
  try {
    Interpreter(kernel, parameters, buffers).run();
    return {};
  } catch (const Error& error) {
    return error.status();
  }
}

Result<int64_t> size_of(const Kernel& kernel, SymDim size, std::span<const int64_t> parameters) {
  try {
    return Sizes(kernel, parameters).of(size);
  } catch (const Error& error) {
    return error.status();
  }
}

Result<int64_t> item_count(const Kernel& kernel, std::span<const int64_t> parameters) {
  if (!kernel.scheduled()) {
    return Status(Code::invalid_argument, fmt::format("Kernel {} has no loops, so it has no items.", kernel.name));
  }
  TENON_ASSIGN_OR_RETURN(const int64_t extent, size_of(kernel, kernel.axes[kernel.body[0].axis].extent, parameters));
  return symbolic::ceil_quotient(extent, kernel.body[0].step);
}

}  // namespace tenon::codegen
