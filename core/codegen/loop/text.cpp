// Prints kernels as text, which parse.cpp reads.
#include <cmath>

#include "core/codegen/loop/ir.h"
#include "core/codegen/loop/names.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

std::string_view leading_name(std::string_view text) {
  size_t count = 0;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  while (count < text.size() && (is_letter(text[count]) || (count > 0 && text[count] >= '0' && text[count] <= '9'))) {
    ++count;
  }
  return text.substr(0, count);
}

SizeWriter::SizeWriter(const Kernel& kernel) : arena_(kernel.arena) {
  const auto name = [&](SymDim symbol, const std::string& given) {
    if (!symbol.is_number()) names_[arena_.text(symbol)] = given;
  };
  for (const Parameter& parameter : kernel.parameters) name(parameter.symbol, parameter.name);
  for (const Axis& axis : kernel.axes) name(axis.symbol, axis.name);
}

std::string SizeWriter::operator()(SymDim size) const {
  return with_words_replaced(arena_.text(size), [&](std::string_view word) {
    const auto found = names_.find(word);
    return found == names_.end() ? std::string(word) : found->second;
  });
}

namespace {

class KernelWriter {
 public:
  explicit KernelWriter(const Kernel& kernel) : kernel_(kernel), size_(kernel), uses_(kernel.exprs.size()) {
    for (const Stage& stage : kernel.stages) count(stage.value);
  }

  std::string write() {
    text_ = fmt::format("kernel {}\n", kernel_.name);
    for (const Parameter& parameter : kernel_.parameters) {
      const symbolic::Symbol& symbol = kernel_.arena.symbols()[kernel_.arena.node(parameter.symbol).symbol];
      text_ += fmt::format("size {} in [{}, {}]", parameter.name, symbol.range.lo, symbol.range.hi);
      if (symbol.divisor != 1) text_ += fmt::format(" multiple {}", symbol.divisor);
      text_ += '\n';
    }
    for (const Axis& axis : kernel_.axes) text_ += fmt::format("axis {} {}\n", axis.name, size_(axis.extent));
    for (const Buffer& buffer : kernel_.buffers) {
      text_ += fmt::format("{} {} {} {}\n", buffer.output ? "out" : "in", buffer.name, dtype_name(buffer.dtype),
                           size_(buffer.elements));
    }
    for (const Stage& stage : kernel_.stages) write(stage);
    if (kernel_.scheduled()) {
      text_ += "loops\n";
      write(kernel_.body, 1);
    }
    return text_;
  }

 private:
  void count(Id id) {
    if (++uses_[id] > 1) return;
    const Expr& expr = kernel_.exprs[id];
    for (size_t i = 0; i < arg_count(expr); ++i) count(expr.args[i]);
  }

  // True for an expression with arguments that is used more than once. It gets a line of its own, before its first use.
  bool is_shared(Id id) const { return uses_[id] > 1 && arg_count(kernel_.exprs[id]) > 0; }

  void write_shared(Id id) {
    const Expr& expr = kernel_.exprs[id];
    if (is_shared(id) && numbers_.contains(id)) return;
    for (size_t i = 0; i < arg_count(expr); ++i) write_shared(expr.args[i]);
    if (!is_shared(id)) return;
    const std::string line = fmt::format("%{} = {}\n", numbers_.size(), whole(expr));
    numbers_.emplace(id, numbers_.size());
    text_ += line;
  }

  std::string text(Id id) const {
    const auto shared = numbers_.find(id);
    return shared != numbers_.end() ? fmt::format("%{}", shared->second) : whole(kernel_.exprs[id]);
  }

  std::string whole(const Expr& expr) const {
    switch (expr.kind) {
      case ExprKind::constant: return constant(expr);
      case ExprKind::index: return fmt::format("[{}]", size_(expr.index));
      case ExprKind::load: {
        const std::string where = expr.args[0] == kNone ? "" : fmt::format(" if {}", text(expr.args[0]));
        return fmt::format("{}[{}{}]", kernel_.buffers[expr.target].name, size_(expr.index), where);
      }
      case ExprKind::stage: return kernel_.stages[expr.target].name;
      case ExprKind::position: {
        const std::string& buffer = kernel_.buffers[expr.target].name;
        return fmt::format("position({}, {}, {})", text(expr.args[0]), text(expr.args[1]), buffer);
      }
      case ExprKind::cast: return fmt::format("{}({})", dtype_name(expr.dtype), text(expr.args[0]));
      default: break;
    }
    std::string arguments;
    for (size_t i = 0; i < arg_count(expr); ++i) arguments += (i == 0 ? "" : ", ") + text(expr.args[i]);
    const table::ScalarRow* row = expr.kind == ExprKind::unary ? table::unary_row(expr.op) : nullptr;
    if (row != nullptr && row->parameters > 0) arguments += fmt::format("; {}", expr.a);
    if (row != nullptr && row->parameters > 1) arguments += fmt::format(", {}", expr.b);
    return fmt::format("{}({})", op_name(expr), arguments);
  }

  static std::string constant(const Expr& expr) {
    if (!is_floating(expr.dtype)) return fmt::format("{}:{}", expr.integer, dtype_name(expr.dtype));
    return fmt::format("{}:{}", expr.a, dtype_name(expr.dtype));
  }

  std::string names(const char* word, const std::vector<Id>& axes) const {
    std::string result = axes.empty() ? "" : fmt::format(" {}", word);
    for (const Id axis : axes) result += fmt::format(" {}", kernel_.axes[axis].name);
    return result;
  }

  void write(const Stage& stage) {
    write_shared(stage.value);
    text_ += fmt::format("{} = ", stage.name);
    if (stage.kind == StageKind::store) {
      text_ += fmt::format("store {}[{}]", kernel_.buffers[stage.buffer].name, size_(stage.index));
    } else if (stage.kind == StageKind::reduce) {
      text_ += fmt::format("{} {}", table::reduce_row(stage.op)->name, dtype_name(stage.dtype));
    } else {
      text_ += fmt::format("value {}", dtype_name(stage.dtype));
    }
    if (stage.storage == Storage::row) text_ += " in row";
    if (stage.storage == Storage::shared) text_ += " in shared";
    if (stage.storage == Storage::inlined) text_ += " inlined";
    text_ += names("at", stage.axes) + names("over", stage.reduce_axes);
    text_ += fmt::format(": {}\n", text(stage.value));
  }

  void write(const std::vector<Node>& nodes, size_t depth) {
    constexpr const char* kinds[] = {"items", "serial", "vector", "work_items"};
    for (const Node& node : nodes) {
      text_.append(2 * depth, ' ');
      if (!node.is_loop()) {
        text_ += fmt::format("{}\n", node.is_barrier ? "barrier" : kernel_.stages[node.stage].name);
        continue;
      }
      text_ += fmt::format("{} {}", kinds[static_cast<size_t>(node.kind)], kernel_.axes[node.axis].name);
      if (node.step != 1) text_ += fmt::format(" step {}", node.step);
      if (node.unroll != 1) text_ += fmt::format(" unroll {}", node.unroll);
      if (node.width != 1) text_ += fmt::format(" width {}", node.width);
      if (node.dim != 0) text_ += fmt::format(" dim {}", node.dim);
      text_ += '\n';
      write(node.body, depth + 1);
    }
  }

  const Kernel& kernel_;
  SizeWriter size_;
  std::vector<uint32_t> uses_;
  std::map<Id, size_t> numbers_;
  std::string text_;
};

}  // namespace

std::string to_string(const Kernel& kernel) { return KernelWriter(kernel).write(); }

}  // namespace tenon::codegen
