#include "core/compiler/loop/interpret.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/compiler/loop/places.h"
#include "core/symbolic/evaluate.h"
#include "primitives/dtype/convert.h"
#include "primitives/reference/element.h"
#include "primitives/reference/scalar.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
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

// `number` as an element of `dtype` would hold it.
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
      throw Error(Code::invalid_argument, fmt::format("Kernel {} takes {} parameters, but is given {}.", kernel.name,
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
        held_(kernel.stages.size()),
        stored_(kernel.buffers.size()) {
    if (buffers.size() != kernel.buffers.size()) {
      throw Error(Code::invalid_argument, fmt::format("Kernel {} takes {} buffers, but is given {}.", kernel.name,
                                                      kernel.buffers.size(), buffers.size()));
    }
    for (const Axis& axis : kernel.axes) ranges_.push_back({0, sizes_.of(axis.extent)});
  }

  void run() {
    if (kernel_.scheduled()) return run(kernel_.body, 0);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      std::vector<Id> axes = kernel_.stages[id].axes;
      axes.insert(axes.end(), kernel_.stages[id].reduce_axes.begin(), kernel_.stages[id].reduce_axes.end());
      whole(static_cast<Id>(id), axes, 0);
    }
  }

 private:
  // What a stage holds: in registers the number of the last point, otherwise that of each point.
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
      if (!node.is_loop()) {
        step(node.stage);
        continue;
      }
      for (const Id id : places_.starting(node, depth)) {
        if (kernel_.stages[id].storage == Storage::registers) held_[id].numbers.clear();
      }
      const auto range = ranges_[node.axis];
      for (int64_t i = range.first; i < range.second; i += node.step) {
        ranges_[node.axis] = {i, std::min(range.second, i + node.step)};
        sizes_.bind(kernel_.axes[node.axis].symbol, i);
        run(node.body, depth + 1);
      }
      ranges_[node.axis] = range;
    }
  }

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
    if (stage.kind == StageKind::store) return store(stage, value);
    std::map<Point, Number>& numbers = held_[id].numbers;
    const Point at = point(stage);
    if (stage.kind == StageKind::value) {
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

  // What a reduction of nothing is: for a maximum the least number of the dtype.
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
                          reference::divisor_fault<T>(type, x, y) != 0;
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
    const auto found = held_[id].numbers.find(point(stage));
    if (found == held_[id].numbers.end() && stage.kind != StageKind::reduce) {
      throw Error(Code::invalid_argument,
                  fmt::format("Stage {} is read where it does not hold this point.", stage.name));
    }
    if (stage.kind == StageKind::value) return found->second;
    int64_t count = 1;
    for (const Id axis : stage.reduce_axes) count *= sizes_.of(kernel_.axes[axis].extent);
    return reference::with_compute_type(stage.dtype, [&](auto t) {
      using T = decltype(t);
      const T sum = found == held_[id].numbers.end() ? initial<T>(stage) : get<T>(found->second);
      return as_element(stage.dtype, reference::reduce_finish<T>(stage.op, sum, count));
    });
  }

  const Kernel& kernel_;
  Sizes sizes_;
  std::span<void* const> buffers_;
  Places places_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // by axis: what the loops around left
  std::vector<Held> held_;
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
    return Status(Code::invalid_argument, fmt::format("Kernel {} has no loops, so no items.", kernel.name));
  }
  TENON_ASSIGN_OR_RETURN(const int64_t extent, size_of(kernel, kernel.axes[kernel.body[0].axis].extent, parameters));
  return symbolic::ceil_quotient(extent, kernel.body[0].step);
}

}  // namespace tenon::compiler
