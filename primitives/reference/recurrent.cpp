// recurrent: one element of the batch after another, step by step.
#include <algorithm>
#include <cmath>
#include <vector>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

using Row = std::vector<double>;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One element of the batch.
class Cell {
 public:
  Cell(const Call& call, int64_t element)
      : call_(call),
        at_(call.desc.attributes.recurrent),
        element_(element),
        width_(call[EP_ROLE_RECURRENT_WEIGHT].dim(1)),
        hidden_(state(EP_ROLE_HIDDEN)),
        cell_(state(EP_ROLE_CELL)) {}

  void step(int64_t step) {
    const Row before = hidden_;
    Row next(before.size());
    for (int64_t j = 0; j < width_; ++j) {
      const auto i = static_cast<size_t>(j);
      if (at_.cell == EP_CELL_LSTM) {
        next[i] = lstm(step, j, before);
      } else if (at_.cell == EP_CELL_GRU) {
        next[i] = gru(step, j, before);
      } else {
        const double a = limited(input(0, step, j) + recurrent(0, j, before));
        next[i] = at_.cell == EP_CELL_TANH ? std::tanh(a) : a < 0 ? 0 : a;
      }
    }
    hidden_ = next;
  }

  void write_step(int64_t step, bool active) const {
    for (int64_t j = 0; j < width_; ++j) {
      const int64_t index[] = {step, element_, j};
      call_[EP_ROLE_DST].set(index, active ? hidden_[static_cast<size_t>(j)] : 0.0);
    }
  }
  void write_last() const {
    write(EP_ROLE_DST_HIDDEN, hidden_);
    write(EP_ROLE_DST_CELL, cell_);
  }

 private:
  enum Gate : uint8_t { I = 0, O = 1, F = 2, C = 3, Z = 0, R = 1, H = 2 };

  // The position of the rows of `gate`, which is numbered in ONNX's order.
  int64_t block(int gate) const {
    if ((at_.flags & EP_RECURRENT_FLAG_TORCH) == 0) return gate;
    constexpr int lstm[] = {0, 3, 1, 2};
    constexpr int gru[] = {1, 0, 2};
    return at_.cell == EP_CELL_LSTM ? lstm[gate] : at_.cell == EP_CELL_GRU ? gru[gate] : 0;
  }
  double limited(double x) const { return at_.clip > 0 ? std::clamp(x, -at_.clip, at_.clip) : x; }

  double list(int32_t role, int64_t place) const {
    const Operand operand = call_[role];
    return operand ? operand.get<double>(&place) : 0;
  }
  Row state(int32_t role) const {
    Row row(static_cast<size_t>(width_));
    const Operand operand = call_[role];
    for (int64_t j = 0; operand && j < width_; ++j) {
      const int64_t index[] = {element_, j};
      row[static_cast<size_t>(j)] = operand.get<double>(index);
    }
    return row;
  }
  void write(int32_t role, const Row& row) const {
    const Operand operand = call_[role];
    for (int64_t j = 0; operand && j < width_; ++j) {
      const int64_t index[] = {element_, j};
      operand.set(index, row[static_cast<size_t>(j)]);
    }
  }

  double input(int gate, int64_t step, int64_t j) const {
    const int64_t row = block(gate) * width_ + j;
    const Operand src = call_[EP_ROLE_SRC];
    double sum = list(EP_ROLE_BIAS, row);
    for (int64_t k = 0; k < src.dim(2); ++k) {
      const int64_t weight[] = {row, k};
      const int64_t source[] = {step, element_, k};
      sum += call_[EP_ROLE_WEIGHT].get<double>(weight) * src.get<double>(source);
    }
    return sum;
  }
  double recurrent(int gate, int64_t j, const Row& hidden) const {
    const int64_t row = block(gate) * width_ + j;
    double sum = list(EP_ROLE_RECURRENT_BIAS, row);
    for (int64_t k = 0; k < width_; ++k) {
      const int64_t weight[] = {row, k};
      sum += call_[EP_ROLE_RECURRENT_WEIGHT].get<double>(weight) * hidden[static_cast<size_t>(k)];
    }
    return sum;
  }

  double lstm(int64_t step, int64_t j, const Row& hidden) {
    double& cell = cell_[static_cast<size_t>(j)];
    const auto sum = [&](Gate gate) { return input(gate, step, j) + recurrent(gate, j, hidden); };
    const auto peep = [&](int gate) { return list(EP_ROLE_PEEPHOLE, gate * width_ + j) * cell; };
    const double i = logistic(limited(sum(I) + peep(0)));
    const double f = at_.flags & EP_RECURRENT_FLAG_COUPLED ? 1 - i : logistic(limited(sum(F) + peep(2)));
    cell = f * cell + i * std::tanh(limited(sum(C)));
    return logistic(limited(sum(O) + peep(1))) * std::tanh(cell);
  }

  double gru(int64_t step, int64_t j, const Row& hidden) const {
    const double z = logistic(limited(input(Z, step, j) + recurrent(Z, j, hidden)));
    double b = input(H, step, j);
    if (at_.flags & EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET) {
      b += logistic(limited(input(R, step, j) + recurrent(R, j, hidden))) * recurrent(H, j, hidden);
    } else {
      Row reset = hidden;
      for (int64_t k = 0; k < width_; ++k) {
        reset[static_cast<size_t>(k)] *= logistic(limited(input(R, step, k) + recurrent(R, k, hidden)));
      }
      b += recurrent(H, j, reset);
    }
    return (1 - z) * std::tanh(limited(b)) + z * hidden[static_cast<size_t>(j)];
  }

  const Call& call_;
  const ep_recurrent_attributes& at_;
  int64_t element_;
  int64_t width_;
  Row hidden_;
  Row cell_;
};

}  // namespace

void run_recurrent(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const Operand lengths = call[EP_ROLE_LENGTHS];
  const bool reverse = (call.desc.attributes.recurrent.flags & EP_RECURRENT_FLAG_REVERSE) != 0;
  const int64_t steps = src.dim(0);
  for (int64_t element = 0; element < src.dim(1); ++element) {
    const int64_t given = lengths ? lengths.get<int64_t>(&element) : steps;
    const int64_t length = std::clamp<int64_t>(given, 0, steps);
    if (given != length) call.report(EP_FAULT_INDEX_OUT_OF_RANGE, EP_ROLE_LENGTHS, given, steps);
    Cell cell(call, element);
    for (int64_t i = 0; i < length; ++i) {
      const int64_t step = reverse ? length - 1 - i : i;
      cell.step(step);
      cell.write_step(step, true);
    }
    for (int64_t step = length; step < steps; ++step) cell.write_step(step, false);
    cell.write_last();
  }
}

}  // namespace tenon::reference
