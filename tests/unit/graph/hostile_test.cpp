// Records that no functor would make: every op with random attributes and inputs. A graph of one such record is refused
// with an error, or it prepares and runs; nothing crashes.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "core/graph/execute/executable.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "core/ops/dims_attribute.h"
#include "core/ops/op_rows.h"
#include "core/ops/record_shape.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

constexpr int kRounds = 400;                // per op
constexpr int64_t kMostElements = 1 << 16;  // most elements of a record that is run

class Hostile {
 public:
  explicit Hostile(uint32_t seed) : random_(seed) {}

  // A graph of one record of `op`, as text.
  std::string text(const OpInfo& op) {
    const RecordShape shape = record_shape(op);
    text_.clear();
    base_ = dims();
    const uint32_t inputs = shape.required + below(static_cast<uint32_t>(std::min(shape.most - shape.required, 3)) + 1);
    std::string list;
    for (uint32_t i = 0; i < inputs; ++i) list += (i == 0 ? "" : ", ") + input(i + 1);
    const uint32_t results = op.output_count != 0 ? op.output_count : 1 + below(3);
    std::string names;
    for (uint32_t i = 0; i < results; ++i) names += fmt::format("{}%{}", i == 0 ? "" : ", ", 100 + i);
    const std::string device = inputs == 0 ? " on cpu:0" : "";
    return fmt::format("graph \"g\"\n{}{} = {}({}){}{}{}\nreturn {}\n", text_, names, op.name, list, scalars(),
                       attributes(op), device, names);
  }

 private:
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  std::vector<int64_t> dims() {
    std::vector<int64_t> result(below(6));
    for (int64_t& dim : result) dim = below(8) == 0 ? 0 : 1 + below(4);
    return result;
  }

  // Often dims of the first input, so that records pass the first checks.
  std::string input(uint32_t id) {
    constexpr std::string_view types[] = {"f32", "f32", "f32", "f32", "f64", "i64", "i32", "bool", "f16", "u8"};
    std::vector<int64_t> shape = base_;
    if (id != 1 && below(3) == 0) shape = dims();
    if (id != 1 && below(3) == 0 && !base_.empty()) shape = {base_[below(static_cast<uint32_t>(base_.size()))]};
    std::string list;
    for (int64_t dim : shape) list += (list.empty() ? "" : ", ") + fmt::format("{}", dim);
    text_ += fmt::format("%{} = input {}[{}] on cpu:0\n", id, types[below(std::size(types))], list);
    return below(12) == 0 ? "_" : fmt::format("%{}", id);
  }

  std::string scalars() {
    std::string list;
    for (uint32_t i = 0, count = below(5); i < count; ++i) {
      list += (i == 0 ? " scalars (" : ", ") + std::string(below(2) == 0 ? "1" : "0.5");
    }
    return list.empty() ? "" : list + ")";
  }

  int64_t number(AttributeType type) {
    using Limits = std::numeric_limits<int64_t>;
    constexpr int64_t large[] = {-9, 9, 31, 32, 33, INT32_MAX, INT32_MIN, Limits::max(), Limits::min()};
    if (below(10) == 0) {
      const int64_t value = large[below(std::size(large))];
      return type == AttributeType::i64 || type == AttributeType::dims ? value : static_cast<int32_t>(value);
    }
    return static_cast<int64_t>(below(7)) - (below(4) == 0 ? 4 : 0);
  }

  std::string value(const AttributeField& field) {
    if (field.type == AttributeType::text) return below(2) == 0 ? "\"\"" : "\"channels_last\"";
    if (field.type == AttributeType::dtype) return below(4) == 0 ? "i64" : "f32";
    const bool list = field.type == AttributeType::dims;
    if (!list && field.count == 1) return fmt::format("{}", number(field.type));
    std::string text;
    const uint32_t count = list ? below(7) : field.count;
    for (uint32_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + fmt::format("{}", number(field.type));
    return fmt::format("[{}]", text);
  }

  std::string attributes(const OpInfo& op) {
    std::string text;
    for (const AttributeField& field : attribute_fields(op)) {
      if (below(4) != 0) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", field.name, value(field));
    }
    return text.empty() ? "" : fmt::format(" {{{}}}", text);
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<int64_t> base_;
};

bool small(const Executable& program) {
  int64_t elements = 0;
  for (const Slot& slot : program.values) {
    int64_t count = 1;
    for (int64_t dim : slot.meta.dims) {
      if (__builtin_mul_overflow(count, dim, &count)) return false;
    }
    if (__builtin_add_overflow(elements, count, &elements)) return false;
  }
  return elements <= kMostElements;
}

TensorList ones(const Executable& program) {
  TensorList inputs;
  for (uint32_t id : program.inputs) {
    const TensorMeta& meta = program.values[id].meta;
    const std::string bytes(static_cast<size_t>(dtype_bytes(meta.dtype, element_count(meta.dims))), '\1');
    inputs.push_back(Tensor::copy_from_host(bytes.data(), meta.dims, meta.dtype, Device::current()));
  }
  return inputs;
}

// True if the graph ran.
bool try_run(const std::string& text) {
  try {
    Graph graph = parse(text);
    EXPECT_TRUE(verify(graph).ok()) << verify(graph).message() << "\n" << text;
    const Executable program = prepare(graph, {.whole_graphs = false});
    if (!small(program)) return false;
    for (const Tensor& result : run(program, ones(program))) {
      std::string bytes(static_cast<size_t>(result.bytes()), '\0');
      result.copy_to_host(bytes.data());
    }
    return true;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::internal) << error.what() << "\n" << text;
    return false;
  }
}

class EveryRow : public ::testing::TestWithParam<const OpInfo*> {};

TEST_P(EveryRow, RefusesWhatNoFunctorMakes) {
  Hostile hostile(GetParam()->id);
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = hostile.text(*GetParam());
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, text);
    try_run(text);
  }
}

std::vector<const OpInfo*> rows() {
  std::vector<const OpInfo*> all;
  for (const OpInfo& op : op_table()) {
    if (op.form != OpForm::composite) all.push_back(&op);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Hostile, EveryRow, ::testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace tenon::graph
