#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

struct Value::Host {
  Kind kind = Kind::none;
  Dims dims;
  std::vector<std::string> strings;
  std::vector<Value> elements;
};

namespace {

[[noreturn]] void refuse(const Value& value, const char* wanted) {
  throw Error(Code::invalid_argument, fmt::format("The value is {}, not {}.", to_string(value), wanted));
}

}  // namespace

Value Value::strings(Dims dims, std::vector<std::string> elements) {
  if (checked_count(dims) != static_cast<int64_t>(elements.size())) {
    throw Error(Code::invalid_argument,
                fmt::format("A tensor of strings of shape {} cannot have {} elements.", dims, elements.size()));
  }
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::strings, dims, std::move(elements), {}});
  return value;
}

Value Value::sequence(std::vector<Value> elements) {
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::sequence, {}, {}, std::move(elements)});
  return value;
}

Value Value::nothing() {
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::optional, {}, {}, {}});
  return value;
}

Value::Kind Value::kind() const {
  if (host_ != nullptr) return host_->kind;
  return tensor_.defined() ? Kind::tensor : Kind::none;
}

const Tensor& Value::tensor() const {
  if (kind() != Kind::tensor) refuse(*this, "a tensor of numbers");
  return tensor_;
}

const std::vector<std::string>& Value::strings() const {
  if (kind() != Kind::strings) refuse(*this, "a tensor of strings");
  return host_->strings;
}

const std::vector<Value>& Value::elements() const {
  if (kind() != Kind::sequence) refuse(*this, "a sequence");
  return host_->elements;
}

const Dims& Value::dims() const {
  if (kind() == Kind::strings) return host_->dims;
  return tensor().dims();
}

std::string to_string(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::tensor: return fmt::format("{}{}", dtype_name(value.tensor().dtype()), value.tensor().dims());
    case Value::Kind::strings: return fmt::format("string{}", value.dims());
    case Value::Kind::sequence: return fmt::format("a sequence of {}", value.elements().size());
    case Value::Kind::optional: return "an optional without a value";
    case Value::Kind::none: break;
  }
  return "nothing";
}

}  // namespace tenon::onnx
