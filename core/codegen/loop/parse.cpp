// Parses kernels that text.cpp printed. The text may come from a file and is not trusted.
#include <charconv>
#include <cstdlib>
#include <optional>

#include "core/codegen/loop/ir.h"
#include "core/codegen/loop/names.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

Result<SymDim> read_size(Kernel& kernel, std::string_view text) {
  std::map<std::string, std::string, std::less<>> symbols;
  for (const Parameter& parameter : kernel.parameters) symbols[parameter.name] = kernel.arena.text(parameter.symbol);
  for (const Axis& axis : kernel.axes) symbols[axis.name] = kernel.arena.text(axis.symbol);
  std::string unknown;
  const std::string in_arena = with_words_replaced(text, [&](std::string_view word) {
    const auto found = symbols.find(word);
    if (found != symbols.end()) return found->second;
    if (word != "min" && word != "max" && word != "broadcast" && word != "ceil_div") unknown = word;
    return std::string(word);
  });
  if (!unknown.empty()) {
    return Status(Code::invalid_argument, fmt::format("'{}' is neither a size nor an axis of the kernel.", unknown));
  }
  return kernel.arena.parse(in_arena);
}

namespace {

constexpr int kMostDepth = 200;

// Thrown to end the parsing of a malformed text.
struct Wrong {
  std::string what;
};

class LineReader {
 public:
  LineReader(Kernel& kernel, std::vector<Id>& shared, std::string_view line)
      : kernel_(kernel), shared_(shared), whole_(line), rest_(line) {}

  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    if (!leading_name(token).empty() && leading_name(rest_).size() != token.size()) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) wrong(fmt::format("'{}' is expected", token));
  }
  void end() {
    skip();
    if (!rest_.empty()) wrong("nothing more is expected");
  }
  std::string_view name() {
    skip();
    const std::string_view word = leading_name(rest_);
    if (word.empty()) wrong("a name is expected");
    rest_.remove_prefix(word.size());
    return word;
  }
  int64_t number() {
    skip();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) wrong("a number that int64 holds is expected");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  DType dtype() {
    const std::string_view word = name();
    const auto found = dtype_from_name(word);
    if (!found) wrong(fmt::format("a dtype is expected, not '{}'", word));
    return *found;
  }
  // Parses the size before `stop`, or before the end of the line.
  SymDim size(size_t stop = std::string_view::npos) {
    const std::string_view text = rest_.substr(0, stop);
    const Result<SymDim> size = read_size(kernel_, text);
    if (!size.ok()) refuse(fmt::format("a size is expected: {}", size.status().message()));
    rest_.remove_prefix(text.size());
    return size.value();
  }

  template <class T>
  Id find(const std::vector<T>& list, const char* what) {
    const std::string_view word = name();
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == word) return static_cast<Id>(i);
    }
    wrong(fmt::format("there is no {} '{}' above this line", what, word));
  }
  std::vector<Id> axes(const char* word) {
    std::vector<Id> result;
    if (!take(word)) return result;
    while (true) {
      skip();
      if (leading_name(rest_).empty() || leading_name(rest_) == "over") return result;
      result.push_back(find(kernel_.axes, "axis"));
    }
  }

  // Parses "x[768*i + r", up to the closing bracket or a condition.
  std::pair<Id, SymDim> element() {
    const Id buffer = find(kernel_.buffers, "buffer");
    expect("[");
    return {buffer, size(std::min(rest_.find(']'), rest_.find(" if ")))};
  }

  Id expression() {
    if (++depth_ > kMostDepth) wrong("expressions are nested too deeply");
    const Id result = part();
    --depth_;
    return result;
  }

  // `what` is a sentence without its full stop.
  [[noreturn]] void wrong(std::string_view what) const { refuse(fmt::format("{}.", what)); }

 private:
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  [[noreturn]] void refuse(std::string_view sentence) const {
    throw Wrong{fmt::format("at position {} {}", whole_.size() - rest_.size(), sentence)};
  }

  Id part() {
    skip();
    if (take("%")) {
      const int64_t number = this->number();
      if (number < 0 || number >= static_cast<int64_t>(shared_.size())) wrong("a line '%' above this one is expected");
      return shared_[static_cast<size_t>(number)];
    }
    if (take("[")) {
      const SymDim number = size(rest_.find(']'));
      expect("]");
      return kernel_.index(number);
    }
    const std::string_view word = leading_name(rest_);
    const bool is_number = word.empty() || rest_.substr(word.size()).starts_with(":");
    if (is_number) return constant();
    if (rest_.substr(word.size()).starts_with("[")) {
      const auto place = element();
      const Id where = take("if") ? expression() : kNone;
      expect("]");
      return kernel_.load(place.first, place.second, where);
    }
    if (rest_.substr(word.size()).starts_with("(")) return word == "position" ? position() : call(name());
    return kernel_.read(find(kernel_.stages, "stage"));
  }

  double floating() {
    skip();
    const std::string text(rest_.substr(0, rest_.find_first_of(":,;) ")));
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) wrong("a number is expected");
    rest_.remove_prefix(text.size());
    return value;
  }

  Id constant() {
    const std::string_view begin = rest_;
    const double value = floating();
    const size_t length = begin.size() - rest_.size();
    expect(":");
    const DType type = dtype();
    if (is_floating(type)) return kernel_.constant(type, value);
    int64_t integer = 0;
    const auto [end, error] = std::from_chars(begin.data(), begin.data() + length, integer);
    if (error != std::errc() || end != begin.data() + length) wrong("an integer is expected before the dtype");
    return kernel_.constant_integer(type, integer);
  }

  Id position() {
    name();
    expect("(");
    const Id x = expression();
    expect(",");
    const Id count = expression();
    expect(",");
    const Id buffer = find(kernel_.buffers, "buffer");
    expect(")");
    return kernel_.position(x, count, buffer);
  }

  Id call(std::string_view op) {
    expect("(");
    std::vector<Id> arguments{expression()};
    while (take(",")) arguments.push_back(expression());
    double a = 0;
    double b = 0;
    if (take(";")) {
      a = floating();
      if (take(",")) b = floating();
    }
    expect(")");
    if (const auto type = dtype_from_name(op); type && arguments.size() == 1) return kernel_.cast(*type, arguments[0]);
    if (arguments.size() == 1) return kernel_.unary(op, arguments[0], a, b);
    if (arguments.size() == 2) return kernel_.binary(op, arguments[0], arguments[1]);
    if (arguments.size() == 3) return kernel_.ternary(op, arguments[0], arguments[1], arguments[2]);
    wrong(fmt::format("'{}' has {} arguments, but no function has more than 3", op, arguments.size()));
  }

  Kernel& kernel_;
  std::vector<Id>& shared_;
  std::string_view whole_, rest_;
  int depth_ = 0;
};

class KernelReader {
 public:
  explicit KernelReader(Kernel& kernel) : kernel_(kernel) { open_.push_back(&kernel.body); }

  void line(std::string_view text) {
    LineReader reader(kernel_, shared_, text);
    if (in_loops_) return loop(reader, text.find_first_not_of(' '));
    if (reader.take("loops")) {
      in_loops_ = true;
    } else if (reader.take("%")) {
      if (reader.number() != static_cast<int64_t>(shared_.size())) {
        reader.wrong(fmt::format("number {} is expected", shared_.size()));
      }
      reader.expect("=");
      shared_.push_back(reader.expression());
    } else {
      declaration(reader);
    }
    reader.end();
  }

 private:
  void declaration(LineReader& reader) {
    const std::string name(reader.name());
    if (reader.take("=")) return stage(reader, name);
    if (name == "size") {
      const std::string parameter(reader.name());
      reader.expect("in");
      reader.expect("[");
      const int64_t least = reader.number();
      reader.expect(",");
      const int64_t most = reader.number();
      reader.expect("]");
      kernel_.add_parameter(parameter, least, most, reader.take("multiple") ? reader.number() : 1);
    } else if (name == "axis") {
      const std::string axis(reader.name());
      kernel_.add_axis(axis, reader.size());
    } else if (name == "in" || name == "out") {
      const std::string buffer(reader.name());
      const DType dtype = reader.dtype();
      kernel_.add_buffer(buffer, dtype, reader.size(), name == "out");
    } else {
      reader.wrong("size, axis, in, out, loops, or a stage is expected");
    }
  }

  void stage(LineReader& reader, const std::string& name) {
    Stage stage;
    stage.name = name;
    if (reader.take("store")) {
      stage.kind = StageKind::store;
      const auto place = reader.element();
      reader.expect("]");
      stage.buffer = place.first;
      stage.index = place.second;
      stage.dtype = kernel_.buffers[stage.buffer].dtype;
    } else if (reader.take("value")) {
      stage.dtype = reader.dtype();
    } else {
      const std::string_view op = reader.name();
      const table::ReduceRow* row = table::reduce_row(op);
      if (row == nullptr) reader.wrong(fmt::format("value, store or a reduction is expected, not '{}'", op));
      stage.kind = StageKind::reduce;
      stage.op = row->id;
      stage.dtype = reader.dtype();
    }
    if (reader.take("inlined")) stage.storage = Storage::inlined;
    if (reader.take("in")) {
      stage.storage = reader.take("shared") ? Storage::shared : Storage::row;
      if (stage.storage == Storage::row) reader.expect("row");
    }
    stage.axes = reader.axes("at");
    stage.reduce_axes = reader.axes("over");
    reader.expect(":");
    stage.value = reader.expression();
    kernel_.stages.push_back(std::move(stage));
  }

  void loop(LineReader& reader, size_t indent) {
    const size_t depth = indent / 2;
    if (indent % 2 != 0 || depth < 1 || depth > open_.size()) reader.wrong("another indentation is expected");
    open_.resize(depth);
    Node node;
    const bool items = reader.take("items");
    const bool serial = !items && reader.take("serial");
    const bool work_items = !items && !serial && reader.take("work_items");
    if (items || serial || work_items || reader.take("vector")) {
      node.kind = items ? LoopKind::items : serial ? LoopKind::serial : LoopKind::vector;
      if (work_items) node.kind = LoopKind::work_items;
      node.axis = reader.find(kernel_.axes, "axis");
      if (reader.take("step")) node.step = reader.number();
      if (reader.take("unroll")) node.unroll = reader.number();
      if (reader.take("width")) node.width = reader.number();
      if (reader.take("dim")) node.dim = reader.number();
    } else if (reader.take("barrier")) {
      node.is_barrier = true;
    } else {
      node.stage = reader.find(kernel_.stages, "stage");
    }
    reader.end();
    open_.back()->push_back(std::move(node));
    if (open_.back()->back().is_loop()) {
      open_.push_back(&open_.back()->back().body);
    }
  }

  Kernel& kernel_;
  std::vector<Id> shared_;
  std::vector<std::vector<Node>*> open_;  // the bodies that the next line may belong to
  bool in_loops_ = false;
};

}  // namespace

Result<Kernel> parse_kernel(std::string_view text) {
  std::optional<Kernel> kernel;
  std::optional<KernelReader> reader;
  size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.find_first_not_of(' ') == std::string_view::npos || line.starts_with('#')) continue;
    try {
      if (!kernel) {
        if (!line.starts_with("kernel ")) throw Wrong{"'kernel' and a name are expected."};
        kernel.emplace(std::string(line.substr(7)));
        reader.emplace(*kernel);
        continue;
      }
      const symbolic::ArenaScope scope(kernel->arena);
      reader->line(line);
    } catch (const Wrong& wrong) {
      return Status(Code::invalid_argument, fmt::format("Line {} of a kernel: {}", number, wrong.what));
    } catch (const Error& error) {
      return Status(error.code(), fmt::format("Line {} of a kernel: {}", number, error.what()));
    }
  }
  if (!kernel) return Status(Code::invalid_argument, "A kernel is expected, but the text is empty.");
  TENON_RETURN_IF_ERROR(verify(*kernel));
  return *std::move(kernel);
}

}  // namespace tenon::codegen
