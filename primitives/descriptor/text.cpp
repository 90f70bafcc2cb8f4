// to_string and parse_descriptor.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "primitives/accuracy/accuracy.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/descriptor/fields.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::descriptor {
namespace {

std::string type_text(int32_t dtype) {
  const DTypeInfo& info = dtype_info(static_cast<DType>(dtype));
  return info.bits == 0 ? fmt::format("dtype{}", dtype) : std::string(info.name);
}

std::string list_text(const int64_t* values, int32_t count) {
  std::string text;
  for (int32_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += values[i] == EP_ANY ? "?" : fmt::format("{}", values[i]);
  }
  return text;
}

std::string attribute_text(const ep_primitive_desc& desc, const Field& field) {
  int32_t count = field.count;
  while (count > 0 && get_field(desc.attributes, field, count - 1) == 0) --count;
  if (count == 0) return {};
  std::string text = fmt::format(" {}=", field.name);
  for (int32_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += value_text(field.type, get_field(desc.attributes, field, i));
  }
  return text;
}

std::string scalar_text(const ep_scalar& scalar) {
  const DTypeClass type_class = dtype_info(static_cast<DType>(scalar.dtype)).type_class;
  const std::string type = type_text(scalar.dtype);
  if (type_class == DTypeClass::INT) return fmt::format("{}:{}", type, scalar.value.i64);
  if (type_class != DTypeClass::FLOAT) return fmt::format("{}:{}", type, scalar.value.u64);
  return fmt::format("{}:{:.17g}", type, scalar.value.f64);
}

std::string epilogue_text(const ep_epilogue& epilogue) {
  const FieldType type = epilogue.arity == 1 ? FieldType::UNARY : FieldType::BINARY;
  std::string text = fmt::format(" epilogue={}", value_text(type, epilogue.op));
  if (epilogue.arity == 2) {
    text += fmt::format("({})", epilogue.role == 0 ? "scalar" : table::role_name(epilogue.role));
  }
  if (epilogue.scalar != 0) text += fmt::format("@{}", epilogue.scalar);
  return text;
}

std::string operand_text(const ep_operand_desc& operand) {
  std::string role = table::role_name(operand.role);
  if (role.empty()) role = fmt::format("role{}", operand.role);
  std::string text = fmt::format(" {} {}", role, type_text(operand.dtype));
  if (operand.rank > 0 && operand.rank <= EP_MAX_RANK) {
    const std::string strides =
        is_opaque(operand) ? fmt::format("#{}", operand.strides[0]) : list_text(operand.strides, operand.rank);
    text += fmt::format("[{}]{{{}}}", list_text(operand.dims, operand.rank), strides);
  }
  if (operand.alignment != 0) text += fmt::format("@{}", operand.alignment);
  if (operand.flags & EP_OPERAND_FLAG_CONSTANT) text += "+constant";
  if (operand.flags & EP_OPERAND_FLAG_SCALAR) text += " scalar";
  const uint64_t unknown =
      operand.flags & ~(EP_OPERAND_FLAG_CONSTANT | EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_OPAQUE);
  if (unknown != 0) text += fmt::format("+flags{}", unknown);
  return text;
}

// Reads the words of a line. After the first error it keeps that error.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_spaces();
    return text_.empty();
  }
  // The next word, up to a space. peek does not consume it.
  std::string_view peek() {
    skip_spaces();
    return text_.substr(0, text_.find(' '));
  }
  std::string_view word() {
    const std::string_view word = peek();
    text_.remove_prefix(word.size());
    return word;
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  std::string_view text_;
};

template <class... Parts>
Status wrong(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Subject{"descriptor"}, Code::invalid_argument, fmt::format(text, parts...));
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns the part of `text` before the first `separator`, and leaves the part behind it in `text`.
std::string_view cut(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return head;
}

Result<int32_t> parse_type(std::string_view text) {
  if (const auto dtype = dtype_from_name(text)) return static_cast<int32_t>(*dtype);
  if (text.starts_with("dtype")) {
    if (const auto id = number<int32_t>(text.substr(5))) return *id;
  }
  return wrong("'{}' is not a dtype.", text);
}

Result<int32_t> parse_list(std::string_view text, int64_t* values) {
  int32_t count = 0;
  while (!text.empty()) {
    const std::string_view item = cut(text, ',');
    const auto value = item == "?" ? std::optional<int64_t>(EP_ANY) : number<int64_t>(item);
    if (!value) return wrong("'{}' is not a number.", item);
    if (count == EP_MAX_RANK) return wrong("more than {} numbers in one list.", EP_MAX_RANK);
    values[count++] = *value;
  }
  return count;
}

Status parse_scalar(std::string_view text, ep_scalar* scalar) {
  TENON_ASSIGN_OR_RETURN(scalar->dtype, parse_type(cut(text, ':')));
  const DTypeClass type_class = dtype_info(static_cast<DType>(scalar->dtype)).type_class;
  std::optional<double> real;
  std::optional<int64_t> integer;
  std::optional<uint64_t> natural;
  if (type_class == DTypeClass::FLOAT && (real = number<double>(text))) {
    scalar->value.f64 = *real;
  } else if (type_class == DTypeClass::INT && (integer = number<int64_t>(text))) {
    scalar->value.i64 = *integer;
  } else if (type_class != DTypeClass::FLOAT && type_class != DTypeClass::INT && (natural = number<uint64_t>(text))) {
    scalar->value.u64 = *natural;
  } else {
    return wrong("'{}' is not a number of its dtype.", text);
  }
  return {};
}

Status parse_epilogue(std::string_view text, ep_primitive_desc* desc) {
  if (desc->epilogue_count == EP_MAX_EPILOGUES) return wrong("more than {} epilogues.", EP_MAX_EPILOGUES);
  ep_epilogue& epilogue = desc->epilogues[desc->epilogue_count++];
  std::string_view head = cut(text, '@');
  if (!text.empty()) {
    const auto scalar = number<int32_t>(text);
    if (!scalar) return wrong("'{}' is not the number of a launch scalar.", text);
    epilogue.scalar = *scalar;
  }
  const std::string_view name = cut(head, '(');
  epilogue.arity = head.empty() ? 1 : 2;
  TENON_ASSIGN_OR_RETURN(const int64_t op,
                         value_from_text(epilogue.arity == 1 ? FieldType::UNARY : FieldType::BINARY, name));
  epilogue.op = static_cast<int32_t>(op);
  if (epilogue.arity == 1) return {};
  const std::string_view role = cut(head, ')');
  if (role == "scalar") return {};
  const auto id = table::role_from_name(role);
  if (!id) return wrong("'{}' is not a role.", role);
  epilogue.role = *id;
  return {};
}

Status parse_attribute(std::string_view name, std::string_view text, ep_primitive_desc* desc) {
  for (const Field& field : fields()) {
    if (field.kind != desc->kind || field.name != name) continue;
    for (int32_t i = 0; !text.empty(); ++i) {
      if (i == field.count) return wrong("attribute {} has at most {} numbers.", name, field.count);
      TENON_ASSIGN_OR_RETURN(const int64_t value, value_from_text(field.type, cut(text, ',')));
      set_field(desc->attributes, field, i, value);
    }
    return {};
  }
  return wrong("'{}' is not an attribute of {}.", name, table::kind_name(desc->kind));
}

Status parse_setting(std::string_view word, ep_primitive_desc* desc) {
  std::string_view value = word;
  const std::string_view name = cut(value, '=');
  if (word == "deterministic") {
    desc->flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
    return {};
  }
  if (name == "precision") {
    const std::optional<Tier> tier = tier_from_name(value);
    const auto id = tier ? std::optional(static_cast<int32_t>(*tier)) : number<int32_t>(value);
    if (!id) return wrong("'{}' is not a precision.", value);
    desc->precision = *id;
    return {};
  }
  if (name == "acc") {
    TENON_ASSIGN_OR_RETURN(desc->accumulate_dtype, parse_type(value));
    return {};
  }
  if (name == "epilogue") return parse_epilogue(value, desc);
  if (name.starts_with("scalar")) {
    const auto slot = number<uint32_t>(name.substr(6));
    if (!slot || *slot >= EP_MAX_SCALARS) return wrong("'{}' is not a launch scalar.", name);
    desc->baked_scalars |= uint32_t{1} << *slot;
    return parse_scalar(value, &desc->scalars[*slot]);
  }
  return parse_attribute(name, value, desc);
}

Status parse_operand(Reader* reader, ep_operand_desc* operand) {
  const std::string_view role_word = reader->word();
  const auto role = table::role_from_name(role_word);
  if (!role) return wrong("'{}' is not a role.", role_word);
  operand->role = *role;
  std::string_view layout = reader->word();
  const size_t type_end = layout.find_first_of("[@+");
  TENON_ASSIGN_OR_RETURN(operand->dtype, parse_type(layout.substr(0, type_end)));
  layout.remove_prefix(std::min(type_end, layout.size()));
  if (layout.starts_with('[')) {
    layout.remove_prefix(1);
    TENON_ASSIGN_OR_RETURN(operand->rank, parse_list(cut(layout, ']'), operand->dims));
    if (!layout.starts_with('{')) return wrong("operand {} has dims but no strides.", role_word);
    layout.remove_prefix(1);
    std::string_view strides = cut(layout, '}');
    if (strides.starts_with('#')) {
      operand->flags |= EP_OPERAND_FLAG_OPAQUE;
      strides.remove_prefix(1);
    }
    TENON_ASSIGN_OR_RETURN(const int32_t count, parse_list(strides, operand->strides));
    const int32_t wanted = is_opaque(*operand) ? 1 : operand->rank;
    if (count != wanted) return wrong("operand {} has {} dims but {} strides.", role_word, operand->rank, count);
  }
  const std::string_view before_flags = layout.substr(0, layout.find('+'));
  if (before_flags.starts_with('@')) {
    const auto alignment = number<int32_t>(before_flags.substr(1));
    if (!alignment) return wrong("'{}' is not an alignment.", before_flags);
    operand->alignment = *alignment;
  }
  if (layout.ends_with("+constant")) operand->flags |= EP_OPERAND_FLAG_CONSTANT;
  if (reader->peek() == "scalar") {
    reader->word();
    operand->flags |= EP_OPERAND_FLAG_SCALAR;
  }
  return {};
}

}  // namespace

std::string to_string(const ep_primitive_desc& desc) {
  std::string text = table::kind_name(desc.kind);
  for (const Field& field : fields()) {
    if (field.kind == desc.kind) text += attribute_text(desc, field);
  }
  if (desc.flags & EP_PRIMITIVE_FLAG_DETERMINISTIC) text += " deterministic";
  if (desc.flags & ~EP_PRIMITIVE_FLAG_DETERMINISTIC) text += fmt::format(" flags={}", desc.flags);
  if (desc.precision >= EP_PRECISION_RELAXED && desc.precision <= EP_PRECISION_FULL) {
    text += fmt::format(" precision={}", tier_name(static_cast<Tier>(desc.precision)));
  } else if (desc.precision != EP_PRECISION_DEFAULT) {
    text += fmt::format(" precision={}", desc.precision);
  }
  if (desc.accumulate_dtype != 0) text += fmt::format(" acc={}", type_text(desc.accumulate_dtype));
  for (uint32_t i = 0; i < EP_MAX_SCALARS; ++i) {
    if (desc.baked_scalars >> i & 1) text += fmt::format(" scalar{}={}", i, scalar_text(desc.scalars[i]));
  }
  for (uint32_t i = 0; i < std::min<uint32_t>(desc.epilogue_count, EP_MAX_EPILOGUES); ++i) {
    text += epilogue_text(desc.epilogues[i]);
  }
  text += " :";
  for (uint32_t i = 0; i < std::min<uint32_t>(desc.operand_count, EP_MAX_OPERANDS); ++i) {
    text += operand_text(desc.operands[i]);
  }
  return text;
}

Result<ep_primitive_desc> parse_descriptor(std::string_view text) {
  ep_primitive_desc desc;
  std::memset(&desc, 0, sizeof(desc));
  Reader reader(text);
  const std::string_view kind = reader.word();
  const table::KindRow* row = table::kind_row(kind);
  if (row == nullptr) return wrong("'{}' is not a kind of primitive.", kind);
  desc.kind = row->id;
  while (reader.peek() != ":") {
    if (reader.at_end()) return wrong("the line ends before its operands, which a colon begins.");
    TENON_RETURN_IF_ERROR(parse_setting(reader.word(), &desc));
  }
  reader.word();
  while (!reader.at_end()) {
    if (desc.operand_count == EP_MAX_OPERANDS) return wrong("more than {} operands.", EP_MAX_OPERANDS);
    TENON_RETURN_IF_ERROR(parse_operand(&reader, &desc.operands[desc.operand_count++]));
  }
  return desc;
}

}  // namespace tenon::descriptor
