// Recurrent networks: layers as one kernel, or, if a gradient is wanted, step by step in ops.
#include <vector>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

int32_t cell_of(std::string_view op, std::string_view name) {
  if (name == "tanh") return EP_CELL_TANH;
  if (name == "relu") return EP_CELL_RELU;
  if (name == "gru") return EP_CELL_GRU;
  refuse(op, "cell is '{}'; it may be tanh, relu or gru.", name);
}

int64_t gates_of(int32_t cell) { return cell == EP_CELL_LSTM ? 4 : cell == EP_CELL_GRU ? 3 : 1; }

void require_dims(std::string_view op, std::string_view name, const Tensor& tensor, const Dims& dims) {
  if (!tensor.defined() || tensor.dims() == dims) return;
  refuse(op, "{} has shape {}; it must have {}.", name, tensor.dims(), dims);
}

struct Inputs {
  Tensor input, weight, recurrent_weight, bias, recurrent_bias, hidden, state, peephole, lengths;
};

// Checks shapes, and converts all tensors to the dtype of the input.
void prepare(std::string_view op, int32_t cell, double clip, Inputs* in) {
  require_defined(op, "input", in->input);
  require_defined(op, "weight", in->weight);
  require_defined(op, "recurrent_weight", in->recurrent_weight);
  if (in->input.rank() != 3) refuse(op, "input of shape {} must be [steps, batch, features].", in->input.dims());
  if (in->recurrent_weight.rank() != 2) {
    refuse(op, "recurrent_weight of shape {} must have rank 2.", in->recurrent_weight.dims());
  }
  if (is_empty(in->input)) refuse(op, "input of shape {} has no elements.", in->input.dims());
  if (!(clip >= 0)) refuse(op, "clip is {}; it must be at least 0.", clip);
  const int64_t batch = in->input.dims()[1];
  const int64_t width = in->recurrent_weight.dims()[1];
  const int64_t rows = gates_of(cell) * width;
  if (width == 0) refuse(op, "recurrent_weight of shape {} has no elements.", in->recurrent_weight.dims());
  require_dims(op, "weight", in->weight, {rows, in->input.dims()[2]});
  require_dims(op, "recurrent_weight", in->recurrent_weight, {rows, width});
  require_dims(op, "bias", in->bias, {rows});
  require_dims(op, "recurrent_bias", in->recurrent_bias, {rows});
  require_dims(op, "hidden", in->hidden, {batch, width});
  require_dims(op, "state", in->state, {batch, width});
  require_dims(op, "peephole", in->peephole, {3 * width});
  require_dims(op, "lengths", in->lengths, {batch});
  if (!is_floating(in->input.dtype())) in->input = tenon::cast(in->input, DType::f32);
  const DType dtype = in->input.dtype();
  for (Tensor* tensor :
       {&in->weight, &in->recurrent_weight, &in->bias, &in->recurrent_bias, &in->hidden, &in->state, &in->peephole}) {
    if (tensor->defined()) *tensor = tenon::cast(*tensor, dtype);
  }
  if (in->lengths.defined()) in->lengths = as_index(op, "lengths", in->lengths);
}

// One layer in one direction, as in PyTorch.
struct Layer {
  Tensor weight, recurrent_weight, bias, recurrent_bias;
};

struct State {
  Tensor output, hidden, cell;
};

bool records_steps(const Tensor& input, const Layer& layer, const Tensor& hidden, const Tensor& cell) {
  for (const Tensor* tensor :
       {&input, &layer.weight, &layer.recurrent_weight, &layer.bias, &layer.recurrent_bias, &hidden, &cell}) {
    if (tensor->defined() && wants_gradient(*tensor)) return true;
  }
  return false;
}

// One step in ops, each of which has a gradient.
State step(int32_t cell, const Tensor& x, const Tensor& h, const Tensor& c, const Layer& layer) {
  const Tensor from_input = tenon::linear(x, layer.weight, layer.bias);
  const Tensor from_state = tenon::linear(h, layer.recurrent_weight, layer.recurrent_bias);
  const int64_t width = h.dims()[1];
  const auto part = [&](const Tensor& sums, int64_t gate) { return tenon::narrow(sums, 1, gate * width, width); };
  if (cell == EP_CELL_GRU) {
    const Tensor r = tenon::sigmoid(tenon::add(part(from_input, 0), part(from_state, 0)));
    const Tensor z = tenon::sigmoid(tenon::add(part(from_input, 1), part(from_state, 1)));
    const Tensor n = tenon::tanh(tenon::add(part(from_input, 2), tenon::mul(r, part(from_state, 2))));
    return {{}, tenon::add(n, tenon::mul(z, tenon::sub(h, n))), {}};
  }
  const Tensor sums = tenon::add(from_input, from_state);
  if (cell != EP_CELL_LSTM) return {{}, cell == EP_CELL_TANH ? tenon::tanh(sums) : tenon::relu(sums), {}};
  const Tensor i = tenon::sigmoid(part(sums, 0));
  const Tensor f = tenon::sigmoid(part(sums, 1));
  const Tensor next = tenon::add(tenon::mul(f, c), tenon::mul(i, tenon::tanh(part(sums, 2))));
  return {{}, tenon::mul(tenon::sigmoid(part(sums, 3)), tenon::tanh(next)), next};
}

State in_steps(int32_t cell, const Tensor& input, const Layer& layer, const Tensor& hidden, const Tensor& state,
               bool reverse) {
  const int64_t steps = input.dims()[0];
  State now = {{}, hidden, state};
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t at = reverse ? steps - 1 - i : i;
    now = step(cell, tenon::select(input, 0, at), now.hidden, now.cell, layer);
    outputs[static_cast<size_t>(at)] = now.hidden;
  }
  now.output = tenon::stack(outputs, 0);
  return now;
}

State run_layer(int32_t cell, const Tensor& input, const Layer& layer, const Tensor& hidden, const Tensor& state,
                bool reverse) {
  if (records_steps(input, layer, hidden, state)) return in_steps(cell, input, layer, hidden, state, reverse);
  if (cell == EP_CELL_LSTM) {
    auto [output, h, c] =
        tenon::lstm_layer(input, layer.weight, layer.recurrent_weight, layer.bias, layer.recurrent_bias, hidden, state,
                          Tensor(), Tensor(), reverse, false, true);
    return {output, h, c};
  }
  const std::string_view name = cell == EP_CELL_GRU ? "gru" : cell == EP_CELL_TANH ? "tanh" : "relu";
  auto [output, h] =
      tenon::recurrent_layer(input, layer.weight, layer.recurrent_weight, layer.bias, layer.recurrent_bias, hidden,
                             Tensor(), name, reverse, cell == EP_CELL_GRU, true);
  return {output, h, {}};
}

struct Network {
  std::string_view op;
  int32_t cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
};

void check_network(const Network& net, const Tensor& input, const Tensor& hx, const TensorList& params) {
  require_defined(net.op, "input", input);
  require_defined(net.op, "hx", hx);
  if (input.rank() != 3) refuse(net.op, "input of shape {} must have rank 3.", input.dims());
  if (net.num_layers < 1) refuse(net.op, "num_layers is {}; it must be at least 1.", net.num_layers);
  const int64_t layers = net.num_layers * (net.bidirectional ? 2 : 1);
  const int64_t each = net.has_biases ? 4 : 2;
  if (static_cast<int64_t>(params.size()) != layers * each) {
    refuse(net.op, "{} params were given, but {} layers want {} each.", params.size(), layers, each);
  }
  if (hx.rank() != 3 || hx.dims()[0] != layers) {
    refuse(net.op, "hx of shape {} must be [{}, batch, width].", hx.dims(), layers);
  }
}

State run_network(const Network& net, const Tensor& input, const Tensor& hx, const Tensor& cx,
                  const TensorList& params) {
  check_network(net, input, hx, params);
  const int64_t directions = net.bidirectional ? 2 : 1;
  const size_t each = net.has_biases ? 4 : 2;
  Tensor x = net.batch_first ? tenon::transpose(input, 0, 1) : input;
  std::vector<Tensor> hidden;
  std::vector<Tensor> cells;
  for (int64_t layer = 0; layer < net.num_layers; ++layer) {
    if (layer > 0 && net.dropout > 0 && net.train) x = tenon::dropout(x, net.dropout, true);
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t number = layer * directions + direction;
      const size_t first = static_cast<size_t>(number) * each;
      Layer weights = {params[first], params[first + 1], {}, {}};
      if (net.has_biases) weights.bias = params[first + 2];
      if (net.has_biases) weights.recurrent_bias = params[first + 3];
      const Tensor state = cx.defined() ? tenon::select(cx, 0, number) : Tensor();
      const State end = run_layer(net.cell, x, weights, tenon::select(hx, 0, number), state, direction == 1);
      outputs.push_back(end.output);
      hidden.push_back(end.hidden);
      if (cx.defined()) cells.push_back(end.cell);
    }
    x = directions == 1 ? outputs[0] : tenon::concat(outputs, 2);
  }
  return {net.batch_first ? tenon::transpose(x, 0, 1) : x, tenon::stack(hidden, 0),
          cx.defined() ? tenon::stack(cells, 0) : Tensor()};
}

}  // namespace

std::tuple<Tensor, Tensor> recurrent_layer(const Tensor& input, const Tensor& weight, const Tensor& recurrent_weight,
                                           const Tensor& bias, const Tensor& recurrent_bias, const Tensor& hidden,
                                           const Tensor& lengths, std::string_view cell, bool reverse,
                                           bool linear_before_reset, bool torch_gates, double clip) {
  constexpr std::string_view op = "recurrent_layer";
  RecurrentAttributes attributes{};
  attributes.layer.cell = cell_of(op, cell);
  if (linear_before_reset && attributes.layer.cell != EP_CELL_GRU) {
    refuse(op, "cell {} takes no linear_before_reset.", cell);
  }
  attributes.layer.flags = (reverse ? EP_RECURRENT_FLAG_REVERSE : 0) | (torch_gates ? EP_RECURRENT_FLAG_TORCH : 0) |
                           (linear_before_reset ? EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET : 0);
  attributes.layer.clip = clip;
  Inputs in = {input, weight, recurrent_weight, bias, recurrent_bias, hidden, {}, {}, lengths};
  prepare(op, attributes.layer.cell, clip, &in);
  const Tensor* inputs[] = {
      &in.input,          &in.weight,         &in.recurrent_weight, or_null(in.bias), or_null(in.recurrent_bias),
      or_null(in.hidden), or_null(in.lengths)};
  Tensor outputs[2];
  apply(OpId::recurrent_layer, inputs, &attributes, outputs);
  return {outputs[0], outputs[1]};
}

std::tuple<Tensor, Tensor, Tensor> lstm_layer(const Tensor& input, const Tensor& weight, const Tensor& recurrent_weight,
                                              const Tensor& bias, const Tensor& recurrent_bias, const Tensor& hidden,
                                              const Tensor& state, const Tensor& peephole, const Tensor& lengths,
                                              bool reverse, bool coupled, bool torch_gates, double clip) {
  RecurrentAttributes attributes{};
  attributes.layer.cell = EP_CELL_LSTM;
  attributes.layer.flags = (reverse ? EP_RECURRENT_FLAG_REVERSE : 0) | (torch_gates ? EP_RECURRENT_FLAG_TORCH : 0) |
                           (coupled ? EP_RECURRENT_FLAG_COUPLED : 0);
  attributes.layer.clip = clip;
  Inputs in = {input, weight, recurrent_weight, bias, recurrent_bias, hidden, state, peephole, lengths};
  prepare("lstm_layer", EP_CELL_LSTM, clip, &in);
  const Tensor* inputs[] = {
      &in.input,          &in.weight,        &in.recurrent_weight, or_null(in.bias),   or_null(in.recurrent_bias),
      or_null(in.hidden), or_null(in.state), or_null(in.peephole), or_null(in.lengths)};
  Tensor outputs[3];
  apply(OpId::lstm_layer, inputs, &attributes, outputs);
  return {outputs[0], outputs[1], outputs[2]};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const Tensor& hx, const Tensor& cx,
                                        const TensorList& params, bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first) {
  require_defined("lstm", "cx", cx);
  if (hx.defined()) {
    const Dims& hidden = hx.dims();  // read in this order, since a recording notes it
    const Dims& cell = cx.dims();
    if (cell != hidden) refuse("lstm", "cx of shape {} must have the shape of hx, {}.", cell, hidden);
  }
  const State end =
      run_network({"lstm", EP_CELL_LSTM, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input, hx,
                  cx, params);
  return {end.output, end.hidden, end.cell};
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, const TensorList& params, bool has_biases,
                               int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const State end =
      run_network({"gru", EP_CELL_GRU, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input, hx,
                  Tensor(), params);
  return {end.output, end.hidden};
}

std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, const TensorList& params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  const State end =
      run_network({"rnn_tanh", EP_CELL_TANH, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input,
                  hx, Tensor(), params);
  return {end.output, end.hidden};
}

std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, const TensorList& params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  const State end =
      run_network({"rnn_relu", EP_CELL_RELU, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input,
                  hx, Tensor(), params);
  return {end.output, end.hidden};
}

}  // namespace tenon::functors
