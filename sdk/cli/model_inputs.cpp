#include "sdk/cli/model_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/cli/tensor_file.h"

namespace tenon::cli {
namespace {

struct Assignment {
  std::string name, value;
};

Assignment split_assignment(const std::string& text, const char* option, const char* shape) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(Code::invalid_argument, fmt::format("{} '{}' is not of the form {}.", option, text, shape));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t parse_count(const std::string& text, const std::string& where) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end == text.data() + text.size() && text.front() != '-') {
    if (error == std::errc()) return value;
    throw Error(Code::invalid_argument, fmt::format("'{}' in {} is too large: at most {} is possible.", text, where,
                                                    std::numeric_limits<int64_t>::max()));
  }
  throw Error(Code::invalid_argument, fmt::format("'{}' in {} is not a whole number of at least 0.", text, where));
}

Dims parse_shape(const std::string& text) {
  Dims dims;
  size_t at = 0;
  while (at <= text.size() && !text.empty()) {
    const size_t end = std::min(text.find_first_of("x,", at), text.size());
    if (dims.rank() == EP_MAX_RANK)
      throw Error(Code::invalid_argument, fmt::format("The shape '{}' has more than {} dims.", text, EP_MAX_RANK));
    dims.push_back(parse_count(text.substr(at, end - at), fmt::format("the shape '{}'", text)));
    at = end + 1;
  }
  return dims;
}

// The remedy for an input that is missing or cannot be random.
std::string how_to_give(const onnx::ValueInfo& info) {
  switch (info.kind) {
    case onnx::Value::Kind::tensor:
      return fmt::format("Give --input {}=FILE.npy, or --input {}=random.", info.name, info.name);
    case onnx::Value::Kind::strings: return fmt::format("Give --input {}=FILE.npy, FILE.pb or FILE.txt.", info.name);
    default: return fmt::format("Give --input {}=FILE.pb.", info.name);
  }
}

class InputMaker {
 public:
  InputMaker(const onnx::Model& model, const std::vector<std::string>& dims, uint64_t seed)
      : model_(model), random_(seed) {
    for (const std::vector<onnx::ValueInfo>* infos : {&model.inputs(), &model.defaults()}) {
      for (const onnx::ValueInfo& info : *infos) by_name_.emplace(info.name, &info);
    }
    for (const std::string& text : dims) {
      const Assignment dim = split_assignment(text, "--dim", "NAME=NUMBER");
      if (!dims_.emplace(dim.name, parse_count(dim.value, fmt::format("--dim {}", text))).second)
        throw Error(Code::invalid_argument, fmt::format("--dim gives '{}' more than once.", dim.name));
    }
    check_dim_names();
  }

  onnx::Values make(const std::vector<std::string>& given) {
    std::vector<Assignment> order;
    std::map<std::string, std::string> values;
    for (const std::string& text : given) {
      const Assignment input = split_assignment(
          text, "--input", "NAME=FILE.npy, NAME=FILE.pb, NAME=FILE.txt, NAME=random or NAME=random:1x3x224x224");
      const auto [at, added] = values.emplace(input.name, input.value);
      if (!added) {
        throw Error(Code::invalid_argument, fmt::format("--input gives '{}' more than once: '{}', then '{}'.",
                                                        input.name, at->second, input.value));
      }
      order.push_back(input);
    }
    check_input_names(values);
    onnx::Values inputs;
    for (const Assignment& input : order) inputs[input.name] = read(input);
    return inputs;
  }

 private:
  void check_dim_names() const {
    std::set<std::string> names;
    for (const auto& [input, info] : by_name_) {
      for (const onnx::Dim& dim : info->dims) {
        if (dim.value < 0 && !dim.name.empty()) names.insert(dim.name);
      }
    }
    std::string list;
    for (const std::string& name : names) list += fmt::format("{}{}'", list.empty() ? "'" : ", '", name);
    for (const auto& [name, value] : dims_) {
      if (names.count(name) != 0) continue;
      throw Error(Code::invalid_argument, fmt::format("--dim: the model's inputs have no dim named '{}'; {}", name,
                                                      names.empty() ? "none of their dims has a name."
                                                                    : fmt::format("their named dims are {}.", list)));
    }
  }

  // Runs before any file is opened.
  void check_input_names(const std::map<std::string, std::string>& values) const {
    std::set<std::string> names;
    for (const onnx::ValueInfo& info : model_.inputs()) {
      if (info.optional) names.insert(info.name);
    }
    for (const auto& [name, value] : values) names.insert(name);
    try {
      model_.check_names(names);
    } catch (const Error& error) {
      for (const onnx::ValueInfo& info : model_.inputs()) {
        if (names.count(info.name) != 0) continue;
        throw Error(error.code(), error.what(), how_to_give(info));
      }
      throw;
    }
  }

  onnx::Value read(const Assignment& input) {
    const auto found = by_name_.find(input.name);
    if (found == by_name_.end()) {
      throw Error(Code::internal, fmt::format("The model has no input '{}'.", input.name));
    }
    const onnx::ValueInfo& info = *found->second;
    if (input.value.rfind("random", 0) != 0) return read_value_file(input.value, info, model_.device());
    if (info.kind != onnx::Value::Kind::tensor)
      throw Error(Code::invalid_argument,
                  fmt::format("Input '{}' is {}; only tensors of numbers can be random.", info.name, to_string(info)),
                  how_to_give(info));
    const bool shaped = input.value.size() > 7 && input.value[6] == ':';
    return random(info, shaped ? parse_shape(input.value.substr(7)) : default_dims(info));
  }

  // A dynamic dim has the value from --dim, or 1.
  Dims default_dims(const onnx::ValueInfo& info) const {
    Dims dims;
    for (const onnx::Dim& dim : info.dims) {
      const auto given = dims_.find(dim.name);
      dims.push_back(dim.value >= 0 ? dim.value : given != dims_.end() ? given->second : 1);
    }
    return dims;
  }

  // Floats are normally distributed. Integers and bools are 0 or 1, which are valid indices for any axis with at least
  // two elements.
  Tensor random(const onnx::ValueInfo& info, const Dims& dims) {
    const std::optional<int64_t> count = checked_count(dims);
    if (!count) {
      throw Error(
          Code::invalid_argument,
          fmt::format("Input '{}' cannot be of shape {}: it has more elements than can be numbered.", info.name, dims));
    }
    const int64_t bytes = dtype_bytes(info.dtype, *count);
    const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    if (bytes > memory) throw too_large(info, dims, bytes, fmt::format("this machine has {}", memory));
    try {
      return random_values(info.dtype, dims, static_cast<size_t>(*count));
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
    throw too_large(info, dims, bytes, "there is not enough memory to make it");
  }

  static Error too_large(const onnx::ValueInfo& info, const Dims& dims, int64_t bytes, const std::string& but) {
    return Error(Code::out_of_host_memory,
                 fmt::format("Input '{}' of shape {} takes {} bytes, but {}.", info.name, dims, bytes, but));
  }

  Tensor random_values(DType dtype, const Dims& dims, size_t count) {
    if (!is_floating(dtype)) {
      std::vector<int64_t> values(count);
      for (int64_t& value : values) value = static_cast<int64_t>(random_() & 1);
      return cast(Tensor::from<int64_t>(values, dims, model_.device()), dtype);
    }
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return cast(Tensor::from<float>(values, dims, model_.device()), dtype);
  }

  const onnx::Model& model_;
  std::map<std::string_view, const onnx::ValueInfo*> by_name_;  // inputs, and inputs that have an initialiser
  std::mt19937_64 random_;
  std::map<std::string, int64_t> dims_;
};

}  // namespace

onnx::Inputs make_inputs(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed) {
  onnx::Inputs inputs;
  for (const auto& [name, value] : make_values(model, given, dims, seed)) {
    if (!value.is_tensor())
      throw Error(Code::invalid_argument,
                  fmt::format("Input '{}' is {}; only `tenon run` can run such a model.", name, to_string(value)));
    inputs[name] = value.tensor();
  }
  return inputs;
}

onnx::Values make_values(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed) {
  return InputMaker(model, dims, seed).make(given);
}

std::vector<std::string> random_where_missing(const onnx::Model& model, std::vector<std::string> given) {
  std::set<std::string> named;
  for (const std::string& text : given) {
    for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
      named.insert(text.substr(0, at));
  }
  for (const onnx::ValueInfo& info : model.inputs()) {
    if (named.count(info.name) == 0) given.push_back(info.name + "=random");
  }
  return given;
}

}  // namespace tenon::cli
