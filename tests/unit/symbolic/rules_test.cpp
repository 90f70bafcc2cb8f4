// Every row of the op table: its rule on symbolic sizes against the same rule on numbers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/symbolic/values.h"
#include "core/tensor/factory.h"
#include "primitives/infer/view.h"
#include "primitives/text/format.h"
#include "rule_cases.h"

namespace tenon::symbolic {
namespace {

constexpr int64_t kHints[] = {6, 16, 6, 10};  // sizes of S0 to S3
constexpr size_t kSymbols = std::size(kHints);

SymDims parsed(Arena& arena, const std::string& text) {
  SymDims dims;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    dims.push_back(arena.parse(text.substr(at, end - at)).value());
    at = end + 1;
  }
  return dims;
}

DType dtype_of_input(const OpInfo& op, const RuleCase& example, size_t index) {
  if (index < example.dtypes.size()) return example.dtypes[index];
  return op.cond_first && index == 0 ? DType::boolean : DType::f32;
}

// A case, inferred on symbols.
struct Inferred {
  Inferred(const OpInfo& op, const RuleCase& example, bool hinted) : outputs(example.outputs) {
    const ArenaScope scope(arena);
    for (size_t i = 0; i < kSymbols; ++i) {
      const std::string source = fmt::format("S{}", i);
      if (hinted) {
        (void)arena.input_size(source, kHints[i]);
      } else {
        (void)arena.symbol({.source = source});
      }
    }
    own = arena.constraints().size();
    for (size_t i = 0; i < example.inputs.size(); ++i) {
      shapes.push_back(example.inputs[i] == "-" ? SymDims() : parsed(arena, example.inputs[i]));
      values.emplace_back(dtype_of_input(op, example, i), shapes.back());
    }
    for (const auto& [word, text] : example.patches) patches.push_back({word, arena.parse(text).value()});
    std::vector<const SymValue*> pointers;
    for (size_t i = 0; i < values.size(); ++i) pointers.push_back(example.inputs[i] == "-" ? nullptr : &values[i]);
    arena.context(op.name);
    try {
      status = op.infer_sizes({&op, pointers, example.attributes.data(), patches, outputs.size()}, outputs.data());
      for (SymMeta& meta : outputs) {
        for (SymDim& dim : meta.dims) dim = arena.resolve(dim);
      }
    } catch (const Undecided& undecided) {
      status = Status(Code::unsupported, undecided.what());
    }
  }

  std::string text() const {
    if (!status.ok()) return status.message();
    std::string text;
    const ArenaScope scope(const_cast<Arena&>(arena));
    for (const SymMeta& meta : outputs) text += fmt::format("{}{}", text.empty() ? "" : " and ", meta.dims);
    for (size_t i = own; i < arena.constraints().size(); ++i) {
      text += fmt::format("{}{}", i == own ? " if " : ", ", arena.text(arena.constraints()[i].condition));
    }
    return text;
  }

  Arena arena{"rules"};
  size_t own = 0;  // constraints of the symbols themselves
  std::vector<SymDims> shapes;
  std::vector<SymValue> values;
  std::vector<Patch> patches;
  std::vector<SymMeta> outputs;
  Status status;
};

// The case, inferred on numbers instead of symbols.
Result<std::vector<TensorMeta>> by_numbers(const OpInfo& op, const RuleCase& example, const Inferred& inferred,
                                           Values& values) {
  std::vector<Tensor> inputs;
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const Dims dims, values.of("input", inferred.shapes[i]));
    inputs.push_back(make_meta(nullptr, {dtype_of_input(op, example, i), dims, contiguous_strides(dims)}));
  }
  for (size_t i = 0; i < inputs.size(); ++i) pointers.push_back(example.inputs[i] == "-" ? nullptr : &inputs[i]);
  std::vector<uint64_t> attributes = example.attributes;
  for (const Patch& patch : inferred.patches) {
    TENON_ASSIGN_OR_RETURN(const int64_t size, values.of(patch.size));
    attributes[patch.word] = static_cast<uint64_t>(size);
  }
  OpCall call;
  call.op = &op;
  call.inputs = pointers;
  call.attributes = attributes.data();
  std::vector<TensorMeta> outputs(example.outputs);
  if (op.form != OpForm::view) {
    TENON_RETURN_IF_ERROR(op.infer(call, outputs.data()));
    return outputs;
  }
  if (op.infer_sizes == ops::dims_reshape) {  // the functor checks the target of a reshape
    const auto& target = call.attributes_as<ShapeAttributes>().dims;
    TENON_RETURN_IF_ERROR(infer::reshape(op.name, inputs[0].dims(), target.span()).status());
  }
  TensorImpl view;
  TENON_RETURN_IF_ERROR(op.view(call, &view));
  outputs[0] = {view.dtype, view.dims, view.strides};
  return outputs;
}

Values random_values(const Arena& arena, std::mt19937_64& random) {
  Values values(arena);
  const int64_t base = static_cast<int64_t>(random() % 12);
  for (uint32_t i = 0; i < kSymbols; ++i) {
    const int64_t any = static_cast<int64_t>(random() % 12);
    const int64_t choices[] = {base, any, any * 2, kHints[i], base * any};
    EXPECT_TRUE(values.bind(i, choices[random() % std::size(choices)]).ok());
  }
  return values;
}

std::string sizes_text(const Arena& arena, Values& values) {
  std::string text = " at";
  for (uint32_t i = 0; i < kSymbols; ++i) text += fmt::format(" {}", values.of(arena.symbol_at(i)).value());
  return text;
}

// Compares at random sizes. Returns the number of sizes at which both have a result.
int compare(const OpInfo& op, const RuleCase& example, bool hinted) {
  const Inferred inferred(op, example, hinted);
  if (!inferred.status.ok()) return 0;
  std::mt19937_64 random(example.name.size() + op.id);
  int compared = 0;
  for (int sample = 0; sample < 400 && compared < 40; ++sample) {
    Values values = random_values(inferred.arena, random);
    const std::string where =
        fmt::format("{} {}: {}{}", op.name, example.name, inferred.text(), sizes_text(inferred.arena, values));
    if (values.broken_guard() != nullptr) continue;
    const auto expected = by_numbers(op, example, inferred, values);
    Status got = values.check();
    std::vector<Dims> dims;
    for (const SymMeta& meta : inferred.outputs) {
      const auto numbers = values.of(op.name, meta.dims);
      if (!numbers.ok()) got = numbers.status();
      dims.push_back(numbers.ok() ? numbers.value() : Dims());
    }
    EXPECT_EQ(got.ok(), expected.ok()) << where << "\n" << got.message() << "\n" << expected.status().message();
    if (!got.ok() || !expected.ok()) continue;
    for (size_t i = 0; i < dims.size(); ++i) {
      EXPECT_EQ(dims[i], expected.value()[i].dims) << where;
      EXPECT_EQ(inferred.outputs[i].dtype, expected.value()[i].dtype) << where;
    }
    ++compared;
  }
  return compared;
}

TEST(RulesOverSymbols, ServeEveryRowButComposites) {
  for (const OpInfo& op : op_table()) {
    EXPECT_EQ(op.infer_sizes == nullptr, op.form == OpForm::composite) << op.name;
    EXPECT_EQ(rule_cases(op).empty(), op.form == OpForm::composite) << op.name;
  }
}

TEST(RulesOverSymbols, GiveTheNumbersOfTheNumericRuleWhereTheirGuardsHold) {
  int cases = 0, compared = 0;
  for (const OpInfo& op : op_table()) {
    for (const RuleCase& example : rule_cases(op)) {
      const Inferred inferred(op, example, true);
      Values hints(inferred.arena);
      for (uint32_t i = 0; i < kSymbols; ++i) ASSERT_TRUE(hints.bind(i, kHints[i]).ok());
      ASSERT_EQ(by_numbers(op, example, inferred, hints).ok(), inferred.status.ok())
          << op.name << " " << example.name << ": " << inferred.status.message();
      if (inferred.status.ok()) {
        ASSERT_EQ(hints.broken_guard(), nullptr) << op.name << " " << example.name;
      }
      const int here = compare(op, example, true);
      EXPECT_EQ(here >= 5, inferred.status.ok()) << op.name << " " << example.name << ": " << inferred.text();
      compared += here;
      ++cases;
      if (testing::Test::HasFailure()) return;
    }
  }
  std::printf("%d cases, %d sizes compared\n", cases, compared);
}

TEST(RulesOverSymbols, WithoutHintsCheckExactlyWhatTheNumericRuleRequires) {
  int cases = 0, decided = 0, compared = 0;
  for (const OpInfo& op : op_table()) {
    for (const RuleCase& example : rule_cases(op)) {
      ++cases;
      decided += Inferred(op, example, false).status.ok();
      compared += compare(op, example, false);
      if (testing::Test::HasFailure()) return;
    }
  }
  std::printf("%d cases, %d without a choice, %d sizes compared\n", cases, decided, compared);
  EXPECT_GT(decided, cases / 2);
}

// Rows with the same rule and form share a line, which names only the first if they are elementwise.
// SYMBOLIC_GOLDEN=write rewrites the file.
TEST(RulesOverSymbols, GiveTheSizesAndGuardsOfTheGoldenText) {
  std::vector<std::string> order;
  std::map<std::string, std::string> rows;
  for (const OpInfo& op : op_table()) {
    for (const RuleCase& example : rule_cases(op)) {
      std::string inputs;
      for (const std::string& input : example.inputs) inputs += fmt::format(" [{}]", input);
      for (const auto& [word, text] : example.patches) inputs += fmt::format(" {}", text);
      const auto line = [&](const char* how, bool hinted) {
        std::string text = Inferred(op, example, hinted).text();
        for (const char* before : {"", "how "}) {  // so that rows with the same rule have one line
          const size_t at = text.find(fmt::format("{}{}{}", before, op.name, *before == 0 ? ": " : " continues"));
          if (at != std::string::npos) text.replace(at + std::strlen(before), op.name.size(), "<op>");
        }
        return fmt::format("  {}{}\n", how, text);
      };
      const std::string result =
          fmt::format("{}{}\n{}{}", example.name, inputs, line("", true), line("no hints: ", false));
      std::string& names = rows[result];
      if (names.empty()) order.push_back(result);
      if (!names.empty() && op.form == OpForm::elementwise) continue;
      names += fmt::format("{}{}", names.empty() ? "" : " ", op.name);
    }
  }
  std::string actual = "# Sizes and guards of every rule, at the hints 6, 16, 6 and 10. See rules_test.cpp.\n";
  for (const std::string& result : order) actual += fmt::format("{}\n{}", rows[result], result);
  const char* path = TENON_RULES_GOLDEN;
  if (const char* how = std::getenv("SYMBOLIC_GOLDEN"); how != nullptr && std::string_view(how) == "write") {
    std::ofstream(path) << actual;
  }
  std::ifstream file(path);
  EXPECT_EQ(actual, std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace
}  // namespace tenon::symbolic
