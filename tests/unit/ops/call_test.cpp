// The dynamic call over invented ops, whose result has the shape [overload, arguments...], and over real ops.
#include "core/ops/call.h"

#include <gtest/gtest.h>

#include "core/tensor/factory.h"
#include "tests/unit/ops/functors.h"
#include "tests/unit/ops/op_rows.h"

namespace tenon::invented::functors {
namespace {

Tensor answer(std::initializer_list<int64_t> numbers) {
  return make_meta(nullptr, {DType::f32, Dims(numbers), contiguous_strides(Dims(numbers))});
}

int64_t sum_of(IntList list) {
  int64_t sum = 0;
  for (const int64_t number : list) sum += number;
  return sum;
}

}  // namespace

Tensor paint(const Tensor&, const Tensor&) { return answer({0}); }
Tensor paint(const Tensor&, Scalar colour) { return answer({1, colour.to_int()}); }
Tensor paint(Scalar wall, const Tensor&) { return answer({2, wall.to_int()}); }
Tensor paint(const Tensor&, IntList stripes, bool wet, std::string_view brush) {
  return answer({3, static_cast<int64_t>(stripes.size()), wet, static_cast<int64_t>(brush.size())});
}

Tensor sum_up(const Tensor&, DType dtype) { return answer({0, static_cast<int64_t>(dtype)}); }
Tensor sum_up(const Tensor&, IntList dims, bool keep, DType dtype) {
  return answer({1, static_cast<int64_t>(dims.size()), keep, static_cast<int64_t>(dtype)});
}

Tensor measure(const Tensor&, int64_t times, double scale, const Tensor& mask) {
  return answer({times, static_cast<int64_t>(scale * 100), mask.defined()});
}

Tensor blend(const Tensor&, const Tensor& y) { return answer({y.defined()}); }

TensorList gather_up(const TensorList& parts, IntList order, Device device) {
  return TensorList(parts.size(), answer({sum_of(order), device.state() != nullptr}));
}

size_t count_gather_up(const TensorList& parts, IntList, Device) { return parts.size(); }

std::tuple<Tensor, Tensor> twins(const Tensor& x) { return {x, answer({7})}; }
Tensor nothing() { return answer({4}); }

}  // namespace tenon::invented::functors

namespace tenon {
namespace {

using invented::functors::answer;
using Ints = Value::Ints;

Tensor tensor() { return make_meta(nullptr, {DType::f32, Dims{2}, Dims{1}}); }

TensorList invoke(std::string_view name, std::initializer_list<Value> args,
                  std::initializer_list<Keyword> kwargs = {}) {
  return call(find_op(invented::dynamic_ops(), name), args, kwargs);
}

// Keeps every op as a record, copies the record for later use, and makes the call of the copy.
class KeepingInterpreter final : public Interpreter {
 public:
  std::string name() const override { return "the keeping interpreter"; }
  bool keeps(const OpInfo&) const override { return true; }
  bool host_value_known(const Tensor&) override { return true; }
  void apply(const OpCall& call) override {
    ++records;
    const auto* bytes = static_cast<const unsigned char*>(call.attributes);
    const std::vector<unsigned char> attributes(bytes, bytes + call.op->attribute_bytes);
    const std::vector<Scalar> scalars(call.scalars.begin(), call.scalars.end());
    OpCall later = call;
    later.attributes = attributes.data();
    later.scalars = scalars;
    compose(later, eager_interpreter());
  }

  int records = 0;
};

std::vector<Dims> dims_of(const TensorList& tensors) {
  std::vector<Dims> dims;
  for (const Tensor& tensor : tensors) dims.push_back(tensor.dims());
  return dims;
}

// The result, which must be the same if the call is made as one record.
Dims reached(std::string_view name, std::initializer_list<Value> args, std::initializer_list<Keyword> kwargs = {}) {
  const TensorList results = invoke(name, args, kwargs);
  KeepingInterpreter keeping;
  {
    const InterpreterScope scope(keeping);
    EXPECT_EQ(dims_of(invoke(name, args, kwargs)), dims_of(results));
  }
  EXPECT_EQ(keeping.records, 1);
  EXPECT_FALSE(results.empty());
  return results[0].dims();
}

std::string refusal(std::string_view name, std::initializer_list<Value> args,
                    std::initializer_list<Keyword> kwargs = {}) {
  try {
    invoke(name, args, kwargs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "not refused";
}

TEST(Call, ChoosesByTypesOfPositionalArguments) {
  EXPECT_EQ(reached("paint", {tensor(), tensor()}), (Dims{0}));
  EXPECT_EQ(reached("paint", {tensor(), 5}), (Dims{1, 5}));
  EXPECT_EQ(reached("paint", {tensor(), 5.5}), (Dims{1, 5}));
  EXPECT_EQ(reached("paint", {tensor(), true}), (Dims{1, 1}));
  EXPECT_EQ(reached("paint", {6, tensor()}), (Dims{2, 6}));
  EXPECT_EQ(reached("paint", {tensor(), Ints{1, 2}}), (Dims{3, 2, 0, 4}));
}

TEST(Call, FirstMatchInTableOrderWins) {
  EXPECT_EQ(reached("paint", {tensor(), 5}), (Dims{1, 5})) << "stripes would take an int too, but stands later";
  EXPECT_EQ(reached("paint", {tensor()}, {{"stripes", 5}}), (Dims{3, 1, 0, 4}));
}

TEST(Call, ChoosesByKeywords) {
  EXPECT_EQ(reached("paint", {tensor()}, {{"colour", 5}}), (Dims{1, 5}));
  EXPECT_EQ(reached("paint", {}, {{"colour", tensor()}, {"wall", 9}}), (Dims{2, 9}));
  EXPECT_EQ(reached("paint", {tensor(), 5}, {{"brush", "round"}}), (Dims{3, 1, 0, 5}));
  EXPECT_EQ(reached("paint", {tensor(), Ints{}, true}), (Dims{3, 0, 1, 4}));
}

TEST(Call, FillsDefaults) {
  EXPECT_EQ(reached("measure", {tensor()}), (Dims{3, 50, 0}));
  EXPECT_EQ(reached("measure", {tensor(), 4}), (Dims{4, 50, 0}));
  EXPECT_EQ(reached("measure", {tensor()}, {{"scale", 2}, {"mask", tensor()}}), (Dims{3, 200, 1}));
  EXPECT_EQ(reached("sum_up", {tensor()}), (Dims{0, 0}));
  EXPECT_EQ(reached("sum_up", {tensor()}, {{"dtype", DType::i64}}), (Dims{0, static_cast<int64_t>(DType::i64)}));
  EXPECT_EQ(reached("sum_up", {tensor(), Ints{1}}), (Dims{1, 1, 1, 0}));
  EXPECT_EQ(reached("nothing", {}), (Dims{4}));
}

TEST(Call, NoneStandsForAbsentWhereItMay) {
  EXPECT_EQ(reached("measure", {tensor()}, {{"mask", Value()}}), (Dims{3, 50, 0}));
  EXPECT_EQ(reached("sum_up", {tensor()}, {{"dtype", Value()}}), (Dims{0, 0}));
  EXPECT_EQ(refusal("measure", {tensor(), Value()}), "measure(): argument 'times' must be int, not None");
}

TEST(Call, ListsGoInAndOut) {
  const TensorList results = invoke("gather_up", {TensorList{tensor(), tensor()}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].dims(), (Dims{3, 0}));
  EXPECT_EQ(reached("gather_up", {TensorList{tensor()}, 9}), (Dims{9, 0}));
  EXPECT_TRUE(invoke("gather_up", {Ints{}}).empty()) << "an empty list is one of tensors too";
  EXPECT_EQ(invoke("twins", {tensor()})[1].dims(), (Dims{7}));
  EXPECT_EQ(reached("twins", {tensor()}), (Dims{2}));
}

TEST(Call, OneSignatureSaysWhatFailed) {
  EXPECT_EQ(refusal("measure", {3}), "measure(): argument 'x' must be Tensor, not int");
  EXPECT_EQ(refusal("measure", {tensor(), 1, 2}), "measure(): takes 2 positional arguments but 3 were given");
  EXPECT_EQ(refusal("twins", {tensor(), 1}), "twins(): takes 1 positional argument but 2 were given");
  EXPECT_EQ(refusal("nothing", {1}), "nothing(): takes 0 positional arguments but 1 was given");
  EXPECT_EQ(refusal("measure", {tensor()}, {{"size", 1}}), "measure(): got an unexpected keyword argument 'size'");
  EXPECT_EQ(refusal("measure", {}), "measure(): missing required argument x");
  EXPECT_EQ(refusal("measure", {tensor()}, {{"x", tensor()}}), "measure(): got multiple values for argument 'x'");
  EXPECT_EQ(refusal("measure", {tensor(), 1}, {{"scale", 1}, {"scale", 2}}),
            "measure(): got multiple values for argument 'scale'");
  EXPECT_EQ(refusal("measure", {tensor()}, {{"scale", "big"}}), "measure(): argument 'scale' must be float, not str");
  EXPECT_EQ(refusal("blend", {tensor(), "red"}), "blend(): argument 'y' must be Tensor or a number, not str");
  EXPECT_EQ(refusal("gather_up", {tensor()}), "gather_up(): argument 'parts' must be list of Tensors, not Tensor");
}

TEST(Call, SeveralSignaturesEachSayWhatFailed) {
  EXPECT_EQ(refusal("paint", {"wall", 1}),
            "paint(): received an invalid combination of arguments. The valid signatures are:\n"
            "  0: paint(Tensor wall, Tensor colour)\n"
            "     argument 'wall' must be Tensor, not str\n"
            "  1: paint(Tensor wall, Scalar colour)\n"
            "     argument 'wall' must be Tensor, not str\n"
            "  2: paint(Scalar wall, Tensor colour)\n"
            "     argument 'wall' must be Scalar, not str\n"
            "  3: paint(Tensor wall, int[1] stripes, bool wet = false, *, string brush = 'flat')\n"
            "     argument 'wall' must be Tensor, not str");
  const std::string text = refusal("sum_up", {tensor(), 1, true, DType::f32});
  EXPECT_NE(text.find("takes 1 positional argument but 4 were given"), std::string::npos) << text;
  EXPECT_NE(text.find("takes 3 positional arguments but 4 were given"), std::string::npos) << text;
}

TEST(Call, AnUnknownNameNamesTheNearest) {
  try {
    find_op("rleu");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_STREQ(error.what(), "There is no op called 'rleu'; the nearest is 'relu'.");
  }
}

TEST(Call, RealOpsUseTheKnownTexts) {
  const auto text = [](std::string_view name, std::initializer_list<Value> args) -> std::string {
    try {
      call(name, args);
    } catch (const Error& error) {
      return error.what();
    }
    return "not refused";
  };
  EXPECT_EQ(text("relu", {1}), "relu(): argument 'input' must be Tensor, not int");
  EXPECT_EQ(text("pow", {1, 2}),
            "pow(): received an invalid combination of arguments. The valid signatures are:\n"
            "  0: pow(Tensor input, Tensor exponent, *, Tensor? out = None)\n"
            "     argument 'input' must be Tensor, not int\n"
            "  1: pow(Tensor input, Scalar exponent, *, Tensor? out = None)\n"
            "     argument 'input' must be Tensor, not int\n"
            "  2: pow(Scalar input, Tensor exponent, *, Tensor? out = None)\n"
            "     argument 'exponent' must be Tensor, not int");
}

TEST(Call, ResultsAreOneTensorOrAList) {
  const Value args[] = {tensor()};
  const Results one = call_for_results(find_op(invented::dynamic_ops(), "sum_up"), args);
  ASSERT_TRUE(one.one.has_value());
  EXPECT_EQ(one.one->dims(), invoke("sum_up", {tensor()})[0].dims());
  EXPECT_TRUE(one.several.empty());
  const Results two = call_for_results(find_op(invented::dynamic_ops(), "twins"), args);
  EXPECT_FALSE(two.one.has_value());
  ASSERT_EQ(two.several.size(), 2u);
  EXPECT_EQ(two.several[1].dims(), (Dims{7}));
}

TEST(Call, ABorrowedTensorIsThatOfTheCaller) {
  Tensor x = tensor();
  const Value args[] = {Value::Borrowed{&x}};
  EXPECT_EQ(args[0].kind(), kAcceptsTensor);
  EXPECT_EQ(args[0].type_name(), "Tensor");
  EXPECT_EQ(args[0].tensor(), &x);
  EXPECT_EQ(x.impl()->count.load(), 1);
  const TensorList twins = call(find_op(invented::dynamic_ops(), "twins"), args);
  EXPECT_EQ(twins[0].impl(), x.impl());
  EXPECT_EQ(x.impl()->count.load(), 2);
}

TEST(Call, EveryOpIsFoundByItsName) {
  const std::span<const DynamicOp> ops = list_ops();
  EXPECT_GT(ops.size(), 100u);
  for (const DynamicOp& op : ops) {
    EXPECT_EQ(&find_op(op.name), &op);
    EXPECT_FALSE(op.signatures.empty()) << op.name;
  }
}

}  // namespace
}  // namespace tenon
