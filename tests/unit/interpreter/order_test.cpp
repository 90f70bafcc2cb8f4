// The order of the elements of results: PyTorch's. The expected strides are those of PyTorch 1.13 for the same calls.
#include "core/interpreter/order.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

Tensor filled(const Dims& dims, uint32_t seed) { return positive_floats(dims, seed, Device("cpu")); }

struct Case {
  std::string name;
  std::function<Tensor()> run;
  Dims strides;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {"one transposed",
       [] {
         return relu(transpose(filled({3, 4}, 1), 0, 1));
       },
       {1, 4}},
      {"two transposed",
       [] {
         return mul(transpose(filled({3, 4}, 1), 0, 1), transpose(filled({3, 4}, 2), 0, 1));
       },
       {1, 4}},
      {"the first one decides",
       [] {
         return add(transpose(filled({3, 4}, 1), 0, 1), filled({4, 3}, 2));
       },
       {1, 4}},
      {"row-major first",
       [] {
         return add(filled({4, 3}, 2), transpose(filled({3, 4}, 1), 0, 1));
       },
       {3, 1}},
      {"channels last",
       [] {
         return exp(permute(filled({2, 5, 6, 3}, 1), {0, 3, 1, 2}));
       },
       {90, 1, 18, 3}},
      {"channels last and a bias",
       [] {
         return add(permute(filled({2, 5, 6, 3}, 1), {0, 3, 1, 2}), filled({3, 1, 1}, 2));
       },
       {90, 1, 18, 3}},
      {"a bias first",
       [] {
         return add(filled({3, 1, 1}, 2), permute(filled({2, 5, 6, 3}, 1), {0, 3, 1, 2}));
       },
       {90, 1, 18, 3}},
      {"every second column",
       [] {
         return neg(slice(filled({4, 6}, 1), 1, 0, 6, 2));
       },
       {3, 1}},
      {"a part of a transposed one",
       [] {
         return neg(slice(transpose(filled({6, 4}, 1), 0, 1), 0, 1, 3));
       },
       {1, 2}},
      {"a column and a row",
       [] {
         return add(filled({4, 1}, 1), filled({1, 5}, 2));
       },
       {5, 1}},
      {"an expanded one",
       [] {
         return neg(expand(filled({4, 1}, 1), {4, 5}));
       },
       {5, 1}},
      {"a number",
       [] {
         return add(transpose(filled({3, 4}, 1), 0, 1), Scalar(2));
       },
       {1, 4}},
      {"a comparison",
       [] {
         return lt(transpose(filled({3, 4}, 1), 0, 1), Scalar(1));
       },
       {1, 4}},
      {"three arguments",
       [] {
         return clamp(transpose(filled({3, 4}, 1), 0, 1), Scalar(0.5), Scalar(1));
       },
       {1, 4}},
      {"a cast",
       [] {
         return cast(transpose(filled({3, 4}, 1), 0, 1), DType::f64);
       },
       {1, 4}},
      {"contiguous",
       [] {
         return contiguous(transpose(filled({3, 4}, 1), 0, 1));
       },
       {3, 1}},
  };
  return list;
}

TEST(Order, IsThatOfPyTorch) {
  for (const Case& one : cases()) {
    for (int repeat = 0; repeat < 3; ++repeat)
      EXPECT_EQ(one.run().strides(), one.strides) << one.name << ", " << repeat;
  }
}

// The values do not depend on the layout of the arguments, from the first call on.
TEST(Order, ChangesNoValue) {
  const Tensor a = filled({2, 3, 4}, 1), b = filled({2, 3, 4}, 2), row = filled({4}, 3), column = filled({3, 1}, 4);
  const auto turned = [](const Tensor& x) { return permute(contiguous(permute(x, {2, 0, 1})), {1, 2, 0}); };
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const Tensor& other : {b, row, column, slice(concat({b, b}, 2), 2, 1, 5)}) {
      const std::vector<float> want = add(a, contiguous(expand(other, {2, 3, 4}))).to_host<float>();
      const Tensor sums[] = {add(turned(a), other), add(a, other), add(other, turned(a))};
      for (const Tensor& sum : sums) EXPECT_EQ(sum.to_host<float>(), want);
      Tensor out = Tensor::empty({4, 3, 2}, DType::f32, Device("cpu"));
      fill_(out, -1);
      Tensor turned_out = permute(out, {2, 1, 0});
      add_out(turned_out, turned(a), other);
      EXPECT_EQ(turned_out.to_host<float>(), want);
    }
  }
}

TEST(Order, DenseInputsFollowTheResult) {
  const TensorMeta channels_last{DType::f32, {2, 3, 5, 6}, {90, 1, 18, 3}};
  EXPECT_EQ(strides_like(channels_last, {2, 3, 5, 6}), (Dims{90, 1, 18, 3}));
  EXPECT_EQ(strides_like(channels_last, {3, 1, 1}), (Dims{1, 1, 1}));
  EXPECT_EQ(strides_like(channels_last, {5, 6}), (Dims{6, 1}));
  EXPECT_EQ(strides_like(channels_last, {3, 5, 6}), (Dims{1, 18, 3}));
}

}  // namespace
}  // namespace tenon
