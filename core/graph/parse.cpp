// Parses a graph that print.cpp printed. The text may come from a file and is not trusted.
#include <charconv>
#include <cstring>
#include <map>

#include "core/device/device_state.h"
#include "core/graph/record.h"
#include "core/graph/regions/regions.h"
#include "core/graph/text.h"
#include "core/ops/dims_attribute.h"
#include "core/ops/libraries.h"
#include "core/ops/op_rows.h"
#include "core/ops/record_shape.h"
#include "core/ops/rules/epilogue.h"
#include "core/ops/scalar_patch.h"
#include "core/ops/text_attribute.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"
#include "primitives/text/quoted.h"

namespace tenon::graph {
namespace {

constexpr uint32_t kMostResults = 1024;

// Thrown to end the parsing of a malformed line.
struct Wrong {
  std::string what;
};

// Splits one line into words.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[noreturn]] void wrong(std::string_view what) const { throw Wrong{fmt::format("at position {} {}", at_, what)}; }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    const size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) wrong(fmt::format("'{}' is expected", token));
  }
  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.')) ++at_;
    if (at_ == begin) wrong("a name is expected");
    return text_.substr(begin, at_ - begin);
  }
  // Reads up to one of `ends` outside of brackets.
  std::string_view until(std::string_view ends) {
    skip();
    const size_t begin = at_;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && ends.find(c) != std::string_view::npos) break;
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    return text_.substr(begin, at_ - begin);
  }
  uint64_t number() {
    skip();
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) wrong("a number is expected");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  std::string quoted() {
    skip();
    std::string result;
    const size_t read = read_quoted(text_.substr(at_), &result);
    if (read == 0) wrong("a text in quotes is expected");
    at_ += read;
    return result;
  }

 private:
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Scalar scalar_of(Cursor& cursor) {
  const std::string text(cursor.until(",)"));
  const auto whole = [&](auto value, int base) -> std::optional<decltype(value)> {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
    const bool is_unsigned = std::is_unsigned_v<decltype(value)>;
    if (error != std::errc() || rest != (is_unsigned ? "u" : "")) return std::nullopt;
    return value;
  };
  if (text == "true" || text == "false") return Scalar(text == "true");
  if (const auto number = whole(int64_t{}, 10)) return Scalar(*number);
  if (const auto number = whole(uint64_t{}, 10)) return Scalar(*number);
  if (text.starts_with("nan:")) {
    uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data() + 4, text.data() + text.size(), bits, 16);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (error == std::errc() && end == text.data() + text.size() && value != value) return Scalar(value);
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) cursor.wrong(fmt::format("'{}' is not a number", text));
  return Scalar(value);
}

}  // namespace

class Parser {
 public:
  Parser(std::string_view text, std::string_view constants) : text_(text), constants_(constants) {}

  Graph parse() {
    try {
      header();
      body();
      if (text_.find_first_not_of(" \n") != std::string_view::npos) throw Wrong{"nothing may follow 'return'"};
    } catch (const Wrong& wrong) {
      throw Error(Code::invalid_argument, fmt::format("The text is not a graph: line {}: {}.", lines_, wrong.what));
    } catch (const Error& error) {
      throw Error(error.status().with_context(fmt::format("  in line {} of the graph", lines_)));
    }
    return std::move(*program_);
  }

 private:
  std::string_view next_line() {
    const size_t end = std::min(text_.find('\n'), text_.size());
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++lines_;
    return line;
  }

  // Parses the name and the arena.
  void header() {
    Cursor cursor(next_line());
    cursor.expect("graph");
    graph_ = &program_.emplace(cursor.quoted());
    std::string_view arena = text_;
    while (!text_.empty() && text_[0] != '%' && !text_.starts_with("return")) {
      next_line();
    }
    arena.remove_suffix(text_.size());
    const std::string name = graph_->arena().name();
    graph_->arena_ = std::make_unique<symbolic::Arena>(value_or_throw(symbolic::parse_arena(arena, name)));
  }

  // Parses the lines up to `return`.
  void body() {
    for (bool returned = false; !returned;) {
      if (text_.empty()) throw Wrong{"the line with 'return' is missing"};
      returned = line(next_line());
    }
  }

  // Parses one line. Returns true for the line with `return`.
  bool line(std::string_view text) {
    Cursor cursor(text);
    const bool returns = cursor.take("return");
    if (returns) {
      graph_->set_outputs(cursor.done() ? std::vector<ValueId>() : values(cursor));
    } else {
      definition(cursor);
    }
    if (!cursor.done()) cursor.wrong("nothing more is expected");
    return returns;
  }

  void definition(Cursor& cursor) {
    std::vector<uint64_t> names;
    do {
      cursor.expect("%");
      names.push_back(cursor.number());
      if (ids_.contains(names.back())) cursor.wrong(fmt::format("%{} is defined already", names.back()));
      if (names.size() > kMostResults) cursor.wrong("there are too many results");
    } while (cursor.take(","));
    cursor.expect("=");
    if (cursor.take("input")) return define(names, {input(cursor)}, cursor);
    if (cursor.take("constant")) return define(names, {constant(cursor)}, cursor);
    node(cursor, names);
  }

  void define(const std::vector<uint64_t>& names, const std::vector<ValueId>& made, const Cursor& cursor) {
    if (names.size() != made.size())
      cursor.wrong(fmt::format("{} names are given to {} values", names.size(), made.size()));
    for (size_t i = 0; i < names.size(); ++i) ids_[names[i]] = made[i];
  }

  ValueId value(Cursor& cursor) {
    if (cursor.take("_")) return 0;
    cursor.expect("%");
    const uint64_t name = cursor.number();
    const auto found = ids_.find(name);
    if (found == ids_.end()) cursor.wrong(fmt::format("%{} is not defined before", name));
    return found->second;
  }
  std::vector<ValueId> values(Cursor& cursor) {
    std::vector<ValueId> all;
    do all.push_back(value(cursor));
    while (cursor.take(","));
    return all;
  }

  SymDim size(std::string_view text) { return value_or_throw(graph_->arena().parse(text)); }

  SymMeta type(Cursor& cursor) {
    SymMeta meta;
    const std::string_view name = cursor.word();
    const std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype) cursor.wrong(fmt::format("'{}' is not a dtype", name));
    meta.dtype = *dtype;
    cursor.expect("[");
    while (!cursor.take("]")) {
      if (meta.dims.size() == EP_MAX_RANK) cursor.wrong("a tensor has at most 8 axes");
      meta.dims.push_back(size(cursor.until(",]")));
      if (!cursor.take(",")) {
        cursor.expect("]");
        break;
      }
    }
    return meta;
  }

  DeviceState* device(Cursor& cursor) {
    const std::string_view spelling = cursor.until(" ");
    return Device(std::string(spelling)).state();
  }

  ValueId input(Cursor& cursor) {
    const SymMeta meta = type(cursor);
    cursor.expect("on");
    return graph_->add_input(meta.dtype, meta.dims, device(cursor));
  }

  ValueId constant(Cursor& cursor) {
    const SymMeta meta = type(cursor);
    cursor.expect("on");
    const Device where(device(cursor));
    cursor.expect("=");
    Dims dims;
    for (SymDim dim : meta.dims) {
      if (!dim.is_number() || dim.number() < 0) cursor.wrong("the dims of a constant are numbers");
      dims.push_back(dim.number());
    }
    const int64_t elements = value_or_throw(checked_count_of(dims, meta.dtype));
    const std::string bytes = elements == 0 ? none(cursor) : content(cursor, dtype_bytes(meta.dtype, elements));
    return graph_->add_constant(Tensor::copy_from_host(bytes.data(), dims, meta.dtype, where));
  }

  static std::string none(Cursor& cursor) {
    cursor.expect("none");
    return {};
  }

  std::string content(Cursor& cursor, int64_t count) {
    const auto bytes = static_cast<size_t>(count);
    if (cursor.take("file")) {
      const uint64_t at = cursor.number();
      if (at > constants_.size() || bytes > constants_.size() - at) cursor.wrong("the file of constants is shorter");
      return std::string(constants_.substr(at, bytes));
    }
    const std::string_view digits = cursor.until(" ");
    if (digits.size() != 2 * bytes) cursor.wrong(fmt::format("{} bytes in hex are expected", bytes));
    std::string result(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) {
      uint8_t byte = 0;
      const char* from = digits.data() + 2 * i;
      if (std::from_chars(from, from + 2, byte, 16).ptr != from + 2) cursor.wrong("the bytes are not in hex");
      result[i] = static_cast<char>(byte);
    }
    return result;
  }

  void node(Cursor& cursor, const std::vector<uint64_t>& names) {
    Node made;
    std::string name(cursor.word());
    if (cursor.take("::")) {
      name = fmt::format("{}::{}", name, cursor.word());
      const OpInfo* row = find_library_row(name);
      if (row != nullptr && row->form != OpForm::composite) made.op = row;
    }
    for (const OpInfo& op : op_table()) {
      if (op.name == name && op.form != OpForm::composite) made.op = &op;
    }
    for (const control::Row& row : control::rows()) {
      if (row.op.name == name) made.op = &row.op;
    }
    if (made.op == nullptr) cursor.wrong(fmt::format("there is no op '{}'", name));
    made.attributes.resize((made.op->attribute_bytes + 7) / 8);
    cursor.expect("(");
    if (!cursor.take(")")) {
      made.inputs = values(cursor);
      cursor.expect(")");
    }
    const bool controls = control::is_control(*made.op);
    const RecordShape shape = controls ? RecordShape{} : record_shape(*made.op);
    if (!shape.listed && made.inputs.size() < shape.most && made.inputs.size() >= shape.required) {
      made.inputs.resize(shape.most);  // trailing absent inputs may be left out
    }
    if (cursor.take("scalars")) made.scalars = scalars(cursor);
    if (made.scalars.size() > EP_MAX_SCALARS) cursor.wrong("there are too many scalars");
    while (cursor.take("scalar")) open_scalar(cursor, &made);
    if (cursor.take("{")) attributes(cursor, &made);
    if (cursor.take("then")) epilogues(cursor, &made);
    if (cursor.take("precision")) made.precision = precision(cursor);
    if (cursor.take("on")) made.device = device(cursor);
    std::vector<SymMeta> stated;
    if (cursor.take(":")) {
      do stated.push_back(type(cursor));
      while (cursor.take(","));
    }
    if (cursor.take("label")) made.label = graph_->add_label(cursor.quoted());
    if (controls) {
      if (!cursor.done()) cursor.wrong("nothing more is expected");
      for (const std::string_view body : control::row_of(*made.op).bodies) {
        if (!body.empty()) made.regions.push_back(region(body));
      }
    } else {
      check(cursor, made, names.size());
    }
    const NodeId id = graph_->append(std::move(made), names.size());
    check_types(cursor, id, stated);
    define(names, graph_->node(id).results, cursor);
  }

  // Parses `region NAME` and its lines, which cannot use values from outside.
  std::shared_ptr<Graph> region(std::string_view name) {
    Cursor cursor(next_line());
    cursor.expect("region");
    cursor.expect(name);
    if (!cursor.done()) cursor.wrong("nothing more is expected");
    if (++depth_ > kMostRegionDepth) cursor.wrong("regions are nested too deeply");
    std::shared_ptr<Graph> made = graph_->new_region();
    std::map<uint64_t, ValueId> outside = std::exchange(ids_, {});
    Graph* around = std::exchange(graph_, made.get());
    body();
    graph_ = around;
    ids_ = std::move(outside);
    --depth_;
    return made;
  }

  // Checks the assumptions of the rules, which functors check for recorded ops.
  void check(const Cursor& cursor, const Node& made, size_t results) {
    if (const Status record = check_record(*graph_, made, results); !record.ok()) cursor.wrong(record.message());
  }

  void check_types(const Cursor& cursor, NodeId id, const std::vector<SymMeta>& stated) {
    const std::vector<ValueId>& results = graph_->node(id).results;
    for (size_t i = 0; i < stated.size() && i < results.size(); ++i) {
      const Value& value = (*graph_)[results[i]];
      bool same = value.dtype == stated[i].dtype && value.dims.rank() == stated[i].dims.rank();
      for (int32_t axis = 0; same && axis < value.dims.rank(); ++axis) {
        same = graph_->arena().known({Relation::eq, value.dims[axis], stated[i].dims[axis]}) == true;
      }
      if (!same) cursor.wrong(fmt::format("result {} has another type by the op's rule", i));
    }
  }

  static std::vector<Scalar> scalars(Cursor& cursor) {
    std::vector<Scalar> all;
    cursor.expect("(");
    do {
      all.push_back(scalar_of(cursor));
    } while (cursor.take(","));
    cursor.expect(")");
    return all;
  }

  void open_scalar(Cursor& cursor, Node* made) {
    const uint64_t slot = cursor.number();
    if (slot >= made->scalars.size()) cursor.wrong(fmt::format("there is no scalar {}", slot));
    cursor.expect("is");
    cursor.expect("{");
    const SymDim expression = size(cursor.until("}"));
    cursor.expect("}");
    if (expression.is_number()) cursor.wrong("an expression is expected");
    made->patches.push_back({kScalarPatch + static_cast<uint32_t>(slot), expression});
  }

  static Precision precision(Cursor& cursor) {
    const uint64_t number = cursor.number();
    if (number > static_cast<uint64_t>(Precision::full)) cursor.wrong("there is no such precision");
    return static_cast<Precision>(number);
  }

  void attributes(Cursor& cursor, Node* made) {
    do {
      const std::string_view name = cursor.word();
      const AttributeField* field = nullptr;
      for (const AttributeField& each : fields_of(*made->op)) {
        if (each.name == name) field = &each;
      }
      if (field == nullptr) cursor.wrong(fmt::format("{} has no attribute '{}'", made->op->name, name));
      cursor.expect(":");
      attribute(cursor, *field, made);
    } while (cursor.take(","));
    cursor.expect("}");
  }

  void attribute(Cursor& cursor, const AttributeField& field, Node* made) {
    if (field.type == AttributeType::dtype) {
      const std::string_view name = cursor.word();
      const std::optional<DType> dtype = dtype_from_name(name);
      if (!dtype) cursor.wrong(fmt::format("'{}' is not a dtype", name));
      return put(*dtype, field.offset, made);
    }
    if (field.type == AttributeType::text) {
      const std::string text = cursor.quoted();
      if (text.size() > TextAttribute::kMost) cursor.wrong("the text is too long");
      return put(TextAttribute::of(text), field.offset, made);
    }
    const bool dims = field.type == AttributeType::dims;
    const uint32_t most = dims ? uint32_t{EP_MAX_RANK} : field.count;
    uint32_t count = 0;
    const bool many = cursor.take("[");
    for (; !(many && cursor.take("]")); ++count) {
      if (count == most) cursor.wrong(fmt::format("'{}' has at most {} numbers", field.name, most));
      number(cursor, field, count, made);
      if (!many) break;
      if (!cursor.take(",")) {
        cursor.expect("]");
        ++count;
        break;
      }
    }
    if (dims) put(int64_t{count}, field.offset, made);
  }

  void real(Cursor& cursor, uint32_t offset, Node* made) {
    const std::string_view text = cursor.until(",]}");
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      cursor.wrong(fmt::format("'{}' is not a number", text));
    put(value, offset, made);
  }

  void number(Cursor& cursor, const AttributeField& field, uint32_t i, Node* made) {
    if (field.type == AttributeType::f64) return real(cursor, field.offset + 8 * i, made);
    const SymDim wide = size_or_number(cursor, cursor.until(",]}"), field, i, made);
    if (field.type == AttributeType::i32 || field.type == AttributeType::u32) {
      if (!wide.is_number() || wide.number() < INT32_MIN || wide.number() > UINT32_MAX)
        cursor.wrong("the number is too large");
      put(static_cast<uint32_t>(wide.number()), field.offset + 4 * i, made);
    }
  }

  // Stores an i64 or an expression in the attributes; bounds of slices may be larger than any size.
  SymDim size_or_number(Cursor& cursor, std::string_view text, const AttributeField& field, uint32_t i, Node* made) {
    const uint32_t at = field.offset + (field.type == AttributeType::dims ? 8 : 0) + 8 * i;
    const bool narrow = field.type == AttributeType::i32 || field.type == AttributeType::u32;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) {
      if (!narrow) put(number, at, made);
      return SymDim::saturated(number);
    }
    const SymDim expression = size(text);
    const std::optional<int64_t> hint = graph_->arena().hint(expression);
    if (narrow) cursor.wrong("a number is expected");
    put(hint.value_or(0), at, made);
    if (!expression.is_number()) made->patches.push_back({at / 8, expression});
    return expression;
  }

  template <class T>
  static void put(const T& value, uint32_t offset, Node* made) {
    std::memcpy(reinterpret_cast<char*>(made->attributes.data()) + offset, &value, sizeof value);
  }

  void epilogues(Cursor& cursor, Node* made) {
    made->scalars.clear();
    do {
      if (made->epilogues.size() == EP_MAX_EPILOGUES) cursor.wrong("there are too many epilogues");
      Epilogue epilogue;
      const std::string_view name = cursor.word();
      for (const OpInfo& op : op_table()) {
        if (op.name == name && op.form == OpForm::elementwise && op.kind != EP_PRIMITIVE_ternary) epilogue.op = &op;
      }
      if (epilogue.op == nullptr) cursor.wrong(fmt::format("there is no epilogue '{}'", name));
      if (cursor.take("(")) operands(cursor, made, &epilogue);
      const bool binary = epilogue.op->kind == EP_PRIMITIVE_binary;
      const bool scalars = ops::scalars_of(epilogue) != 0;
      if ((binary || scalars) && epilogue.input < 0 && epilogue.scalar == 0) cursor.wrong("its operand is missing");
      made->epilogues.push_back(epilogue);
    } while (cursor.take(","));
  }

  void operands(Cursor& cursor, Node* made, Epilogue* epilogue) {
    if (epilogue->op->kind == EP_PRIMITIVE_binary && cursor.take("%")) {
      const uint64_t name = cursor.number();
      if (!ids_.contains(name)) cursor.wrong(fmt::format("%{} is not defined before", name));
      made->inputs.push_back(ids_[name]);
      epilogue->input = static_cast<int16_t>(made->inputs.size() - 1);
    } else {
      const size_t slot = std::max<size_t>(made->scalars.size(), ops::kEpilogueSlot);
      epilogue->scalar = static_cast<int16_t>(slot);
      made->scalars.resize(slot);
      for (int32_t i = 0; i < ops::scalars_of(*epilogue); ++i) {
        if (i != 0) cursor.expect(",");
        made->scalars.push_back(scalar_of(cursor));
      }
      if (made->scalars.size() > EP_MAX_SCALARS) cursor.wrong("there are too many scalars");
    }
    cursor.expect(")");
  }

  static Result<int64_t> checked_count_of(const Dims& dims, DType dtype) {
    int64_t count = 1;
    for (int64_t dim : dims) {
      if (__builtin_mul_overflow(count, dim, &count))
        return Status(Code::invalid_argument, "the constant is too large");
    }
    if (count > (int64_t{1} << 40))
      return Status(Code::invalid_argument, fmt::format("A constant of {} {} is too large.", count, dtype_name(dtype)));
    return count;
  }

  std::string_view text_, constants_;
  std::optional<Graph> program_;
  Graph* graph_ = nullptr;  // the program, or a region of it
  std::map<uint64_t, ValueId> ids_;
  size_t depth_ = 0;  // nesting of regions
  size_t lines_ = 0;  // lines read so far
};

Graph parse(std::string_view text, std::string_view constants) { return Parser(text, constants).parse(); }

}  // namespace tenon::graph
