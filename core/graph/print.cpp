// Prints a graph as text, which parse.cpp reads.
#include <cmath>
#include <cstring>

#include "core/device/device_state.h"
#include "core/graph/regions/regions.h"
#include "core/graph/text.h"
#include "core/ops/dims_attribute.h"
#include "core/ops/record_shape.h"
#include "core/ops/rules/epilogue.h"
#include "core/ops/scalar_patch.h"
#include "core/ops/text_attribute.h"
#include "primitives/text/format.h"
#include "primitives/text/quoted.h"

namespace tenon::graph {
namespace {

std::string hex(const std::string& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// 7, 7u, true; doubles exactly, as hexadecimal numbers: 0x1.8p+0.
std::string scalar_text(const Scalar& scalar) {
  if (scalar.dtype() == DType::boolean) return scalar.to_int() != 0 ? "true" : "false";
  if (scalar.dtype() == DType::u64) return fmt::format("{}u", scalar.to_abi(DType::u64).value.u64);
  if (scalar.dtype() == DType::i64) return fmt::format("{}", scalar.to_int());
  const double value = scalar.to_double();
  if (std::isnan(value)) return fmt::format("nan:{:x}", scalar.to_abi(DType::f64).value.u64);
  return fmt::format("{:a}", value);
}

class Printer {
 public:
  Printer(const Graph& graph, const TextOptions& options) : graph_(graph), options_(options) {}

  std::string print() {
    return fmt::format("graph {}\n{}", in_quotes(graph_.arena().name()), graph_.arena().text()) + body("");
  }

  // The lines of values and nodes. Regions follow their node, indented.
  std::string body(const std::string& indent) {
    std::string text;
    for (ValueId id : graph_.inputs()) text += fmt::format("{}%{} = input {}\n", indent, id, typed(id));
    for (ValueId id = 1; id < graph_.value_count(); ++id) {
      const bool read = !graph_[id].uses.empty() || graph_.is_output(id);
      if (graph_[id].constant.defined() && read) text += fmt::format("{}%{} = constant {}\n", indent, id, constant(id));
    }
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      text += indent + line(graph_.node(id)) + "\n" + regions(graph_.node(id), indent);
    }
    return text + fmt::format("{}return {}\n", indent, list(graph_.outputs()));
  }

 private:
  std::string type(ValueId id) const {
    std::string dims;
    for (SymDim dim : graph_[id].dims) dims += (dims.empty() ? "" : ", ") + graph_.arena().text(dim);
    return fmt::format("{}[{}]", dtype_name(graph_[id].dtype), dims);
  }
  std::string typed(ValueId id) const { return fmt::format("{} on {}", type(id), graph_[id].device->opened->spelling); }

  std::string constant(ValueId id) {
    const Tensor& tensor = graph_[id].constant;
    const auto count = static_cast<size_t>(tensor.bytes());
    if (options_.constants == nullptr || count <= options_.most_bytes) {
      return fmt::format("{} = {}", typed(id), count == 0 ? "none" : hex(bytes_of(tensor)));
    }
    return fmt::format("{} = file {}", typed(id), place_of(tensor));
  }

  static std::string bytes_of(const Tensor& tensor) {
    std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
    tensor.copy_to_host(bytes.data());
    return bytes;
  }

  // The offset of `tensor` in the file of constants, to which it is appended.
  size_t place_of(const Tensor& tensor) {
    if (options_.written != nullptr) {
      const auto found = options_.written->find(tensor.impl());
      if (found != options_.written->end()) return found->second;
    }
    std::string& file = *options_.constants;
    file.resize((options_.file_bytes + file.size() + 63) / 64 * 64 - options_.file_bytes);
    const size_t at = options_.file_bytes + file.size();
    file += bytes_of(tensor);
    if (options_.written != nullptr) options_.written->emplace(tensor.impl(), at);
    return at;
  }

  template <class Ids>
  static std::string list(const Ids& ids) {
    std::string text;
    for (ValueId id : ids) text += (text.empty() ? "" : ", ") + (id == 0 ? std::string("_") : fmt::format("%{}", id));
    return text;
  }

  std::string regions(const Node& node, const std::string& indent) const {
    std::string text;
    for (size_t i = 0; i < node.regions.size(); ++i) {
      text += fmt::format("{}  region {}\n", indent, control::row_of(*node.op).bodies[i]);
      text += Printer(*node.regions[i], options_).body(indent + "    ");
    }
    return text;
  }

  std::string line(const Node& node) const {
    std::string text = fmt::format("{} = {}({})", list(node.results), node.op->name,
                                   list(std::span(node.inputs).first(node.own_inputs())));
    const size_t scalars = node.epilogues.empty() ? node.scalars.size() : 0;
    for (size_t i = 0; i < scalars; ++i) text += (i == 0 ? " scalars (" : ", ") + scalar_text(node.scalars[i]);
    if (scalars != 0) text += ")";
    for (const Patch& patch : node.patches) {
      if (patch.word < kScalarPatch) continue;
      text += fmt::format(" scalar {} is {{{}}}", patch.word - kScalarPatch, graph_.arena().text(patch.size));
    }
    text += attributes(node);
    for (size_t i = 0; i < node.epilogues.size(); ++i) {
      text += (i == 0 ? " then " : ", ") + epilogue(node, node.epilogues[i]);
    }
    if (node.precision != Precision::stated) text += fmt::format(" precision {}", static_cast<int>(node.precision));
    if (node.device != nullptr) text += fmt::format(" on {}", node.device->opened->spelling);
    for (size_t i = 0; i < node.results.size(); ++i) text += (i == 0 ? " : " : ", ") + type(node.results[i]);
    if (node.label != 0 && options_.labels) text += " label " + in_quotes(graph_.labels()[node.label]);
    return text;
  }

  static std::string epilogue(const Node& node, const Epilogue& epilogue) {
    std::string text(epilogue.op->name);
    if (epilogue.input >= 0) return text + fmt::format("(%{})", node.inputs[static_cast<size_t>(epilogue.input)]);
    const int32_t count = ops::scalars_of(epilogue);
    for (int32_t i = 0; i < count; ++i) {
      text += (i == 0 ? "(" : ", ") + scalar_text(node.scalars[static_cast<size_t>(epilogue.scalar + i)]);
    }
    return count == 0 ? text : text + ")";
  }

  std::string attributes(const Node& node) const {
    std::string text;
    for (const AttributeField& field : fields_of(*node.op)) {
      const std::string value = field_text(node, field);
      if (!value.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", field.name, value);
    }
    return text.empty() ? "" : fmt::format(" {{{}}}", text);
  }

  // The i64 at byte `offset`, or the expression that replaces it.
  std::string number(const Node& node, uint32_t offset) const {
    for (const Patch& patch : node.patches) {
      if (patch.word * 8 == offset) return graph_.arena().text(patch.size);
    }
    return fmt::format("{}", get<int64_t>(node, offset));
  }

  template <class T>
  static T get(const Node& node, uint32_t offset) {
    T value{};
    std::memcpy(&value, reinterpret_cast<const char*>(node.attributes.data()) + offset, sizeof value);
    return value;
  }

  std::string element(const Node& node, const AttributeField& field, uint32_t i) const {
    switch (field.type) {
      case AttributeType::i32: return fmt::format("{}", get<int32_t>(node, field.offset + 4 * i));
      case AttributeType::u32: return fmt::format("{}", get<uint32_t>(node, field.offset + 4 * i));
      case AttributeType::f64: return fmt::format("{:.17g}", get<double>(node, field.offset + 8 * i));
      case AttributeType::dtype: return std::string(dtype_name(get<DType>(node, field.offset)));
      case AttributeType::text: return in_quotes(get<TextAttribute>(node, field.offset).view());
      default: return number(node, field.offset + 8 * i);
    }
  }

  // Empty if every byte of the field is 0.
  std::string field_text(const Node& node, const AttributeField& field) const {
    std::string text;
    if (field.type == AttributeType::dims) {
      const auto rank = get<int64_t>(node, field.offset);
      for (uint32_t i = 0; i < rank; ++i) text += (i == 0 ? "" : ", ") + number(node, field.offset + 8 + 8 * i);
      return fmt::format("[{}]", text);
    }
    bool zero = true;
    for (uint32_t i = 0; i < field.count; ++i) {
      const std::string one = element(node, field, i);
      zero = zero && (one == "0" || one == "\"\"");
      text += (i == 0 ? "" : ", ") + one;
    }
    if (zero) return "";
    return field.count == 1 ? text : fmt::format("[{}]", text);
  }

  const Graph& graph_;
  const TextOptions& options_;
};

}  // namespace

std::string print(const Graph& graph, const TextOptions& options) { return Printer(graph, options).print(); }

}  // namespace tenon::graph
