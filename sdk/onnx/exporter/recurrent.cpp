// Layers of recurrent networks: RNN, LSTM and GRU of one direction.
#include "core/ops/attributes.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;

class Layer {
 public:
  Layer(NodeWriter& n, std::string op, Ints torch_order)
      : n_(n), at_(n.attributes<RecurrentAttributes>().layer), op_(std::move(op)), order_(std::move(torch_order)) {
    hidden_ = n.fixed_dims(n.input(2))[1];
    if (!flag(EP_RECURRENT_FLAG_TORCH)) order_.clear();
  }

  bool flag(int32_t which) const { return (at_.flags & which) != 0; }

  // `states` are the inputs after the lengths; `lengths` is the number of the lengths input.
  void write(size_t lengths, const std::vector<size_t>& states, WrittenAttributes attributes) {
    attributes.emplace_back("hidden_size", hidden_);
    attributes.emplace_back("direction", std::string(flag(EP_RECURRENT_FLAG_REVERSE) ? "reverse" : "forward"));
    if (at_.clip > 0) attributes.emplace_back("clip", at_.clip);
    std::vector<std::string> inputs{n_.in(0), first(gates(1)), first(gates(2)), biases()};
    inputs.push_back(n_.has(lengths) ? n_.cast(n_.in(lengths), n_.dtype(lengths), DType::i32) : "");
    for (const size_t i : states) inputs.push_back(n_.has(i) ? first(n_.in(i)) : "");
    const std::vector<std::string> made =
        n_.model().nodes(op_, std::move(inputs), std::move(attributes), n_.result_count());
    // The direction axis is the second axis of the first result, and the first axis of the others.
    for (size_t i = 0; i < made.size(); ++i) {
      n_.give(n_.add("Squeeze", {made[i], n_.model().integers({i == 0 ? 1 : 0})}), i);
    }
  }

 private:
  std::string first(const std::string& x) { return n_.add("Unsqueeze", {x, n_.model().integers({0})}); }

  // Input `i`, a weight or bias, with its gates in ONNX's order.
  std::string gates(size_t i) {
    if (order_.empty()) return n_.in(i);
    Ints rows;
    for (const int64_t gate : order_) {
      for (int64_t row = 0; row < hidden_; ++row) rows.push_back(gate * hidden_ + row);
    }
    return n_.add("Gather", {n_.in(i), n_.model().integers(rows)}, {{"axis", int64_t{0}}});
  }

  std::string biases() {
    if (!n_.has(3) && !n_.has(4)) return {};
    const auto part = [&](size_t i) {
      if (n_.has(i)) return gates(i);
      const std::string zero = n_.model().number(Scalar(0), n_.dtype());
      return n_.add("Expand", {zero, n_.model().shape(n_.input(i == 3 ? 4 : 3).dims)});
    };
    return first(n_.add("Concat", {part(3), part(4)}, {{"axis", int64_t{0}}}));
  }

  NodeWriter& n_;
  const ep_recurrent_attributes& at_;
  std::string op_;
  Ints order_;  // gate i of ONNX is gate order_[i] of the op; empty: same order
  int64_t hidden_ = 0;
};

void recurrent_layer(NodeWriter& n) {
  const int32_t cell = n.attributes<RecurrentAttributes>().layer.cell;
  if (cell != EP_CELL_GRU) {
    const std::vector<std::string> activations{cell == EP_CELL_RELU ? "Relu" : "Tanh"};
    return Layer(n, "RNN", {0}).write(6, {5}, {{"activations", activations}});
  }
  Layer layer(n, "GRU", {1, 0, 2});
  const int64_t linear = layer.flag(EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET) ? 1 : 0;
  layer.write(6, {5}, {{"linear_before_reset", linear}});
}

void lstm_layer(NodeWriter& n) {
  Layer layer(n, "LSTM", {0, 3, 1, 2});
  layer.write(8, {5, 6, 7}, {{"input_forget", int64_t{layer.flag(EP_RECURRENT_FLAG_COUPLED) ? 1 : 0}}});
}

constexpr OperatorRow kRecurrentRows[] = {
    {.op = "lstm_layer", .onnx = "LSTM", .write = lstm_layer},
    {.op = "recurrent_layer", .onnx = "GRU", .write = recurrent_layer},
};

}  // namespace

std::span<const OperatorRow> recurrent_rows() { return kRecurrentRows; }

}  // namespace tenon::onnx
