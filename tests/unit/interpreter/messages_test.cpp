// Errors of ops for bad input: each message begins with the op as the caller wrote it, and is invalid_argument.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

struct BadCall {
  const char* op;
  std::function<Tensor()> run;
  const char* sentence = "";  // the text after the op, if it is known exactly
};

Tensor integers(const std::vector<int64_t>& values, const Dims& dims) {
  return Tensor::from<int64_t>(values, dims, Device("cpu"));
}

// Values that only the kernel can check. The sentence names the argument as in the op's signature.
std::vector<BadCall> bad_values() {
  const Tensor x = positive_floats({2, 3}, 1, Device("cpu"));
  const Tensor nine = integers({9}, {1});
  const Tensor pair = integers({7, 8}, {2});
  const Tensor zeros = integers({1, 0}, {2});
  const char* by_zero = "integer division by zero (argument 'other').";
  return {
      {"index_select", [=] { return index_select(x, 0, nine); },
       "index 9 is out of range for an axis of length 2 (argument 'index')."},
      {"gather_slices", [=] { return gather_slices(x, 1, nine); },
       "index 9 is out of range for an axis of length 3 (argument 'index')."},
      {"gather",
       [=] {
         return gather(x, 0, reshape(nine, {1, 1}));
       },
       "index 9 is out of range for an axis of length 2 (argument 'index')."},
      {"take", [=] { return take(x, nine); }, "index 9 is out of range for an axis of length 6 (argument 'index')."},
      {"take_along_dim",
       [=] {
         return take_along_dim(x, reshape(nine, {1, 1}), 1);
       },
       "index 9 is out of range for an axis of length 3 (argument 'indices')."},
      {"embedding", [=] { return embedding(x, nine); },
       "index 9 is out of range for an axis of length 2 (argument 'indices')."},
      {"floor_divide", [=] { return floor_divide(pair, zeros); }, by_zero},
      {"remainder", [=] { return remainder(pair, zeros); }, by_zero},
      {"fmod", [=] { return fmod(pair, zeros); }, by_zero},
      {"div", [=] { return div(pair, zeros, "floor"); }, by_zero},
      {"div", [=] { return div(pair, zeros, "trunc"); }, by_zero},
      {"floor_divide_",
       [=] {
         return floor_divide_(integers({7, 8}, {2}), zeros);
       },
       by_zero},
      {"div_",
       [=] {
         return div_(integers({7, 8}, {2}), zeros, "floor");
       },
       by_zero},
  };
}

std::vector<BadCall> bad_shapes() {
  const Tensor x = positive_floats({2, 3}, 1, Device("cpu"));
  const Tensor y = positive_floats({4, 5}, 2, Device("cpu"));
  const Tensor none;
  return {
      {"add", [=] { return add(x, y); }},
      {"mul", [=] { return mul(x, none); }},
      {"add", [=] { return add(x, none, 2); }},
      {"add", [=] { return add(none, x, 2); }},
      {"add", [=] { return add(none, 3, 2); }},
      {"add", [=] { return add(3, none, 2); }},
      {"sub", [=] { return sub(x, none, 2); }},
      {"matmul", [=] { return matmul(x, y); }},
      {"linear", [=] { return linear(x, y); }},
      {"index_select", [=] { return index_select(x, 0, x); }},
      {"index_select", [=] { return index_select(x, 5, integers({0}, {1})); }},
      {"embedding", [=] { return embedding(none, integers({0}, {1})); }},
      {"zeros",
       [] {
         return zeros({-1, 2});
       }},
      {"ones",
       [] {
         return ones({-1, 2});
       }},
      {"full", [] { return full({-1}, 1.0); }},
      {"softmax", [=] { return softmax(x, 4); }},
      {"sum", [=] { return sum(x, {7}); }},
      {"reshape", [=] { return reshape(x, {7}); }},
      {"transpose", [=] { return transpose(x, 0, 9); }},
      {"concat",
       [=] {
         return concat({x, y}, 0);
       }},
      {"stack",
       [=] {
         return stack({x, y}, 0);
       }},
      {"layer_norm", [=] { return layer_norm(x, {5}); }},
      {"rms_norm", [=] { return rms_norm(x, {5}); }},
      {"expand",
       [=] {
         return expand(x, {5, 5});
       }},
      {"select", [=] { return select(x, 0, 9); }},
      {"clamp", [=] { return clamp(x, y, y); }},
      {"argmax", [=] { return argmax(x, 5); }},
      {"var", [=] { return var(x, {9}); }},
      {"gelu", [=] { return gelu(x, "x"); }},
      {"div", [=] { return div(x, y, "floor"); }},
      {"add_",
       [=] {
         Tensor given = x;
         return add_(given, y);
       }},
      {"add_", [=] { return add_(Tensor(), x); }},
      {"mul_", [=] { return mul_(zeros({3}), x); }},
      {"pow_", [=] { return pow_(integers({0}, {1}), x); }},
      {"relu_", [=] { return relu_(Tensor()); }},
  };
}

Status error_of(const BadCall& call) {
  try {
    call.run().wait();
  } catch (const Error& error) {
    return error.status();
  }
  return Status();
}

TEST(Messages, BeginWithTheOpThatWasCalled) {
  for (const BadCall& call : bad_shapes()) {
    const Status status = error_of(call);
    EXPECT_EQ(status.code(), Code::invalid_argument) << call.op;
    EXPECT_TRUE(status.message().starts_with(std::string(call.op).append(": "))) << call.op << "; " << status.message();
  }
}

TEST(Messages, OfBadValuesNameTheArgumentOfTheOpThatWasCalled) {
  for (const BadCall& call : bad_values()) {
    const Status status = error_of(call);
    EXPECT_EQ(status.code(), Code::invalid_argument) << call.op;
    const std::string first = status.message().substr(0, status.message().find('\n'));
    EXPECT_EQ(first, std::string(call.op).append(": ").append(call.sentence));
  }
}

}  // namespace
}  // namespace tenon
