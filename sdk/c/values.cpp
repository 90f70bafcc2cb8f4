#include "sdk/c/models.h"

using tenon::Code;
using tenon::Dims;
using tenon::Error;
using tenon::onnx::Value;
namespace c = tenon::c;

namespace {

const Value& value_of(const tenon_value* value) { return c::needed(value, "value")->value; }

void check_index(size_t index, size_t count) {
  if (index >= count)
    throw Error(Code::invalid_argument, fmt::format("The index is {}, and the value has {} elements.", index, count));
}

// Makes a value and stores a handle to it in *out.
template <class F>
tenon_status make_value(std::string_view function, tenon_value** out, tenon_error** error, F make) {
  return c::guarded(function, error, [&] {
    c::needed(out, "out");
    *out = c::value_handle(make());
  });
}

}  // namespace

tenon_value* tenon::c::value_handle(Value value) { return new tenon_value{std::move(value)}; }

extern "C" {

tenon_status tenon_value_from_tensor(const tenon_tensor* tensor, tenon_value** out, tenon_error** error) {
  return make_value("tenon_value_from_tensor", out, error, [&] { return Value(c::tensor_of(tensor)); });
}

tenon_status tenon_value_from_strings(int32_t rank, const int64_t* dims, const char* const* strings,
                                      const size_t* lengths, size_t count, tenon_value** out, tenon_error** error) {
  return make_value("tenon_value_from_strings", out, error, [&] {
    if (count > 0) c::needed(strings, "strings");
    std::vector<std::string> copies;
    copies.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const char* text = c::needed(strings[i], "strings");
      copies.emplace_back(lengths == nullptr ? std::string(text) : std::string(text, lengths[i]));
    }
    return Value::strings(c::dims_of(rank, dims), std::move(copies));
  });
}

tenon_status tenon_value_from_sequence(const tenon_value* const* elements, size_t count, tenon_value** out,
                                       tenon_error** error) {
  return make_value("tenon_value_from_sequence", out, error, [&] {
    if (count > 0) c::needed(elements, "elements");
    std::vector<Value> copies;
    for (size_t i = 0; i < count; ++i) copies.push_back(c::needed(elements[i], "elements")->value);
    return Value::sequence(std::move(copies));
  });
}

tenon_status tenon_value_from_map(const tenon_value* keys, const tenon_value* values, tenon_value** out,
                                  tenon_error** error) {
  return make_value("tenon_value_from_map", out, error,
                    [&] { return Value::map(c::needed(keys, "keys")->value, c::needed(values, "values")->value); });
}

tenon_status tenon_value_nothing(tenon_value** out, tenon_error** error) {
  return make_value("tenon_value_nothing", out, error, [] { return Value::nothing(); });
}

void tenon_value_free(tenon_value* value) { delete value; }

int32_t tenon_value_kind(const tenon_value* value) {
  return value == nullptr ? TENON_VALUE_NONE : static_cast<int32_t>(value->value.kind());
}

size_t tenon_value_count(const tenon_value* value) {
  switch (tenon_value_kind(value)) {
    case TENON_VALUE_STRINGS: return value->value.strings().size();
    case TENON_VALUE_SEQUENCE: return value->value.elements().size();
    default: return 0;
  }
}

tenon_status tenon_value_tensor(const tenon_value* value, tenon_tensor** out, tenon_error** error) {
  return c::guarded("tenon_value_tensor", error, [&] {
    c::needed(out, "out");
    *out = c::handle_of(value_of(value).tensor());
  });
}

tenon_status tenon_value_dims(const tenon_value* value, int32_t* rank, int64_t* dims, tenon_error** error) {
  return c::guarded("tenon_value_dims", error, [&] {
    c::needed(rank, "rank");
    const Dims& sizes = value_of(value).dims();
    *rank = sizes.rank();
    if (dims != nullptr) std::copy(sizes.begin(), sizes.end(), dims);
  });
}

tenon_status tenon_value_string(const tenon_value* value, size_t index, const char** out, size_t* length,
                                tenon_error** error) {
  return c::guarded("tenon_value_string", error, [&] {
    c::needed(out, "out");
    const std::vector<std::string>& strings = value_of(value).strings();
    check_index(index, strings.size());
    *out = strings[index].c_str();
    if (length != nullptr) *length = strings[index].size();
  });
}

tenon_status tenon_value_element(const tenon_value* value, size_t index, tenon_value** out, tenon_error** error) {
  return make_value("tenon_value_element", out, error, [&] {
    const std::vector<Value>& elements = value_of(value).elements();
    check_index(index, elements.size());
    return elements[index];
  });
}

tenon_status tenon_value_keys(const tenon_value* value, tenon_value** out, tenon_error** error) {
  return make_value("tenon_value_keys", out, error, [&] { return value_of(value).keys(); });
}

tenon_status tenon_value_values(const tenon_value* value, tenon_value** out, tenon_error** error) {
  return make_value("tenon_value_values", out, error, [&] { return value_of(value).values(); });
}

}  // extern "C"
