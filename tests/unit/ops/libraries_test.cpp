// The tables of libraries of ops, without a shared library: tests/e2e/package_test.py builds one.
#include "core/ops/libraries.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "core/autograd/gradient_row.h"
#include "core/autograd/rows.h"
#include "core/ops/library_call.h"

namespace tenon {
namespace {

constexpr autograd::GradientRow kGradients[] = {{.none = "of the first"}, {.none = "of the second"}};
constexpr std::span<const AttributeField> kFields[2] = {};
constexpr RecordShape kShapes[] = {{1, 1, false}, {2, 3, true}};
constexpr Parameter kParameters[] = {{"x", "Tensor", kAcceptsTensor, false, true}};

TensorList same(const ArgumentList&) { return {Tensor::from({1, 2})}; }

OpInfo row(std::string_view name) {
  OpInfo made{};
  made.name = name;
  return made;
}

// A library of two ops.
struct Invented {
  std::string_view library, first, second;
  OpInfo rows[2] = {row(first), row(second)};
  Signature signature = {"(Tensor x)", kParameters, false, &same};
  DynamicOp dynamic[2] = {{first, "d.", {&signature, 1}}, {second, "d.", {&signature, 1}}};
  OpLibrary tables = {library, rows, dynamic, kGradients, kFields, kShapes};
};

Invented& one() {
  static Invented made{"one", "one::a", "one::b"};
  return made;
}
Invented& two() {
  static Invented made{"two", "two::a", "two::b"};
  return made;
}
OpLibrary& tables_of_one() { return one().tables; }
OpLibrary& tables_of_two() { return two().tables; }
OpLibrary& other_of_one() {
  static Invented made{"one", "one::c", "one::d"};
  return made.tables;
}

OpLibraryCard card(OpLibrary& (*library)()) { return {TENON_VERSION, kOpTableLayout, library}; }

void expect_refused(const std::string& sentence, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "it should have been refused: " << sentence;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
  }
}

TEST(Libraries, HaveRowsBehindOurs) {
  add_ops(card(&tables_of_one));
  add_ops(card(&tables_of_two));
  EXPECT_EQ(&add_ops(card(&tables_of_one)), &one().tables) << "a second time does nothing";
  EXPECT_EQ(op_libraries().size(), 2u);
  const size_t ours = op_table().size();
  EXPECT_EQ(one().rows[0].id, ours);
  EXPECT_EQ(two().rows[1].id, ours + 3);
  EXPECT_EQ(find_library_row("two::b"), &two().rows[1]);
  EXPECT_EQ(find_library_row("two::c"), nullptr);
  EXPECT_EQ(find_library_row("relu"), nullptr);
  EXPECT_EQ(library_row(two().rows[0].id).library, &two().tables);
  EXPECT_EQ(library_row(two().rows[1].id).index, 1u);
  EXPECT_TRUE(is_of_library(one().rows[0]));
  EXPECT_FALSE(is_of_library(op_table().back()));
}

TEST(Libraries, AnswerForTheirRows) {
  add_ops(card(&tables_of_one));
  add_ops(card(&tables_of_two));
  EXPECT_EQ(autograd::gradient_row(two().rows[0].id).none, "of the first");
  EXPECT_EQ(autograd::gradient_row(one().rows[1].id).none, "of the second");
  EXPECT_EQ(record_shape(two().rows[1]).most, 3);
  EXPECT_TRUE(attribute_fields(one().rows[0]).empty());
  EXPECT_EQ(call("two::b", {Tensor::from({3})})[0].elements(), 2);
}

TEST(Libraries, AreRefusedWithASentence) {
  add_ops(card(&tables_of_one));
  expect_refused("was made for Tenon 9.8.7, and this is Tenon ", [] {
    add_ops({"9.8.7", kOpTableLayout, []() -> OpLibrary& { throw std::logic_error("its tables were read"); }});
  });
  expect_refused("its tables have another layout", [] {
    add_ops({TENON_VERSION, kOpTableLayout + 1, &tables_of_two});
  });
  expect_refused("holds the ops 'one', and another library of this name was loaded before",
                 [] { add_ops(card(&other_of_one)); });
  expect_refused("There is no op called 'one::aa'; the nearest is 'one::a'.", [] { (void)find_op("one::aa"); });
  expect_refused("no library of ops 'three' is loaded, but 'one'", [] { (void)find_op("three::a"); });
  expect_refused("/none/libtenon_ops_x.so", [] { (void)load_ops("/none/libtenon_ops_x.so"); });
}

TEST(Libraries, RulesAreSparedMissingAndWrongTensors) {
  OpInfo op = row("one::a");
  OpCall call;
  call.op = &op;
  const Tensor* inputs[] = {nullptr};
  call.inputs = inputs;
  EXPECT_EQ(library::check(call, 1, 0).message(), "one::a: argument 0 is an undefined tensor.");
  const Tensor x = Tensor::from({1, 2});
  inputs[0] = &x;
  EXPECT_TRUE(library::check(call, 1, 0).ok());
  EXPECT_EQ(library::check(call, 1, 1u << EP_DTYPE_f32 | 1u << EP_DTYPE_f64).message(),
            "one::a: argument 0 is i64; it may be f32, f64.");
  EXPECT_FALSE(library::check(call, 2, 0).ok());
}

}  // namespace
}  // namespace tenon
