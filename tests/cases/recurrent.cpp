// Cases of recurrent.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Shape {
  std::string_view name;
  int64_t steps, batch, inputs, width;
};

struct Cell {
  std::string_view name;
  int32_t cell;
  int32_t flags;
  int64_t gates;
};

// The optional operands that a case has.
struct Options {
  bool biases = true, states = true, peephole = false, lengths = false, last = true;
  double clip = 0;
};

Case recurrent_case(const Shape& shape, const Cell& cell, DType dtype, const Options& options,
                    std::string_view suffix) {
  Case made = {fmt::format("recurrent/{}/{}/{}{}", cell.name, dtype_name(dtype), shape.name, suffix),
               make_desc(EP_PRIMITIVE_recurrent),
               {},
               {},
               {},
               0};
  made.desc.attributes.recurrent = {cell.cell, cell.flags, options.clip};
  const bool lstm = cell.cell == EP_CELL_LSTM;
  const int64_t rows = cell.gates * shape.width;
  const Dims state = {shape.batch, shape.width};
  const auto add = [&](int32_t role, const Dims& dims, double most) {
    add_operand(made.desc, role, dtype, dims);
    made.values.push_back({Fill::RANDOM, -most, most});
  };
  add(EP_ROLE_DST, {shape.steps, shape.batch, shape.width}, 1);
  if (options.last) add(EP_ROLE_DST_HIDDEN, state, 1);
  if (options.last && lstm) add(EP_ROLE_DST_CELL, state, 1);
  add(EP_ROLE_SRC, {shape.steps, shape.batch, shape.inputs}, 1);
  add(EP_ROLE_WEIGHT, {rows, shape.inputs}, 0.5);
  if (options.biases) add(EP_ROLE_BIAS, {rows}, 0.5);
  if (options.lengths) {
    add_operand(made.desc, EP_ROLE_LENGTHS, DType::i32, {shape.batch});
    made.values.push_back({Fill::INDEX, 0, static_cast<double>(shape.steps)});
  }
  add(EP_ROLE_RECURRENT_WEIGHT, {rows, shape.width}, 0.5);
  if (options.biases) add(EP_ROLE_RECURRENT_BIAS, {rows}, 0.5);
  if (options.peephole) add(EP_ROLE_PEEPHOLE, {3 * shape.width}, 0.5);
  if (options.states) add(EP_ROLE_HIDDEN, state, 1);
  if (options.states && lstm) add(EP_ROLE_CELL, state, 1);
  // relu may double its input in some steps; the other functions keep errors small.
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("product", tier, dtype).ulps + beyond_full("exp", tier, dtype, 8).ulps;
    const double terms = static_cast<double>((shape.inputs + shape.width) * shape.steps);
    return {dtype_info(dtype).bits < 32 ? 2.0 : 4.0, (64 + 4 * terms) * (1 + more), 0};
  });
  return made;
}

}  // namespace

void add_recurrent_cases(std::vector<Case>* cases) {
  const Cell cells[] = {
      {"tanh", EP_CELL_TANH, 0, 1},
      {"relu", EP_CELL_RELU, 0, 1},
      {"lstm", EP_CELL_LSTM, 0, 4},
      {"lstm_torch", EP_CELL_LSTM, EP_RECURRENT_FLAG_TORCH, 4},
      {"lstm_coupled", EP_CELL_LSTM, EP_RECURRENT_FLAG_COUPLED, 4},
      {"lstm_reverse", EP_CELL_LSTM, EP_RECURRENT_FLAG_REVERSE, 4},
      {"gru", EP_CELL_GRU, 0, 3},
      {"gru_torch", EP_CELL_GRU, EP_RECURRENT_FLAG_TORCH | EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET, 3},
      {"gru_reverse", EP_CELL_GRU, EP_RECURRENT_FLAG_REVERSE, 3},
  };
  const Shape shapes[] = {
      {"small", 5, 3, 4, 7}, {"one", 1, 1, 1, 1}, {"vectors", 3, 2, 16, 17}, {"steps", 12, 1, 8, 16}};
  for (const Cell& cell : cells) {
    for (const Shape& shape : shapes) cases->push_back(recurrent_case(shape, cell, DType::f32, {}, ""));
    const Shape& small = shapes[0];
    cases->push_back(recurrent_case(small, cell, DType::f32, {.lengths = true}, "_lengths"));
    cases->push_back(
        recurrent_case(small, cell, DType::f32, {.biases = false, .states = false, .last = false}, "_bare"));
    cases->push_back(recurrent_case(small, cell, DType::f32, {.clip = 0.25}, "_clip"));
    for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
      cases->push_back(recurrent_case(small, cell, dtype, {}, ""));
    }
    if (cell.cell != EP_CELL_LSTM) continue;
    cases->push_back(recurrent_case(small, cell, DType::f32, {.peephole = true}, "_peephole"));
  }
  Case strided = recurrent_case(shapes[0], cells[2], DType::f32, {}, "_batch_first");
  for (uint32_t i = 0; i < strided.desc.operand_count; ++i) {
    ep_operand_desc& operand = strided.desc.operands[i];
    if (operand.rank != 3) continue;
    operand.strides[0] = operand.dims[2];
    operand.strides[1] = operand.dims[2] * operand.dims[0];
  }
  cases->push_back(strided);
  Case fault = recurrent_case(shapes[0], cells[6], DType::f32, {.lengths = true}, "_beyond");
  for (uint32_t i = 0; i < fault.desc.operand_count; ++i) {
    if (fault.desc.operands[i].role == EP_ROLE_LENGTHS) fault.values[i] = {Fill::INDEX, -1, 6};
  }
  fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
  cases->push_back(fault);
}

}  // namespace tenon::cases
