// Functions that a recording cannot represent. Each is refused, or detected by the second call: a stale result would be
// silently wrong.
#include <chrono>
#include <cstring>
#include <map>

#include "core/ops/call.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

// The state of a function between its calls.
struct Memory {
  int calls = 0;
  bool flag = false;
  Tensor weight = random_tensor({3}, 40);
  Tensor other = random_tensor({3}, 41);
  Tensor kept;
  TensorList list;
  std::vector<float> data{1, 2, 3};
  std::vector<Tensor> parts{random_tensor({3}, 42), random_tensor({3}, 43)};
};

using Body = std::function<Tensor(Memory&, const Tensor&)>;

struct Case {
  const char* name;
  const char* op;  // the op that the error names
  const char* what;
  Body body;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class Stale : public ::testing::TestWithParam<Case> {};

// Calls three times: an error must occur before a call returns a result that differs from the eager run.
TEST_P(Stale, IsRefusedOrCaughtByTheSecondCall) {
  Memory memory;
  auto step = compile([&](const Tensor& x) { return GetParam().body(memory, x); }, {.name = "step"});
  const Tensor x = random_tensor({3}, 1);
  std::string text;
  for (int i = 0; i < 2 && text.empty(); ++i) text = error_of([&] { step(x); });
  ASSERT_FALSE(text.empty()) << "two calls went through";
  EXPECT_TRUE(contains(text, "step"));
  EXPECT_TRUE(contains(text, GetParam().op));
  EXPECT_TRUE(contains(text, GetParam().what));
  EXPECT_TRUE(contains(text, "\n")) << "it does not say what to do";
  EXPECT_FALSE(error_of([&] { step(x); }).empty()) << "the next call gives a result all the same";
}

double since_start() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const Case kCases[] = {
    {"ABoolThatFlips", "relu, then tanh", "the kind of op 1 differs",
     [](Memory& m, const Tensor& x) { return (m.flag = !m.flag) ? relu(x) : tanh(x); }},
    {"ACounterAsNumber", "mul", "a number of op 1 differs",
     [](Memory& m, const Tensor& x) { return x * static_cast<double>(++m.calls); }},
    {"TheTime", "add", "a number", [](Memory&, const Tensor& x) { return x + since_start(); }},
    {"ALoopThatGrows", "exp", "new",
     [](Memory& m, const Tensor& x) {
       Tensor y = x;
       for (int i = 0; i <= m.calls; ++i) y = exp(y);
       ++m.calls;
       return y;
     }},
    {"AnIndexThatMoves", "select", "an attribute",
     [](Memory& m, const Tensor& x) { return select(x, 0, m.calls++ % 3); }},
    {"AShapeThatGrows", "expand", "an attribute",
     [](Memory& m, const Tensor& x) {
       return sum(expand(unsqueeze(x, 0), {++m.calls, 3}));
     }},
    {"ADTypeThatChanges", "cast", "an attribute",
     [](Memory& m, const Tensor& x) { return cast(x, ++m.calls % 2 == 0 ? DType::f64 : DType::f16); }},
    {"ADeviceThatChanges", "full", "the device",
     [](Memory& m, const Tensor& x) {
       const Device device(++m.calls % 2 == 0 ? "cpu" : "null");
       return x + sum(to(zeros({4096}, DType::f32, device), x.device()));
     }},
    {"AHandleAssignedInside", "mul", "has finished",
     [](Memory& m, const Tensor& x) {
       m.weight = m.weight * x;
       return m.weight;
     }},
    {"AHandleAssignedOutside", "mul", "another one of shape [3]",
     [](Memory& m, const Tensor& x) {
       const Tensor result = x * m.weight;
       std::swap(m.weight, m.other);
       return result;
     }},
    {"AHandleChosenByPosition", "add", "another one of shape [3]",
     [](Memory& m, const Tensor& x) { return x + m.parts[static_cast<size_t>(m.calls++ % 2)]; }},
    {"AValueLeakedIntoAMember", "add", "has finished",
     [](Memory& m, const Tensor& x) {
       const Tensor result = m.kept.defined() ? x + m.kept : tanh(x);
       m.kept = result;
       return result;
     }},
    {"AListThatGrows", "concat", "has finished",
     [](Memory& m, const Tensor& x) {
       m.list.push_back(exp(x));
       return concat(m.list, 0);
     }},
    {"ATensorMadeOnceAndKept", "add", "which the function made first and found then",
     [](Memory& m, const Tensor& x) {
       if (!m.kept.defined()) m.kept = Tensor::from<float>(m.data, {3});
       return x + m.kept;
     }},
    {"DataOfTheHost", "add", "elements that came from the host",
     [](Memory& m, const Tensor& x) {
       m.data[1] += 1;
       return x + Tensor::from<float>(m.data, {3});
     }},
    {"DataCopiedIntoAValue", "to", "elements that came from the host",
     [](Memory& m, const Tensor& x) {
       Tensor y = x * 1.5;
       m.data[2] += 1;
       y.copy_from(m.data.data());
       return y + x;
     }},
    {"DataWrittenByAddress", "add", "elements that came from the host",
     [](Memory& m, const Tensor& x) {
       const Tensor table = Tensor::empty({3}, DType::f32);
       m.data[0] += 1;
       std::memcpy(table.data(), m.data.data(), 12);
       return x + table;
     }},
    {"AnElementThatDecides", "copy_to_host", "Decide by tenon::where",
     [](Memory&, const Tensor& x) { return sum(x).item().to_double() > 0 ? relu(x) : tanh(x); }},
    {"ElementsOfAValue", "copy_to_host", "is being recorded",
     [](Memory&, const Tensor& x) { return x * static_cast<double>(exp(x).to_host<float>()[0]); }},
    {"AnElementOfStateThatDecides", "copy_to_host", "from outside",
     [](Memory& m, const Tensor& x) { return m.weight.to_host<float>()[0] > 0 ? relu(x) : tanh(x); }},
    {"AnAddressOfState", "data", "from outside",
     [](Memory& m, const Tensor& x) { return x * static_cast<double>(*static_cast<const float*>(m.weight.data())); }},
    {"AHostFunctionOfAValue", "access", "is being recorded",
     [](Memory&, const Tensor& x) {
       const Tensor y = exp(x);
       y.access(Access::read_write, [](void* data) { static_cast<float*>(data)[0] = 7; });
       return y;
     }},
    {"OperandsThatChangePlaces", "sub", "argument 0",
     [](Memory& m, const Tensor& x) {
       const Tensor a = exp(x), b = tanh(x);
       return (m.flag = !m.flag) ? a - b : b - a;
     }},
    {"AnotherResult", "result 0", "another op",
     [](Memory& m, const Tensor& x) {
       const Tensor a = exp(x), b = tanh(x);
       add_(m.weight, a + b);
       return (m.flag = !m.flag) ? a : b;
     }},
    {"RandomNumbersOfAnotherKind", "philox_uniform", "philox_normal",
     [](Memory& m, const Tensor& x) {
       return x * ((m.flag = !m.flag) ? rand({3}, DType::f32, x.device()) : randn({3}, DType::f32, x.device()));
     }},
    {"ASeedThatMoves", "mul", "elements that came from the host",
     [](Memory& m, const Tensor& x) { return x * philox_uniform({3}, 1, m.calls++, DType::f32, x.device()); }},
};

INSTANTIATE_TEST_SUITE_P(All, Stale, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon
