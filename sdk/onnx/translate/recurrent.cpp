// RNN, LSTM and GRU: one layer in one direction or in both, each on its op.
#include <optional>
#include <vector>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// The activations of a cell if the node names none.
std::vector<std::string> usual_activations(const std::string& op) {
  if (op.ends_with("LSTM")) return {"sigmoid", "tanh", "tanh"};
  if (op == "GRU") return {"sigmoid", "tanh"};
  return {"tanh"};
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

const std::vector<std::string>* given_activations(const Node& node) {
  const auto found = node.attributes.find("activations");
  return found == node.attributes.end() || found->second.strings.empty() ? nullptr : &found->second.strings;
}

std::string why_not(const Node& node) {
  const std::vector<std::string> usual = usual_activations(node.op_type);
  const std::vector<std::string>* given = given_activations(node);
  const auto direction = node.attributes.find("direction");
  const size_t directions = direction != node.attributes.end() && direction->second.s == "bidirectional" ? 2 : 1;
  if (given != nullptr && given->size() != directions * usual.size())
    return fmt::format("it has {} activations; {} are expected.", given->size(), directions * usual.size());
  for (size_t i = 0; given != nullptr && i < given->size(); ++i) {
    const std::string name = in_lower_case((*given)[i]);
    if (name == usual[i % usual.size()] || (node.op_type == "RNN" && name == "relu")) continue;
    return fmt::format("its activation '{}' is not the default activation of its gate.", (*given)[i]);
  }
  return {};
}

struct Layer {
  Tensor x, w, r, b, lengths, h, c, p;  // with the direction axis first, as in ONNX
  bool batch_first = false;
  std::string direction;
  int64_t directions = 1;
};

// `w` and `r` are the weights of all directions.
Layer read_layer(NodeContext& n, const Tensor& w, const Tensor& r) {
  Layer layer;
  layer.batch_first = n.flag("layout", false);
  layer.direction = n.text("direction", "forward");
  layer.directions = layer.direction == "bidirectional" ? 2 : 1;
  const auto states = [&](size_t i) {
    const Tensor state = n.optional(i);
    return state.defined() && layer.batch_first ? transpose(state, 0, 1) : state;
  };
  layer.x = layer.batch_first ? transpose(n.input(0), 0, 1) : n.input(0);
  layer.w = w;
  layer.r = r;
  layer.b = n.optional(3);
  if (n.has(4)) layer.lengths = n.within(4, 0, size_at(layer.x, 0));
  layer.h = states(5);
  layer.c = states(6);
  layer.p = n.optional(7);
  return layer;
}

// The part of `tensor` for one direction.
Tensor part(const Tensor& tensor, int64_t direction) {
  return tensor.defined() ? select(tensor, 0, direction) : tensor;
}

// Input bias and recurrent bias of one direction.
std::pair<Tensor, Tensor> biases(const Layer& layer, int64_t direction) {
  if (!layer.b.defined()) return {};
  const Tensor both = part(layer.b, direction);
  const int64_t rows = layer.w.dims()[1];
  return {narrow(both, 0, 0, rows), narrow(both, 0, rows, rows)};
}

// Y and the last states, of all directions.
TensorList results(const Layer& layer, const TensorList& outputs, const std::vector<TensorList>& states) {
  TensorList results = {stack(outputs, layer.batch_first ? 2 : 1)};
  if (layer.batch_first) results[0] = transpose(stack(outputs, 1), 0, 2);
  if (layer.batch_first) results[0] = transpose(results[0], 1, 2);
  for (const TensorList& each : states) results.push_back(stack(each, layer.batch_first ? 1 : 0));
  return results;
}

// The results for zero steps or an empty batch: the states do not change.
std::optional<TensorList> results_of_nothing(const Layer& layer, size_t states) {
  const SymDim steps = size_at(layer.x, 0), batch = size_at(layer.x, 1);
  if (!(steps == 0) && !(batch == 0)) return std::nullopt;
  const SymDim width = size_at(layer.r, 2);
  const auto zeros = [&](const SizeList& dims) { return full(dims, Scalar(0.0), layer.x.dtype(), layer.x.device()); };
  const auto turned = [&](const Tensor& x, int64_t from) { return layer.batch_first ? movedim(x, from, 0) : x; };
  TensorList list{turned(zeros(SizeList{steps, layer.directions, batch, width}), 2)};
  for (size_t i = 0; i < states; ++i) {
    const Tensor& begin = i == 0 ? layer.h : layer.c;
    list.push_back(turned(begin.defined() ? begin : zeros(SizeList{layer.directions, batch, width}), 1));
  }
  return list;
}

bool is_reverse(const Layer& layer, int64_t direction) { return direction == 1 || layer.direction == "reverse"; }

TensorList lstm_of(NodeContext& n, const Layer& layer) {
  if (std::optional<TensorList> nothing = results_of_nothing(layer, 2)) return *nothing;
  TensorList outputs, hidden, cells;
  for (int64_t d = 0; d < layer.directions; ++d) {
    const auto [bias, recurrent_bias] = biases(layer, d);
    const auto [y, h, c] = lstm_layer(layer.x, part(layer.w, d), part(layer.r, d), bias, recurrent_bias,
                                      part(layer.h, d), part(layer.c, d), part(layer.p, d), layer.lengths,
                                      is_reverse(layer, d), n.flag("input_forget", false), false, n.number("clip", 0));
    outputs.push_back(y);
    hidden.push_back(h);
    cells.push_back(c);
  }
  return results(layer, outputs, {hidden, cells});
}

TensorList lstm(NodeContext& n) { return lstm_of(n, read_layer(n, n.input(1), n.input(2))); }

// Dequantises the weights in input `i`, [directions, columns, rows], to the form of an LSTM: [directions, rows,
// columns]. Inputs `scale` and `scale` + 1 have a number per direction, or per row of it.
Tensor real_weights(NodeContext& n, size_t i, size_t scale) {
  const Tensor& numbers = n.input(i);
  if (numbers.rank() != 3) n.invalid(fmt::format("its weights have shape {}; rank 3 is needed", numbers.dims()));
  const auto by_row = [&](size_t at) {
    const Tensor& x = n.input(at);
    const bool one = x.elements() == numbers.dim(0), each = x.elements() == numbers.dim(0) * numbers.dim(2);
    if (!one && !each)
      n.invalid(fmt::format("scales and zero points of shape {} do not fit weights of {}", x.dims(), numbers.dims()));
    return reshape(cast(x, DType::f32), {numbers.dim(0), 1, one ? 1 : numbers.dim(2)});
  };
  const Tensor real = mul(sub(cast(numbers, DType::f32), by_row(scale + 1)), by_row(scale));
  return contiguous(transpose(real, 1, 2));
}

// The input is rounded to 256 steps over its range, as ONNX Runtime does before it multiplies. ONNX Runtime also rounds
// the states, in parts that depend on its number of threads; here they stay real.
TensorList quantised_lstm(NodeContext& n) {
  Layer layer = read_layer(n, real_weights(n, 1, 8), real_weights(n, 2, 10));
  const QuantizedTensor x = quantized_over_range(layer.x);
  layer.x = dequantize_linear(x.value, x.scale, x.zero_point);
  return lstm_of(n, layer);
}

TensorList simple(NodeContext& n, bool gru) {
  const Layer layer = read_layer(n, n.input(1), n.input(2));
  if (std::optional<TensorList> nothing = results_of_nothing(layer, 1)) return *nothing;
  TensorList outputs, hidden;
  const std::vector<std::string>* activations = given_activations(n.node());
  for (int64_t d = 0; d < layer.directions; ++d) {
    const auto [bias, recurrent_bias] = biases(layer, d);
    const size_t at = static_cast<size_t>(d);
    const bool named = !gru && activations != nullptr && at < activations->size();
    const std::string cell = gru ? "gru" : named ? in_lower_case((*activations)[at]) : "tanh";
    const bool linear = gru && n.flag("linear_before_reset", false);
    const auto [y, h] =
        recurrent_layer(layer.x, part(layer.w, d), part(layer.r, d), bias, recurrent_bias, part(layer.h, d),
                        layer.lengths, cell, is_reverse(layer, d), linear, false, n.number("clip", 0));
    outputs.push_back(y);
    hidden.push_back(h);
  }
  return results(layer, outputs, {hidden});
}

TensorList gru(NodeContext& n) { return simple(n, true); }
TensorList rnn(NodeContext& n) { return simple(n, false); }

constexpr Translator kRecurrentRows[] = {
    {.op_type = "GRU", .since = 7, .translate = gru, .why_not = why_not},
    {.op_type = "LSTM", .since = 7, .translate = lstm, .why_not = why_not},
    {.op_type = "RNN", .since = 7, .translate = rnn, .why_not = why_not},
    {.domain = kMicrosoft,
     .op_type = "DynamicQuantizeLSTM",
     .since = 1,
     .translate = quantised_lstm,
     .why_not = why_not},
};

}  // namespace

std::span<const Translator> recurrent_translators() { return kRecurrentRows; }

}  // namespace tenon::onnx
