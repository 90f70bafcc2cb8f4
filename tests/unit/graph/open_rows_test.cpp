// Every row, recorded with open sizes: runs at other sizes have the bits of eager runs. The guards of each case are in
// open_rows.txt, so that a row that becomes less general is noticed; of elementwise rows with the same guards, only the
// first is there. If the file differs, SYMBOLIC_GOLDEN=write rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <sstream>

#include "core/ops/call.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "tests/unit/autograd/row_cases.h"
#include "tests/unit/graph/open_recording.h"

namespace tenon::graph {
namespace {

constexpr int kOtherSizes = 5;

struct Case {
  std::string name;
  std::vector<Dims> shapes;
  OpenCode call;
  double low = 0.2;
  double high = 0.8;
};

// General forms of calls: sizes that row_cases() writes as numbers are open here.
std::vector<Case> general_cases() {
  using X = const TensorList&;
  using R = TensorList;
  return {
      {"reshape, -1",
       {{4, 6}},
       [](X x) {
         return R{reshape(x[0], {-1}), reshape(x[0], {-1, 2})};
       }},
      {"reshape, sizes",
       {{4, 6, 3}},
       [](X x) {
         const SymDims s = sizes(x[0]);
         return R{reshape(x[0], SizeList{s[2], s[0] * s[1]}), reshape(transpose(x[0], 0, 2), SizeList{-1, s[0]})};
       }},
      {"heads",
       {{2, 5, 12}},
       [](X x) {
         const SymDims s = sizes(x[0]);
         const Tensor heads = transpose(reshape(x[0], SizeList{s[0], s[1], 3, -1}), 1, 2);
         const Tensor scores = softmax(matmul(heads, transpose(heads, -2, -1)), -1);
         return R{reshape(transpose(matmul(scores, heads), 1, 2), SizeList{s[0], s[1], s[2]})};
       }},
      {"flatten",
       {{2, 3, 4}},
       [](X x) {
         return R{flatten(x[0]), flatten(x[0], 1), flatten(transpose(x[0], 0, 2), 1)};
       }},
      {"unflatten",
       {{6, 4}},
       [](X x) {
         return R{unflatten(x[0], 0, {-1, 2})};
       }},
      {"expand_as, broadcast_to",
       {{1, 4}, {3, 4}},
       [](X x) {
         return R{expand_as(x[0], x[1]), broadcast_to(x[0], SizeList(sizes(x[1])))};
       }},
      {"squeeze, unsqueeze, movedim",
       {{3, 4, 5}},
       [](X x) {
         return R{squeeze(unsqueeze(x[0], 1)), movedim(x[0], 0, 2)};
       }},
      {"slice, narrow",
       {{7, 9}},
       [](X x) {
         return R{slice(x[0], 0, 1, -1), slice(x[0], 1, {}, {}, 2), narrow(x[0], 1, 1, 3), narrow(x[0], 1, -3, 2)};
       }},
      {"select",
       {{4, 5}},
       [](X x) {
         return R{select(x[0], 0, -1), select(x[0], 1, 2)};
       }},
      {"concat, stack",
       {{3, 4}, {5, 4}},
       [](X x) {
         return R{concat({x[0], x[1]}), stack({x[0], mul(x[0], Scalar(2.0))})};
       }},
      {"split, lengths",
       {{6, 4}},
       [](X x) {
         return split(x[0], SizeList{2, size_at(x[0], 0) - 2});
       }},
      {"chunk", {{6, 4}}, [](X x) { return chunk(x[0], 3); }},
      {"pad",
       {{3, 4}},
       [](X x) {
         return R{pad(x[0], {1, 2, 0, 1}, "constant", 3), pad(x[0], {-1, 2})};
       }},
      {"tile",
       {{3, 4}},
       [](X x) {
         return R{tile(x[0], {2, 3})};
       }},
      {"like",
       {{3, 4}},
       [](X x) {
         return R{zeros_like(x[0]), ones_like(x[0]), full_like(x[0], Scalar(2.5))};
       }},
      {"full, sizes", {{3, 4}}, [](X x) { return R{full(SizeList(sizes(x[0])), Scalar(1.5), DType::f32)}; }},
      {"fill_, zero_",
       {{3, 4}},
       [](X x) {
         Tensor y = clone(x[0]);
         Tensor row = select(y, 0, 1);
         fill_(row, Scalar(3.0));
         Tensor z = neg(x[0]);
         zero_(z);
         return R{y, z};
       }},
      {"contiguous",
       {{3, 4}},
       [](X x) {
         return R{contiguous(x[0]), contiguous(transpose(x[0], 0, 1))};
       }},
      {"attention, causal, open",
       {{2, 5, 4}, {2, 5, 4}, {2, 5, 4}},
       [](X x) { return R{scaled_dot_product_attention(x[0], x[1], x[2], {}, true)}; }},
      {"linear, open batch",
       {{3, 5, 4}},
       [](X x) {
         return R{linear(x[0], full({6, 4}, Scalar(0.5), DType::f64), full({6}, Scalar(0.25), DType::f64))};
       }},
      {"matmul, bias", {{3, 5}, {5, 2}}, [](X x) { return R{add(matmul(x[0], x[1]), Scalar(1.0))}; }},
      {"argmax, argmin",
       {{3, 4}},
       [](X x) {
         return R{argmax(x[0]), argmax(x[0], 1, true), argmin(x[0], 0)};
       }},
      {"max, min",
       {{3, 4}},
       [](X x) {
         return R{std::get<0>(max(x[0], 1)), std::get<1>(min(x[0], 0)), max(x[0])};
       }},
      {"all, any",
       {{3, 4}},
       [](X x) {
         return R{all(gt(x[0], Scalar(0.4))), any(gt(x[0], Scalar(0.7)), 1)};
       }},
      {"one_hot", {{3, 4}}, [](X x) { return R{one_hot(cast(mul(x[0], Scalar(9.0)), DType::i64), 10)}; }},
      {"take_along_dim", {{3, 4}}, [](X x) { return R{take_along_dim(x[0], argmax(x[0], 1, true), 1)}; }},
      {"scatter of a number", {{3, 4}}, [](X x) { return R{scatter(x[0], 1, argmax(x[0], 1, true), Scalar(0.0))}; }},
      {"isfinite", {{3, 4}}, [](X x) { return R{isfinite(x[0])}; }},
      {"adaptive_avg_pool, 1", {{2, 3, 4, 5}}, [](X x) { return R{adaptive_avg_pool(x[0], 1)}; }},
      {"instance_norm", {{2, 3, 4}}, [](X x) { return R{instance_norm(x[0], {}, {})}; }},
  };
}

std::vector<Case> elementwise_cases() {
  std::vector<Case> cases;
  for (const OpInfo& op : op_table()) {
    if (op.form != OpForm::elementwise) continue;
    const std::string name(op.name);
    if (name == "threshold" || name == "nan_to_num_within") continue;  // row_cases() calls them
    const auto given = [whole = name.starts_with("bitwise") || name == "gcd" || name == "lcm"](const Tensor& x) {
      return whole ? cast(mul(x, Scalar(9.0)), DType::i64) : x;
    };
    if (op.kind == EP_PRIMITIVE_unary) {
      cases.push_back({name, {{2, 3}}, [=](const TensorList& x) { return call(name, {given(x[0])}); }});
    } else if (op.kind == EP_PRIMITIVE_binary) {
      cases.push_back({name, {{2, 3}, {3}}, [=](const TensorList& x) {
                         return call(name, {given(x[0]), given(x[1])});
                       }});
    }
  }
  return cases;
}

std::vector<Case> other_cases() {
  std::vector<Case> cases;
  for (const RowCase& row : row_cases()) {
    cases.push_back({row.name, row.shapes, [call = row.call](const TensorList& x) { return TensorList{call(x)}; },
                     row.low, row.high});
  }
  const std::vector<Case> more = general_cases();
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

TensorList values_of(const Case& row, const std::vector<Dims>& shapes) {
  TensorList values;
  for (const Dims& dims : shapes) {
    std::mt19937 random(static_cast<uint32_t>(values.size()) + 40);
    std::uniform_real_distribution<double> numbers(row.low, row.high);
    std::vector<double> data(static_cast<size_t>(element_count(dims)));
    for (double& number : data) number = numbers(random);
    values.push_back(Tensor::from<double>(data, dims));
  }
  return values;
}

// Other shapes that the guards of `graph` allow: free symbols are random, the guards determine the others.
std::optional<std::vector<Dims>> other_shapes(Graph& graph, const std::vector<Dims>& hints, std::mt19937* random) {
  const symbolic::ArenaScope scope(graph.arena());
  symbolic::Values values(graph.arena());
  for (uint32_t i = 0; i < graph.arena().symbols().size(); ++i) {
    if (!values.bind(i, std::uniform_int_distribution<int64_t>(2, 9)(*random)).ok()) return std::nullopt;
  }
  std::vector<Dims> shapes = hints;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int32_t axis = 0; axis < shapes[i].rank(); ++axis) {
      const SymDim size = graph.arena().resolve(graph[graph.inputs()[i]].dims[axis]);
      const Result<int64_t> number = values.of(size);
      if (!number.ok() || number.value() < 1) return std::nullopt;
      shapes[i][axis] = number.value();
    }
  }
  return shapes;
}

// Records `row`, runs it at other sizes, and returns its guards, without those of inputs.
std::string check(const Case& row, std::set<std::string>* met) {
  SCOPED_TRACE(row.name);
  Recorder recorder(Device::current());
  TensorList inputs;
  for (size_t i = 0; i < row.shapes.size(); ++i) {
    std::vector<std::string> symbols;
    for (int32_t axis = 0; axis < row.shapes[i].rank(); ++axis) symbols.push_back(fmt::format("{}.{}", i, axis));
    inputs.push_back(recorder.input(DType::f64, row.shapes[i], symbols));
  }
  Graph graph = [&] {
    const InterpreterScope scope(recorder);
    return recorder.finish(row.call(inputs));
  }();
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) met->insert(std::string(graph.node(id).op->name));
  std::mt19937 random(17);
  int runs = 0;
  std::vector<Dims> shapes = row.shapes;
  std::optional<Executable> before;  // for the sizes of the previous run
  for (int attempt = 0; attempt < 2000 && runs <= kOtherSizes; ++attempt) {
    if (attempt > 0) {
      std::optional<std::vector<Dims>> others = other_shapes(graph, row.shapes, &random);
      if (others) shapes = std::move(*others);
    }
    const TensorList values = values_of(row, shapes);
    symbolic::Values sizes(graph.arena());
    if (why_not(graph, values, &sizes).empty()) {
      const auto recorded = [&] {
        before = prepare(graph, &sizes, {.whole_graphs = false, .like = before ? &*before : nullptr});
        return run(*before, values);
      };
      TensorList expected;
      try {
        expected = row.call(values);
        for (const Tensor& tensor : expected) tensor.wait();
      } catch (const Error&) {  // an index in the data is out of range at these sizes
        EXPECT_THROW((void)recorded(), Error);
        if (attempt == 0) throw;
        continue;
      }
      const TensorList results = recorded();
      EXPECT_EQ(results.size(), expected.size());
      for (size_t i = 0; i < results.size(); ++i) expect_bits(results[i], expected[i]);
      ++runs;
    } else {
      EXPECT_NE(attempt, 0) << "the recording does not serve the sizes it was made with";
    }
  }
  EXPECT_GT(runs, kOtherSizes) << "no other sizes fit the guards";
  std::string line;
  std::istringstream lines(guards(graph));
  for (std::string guard; std::getline(lines, guard);) {
    if (!guard.ends_with("(input)") || guard.find("==") != std::string::npos) line += fmt::format(" {};", guard);
  }
  return line;
}

TEST(OpenRows, RunAtOtherSizesWithTheBitsOfEager) {
  std::set<std::string> met;
  std::string text;
  const auto checked = [&](const Case& row) {
    try {
      return check(row, &met);
    } catch (const Error& error) {
      ADD_FAILURE() << row.name << ": " << error.what();
      return std::string();
    }
  };
  for (const Case& row : other_cases()) {
    // With fixed sizes a product gives the squares, with open sizes the differences do; their rounding differs.
    if (row.name != "cdist, many rows") text += fmt::format("{}:{}\n", row.name, checked(row));
  }
  std::set<std::string> seen;
  for (const Case& row : elementwise_cases()) {
    const std::string guards = checked(row);
    std::string without_name = guards;
    const std::string name = fmt::format("({})", row.name);
    for (size_t at; (at = without_name.find(name)) != std::string::npos;) without_name.erase(at, name.size());
    if (seen.insert(without_name).second) text += fmt::format("{}:{}\n", row.name, guards);
  }
  text += "rows without a case:";
  for (const OpInfo& op : op_table()) {
    if (op.form != OpForm::composite && met.count(std::string(op.name)) == 0) text += fmt::format(" {}", op.name);
  }
  text += "\n";
  const char* how = std::getenv("SYMBOLIC_GOLDEN");
  if (how != nullptr && std::string_view(how) == "write") std::ofstream(TENON_OPEN_ROWS) << text;
  std::ifstream file(TENON_OPEN_ROWS);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

}  // namespace
}  // namespace tenon::graph
