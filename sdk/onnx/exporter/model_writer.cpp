#include "sdk/onnx/exporter/model_writer.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::onnx {

std::string ModelWriter::new_name(const std::string& like) {
  const auto [at, is_new] = taken_.insert({like, 0});
  if (is_new) return like;
  std::string name;
  do {
    name = fmt::format("{}_{}", like, ++at->second);
  } while (!taken_.insert({name, 0}).second);
  return name;
}

std::string ModelWriter::constant(const Tensor& tensor, const std::string& name) {
  initializers_.push_back({new_name(name), tensor});
  return initializers_.back().name;
}

std::string ModelWriter::number(const Scalar& value, DType dtype) {
  const uint64_t bits =
      value.dtype() == DType::f64 ? std::bit_cast<uint64_t>(value.to_double()) : static_cast<uint64_t>(value.to_int());
  std::string& name = numbers_[{dtype, value.dtype(), bits}];
  if (name.empty()) name = constant(full({}, value, dtype), "number");
  return name;
}

std::string ModelWriter::integers(const std::vector<int64_t>& values) {
  std::string& name = integers_[values];
  if (name.empty()) {
    name = constant(Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())}, Device::current()), "numbers");
  }
  return name;
}

std::vector<std::string> ModelWriter::nodes(std::string_view op, std::vector<std::string> inputs,
                                            WrittenAttributes attributes, size_t count) {
  std::string like(op);
  std::transform(like.begin(), like.end(), like.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<std::string> outputs;
  for (size_t i = 0; i < count; ++i) outputs.push_back(new_name(like));
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  nodes_.push_back({std::string(op), std::move(inputs), outputs, std::move(attributes)});
  return outputs;
}

void ModelWriter::add_symbol(SymDim symbol, const std::string& input, int64_t axis) {
  symbols_.insert({symbol.word(), {input, axis}});
}

std::string ModelWriter::sum(const symbolic::Polynomial& terms) {
  std::string total;
  for (const symbolic::Term& term : terms) {
    std::string product;
    const auto times = [&](const std::string& factor) {
      product = product.empty() ? factor : node("Mul", {product, factor});
    };
    for (const symbolic::Factor& factor : term.monomial) {
      for (uint32_t i = 0; i < factor.power; ++i) times(size(of_program_.arena().atom(factor.atom)));
    }
    if (product.empty() || term.coefficient != 1) times(integers({term.coefficient}));
    total = total.empty() ? product : node("Add", {total, product});
  }
  return total;
}

std::string ModelWriter::expression(SymDim size_of) {
  const symbolic::Node part = of_program_.node(size_of);
  if (part.kind == symbolic::Kind::sum) return sum(part.terms);
  const std::string a = size(part.a), b = size(part.b);
  switch (part.kind) {
    case symbolic::Kind::min: return node("Min", {a, b});
    case symbolic::Kind::max: return node("Max", {a, b});
    case symbolic::Kind::modulo: return node("Mod", {a, b});
    case symbolic::Kind::broadcast: return node("Where", {node("Equal", {b, integers({1})}), a, b});
    default: break;
  }
  // ONNX rounds integer quotients toward zero; sizes are rounded down.
  if (of_program_.is_natural(part.a) && of_program_.is_natural(part.b)) return node("Div", {a, b});
  return node("Div", {node("Sub", {a, node("Mod", {a, b})}), b});
}

std::string ModelWriter::size(SymDim given) {
  const SymDim size = of_program_.resolve(given);
  if (size.is_number()) return integers({size.number()});
  if (const auto known = sizes_.find(size.word()); known != sizes_.end()) return known->second;
  std::string made;
  if (const auto symbol = symbols_.find(size.word()); symbol != symbols_.end()) {
    const auto& [input, axis] = symbol->second;
    made = node("Shape", {input}, {{"start", axis}, {"end", axis + 1}});
  } else {
    made = expression(size);
  }
  return sizes_[size.word()] = made;
}

std::string ModelWriter::shape(const SymDims& given) {
  std::vector<std::string> parts;
  std::vector<int64_t> numbers;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(integers(numbers));
    numbers.clear();
  };
  for (const SymDim each : given) {
    const SymDim size_here = of_program_.resolve(each);
    if (size_here.is_number()) {
      numbers.push_back(size_here.number());
      continue;
    }
    flush();
    parts.push_back(size(size_here));
  }
  if (parts.empty()) return integers(numbers);
  flush();
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t{0}}});
}

}  // namespace tenon::onnx
