// The order of elements in results equals PyTorch's. The expected strides are those of PyTorch 1.13 for the same calls.
#include "core/interpreter/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

// A tensor [n, c, d..] with channels innermost.
Tensor filled_last(Dims dims, uint32_t seed) {
  std::vector<int64_t> to{0}, from{0, dims.rank() - 1};
  for (int32_t axis = 2; axis < dims.rank(); ++axis) to.push_back(axis), from.push_back(axis - 1);
  to.push_back(1);
  return permute(contiguous(permute(filled(dims, seed), to)), from);
}

// `x` as integers, together with a scale.
Tensor whole(const Tensor& x) { return cast(mul(x, Scalar(9.0)), DType::i8); }
Tensor eighth(const Tensor& x) { return full({}, Scalar(0.125), DType::f32, x.device()); }

// Calls of every op that keeps the order of channels, on `x` of shape [2, 3, 6, 5].
struct ChannelCase {
  std::string op;
  std::function<Tensor(const Tensor& x)> run;
};

const std::vector<ChannelCase>& channel_cases() {
  static const std::vector<ChannelCase> list{
      {"conv",
       [](const Tensor& x) {
         return conv2d(x, filled({4, 3, 3, 2}, 2), filled({4}, 3), 2, 1);
       }},
      {"conv",
       [](const Tensor& x) {
         return conv2d(x, filled({3, 1, 3, 3}, 2), {}, 1, 1, 1, 3);
       }},
      {"conv",
       [](const Tensor& x) {
         return conv2d(x, filled({4, 3, 1, 1}, 2));
       }},
      {"conv_transpose",
       [](const Tensor& x) {
         return conv_transpose(x, filled({3, 4, 2, 2}, 2), {}, 2);
       }},
      {"max_pool", [](const Tensor& x) { return max_pool2d(x, 2, 1, 1); }},
      {"max_pool_with_indices",
       [](const Tensor& x) {
         return std::get<1>(max_pool_with_indices(x, {2, 2}));
       }},
      {"avg_pool", [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1); }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, filled({3}, 2), filled({3}, 3)); }},
      {"batch_norm_with_statistics", [](const Tensor& x) { return std::get<0>(batch_norm_with_statistics(x)); }},
      {"batch_norm_backward",
       [](const Tensor& x) {
         return std::get<0>(batch_norm_backward(x, square(x), {}, filled({3}, 2), filled({3}, 3)));
       }},
      {"concat",
       [](const Tensor& x) {
         return concat({x, x}, 1);
       }},
      {"concat",
       [](const Tensor& x) {
         return concat({x, x, x}, 3);
       }},
      {"pad",
       [](const Tensor& x) {
         return pad(x, {1, 2, 0, 1});
       }},
      {"pad",
       [](const Tensor& x) {
         return pad(x, {1, 1, 2, 2}, "reflect");
       }},
      {"lp_pool", [](const Tensor& x) { return lp_pool(x, 2, 2); }},
      {"resize", [](const Tensor& x) { return resize(x, 3, 9, 1.8); }},
      {"quantize_linear", [](const Tensor& x) { return quantize_linear(x, eighth(x)); }},
      {"dequantize_linear", [](const Tensor& x) { return dequantize_linear(whole(x), eighth(x)); }},
      {"quantized_conv",
       [](const Tensor& x) {
         return quantized_conv(whole(x), eighth(x), {}, whole(filled({4, 3, 3, 3}, 2)), eighth(x), {});
       }},
      {"quantized_add",
       [](const Tensor& x) {
         return quantized_add(whole(x), eighth(x), {}, whole(x), eighth(x), {}, eighth(x), {}, DType::i8);
       }},
      {"quantized_mul",
       [](const Tensor& x) {
         return quantized_mul(whole(x), eighth(x), {}, whole(x), eighth(x), {}, eighth(x), {}, DType::i8);
       }},
  };
  return list;
}

void expect_close(const Tensor& found, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(found.dims(), wanted.dims()) << what;
  const std::vector<double> a = cast(found, DType::f64).to_host<double>(),
                            b = cast(wanted, DType::f64).to_host<double>();
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 2e-6 * (1 + std::abs(b[i]))) << what << ", element " << i;
}

TEST(Order, EveryOpThatKeepsChannelsHasACase) {
  for (const OpInfo& op : op_table()) {
    const bool listed = std::any_of(channel_cases().begin(), channel_cases().end(),
                                    [&](const ChannelCase& one) { return one.op == op.name; });
    EXPECT_EQ(op.keeps_channels != KeepsChannels::no, listed) << op.name;
  }
}

// PyTorch's strides too.
TEST(Order, ChannelsLastStays) {
  const Tensor x = filled({2, 3, 6, 5}, 1), last = filled_last({2, 3, 6, 5}, 1);
  for (const ChannelCase& one : channel_cases()) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Tensor wanted = one.run(x), found = one.run(last);
      EXPECT_EQ(wanted.strides(), contiguous_strides(wanted.dims())) << one.op;
      EXPECT_EQ(found.strides(), channels_last_strides(found.dims())) << one.op;
      expect_close(found, wanted, one.op);
    }
  }
}

TEST(Order, ChannelsLastStaysOnOneAndThreeSpatialAxes) {
  const Tensor line = filled_last({2, 3, 7}, 1), volume = filled_last({2, 3, 4, 5, 6}, 1);
  EXPECT_EQ(conv1d(line, filled({4, 3, 3}, 2)).strides(), (Dims{20, 1, 4}));
  EXPECT_EQ(max_pool(volume, {2, 2, 2}).strides(), (Dims{36, 1, 18, 9, 3}));
  expect_close(conv3d(volume, filled({4, 3, 2, 2, 2}, 2)), conv3d(contiguous(volume), filled({4, 3, 2, 2, 2}, 2)),
               "conv3d");
}

// PyTorch reads the strides of axes of length 1 here, and so distinguishes two tensors with the same layout.
TEST(Order, WhatIsRowMajorTooTellsNothing) {
  const Tensor one = filled_last({2, 1, 6, 5}, 1), column = filled_last({2, 3, 1, 1}, 2);
  EXPECT_EQ(avg_pool2d(one, 2).strides(), (Dims{6, 6, 2, 1}));
  EXPECT_EQ(conv_transpose(column, filled({3, 4, 2, 2}, 3)).strides(), (Dims{16, 4, 2, 1}));
  const Tensor last = filled_last({2, 3, 6, 5}, 3), plain = filled({2, 3, 6, 5}, 3);
  EXPECT_EQ(concat({last, one}, 1).strides(), channels_last_strides({2, 4, 6, 5}));
  EXPECT_EQ(concat({one, last}, 1).strides(), channels_last_strides({2, 4, 6, 5}));
  EXPECT_EQ(concat({one, one}, 1).strides(), contiguous_strides({2, 2, 6, 5}));
  EXPECT_EQ(concat({last, plain}, 1).strides(), contiguous_strides({2, 6, 6, 5}));
  EXPECT_EQ(batch_norm(permute(plain, {0, 1, 3, 2}), filled({3}, 2), filled({3}, 3)).strides(),
            contiguous_strides({2, 3, 5, 6}));
}

TEST(Order, PartsOfChannelsLastTensorsAreSo) {
  const Tensor last = filled_last({2, 6, 6, 5}, 1);
  for (const Tensor& part : {slice(last, 1, 2, 5), slice(last, 2, 1, 4)}) {
    const Tensor w = filled({4, part.dims()[1], 3, 3}, 2), found = conv2d(part, w);
    EXPECT_EQ(found.strides(), channels_last_strides(found.dims()));
    expect_close(found, conv2d(contiguous(part), w), "conv of a part");
  }
}

TEST(Order, ContiguousMakesChannelsLast) {
  const Tensor x = filled({2, 3, 6, 5}, 1), volume = filled({2, 3, 4, 5, 6}, 1);
  const Tensor last = contiguous(x, "channels_last"), last_3d = contiguous(volume, "channels_last_3d");
  EXPECT_EQ(last.strides(), (Dims{90, 1, 15, 3}));
  EXPECT_EQ(last_3d.strides(), (Dims{360, 1, 90, 18, 3}));
  EXPECT_EQ(last.to_host<float>(), x.to_host<float>());
  EXPECT_EQ(last_3d.to_host<float>(), volume.to_host<float>());
  EXPECT_EQ(contiguous(last, "channels_last").impl()->storage, last.impl()->storage);
  EXPECT_EQ(contiguous(last).strides(), contiguous_strides(x.dims()));
  const auto refusal = [](const std::function<Tensor()>& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(
      refusal([&] { return contiguous(x, "nhwc"); }),
      "contiguous: memory_format is 'nhwc'; it may be 'contiguous_format', 'channels_last' or 'channels_last_3d'.");
  EXPECT_EQ(refusal([&] { return contiguous(volume, "channels_last"); }),
            "contiguous: memory_format 'channels_last' is of rank 4, but input has shape [2, 3, 4, 5, 6].");
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
