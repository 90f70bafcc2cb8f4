#include "core/ops/ops.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

struct Value::Host {
  Kind kind = Kind::none;
  Dims dims;
  std::vector<std::string> strings;
  std::vector<Value> elements;
  // For a map: its keys and values; for a sequence of maps: the keys of each map, and the matrix of values.
  Value keys, values;
};

namespace {

// The length of a list of strings or numbers; -1 for other values.
int64_t list_length(const Value& value) {
  if (value.kind() != Value::Kind::strings && !value.is_tensor()) return -1;
  return value.dims().rank() == 1 ? value.dims()[0] : -1;
}

void check_keys(const Value& keys) {
  if (list_length(keys) >= 0 && (!keys.is_tensor() || keys.tensor().dtype() == DType::i64)) return;
  throw Error(Code::invalid_argument,
              fmt::format("The keys of a map must be a list of strings or of i64, not {}.", to_string(keys)));
}

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
  value.host_ = std::make_shared<const Host>(Host{Kind::strings, dims, std::move(elements), {}, {}, {}});
  return value;
}

Value Value::sequence(std::vector<Value> elements) {
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::sequence, {}, {}, std::move(elements), {}, {}});
  return value;
}

Value Value::nothing() {
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::optional, {}, {}, {}, {}, {}});
  return value;
}

Value Value::map(Value keys, Value values) {
  check_keys(keys);
  if (list_length(values) != list_length(keys)) {
    throw Error(Code::invalid_argument,
                fmt::format("A map with the keys {} cannot have the values {}.", to_string(keys), to_string(values)));
  }
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::map, {}, {}, {}, std::move(keys), std::move(values)});
  return value;
}

Value Value::maps(const Value& keys, const Tensor& matrix) {
  check_keys(keys);
  if (matrix.rank() != 2 || matrix.dim(1) != list_length(keys)) {
    throw Error(Code::invalid_argument, fmt::format("The rows of a matrix {} cannot be the values of the keys {}.",
                                                    matrix.dims(), to_string(keys)));
  }
  std::vector<Value> rows;
  for (int64_t i = 0; i < matrix.dim(0); ++i) rows.push_back(map(keys, select(matrix, 0, i)));
  Value value;
  value.host_ = std::make_shared<const Host>(Host{Kind::sequence, {}, {}, std::move(rows), keys, matrix});
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

const Value& Value::keys() const {
  if (host_ == nullptr || !host_->keys.defined()) refuse(*this, "a map");
  return host_->keys;
}

const Value& Value::values() const {
  if (kind() != Kind::map) refuse(*this, "a map");
  return host_->values;
}

Tensor Value::matrix() const {
  return kind() == Kind::sequence && host_->values.defined() ? host_->values.tensor() : Tensor();
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
    case Value::Kind::map: return fmt::format("a map of {}", value.keys().dims()[0]);
    case Value::Kind::optional: return "an optional without a value";
    case Value::Kind::none: break;
  }
  return "nothing";
}

}  // namespace tenon::onnx
