#include "sdk/onnx/importer/fuse.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/ops/ops.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

class Fuser {
 public:
  explicit Fuser(ParsedModel* parsed)
      : parsed_(*parsed), producer_(parsed->names.size(), -1), readers_(parsed->names.size()) {
    for (size_t i = 0; i < parsed_.nodes.size(); ++i) {
      for (int32_t value : parsed_.nodes[i].outputs) {
        if (value >= 0) producer_[at(value)] = static_cast<int32_t>(i);
      }
      for (int32_t value : parsed_.nodes[i].inputs) {
        if (value >= 0) readers_[at(value)].push_back(static_cast<int32_t>(i));
      }
    }
    // An output of the model has a reader that fits no pattern.
    for (int32_t value : parsed_.output_values) readers_[at(value)].push_back(-1);
    gone_.assign(parsed_.nodes.size(), false);
  }

  void run() {
    each([&](int32_t i) { layer_norm_at(i); });
    each([&](int32_t i) { gelu_at(i); });
    each([&](int32_t i) { batch_norm_at(i); });
    each([&](int32_t i) { epilogue_at(i); });
    std::vector<Node> kept;
    for (size_t i = 0; i < parsed_.nodes.size(); ++i) {
      if (!gone_[i]) kept.push_back(std::move(parsed_.nodes[i]));
    }
    parsed_.nodes = std::move(kept);
  }

 private:
  static size_t at(int32_t value) { return static_cast<size_t>(value); }
  Node& node(int32_t i) { return parsed_.nodes[at(i)]; }
  template <class F>
  void each(F f) {
    for (size_t i = 0; i < parsed_.nodes.size(); ++i) {
      if (!gone_[i] && parsed_.nodes[i].translator != nullptr) f(static_cast<int32_t>(i));
    }
  }
  bool is(int32_t i, std::string_view op) {
    return i >= 0 && !gone_[at(i)] && node(i).translator != nullptr && node(i).op_type == op && node(i).domain.empty();
  }
  bool one_output(int32_t i) { return node(i).outputs.size() == 1 && node(i).outputs[0] >= 0; }
  int32_t result(int32_t i) { return node(i).outputs[0]; }
  // The value number of input k of node i; -1 if the node has no such input.
  int32_t input(int32_t i, size_t k) { return k < node(i).inputs.size() ? node(i).inputs[k] : -1; }

  // The only node that reads `value`, if its type is `op`; else -1.
  int32_t only_reader(int32_t value, std::string_view op) {
    const std::vector<int32_t>& list = readers_[at(value)];
    return list.size() == 1 && is(list[0], op) && one_output(list[0]) ? list[0] : -1;
  }
  // The other input of a node with two inputs, if `value` is one of them; else -1.
  int32_t other_input(int32_t i, int32_t value) {
    const std::vector<int32_t>& inputs = node(i).inputs;
    if (inputs.size() != 2 || inputs[0] < 0 || inputs[1] < 0 || (inputs[0] == value) == (inputs[1] == value)) return -1;
    return inputs[0] == value ? inputs[1] : inputs[0];
  }
  const Tensor* constant(int32_t value) {
    return value >= 0 && parsed_.is_constant(value) ? &parsed_.constants[at(value)] : nullptr;
  }
  std::optional<double> number(int32_t value) {
    const Tensor* tensor = constant(value);
    if (tensor == nullptr || tensor->elements() != 1 || tensor->rank() > 1) return std::nullopt;
    return tensor->item().to_double();
  }
  bool is_number(int32_t value, double wanted) {
    const std::optional<double> found = number(value);
    return found && std::fabs(*found - wanted) <= 1e-6 * std::fabs(wanted);
  }

  // Makes `last` compute the result of the whole pattern. `from` names the nodes that vanish.
  void replace(int32_t last, std::string_view op, int64_t version, std::vector<int32_t> inputs,
               std::initializer_list<int32_t> from) {
    for (int32_t i : from) {
      for (int32_t value : node(i).inputs) forget_reader(value, i);
      if (i != last) gone_[at(i)] = true;
    }
    Node& made = node(last);
    made.op_type = std::string(op);
    made.version = version;
    made.attributes.clear();
    made.inputs = std::move(inputs);
    for (int32_t value : made.inputs) {
      if (value >= 0) readers_[at(value)].push_back(last);
    }
    std::string reason;
    made.schema = nullptr;
    made.translator = find_translator(made, &reason);
  }
  void forget_reader(int32_t value, int32_t reader) {
    if (value < 0) return;
    std::vector<int32_t>& list = readers_[at(value)];
    const auto found = std::find(list.begin(), list.end(), reader);
    if (found != list.end()) list.erase(found);
  }

  bool reduces_last_axis(int32_t i) {
    const auto axes = node(i).attributes.find("axes");
    const auto keep = node(i).attributes.find("keepdims");
    const bool attribute =
        axes != node(i).attributes.end() && axes->second.ints == std::vector<int64_t>{-1} && node(i).inputs.size() == 1;
    return attribute && (keep == node(i).attributes.end() || keep->second.i == 1);
  }

  // The pattern: mean, x - mean, ()^2, mean, + eps, sqrt, (x - mean) / (), * weight, + bias. It is anchored at the
  // first mean.
  void layer_norm_at(int32_t mean) {
    if (!is(mean, "ReduceMean") || !one_output(mean) || !reduces_last_axis(mean)) return;
    const int32_t x = input(mean, 0);
    const int32_t sub = only_reader(result(mean), "Sub");
    if (sub < 0 || node(sub).inputs != std::vector<int32_t>{x, result(mean)}) return;
    const std::vector<int32_t> uses = readers_[at(result(sub))];
    if (uses.size() != 2) return;
    const int32_t pow = is(uses[0], "Pow") ? uses[0] : uses[1], div = pow == uses[0] ? uses[1] : uses[0];
    if (!is(pow, "Pow") || !is(div, "Div") || !one_output(pow) || !one_output(div) || input(pow, 0) != result(sub) ||
        !is_number(input(pow, 1), 2.0))
      return;
    const int32_t var = only_reader(result(pow), "ReduceMean");
    if (var < 0 || !reduces_last_axis(var)) return;
    const int32_t add = only_reader(result(var), "Add");
    const std::optional<double> epsilon = add < 0 ? std::nullopt : number(other_input(add, result(var)));
    const int32_t root = add < 0 ? -1 : only_reader(result(add), "Sqrt");
    if (!epsilon || root < 0 || only_reader(result(root), "Div") != div || input(div, 0) != result(sub)) return;
    const int32_t scale = only_reader(result(div), "Mul");
    const int32_t weight = scale < 0 ? -1 : other_input(scale, result(div));
    const int32_t shift = scale < 0 ? -1 : only_reader(result(scale), "Add");
    const int32_t bias = shift < 0 ? -1 : other_input(shift, result(scale));
    if (constant(weight) == nullptr || constant(bias) == nullptr || constant(weight)->rank() != 1 ||
        constant(bias)->rank() != 1)
      return;
    replace(shift, "LayerNormalization", 17, {x, weight, bias}, {mean, sub, pow, var, add, root, div, scale, shift});
    Attribute eps;
    eps.kind = Attribute::Kind::number;
    eps.f = static_cast<float>(*epsilon);
    node(shift).attributes["epsilon"] = eps;
  }

  // The pattern: x / sqrt(2), erf, + 1, * x, * 0.5. It is anchored at the division.
  void gelu_at(int32_t div) {
    if (!is(div, "Div") || !one_output(div) || !is_number(input(div, 1), std::sqrt(2.0))) return;
    const int32_t x = input(div, 0);
    const int32_t erf = only_reader(result(div), "Erf");
    const int32_t add = erf < 0 ? -1 : only_reader(result(erf), "Add");
    if (add < 0 || !is_number(other_input(add, result(erf)), 1.0)) return;
    const int32_t product = only_reader(result(add), "Mul");
    if (product < 0 || other_input(product, result(add)) != x) return;
    const int32_t half = only_reader(result(product), "Mul");
    if (half < 0 || !is_number(other_input(half, result(product)), 0.5)) return;
    replace(half, "Gelu", 20, {x}, {div, erf, add, product, half});
  }

  // Multiplies the weights by scale / sqrt(var + eps) of each output channel.
  void batch_norm_at(int32_t norm) {
    if (!is(norm, "BatchNormalization") || !one_output(norm) || node(norm).inputs.size() != 5 || input(norm, 0) < 0)
      return;
    const auto training = node(norm).attributes.find("training_mode");
    if (training != node(norm).attributes.end() && training->second.i != 0) return;
    const int32_t conv = producer_[at(input(norm, 0))];
    if (!is(conv, "Conv") || !one_output(conv) || readers_[at(result(conv))].size() != 1) return;
    const Tensor* weight = constant(input(conv, 1));
    const bool has_bias = input(conv, 2) >= 0;
    const Tensor* bias = has_bias ? constant(input(conv, 2)) : nullptr;
    if (weight == nullptr || weight->rank() < 3 || weight->dtype() != DType::f32 || (has_bias && bias == nullptr))
      return;
    const Dims per_channel{weight->dims()[0]};
    const auto fits = [&](const Tensor* tensor) {
      return tensor != nullptr && tensor->dims() == per_channel && tensor->dtype() == DType::f32;
    };
    if (has_bias && !fits(bias)) return;
    const Tensor* parameters[4];
    for (size_t i = 0; i < 4; ++i) {
      parameters[i] = constant(input(norm, i + 1));
      if (!fits(parameters[i])) return;
    }
    const auto found = node(norm).attributes.find("epsilon");
    const double epsilon = found == node(norm).attributes.end() ? 1e-5 : static_cast<double>(found->second.f);
    const Tensor factor = div(*parameters[0], sqrt(add(*parameters[3], Scalar(epsilon))));
    Dims column = Dims::filled(weight->rank(), 1);
    column[0] = weight->dims()[0];
    const Tensor shifted = bias != nullptr ? sub(*bias, *parameters[2]) : neg(*parameters[2]);
    // Computes both constants before it stores one: storing a constant moves the others.
    Tensor scaled = contiguous(mul(*weight, reshape(factor, column)));
    Tensor moved = add(mul(shifted, factor), *parameters[1]);
    const int32_t new_weight = add_constant(std::move(scaled)), new_bias = add_constant(std::move(moved));
    node(conv).inputs = {node(conv).inputs[0], new_weight, new_bias};
    take_result(conv, norm);
  }

  int32_t add_constant(Tensor tensor) {
    parsed_.names.emplace_back();
    parsed_.constants.push_back(std::move(tensor));
    producer_.push_back(-1);
    readers_.emplace_back();
    return static_cast<int32_t>(parsed_.names.size()) - 1;
  }

  // Makes `main` produce the result of `follower`. `follower` vanishes.
  void take_result(int32_t main, int32_t follower) {
    for (int32_t value : node(follower).inputs) forget_reader(value, follower);
    gone_[at(follower)] = true;
    node(main).outputs[0] = result(follower);
    producer_[at(result(main))] = main;
  }

  static std::string_view activation_of(const Node& node) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"Relu", "relu"}, {"Gelu", "gelu"}, {"Tanh", "tanh"}, {"Sigmoid", "sigmoid"}};
    for (const auto& [onnx, tenon] : kNames) {
      if (node.op_type == onnx) return tenon;
    }
    return {};
  }

  // Moves `main` to the position of `follower`, behind everything that `main` now reads.
  void move_to(int32_t* main, int32_t follower) {
    Node moved = std::move(node(*main));
    moved.outputs = node(follower).outputs;
    for (int32_t value : moved.inputs) forget_reader(value, *main);
    for (int32_t value : node(follower).inputs) forget_reader(value, follower);
    for (int32_t value : moved.inputs) {
      if (value >= 0) readers_[at(value)].push_back(follower);
    }
    producer_[at(moved.outputs[0])] = follower;
    gone_[at(*main)] = true;
    node(follower) = std::move(moved);
    *main = follower;
  }

  // Slots of a fused operator: 0 and 1 are the factors, 2 is the bias, 3 is the other added value.
  bool take_add(int32_t* main, size_t slots_used) {
    const int32_t add = only_reader(result(*main), "Add");
    if (add < 0) return false;
    const int32_t other = other_input(add, result(*main));
    if (other < 0) return false;
    const Tensor* known = constant(other);
    const bool as_bias = slots_used == 2 && known != nullptr && known->rank() == 1 && node(*main).op_type == "MatMul";
    std::vector<int32_t>& inputs = node(*main).inputs;
    inputs.resize(as_bias ? 3 : 4, -1);
    inputs[as_bias ? 2 : 3] = other;
    move_to(main, add);
    return true;
  }

  void take_activation(int32_t* main) {
    for (const char* op : {"Relu", "Gelu", "Tanh", "Sigmoid"}) {
      const int32_t act = only_reader(result(*main), op);
      if (act < 0) continue;
      const auto approximate = node(act).attributes.find("approximate");
      if (approximate != node(act).attributes.end() && approximate->second.s != "none") return;
      node(*main).epilogue = {activation_of(node(act)), 0, 0};
      return take_result(*main, act);
    }
    const int32_t clip = only_reader(result(*main), "Clip");
    if (clip < 0 || node(clip).inputs.size() != 3) return;
    const std::optional<double> low = number(node(clip).inputs[1]), high = number(node(clip).inputs[2]);
    if (!low || !high) return;
    node(*main).epilogue = {"clamp", *low, *high};
    take_result(*main, clip);
  }

  void epilogue_at(int32_t i) {
    const bool conv = is(i, "Conv"), matmul = is(i, "MatMul"), gemm = is(i, "Gemm");
    if ((!conv && !matmul && !gemm) || !one_output(i)) return;
    int32_t main = i;
    bool added = false;
    if (matmul) added = take_add(&main, 2);
    if (conv || matmul) added = take_add(&main, added ? 3 : 4) || added;
    take_activation(&main);
    const bool active = !node(main).epilogue.activation.empty();
    if (!added && !active) return;
    node(main).schema = nullptr;
    node(main).translator = fused_translator(node(main).op_type);
  }

  ParsedModel& parsed_;
  std::vector<int32_t> producer_;              // by value: the node that produces it
  std::vector<std::vector<int32_t>> readers_;  // by value: the nodes that read it
  std::vector<bool> gone_;
};

}  // namespace

void fuse(ParsedModel* parsed) { Fuser(parsed).run(); }

}  // namespace tenon::onnx
