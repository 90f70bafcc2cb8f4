// The gradients of every row of the op table against finite differences in f64, of first and of second order.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/autograd/history.h"
#include "core/autograd/rows.h"
#include "core/ops/call.h"
#include "core/ops/op_rows.h"
#include "ep_api/ep_api.h"
#include "primitives/text/format.h"
#include "tests/unit/autograd/numbers.h"
#include "tests/unit/autograd/row_cases.h"

namespace tenon {
namespace {

constexpr double kStep = 1e-5;

TensorList asking(const TensorList& values) {
  TensorList leaves;
  for (const Tensor& value : values) leaves.push_back(value.detach().requires_grad_());
  return leaves;
}

// The gradients of sum(call(inputs) * weight), as numbers.
std::vector<std::vector<double>> first_order(const RowCase& row, const TensorList& values, const Tensor& weight) {
  const TensorList inputs = asking(values);
  std::vector<std::vector<double>> found;
  for (const Tensor& gradient : grad({row.call(inputs)}, inputs, {weight}, {false, false, true})) {
    found.push_back(gradient.defined() ? numbers(gradient) : std::vector<double>());
  }
  for (size_t i = 0; i < found.size(); ++i) found[i].resize(static_cast<size_t>(inputs[i].elements()));
  return found;
}

Tensor moved(const Tensor& value, size_t element, double by) {
  std::vector<double> data = numbers(value);
  data[element] += by;
  return with_values(data, value.dims());
}

// Compares `gradients` with the differences of `function` at `values`, element by element.
template <class Function>
void expect_slopes(TensorList values, const std::vector<std::vector<double>>& gradients, const Function& function) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor at = values[i];
    for (size_t element = 0; element < static_cast<size_t>(at.elements()); ++element) {
      values[i] = moved(at, element, kStep);
      const double above = function(values);
      values[i] = moved(at, element, -kStep);
      const double below = function(values);
      const double slope = (above - below) / (2 * kStep);
      const double bound = 2e-6 * (1 + std::abs(slope) + std::abs(above));
      ASSERT_NEAR(gradients[i][element], slope, bound) << "argument " << i << ", element " << element;
    }
    values[i] = at;
  }
}

void expect_first_order(const RowCase& row, const TensorList& values, const Tensor& weight) {
  const std::vector<double> weights = numbers(weight);
  expect_slopes(values, first_order(row, values, weight), [&](const TensorList& inputs) {
    const NoGrad scope;
    TensorList copies;
    for (const Tensor& input : inputs) copies.push_back(clone(input));
    return dot(numbers(row.call(copies)), weights);
  });
}

// The gradients, weighted at random, are a function of the inputs and the weight. The gradients of this function are of
// second order.
void expect_second_order(const RowCase& row, TensorList values, const Tensor& weight) {
  std::vector<std::vector<double>> factors;
  for (size_t i = 0; i < values.size(); ++i) {
    factors.push_back(numbers(random_tensor(values[i].dims(), static_cast<uint32_t>(700 + i))));
  }
  values.push_back(weight);
  const TensorList leaves = asking(values);
  const TensorList inputs(leaves.begin(), leaves.end() - 1);
  const TensorList gradients = grad({row.call(inputs)}, inputs, {leaves.back()}, {false, true, true});
  Tensor total = zeros({}, DType::f64);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].defined()) total = total + sum(gradients[i] * with_values(factors[i], values[i].dims()));
  }
  std::vector<std::vector<double>> found(values.size());
  if (total.requires_grad()) {
    const TensorList second = grad({total}, leaves, {}, {false, false, true});
    for (size_t i = 0; i < second.size(); ++i) found[i] = second[i].defined() ? numbers(second[i]) : found[i];
  }
  for (size_t i = 0; i < values.size(); ++i) found[i].resize(static_cast<size_t>(values[i].elements()));
  expect_slopes(values, found, [&](const TensorList& at) {
    const auto slopes = first_order(row, TensorList(at.begin(), at.end() - 1), at.back());
    double sum = 0;
    for (size_t i = 0; i < slopes.size(); ++i) sum += dot(slopes[i], factors[i]);
    return sum;
  });
}

TensorList values_of(const RowCase& row) {
  TensorList values;
  for (size_t i = 0; i < row.shapes.size(); ++i) {
    values.push_back(random_tensor(row.shapes[i], static_cast<uint32_t>(40 + i), row.low, row.high));
  }
  return values;
}

void check(const RowCase& row) {
  SCOPED_TRACE(row.name);
  try {
    const TensorList values = values_of(row);
    const Dims dims = row.call(asking(values)).dims();
    const Tensor weight = random_tensor(dims, 90, -1.0, 1.0);
    expect_first_order(row, values, weight);
    if (!testing::Test::HasFatalFailure()) expect_second_order(row, values, weight);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

bool has_gradient(const OpInfo& op) { return autograd::gradient_row(op.id).function != nullptr; }

bool finite(const Tensor& x) {
  const std::vector<double> all = numbers(x);
  return std::all_of(all.begin(), all.end(), [](double value) { return std::isfinite(value); });
}

struct Range {
  double low, high;
};
constexpr Range kRanges[] = {{0.2, 0.8}, {-0.8, -0.2}, {1.2, 3.5}, {-3.5, -1.2}};

// The elements of `x` as a view that is not row-major.
Tensor strided(const Tensor& x) {
  if (x.rank() == 0) return x;
  if (x.rank() == 1) return slice(reshape(stack({x, x * -7}, 1), {-1}), 0, 0, std::nullopt, 2);
  Dims back;
  for (int32_t axis = x.rank(); axis-- > 0;) back.push_back(axis);
  return permute(contiguous(permute(x, back)), back);
}

TensorList strided(const TensorList& values) {
  TensorList all;
  for (const Tensor& value : values) all.push_back(strided(value));
  return all;
}

// The first gradients, and the gradients of their weighted sum.
std::vector<std::vector<double>> both_orders(const RowCase& row, const TensorList& values, const Tensor& weight) {
  const TensorList inputs = asking(values);
  TensorList all = grad({row.call(inputs)}, inputs, {weight}, {false, true, true});
  Tensor total = zeros({}, DType::f64);
  for (const Tensor& gradient : TensorList(all)) {
    if (gradient.defined()) total = total + sum(gradient * gradient);
  }
  if (total.requires_grad()) {
    for (const Tensor& gradient : grad({total}, inputs, {}, {false, false, true})) all.push_back(gradient);
  }
  std::vector<std::vector<double>> found;
  for (const Tensor& gradient : all) found.push_back(gradient.defined() ? numbers(gradient) : std::vector<double>());
  return found;
}

void expect_same_strided(const RowCase& row) {
  SCOPED_TRACE(row.name);
  try {
    const TensorList values = values_of(row);
    const Tensor weight = random_tensor(row.call(asking(values)).dims(), 91, -1.0, 1.0);
    const auto dense = both_orders(row, values, weight);
    const auto apart = both_orders(row, strided(values), strided(weight));
    ASSERT_EQ(dense.size(), apart.size());
    for (size_t i = 0; i < dense.size(); ++i) {
      ASSERT_EQ(dense[i].size(), apart[i].size());
      for (size_t k = 0; k < dense[i].size(); ++k) {
        ASSERT_NEAR(dense[i][k], apart[i][k], 1e-10 * (1 + std::abs(dense[i][k])))
            << "gradient " << i << ", element " << k;
      }
    }
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

// Calls of an element-wise op wherever its result is finite.
std::vector<RowCase> elementwise_cases(const OpInfo& op) {
  std::vector<RowCase> cases;
  const std::string name(op.name);
  const auto add = [&](const std::string& how, Range range, std::vector<Dims> shapes, auto call) {
    RowCase row{name + how, std::move(shapes), call, range.low, range.high};
    const NoGrad scope;
    if (finite(row.call(values_of(row)))) cases.push_back(std::move(row));
  };
  for (const Range range : kRanges) {
    const std::string where = fmt::format(" in {}", range.low);
    const auto one = [name](const TensorList& x) { return call(name, {x[0]})[0]; };
    const auto two = [name](const TensorList& x) { return call(name, {x[0], x[1]})[0]; };
    if (op.kind == EP_PRIMITIVE_unary) {
      add(where, range, {{2, 3}}, one);
      add(where + ", one element", range, {{1, 1}}, one);
      add(where + ", a number", range, {{}}, one);
    } else {
      add(where, range, {{2, 3}, {3}}, two);
      add(where + ", one element", range, {{1}, {2, 1}}, two);
      add(where + ", both broadcast", range, {{2, 1}, {1, 3}}, two);
      if (name == "prelu") continue;
      add(where + ", number right", range, {{2, 3}}, [name](const TensorList& x) {
        return call(name, {x[0], 1.7})[0];
      });
      add(where + ", number left", range, {{2, 3}}, [name](const TensorList& x) { return call(name, {1.7, x[0]})[0]; });
    }
  }
  return cases;
}

std::vector<RowCase> all_elementwise() {
  std::vector<RowCase> cases;
  for (const OpInfo& op : op_table()) {
    const bool made = op.kind == EP_PRIMITIVE_unary || op.kind == EP_PRIMITIVE_binary;
    if (op.form != OpForm::elementwise || !made || !has_gradient(op)) continue;
    if (op.name == "gelu_tanh" || op.name == "threshold" || op.name == "nan_to_num_within")
      continue;  // row_cases.cpp calls these
    for (RowCase& row : elementwise_cases(op)) cases.push_back(std::move(row));
  }
  return cases;
}

// The ops whose nodes are in the history of `tensor`.
void collect(const Tensor& tensor, std::set<std::string>* names) {
  std::vector<autograd::NodeRef> nodes{autograd::edge_of(tensor).node};
  for (size_t i = 0; i < nodes.size(); ++i) {
    names->insert(std::string(nodes[i]->name()));
    for (const autograd::Edge& edge : nodes[i]->edges()) {
      if (edge.node) nodes.push_back(edge.node);
    }
  }
}

TEST(GradientRows, OfElementwiseOpsAgreeWithFiniteDifferences) {
  for (const RowCase& row : all_elementwise()) check(row);
}

TEST(GradientRows, OfOtherOpsAgreeWithFiniteDifferences) {
  for (const RowCase& row : row_cases()) check(row);
}

TEST(GradientRows, OfStridedTensorsAreThoseOfDenseOnes) {
  for (const RowCase& row : all_elementwise()) expect_same_strided(row);
  for (const RowCase& row : row_cases()) {
    if (row.name != "view") expect_same_strided(row);  // it takes no such tensor
  }
}

TEST(GradientRows, OfTensorsWithoutElementsHaveTheirShapes) {
  for (const OpInfo& op : op_table()) {
    const bool two = op.kind == EP_PRIMITIVE_binary;
    if (op.form != OpForm::elementwise || (!two && op.kind != EP_PRIMITIVE_unary) || !has_gradient(op)) continue;
    if (op.name == "threshold" || op.name == "nan_to_num_within") continue;  // need numbers
    SCOPED_TRACE(op.name);
    const TensorList x = asking({zeros({2, 0, 3}, DType::f64), ones({1, 3}, DType::f64)});
    const Tensor y = two ? call(op.name, {x[0], x[1]})[0] : call(op.name, {x[0]})[0];
    y.backward(zeros(y.dims(), DType::f64));
    EXPECT_EQ(x[0].grad().dims(), (Dims{2, 0, 3}));
    if (!two) continue;
    EXPECT_EQ(numbers(x[1].grad()), std::vector<double>(3)) << "sums of nothing";
  }
}

TEST(GradientRows, AllHaveACaseAbove) {
  std::set<std::string> met;
  for (const RowCase& row : all_elementwise()) collect(row.call(asking(values_of(row))), &met);
  for (const RowCase& row : row_cases()) collect(row.call(asking(values_of(row))), &met);
  for (const OpInfo& op : op_table()) {
    if (op.name == "to") continue;  // needs a second device: engine_test.cpp
    EXPECT_EQ(has_gradient(op), met.count(std::string(op.name)) != 0) << op.name;
  }
}

TEST(GradientRows, WithoutAGradientRefuseArgumentsThatWantOne) {
  const Tensor x = random_tensor({2, 3}, 1).requires_grad_();
  for (const char* name : {"isnan", "logical_not"}) EXPECT_FALSE(call(name, {x})[0].requires_grad()) << name;
  EXPECT_FALSE(argmax(x).requires_grad());
  EXPECT_FALSE(gt(x, 0).requires_grad());
  EXPECT_FALSE(cast(x, DType::i64).requires_grad());
}

}  // namespace
}  // namespace tenon
