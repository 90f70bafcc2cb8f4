#include "sdk/cli/model_inputs.h"

#include <map>
#include <optional>
#include <random>

#include "core/ops/ops.h"
#include "sdk/cli/tensor_file.h"

namespace tenon::cli {
namespace {

struct Assignment {
  std::string name, value;
};

Assignment split_assignment(const std::string& text, const char* option, const char* shape) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(Code::invalid_argument, std::string(option) + " '" + text + "' is not of the form " + shape + ".");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t parse_count(const std::string& text, const std::string& where) {
  try {
    size_t used = 0;
    const long long value = std::stoll(text, &used);
    if (used == text.size() && value >= 0) return value;
  } catch (const std::exception&) {
  }
  throw Error(Code::invalid_argument, "'" + text + "' in " + where + " is not a whole number of at least 0.");
}

Dims parse_shape(const std::string& text) {
  Dims dims;
  size_t at = 0;
  while (at <= text.size() && !text.empty()) {
    const size_t end = std::min(text.find_first_of("x,", at), text.size());
    if (dims.rank() == EP_MAX_RANK)
      throw Error(Code::invalid_argument,
                  "The shape '" + text + "' has more than " + std::to_string(EP_MAX_RANK) + " dims.");
    dims.push_back(parse_count(text.substr(at, end - at), "the shape '" + text + "'"));
    at = end + 1;
  }
  return dims;
}

class InputMaker {
 public:
  InputMaker(const onnx::Model& model, const std::vector<std::string>& dims, uint64_t seed)
      : model_(model), random_(seed) {
    for (const std::string& text : dims) {
      const Assignment dim = split_assignment(text, "--dim", "NAME=NUMBER");
      dims_[dim.name] = parse_count(dim.value, "--dim " + text);
    }
  }

  onnx::Inputs make(const std::vector<std::string>& given) {
    onnx::Inputs inputs;
    for (const std::string& text : given) {
      const Assignment input =
          split_assignment(text, "--input", "NAME=FILE.npy, NAME=FILE.pb, NAME=random or NAME=random:1x3x224x224");
      inputs[input.name] = read(input);
    }
    for (const onnx::ValueInfo& info : model_.inputs()) {
      if (inputs.count(info.name) != 0) continue;
      throw Error(Code::invalid_argument, "Input '" + info.name + "', " + onnx::to_string(info) + ", is missing.",
                  "Give --input " + info.name + "=FILE.npy, or --input " + info.name + "=random.");
    }
    return inputs;
  }

 private:
  Tensor read(const Assignment& input) {
    if (input.value.rfind("random", 0) != 0) return read_tensor_file(input.value, model_.device());
    for (const onnx::ValueInfo& info : model_.inputs()) {
      if (info.name != input.name) continue;
      const bool shaped = input.value.size() > 7 && input.value[6] == ':';
      return random(info.dtype, shaped ? parse_shape(input.value.substr(7)) : default_dims(info));
    }
    throw Error(Code::invalid_argument, "The model has no input '" + input.name + "'.");
  }

  // Dynamic dims are what --dim says, else 1.
  Dims default_dims(const onnx::ValueInfo& info) const {
    Dims dims;
    for (const onnx::Dim& dim : info.dims) {
      const auto given = dims_.find(dim.name);
      dims.push_back(dim.value >= 0 ? dim.value : given != dims_.end() ? given->second : 1);
    }
    return dims;
  }

  // Floats from a normal distribution; integers and bools 0 or 1, which are indices of anything that has two elements.
  Tensor random(DType dtype, const Dims& dims) {
    const std::optional<int64_t> count = checked_count(dims);
    if (!count) throw Error(Code::invalid_argument, "The shape " + to_string(dims) + " is impossible.");
    if (!is_floating(dtype)) {
      std::vector<int64_t> values(static_cast<size_t>(*count));
      for (int64_t& value : values) value = static_cast<int64_t>(random_() & 1);
      return cast(Tensor::from<int64_t>(values, dims, model_.device()), dtype);
    }
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(*count));
    for (float& value : values) value = normal(random_);
    return cast(Tensor::from<float>(values, dims, model_.device()), dtype);
  }

  const onnx::Model& model_;
  std::mt19937_64 random_;
  std::map<std::string, int64_t> dims_;
};

}  // namespace

onnx::Inputs make_inputs(const onnx::Model& model, const std::vector<std::string>& given,
                         const std::vector<std::string>& dims, uint64_t seed) {
  return InputMaker(model, dims, seed).make(given);
}

}  // namespace tenon::cli
