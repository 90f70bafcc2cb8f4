// The ladder, kind by kind: a device that refuses one kind gives the same results, and the interpreter reports as many
// copied bytes as the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "core/device/device_state.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/primitive/primitive_cache.h"
#include "core/tensor/factory.h"
#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/fakes/masking/masking.h"
#include "tests/unit/interpreter/positive_floats.h"
#include "tests/unit/ops/watching_interpreter.h"

namespace tenon {
namespace {

struct Call {
  int32_t kind;
  const char* op;
  std::vector<Dims> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> run;
};

// One call per kind with contiguous inputs, so that only copies between devices move bytes.
const std::vector<Call>& calls() {
  using In = const std::vector<Tensor>&;
  static const std::vector<Call> list{
      {EP_PRIMITIVE_unary, "tanh", {{4, 6}}, [](In in) { return tanh(in[0]); }},
      {EP_PRIMITIVE_binary, "sub", {{4, 6}, {4, 6}}, [](In in) { return sub(in[0], in[1]); }},
      {EP_PRIMITIVE_ternary, "clamp", {{4, 6}}, [](In in) { return clamp(in[0], 0.5, 1.5); }},
      {EP_PRIMITIVE_copy, "cast", {{4, 6}}, [](In in) { return cast(in[0], DType::f64); }},
      {EP_PRIMITIVE_reduce, "sum", {{4, 6}}, [](In in) { return sum(in[0], {1}); }},
      {EP_PRIMITIVE_arg_reduce, "argmax", {{4, 6}}, [](In in) { return argmax(in[0], 1); }},
      {EP_PRIMITIVE_softmax, "softmax", {{4, 6}}, [](In in) { return softmax(in[0], 1); }},
      {EP_PRIMITIVE_matmul, "matmul", {{4, 6}, {6, 3}}, [](In in) { return matmul(in[0], in[1]); }},
      {EP_PRIMITIVE_convolution, "conv", {{1, 2, 5, 5}, {3, 2, 3, 3}}, [](In in) { return conv2d(in[0], in[1]); }},
      {EP_PRIMITIVE_pooling, "max_pool", {{1, 2, 6, 6}}, [](In in) { return max_pool2d(in[0], {2}); }},
      {EP_PRIMITIVE_layer_norm,
       "layer_norm",
       {{4, 6}, {6}, {6}},
       [](In in) { return layer_norm(in[0], {6}, in[1], in[2]); }},
      {EP_PRIMITIVE_batch_norm,
       "batch_norm",
       {{2, 3, 4}, {3}, {3}},
       [](In in) { return batch_norm(in[0], in[1], in[2]); }},
      {EP_PRIMITIVE_rms_norm, "rms_norm", {{4, 6}, {6}}, [](In in) { return rms_norm(in[0], {6}, in[1]); }},
      {EP_PRIMITIVE_group_norm,
       "group_norm",
       {{2, 4, 3}, {4}, {4}},
       [](In in) { return group_norm(in[0], 2, in[1], in[2]); }},
      {EP_PRIMITIVE_attention,
       "attention",
       {{1, 4, 3, 6}, {1, 2, 5, 6}, {1, 2, 5, 2}, {3, 5}},
       [](In in) { return attention(in[0], in[1], in[2], in[3], Tensor(), 2, 1, true, 0.7, 1.5); }},
      {EP_PRIMITIVE_rotary,
       "rotary_embedding",
       {{1, 2, 3, 5}, {3, 2}, {3, 2}},
       [](In in) { return rotary_embedding(in[0], in[1], in[2]); }},
      {EP_PRIMITIVE_quantise,
       "quantize_linear",
       {{4, 6}},
       [](In in) { return quantize_linear(in[0], full({}, Scalar(0.125), DType::f32, in[0].device())); }},
      {EP_PRIMITIVE_dequantise,
       "dequantize_linear",
       {{4, 6}},
       [](In in) {
         return dequantize_linear(cast(in[0], DType::u8), full({}, Scalar(0.125), DType::f32, in[0].device()));
       }},
      {EP_PRIMITIVE_concat,
       "concat",
       {{4, 6}, {2, 6}},
       [](In in) {
         return concat({in[0], in[1]}, 0);
       }},
      {EP_PRIMITIVE_pad,
       "pad",
       {{4, 6}},
       [](In in) {
         return pad(in[0], {1, 2});
       }},
      {EP_PRIMITIVE_fill, "full", {{4, 6}}, [](In in) { return full_like(in[0], 2.5); }},
      {EP_PRIMITIVE_gather, "take", {{4, 6}, {3}}, [](In in) { return take(in[0], cast(in[1], DType::i64)); }},
      {EP_PRIMITIVE_split,
       "split_with_sizes_copy",
       {{4, 6}},
       [](In in) {
         return split_with_sizes_copy(in[0], {1, 3})[1];
       }},
      {EP_PRIMITIVE_convolution_weight,
       "conv_grad_weight",
       {{1, 2, 5, 5}, {1, 3, 3, 3}},
       [](In in) {
         return conv_grad_weight(in[0], {3, 2, 3, 3}, in[1]);
       }},
      {EP_PRIMITIVE_pooling_backward,
       "avg_pool_backward",
       {{1, 2, 3, 3}},
       [](In in) {
         return avg_pool_backward(in[0], {1, 2, 6, 6}, {2});
       }},
      {EP_PRIMITIVE_layer_norm_backward,
       "layer_norm_backward",
       {{4, 6}, {4, 6}, {4, 1}, {4, 1}},
       [](In in) { return std::get<1>(layer_norm_backward(in[0], in[1], {6}, in[2], in[3])); }},
      {EP_PRIMITIVE_batch_norm_training,
       "batch_norm_with_statistics",
       {{2, 3, 4}},
       [](In in) { return std::get<0>(batch_norm_with_statistics(in[0])); }},
      {EP_PRIMITIVE_batch_norm_backward,
       "batch_norm_backward",
       {{2, 3, 4}, {2, 3, 4}, {3}, {3}},
       [](In in) { return std::get<0>(batch_norm_backward(in[0], in[1], Tensor(), in[2], in[3])); }},
      {EP_PRIMITIVE_scatter,
       "index_add",
       {{4, 6}, {3}, {3, 6}},
       [](In in) { return index_add(in[0], 0, cast(in[1], DType::i64), in[2]); }},
      {EP_PRIMITIVE_scan, "cumsum", {{4, 6}}, [](In in) { return cumsum(in[0], 1); }},
      {EP_PRIMITIVE_sort, "sort", {{4, 6}}, [](In in) { return std::get<0>(sort(in[0], 0)); }},
      {EP_PRIMITIVE_top_k, "topk", {{4, 6}}, [](In in) { return std::get<1>(topk(in[0], 2)); }},
      {EP_PRIMITIVE_unique, "unique_padded", {{4, 6}}, [](In in) { return unique_padded(in[0])[0]; }},
      {EP_PRIMITIVE_nonzero, "nonzero_padded", {{4, 6}}, [](In in) { return std::get<0>(nonzero_padded(in[0], 9)); }},
      {EP_PRIMITIVE_one_hot,
       "one_hot_values",
       {{4, 6}},
       [](In in) { return one_hot_values(cast(in[0], DType::i64), 3); }},
      {EP_PRIMITIVE_random,
       "philox_uniform",
       {{4, 6}},
       [](In in) {
         return philox_uniform({4, 6}, 5, 7, DType::f32, in[0].device());
       }},
      {EP_PRIMITIVE_resize,
       "resize",
       {{4, 6}},
       [](In in) { return resize(in[0], 1, 9, 1.5, -0.5, "linear", "floor", true); }},
      {EP_PRIMITIVE_recurrent,
       "recurrent_layer",
       {{3, 2, 4}, {15, 4}, {15, 5}, {15}, {15}, {2, 5}},
       [](In in) { return std::get<0>(recurrent_layer(in[0], in[1], in[2], in[3], in[4], in[5], Tensor(), "gru")); }},
      {EP_PRIMITIVE_fft, "fft_r2c", {{4, 6}}, [](In in) { return fft_r2c(in[0]); }},
      {EP_PRIMITIVE_linear_algebra, "linalg_solve", {{3, 3}, {3, 2}}, [](In in) { return linalg_solve(in[0], in[1]); }},
  };
  return list;
}

std::vector<double> numbers(const Tensor& tensor) {
  return cast(tensor.to(Device::host()), DType::f64).to_host<double>();
}

class Masking : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Chooses the host device before the fake exists, because the fake is a synchronous CPU device too.
    ASSERT_EQ(Device::host().spelling(), "cpu:0");
    fakes::masking_wrap(std::string(std::getenv("MASKED_PROVIDER")));
    loader::register_provider("masking", fakes::masking_query);
  }
  void SetUp() override { fakes::masking_control().reset(); }
  void TearDown() override { ASSERT_TRUE(loader::set_argument("fallback", "host").ok()); }

  // Refuses `kind` while no earlier choice is remembered: it runs in a new thread with new tables, and clears the cache
  // of primitives.
  void on_fresh_tables(int32_t kind, const std::function<void(Device)>& body) {
    const Device device("masking");
    clear_primitive_cache(device.state());
    fakes::masking_control().refuse({kind});
    std::thread([&] { body(device); }).join();
  }

  static std::vector<Tensor> inputs_of(const Call& call, Device device) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      inputs.push_back(positive_floats(call.inputs[i], static_cast<uint32_t>(i + 1), device));
    }
    return inputs;
  }
};

TEST_F(Masking, EveryKindThatAnOpIsLoweredToHasACall) {
  for (const OpInfo& op : op_table()) {
    if (op.kind == 0) continue;
    EXPECT_TRUE(std::any_of(calls().begin(), calls().end(), [&](const Call& call) { return call.kind == op.kind; }))
        << op.name << " is computed by kind " << op.kind << ", which is in no call here";
  }
}

TEST_F(Masking, RefusingAKindChangesNoAnswer) {
  for (const Call& refused : calls()) {
    on_fresh_tables(refused.kind, [&](Device device) {
      for (const Call& call : calls()) {
        const std::vector<double> wanted = numbers(call.run(inputs_of(call, Device("cpu"))));
        const std::vector<double> got = numbers(call.run(inputs_of(call, device)));
        ASSERT_EQ(got.size(), wanted.size());
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_NEAR(got[i], wanted[i], 2e-5 * (1 + std::abs(wanted[i]))) << call.op << " without " << refused.op;
        }
      }
    });
  }
}

TEST_F(Masking, WhatARefusalIsMadeOfComesToTheInterpreterBelow) {
  for (const Call& refused : calls()) {
    on_fresh_tables(refused.kind, [&](Device device) {
      for (const Call& call : calls()) {
        const std::vector<Tensor> inputs = inputs_of(call, device);
        WatchingInterpreter whole(false), in_rungs(false);
        const auto watch = [&](WatchingInterpreter* watching, const std::vector<Tensor>& given) {
          const InterpreterScope scope(*watching);
          watching->begin(given);
          const Tensor result = call.run(given);
          EXPECT_EQ(watching->passed_by(call.op, {result}), "") << "without " << refused.op;
        };
        watch(&whole, inputs_of(call, Device("cpu")));
        watch(&in_rungs, inputs);
        EXPECT_EQ(in_rungs.records(), whole.records()) << call.op << " without " << refused.op;
      }
    });
  }
}

TEST_F(Masking, TheBytesReportedAreTheBytesTheDeviceSaw) {
  for (const Call& call : calls()) {
    on_fresh_tables(call.kind, [&](Device device) {
      const std::vector<Tensor> inputs = inputs_of(call, device);
      const uint64_t before = fakes::masking_control().bytes_copied;
      ExecutionScope scope;
      const Tensor result = call.run(inputs);
      uint64_t reported = 0;
      bool below_native = false;
      for (const ExecutionEntry& entry : scope.take()) {
        if (entry.device != device.spelling()) continue;
        reported += entry.bytes_copied;
        if (entry.rung == Rung::native) continue;
        below_native = true;
        EXPECT_NE(entry.reason.find("native: "), std::string::npos) << call.op;
      }
      EXPECT_TRUE(below_native) << call.op << " ran natively although its kind was refused";
      EXPECT_EQ(fakes::masking_control().bytes_copied - before, reported) << call.op;
    });
  }
}

// The ops that `body` ran on `device`: "op rung: reason" for each op.
std::vector<std::string> placed_on(Device device, const std::function<Tensor()>& body) {
  ExecutionScope scope;
  body();
  std::vector<std::string> lines;
  for (const ExecutionEntry& entry : scope.take()) {
    if (entry.device != device.spelling()) continue;
    lines.push_back(fmt::format("{} {}: {}", entry.op, rung_name(entry.rung), entry.reason));
  }
  return lines;
}

TEST_F(Masking, AnInputMadeDenseIsListedAsACopyAndInTheReason) {
  on_fresh_tables(EP_PRIMITIVE_copy, [](Device device) {
    fakes::masking_control().refuses_strides = true;
    const Tensor a = positive_floats({4, 6}, 1, device), b = positive_floats({3, 6}, 2, device);
    EXPECT_EQ(
        placed_on(device, [&] { return matmul(a, transpose(b, 0, 1)); }),
        (std::vector<std::string>{"copy (dense) host: native: the masking fake refuses kind 2",
                                  "matmul native: taken with input 1 made dense, refused before: the masking fake "
                                  "refuses the strides of operand 2"}));
  });
}

// The result has the same order and values as on other devices.
TEST_F(Masking, ChannelsLastThatIsRefusedIsCopiedBothWaysAndListed) {
  on_fresh_tables(EP_PRIMITIVE_fill, [](Device device) {
    fakes::masking_control().refuses_strides = true;
    const auto run = [](Device on) {
      const Tensor x = contiguous(positive_floats({1, 2, 5, 4}, 1, on), "channels_last");
      return conv2d(x, positive_floats({3, 2, 3, 3}, 2, on));
    };
    Tensor found;
    EXPECT_EQ(placed_on(device, [&] { return found = run(device); }),
              (std::vector<std::string>{
                  "cast native: ", "copy (dense) native: ", "copy (dense) native: ",
                  "conv native: taken with input 0 made dense and row-major results, refused before: the masking fake "
                  "refuses the strides of operand 0"}));
    const Tensor wanted = run(Device("cpu"));
    EXPECT_EQ(found.strides(), (Dims{18, 1, 6, 3}));
    EXPECT_EQ(found.strides(), wanted.strides());
    const std::vector<double> a = numbers(found), b = numbers(wanted);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(b[i])));
    EXPECT_EQ(numbers(run(device)), a);
  });
}

// Their axes are sorted by the strides of the result, so the device sees rows.
TEST_F(Masking, ChannelsLastIsRowMajorToOpsThatWalkAlongAnAxis) {
  on_fresh_tables(EP_PRIMITIVE_fill, [](Device device) {
    fakes::masking_control().refuses_strides = true;
    const Tensor x = contiguous(positive_floats({2, 3, 5, 4}, 1, device), "channels_last");
    const Tensor list = positive_floats({3}, 2, device);
    using Lines = std::vector<std::string>;
    EXPECT_EQ(placed_on(device, [&] { return batch_norm(x, list, list, list, list); }), Lines{"batch_norm native: "});
    EXPECT_EQ(placed_on(device, [&] { return concat({x, x}, 1); }), Lines{"concat native: "});
    EXPECT_EQ(placed_on(device, [&] { return concat({x, x}, 2); }), Lines{"concat native: "});
    EXPECT_EQ(placed_on(device, [&] { return pad(x, {1, 0, 2, 1, 1, 1}); }), Lines{"pad native: "});
  });
}

// relu(a @ b + bias), in one launch if the device supports it.
Tensor product_with_relu(const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  const Tensor* inputs[] = {&a, &b, &bias};
  const Epilogue epilogues[] = {{&op_row(OpId::add), 2, 0}, {&op_row(OpId::relu), -1, 0}};
  Tensor result;
  OpCall call;
  call.op = &op_row(OpId::matmul);
  call.inputs = std::span(inputs).first(bias.defined() ? 3 : 2);
  call.epilogues = std::span(epilogues).subspan(bias.defined() ? 0 : 1);
  call.outputs = {&result, 1};
  current_interpreter().apply(call);
  return result;
}

TEST_F(Masking, AnEpilogueThatIsRefusedIsAnOpOfItsOwnAndInTheReason) {
  on_fresh_tables(EP_PRIMITIVE_fill, [](Device device) {
    fakes::masking_control().refuses_strides = true;
    fakes::masking_control().refuses_epilogues = true;
    const Tensor a = positive_floats({4, 6}, 1, device), b = positive_floats({4, 3}, 2, device);
    const std::string strides = "the masking fake refuses the strides of operand 1";
    EXPECT_EQ(
        placed_on(device, [&] { return product_with_relu(transpose(a, 0, 1), b); }),
        (std::vector<std::string>{
            "copy (dense) native: ", "matmul native: taken with input 0 made dense, refused before: " + strides,
            "relu native: ",
            fmt::format(
                "matmul decomposed: native: {}; native with input 0 made dense: the masking fake refuses epilogues",
                strides)}));
  });
}

// The inputs are a view that begins at a misaligned element, and misaligned memory of the caller.
TEST_F(Masking, WhatIsNotAlignedEnoughIsCopiedAndReported) {
  on_fresh_tables(EP_PRIMITIVE_fill, [](Device device) {
    fakes::masking_control().alignment = 64;
    alignas(64) float memory[64];
    const Tensor values = positive_floats({64}, 1, Device("cpu"));
    values.copy_to_host(memory);
    const auto borrowed = [&](int64_t first) {
      const Tensor shape = make_meta(device.state(), {DType::f32, {32}, {}});
      shape.impl()->storage =
          value_or_throw(borrow_host_memory(device.state(), memory + first, 32 * sizeof(float), [] {}));
      return make_view(shape, DType::f32, {32}, {1}, 0);
    };
    const Tensor there = values.to(device);
    for (const int64_t first : {0, 16, 1, 31}) {
      for (const Tensor& x : {slice(there, 0, first, first + 32), borrowed(first)}) {
        const std::vector<double> want = numbers(neg(slice(values, 0, first, first + 32)));
        const uint64_t before = fakes::masking_control().bytes_copied;
        const Tensor y = neg(x);
        EXPECT_EQ(fakes::masking_control().bytes_copied - before, first % 16 == 0 ? 0 : 32 * sizeof(float)) << first;
        EXPECT_EQ(numbers(y), want) << first;
      }
    }
  });
}

// Even the copy that would repair an output may want more alignment than the output has.
TEST_F(Masking, OutputsThatAreNotAlignedEnoughAreWrittenByWayOfOthers) {
  on_fresh_tables(EP_PRIMITIVE_pad, [](Device device) {
    fakes::masking_control().alignment = 64;
    fakes::masking_control().aligns_copy = true;
    const auto results = [](Device where) {
      std::vector<std::vector<double>> all;
      const auto keep = [&](const Tensor& base) { all.push_back(numbers(base)); };
      const Tensor row = positive_floats({5}, 2, where);
      Tensor x = positive_floats({8}, 1, where);
      Tensor part = slice(x, 0, 1, 6);
      fill_(part, 7);
      keep(x);
      copy_(part, row);
      keep(x);
      relu_out(part, neg(row));
      keep(x);
      add_(part, row);
      keep(x);
      Tensor table = positive_floats({6, 8}, 3, where);
      Tensor strided = slice(slice(table, 1, 1, 8, 2), 0, 1, 4);
      mul_(strided, 3);
      keep(table);
      Tensor columns = transpose(slice(table, 1, 3, 6), 0, 1);
      copy_(columns, positive_floats({3, 6}, 4, where));
      keep(table);
      Tensor narrow = cast(table, DType::f16);
      Tensor odd = select(narrow, 1, 3);
      copy_(odd, positive_floats({6}, 5, where));
      keep(narrow);
      return all;
    };
    EXPECT_EQ(results(device), results(Device("cpu")));
    fakes::masking_control().aligns_copy = false;
  });
}

TEST_F(Masking, ARefusedEpilogueLeavesTheBiasToTheProduct) {
  on_fresh_tables(EP_PRIMITIVE_binary, [](Device device) {
    fakes::masking_control().refuses_epilogues = true;
    const auto run = [](Device where) {
      const Tensor a = positive_floats({4, 6}, 1, where), b = positive_floats({6, 3}, 2, where);
      return product_with_relu(a, b, positive_floats({3}, 3, where));
    };
    EXPECT_EQ(placed_on(device, [&] { return run(device); }),
              (std::vector<std::string>{"matmul native: ", "relu native: ",
                                        "matmul decomposed: native: the masking fake refuses epilogues"}));
    EXPECT_EQ(numbers(run(device)), numbers(run(Device("cpu"))));
  });
}

TEST_F(Masking, WithFallbackNativeARefusalIsAnError) {
  ASSERT_TRUE(loader::set_argument("fallback", "native").ok());
  for (const Call& call : calls()) {
    on_fresh_tables(call.kind, [&](Device device) {
      const std::vector<Tensor> inputs = inputs_of(call, device);
      EXPECT_THROW(call.run(inputs), Error) << call.op;
    });
  }
}

// The host's reaction to each result of primitive_create (rule P03). The op and its first try are the same each time.
// --- limits of primitives with open sizes ---

class Limits : public Masking {
 protected:
  // Runs `body` with empty tables and an empty primitive cache.
  void fresh(const std::function<void(Device)>& body) {
    on_fresh_tables(0, [&](Device device) { body(device); });
  }
  static fakes::MaskingControl& control() { return fakes::masking_control(); }
};

TEST_F(Limits, AnOperandBeyondAStatedLimitIsAPrimitiveWithNumbers) {
  struct Stated {
    std::atomic<uint64_t>* limit;
    uint64_t most;  // the least limit that accepts 4 x 6 floats
  };
  for (const Stated& stated : {Stated{&control().greatest_elements, 24}, Stated{&control().greatest_bytes, 96},
                               Stated{&control().greatest_dim, 24}}) {
    for (const bool fits : {true, false}) {
      control().reset();
      *stated.limit = fits ? stated.most : stated.most - 1;
      fresh([&](Device device) {
        const Tensor x = positive_floats({4, 6}, 1, device);
        EXPECT_EQ(numbers(exp(x)), numbers(exp(x.to(Device("cpu")))));
        EXPECT_EQ(control().open_launches, fits ? 1u : 0u);
        const uint64_t before = control().open_launches;
        EXPECT_EQ(numbers(exp(x)), numbers(exp(x.to(Device("cpu"))))) << "the second time too";
        EXPECT_EQ(control().open_launches, before + (fits ? 1 : 0));
      });
    }
  }
}

TEST_F(Limits, AClassThatWasLearntWithinALimitDoesNotServeBeyondIt) {
  control().greatest_elements = 100;
  fresh([&](Device device) {
    for (const int64_t length : {100, 101, 5000, 99}) {
      const Tensor x = positive_floats({length}, 1, device);
      const uint64_t before = control().open_launches;
      EXPECT_EQ(numbers(exp(x)), numbers(exp(x.to(Device("cpu")))));
      EXPECT_EQ(control().open_launches - before, length <= 100 ? 1u : 0u) << length;
    }
  });
}

// A size limit that was not stated and that a launch detects: for the class of element-wise ops, and for a signature.
TEST_F(Limits, ALaunchThatIsRefusedForItsSizeRunsWithNumbersAndIsInTheReason) {
  fresh([&](Device device) {
    const Tensor small = positive_floats({4, 6}, 1, device);
    const Tensor large = positive_floats({40, 60}, 2, device);
    exp(small), matmul(small, transpose(small, 0, 1));
    control().launch_limit = 100;
    for (int time = 0; time < 3; ++time) {
      ExecutionScope scope;
      EXPECT_EQ(numbers(exp(large)), numbers(exp(large.to(Device("cpu")))));
      const Tensor here = large.to(Device("cpu"));
      EXPECT_EQ(numbers(matmul(large, transpose(large, 0, 1))), numbers(matmul(here, transpose(here, 0, 1))));
      const std::vector<double> within = numbers(exp(small));
      EXPECT_EQ(within, numbers(exp(small.to(Device("cpu")))));
      bool told = false;
      for (const ExecutionEntry& entry : scope.take()) {
        told = told || entry.reason.find("a launch with open sizes was refused") != std::string::npos;
      }
      EXPECT_TRUE(told);
    }
    EXPECT_GT(control().beyond, 0u);
  });
}

// The class of element-wise ops, flat and folded, reaches a size that its primitive refuses. The op ran once, with
// numbers.
TEST_F(Limits, ALaunchThatWasRefusedIsNoneInTheReport) {
  const auto launches = [] {
    uint64_t count = 0;
    for (const ExecutionEntry& entry : execution_report()) {
      if (entry.op == "exp" && entry.device == "masking:0") count += entry.launches;
    }
    return count;
  };
  fresh([&](Device device) {
    const Tensor small = positive_floats({4, 6}, 1, device), large = positive_floats({40, 60}, 2, device);
    for (int time = 0; time < 2; ++time) exp(small), exp(slice(small, 1, 0, 3));
    control().launch_limit = 100;
    for (const Tensor& x : {large, slice(large, 1, 0, 30)}) {
      const uint64_t before = launches(), beyond = control().beyond;
      exp(x);
      EXPECT_GT(control().beyond, beyond);
      EXPECT_EQ(launches(), before + 1);
    }
  });
}

TEST_F(Limits, ARefusedLaunchIntoAGivenOutputRunsOnce) {
  fresh([&](Device device) {
    Tensor x = positive_floats({500}, 1, device);
    const std::vector<double> wanted = numbers(exp(x.to(Device("cpu"))));
    exp(positive_floats({5}, 1, device));
    control().launch_limit = 100;
    exp_(x);
    EXPECT_EQ(numbers(x), wanted);
  });
}

TEST_F(Limits, AWorkspaceThatIsRefusedForItsSizeIsAskedWithNumbers) {
  control().workspace_limit = 100;
  fresh([&](Device device) {
    for (const int64_t rows : {4, 40}) {
      const Tensor x = positive_floats({rows, 6}, 1, device);
      EXPECT_EQ(numbers(softmax(x, 1)), numbers(softmax(x.to(Device("cpu")), 1)));
    }
    EXPECT_GT(control().beyond, 0u);
  });
}

// --- pools with rules of their own ---

// A device under a name of its own, so that it can make other statements about its memory.
Device device_saying(const std::string& name, bool exclusive, uint64_t granularity) {
  fakes::masking_control().exclusive = exclusive;
  fakes::masking_control().granularity = granularity;
  fakes::masking_control().unmapped = true;
  loader::register_provider(name, fakes::masking_query);
  const Device device(name);
  fakes::masking_control().reset();
  return device;
}

class Pools : public Masking, public ::testing::WithParamInterface<bool> {
 protected:
  static Device device() {
    static const Device shared = device_saying("granular", false, 16);
    static const Device exclusive = device_saying("exclusive", true, 4);
    return GetParam() ? exclusive : shared;
  }
  void TearDown() override { EXPECT_EQ(fakes::masking_control().violation(), ""); }
  std::mt19937_64 random_{11};
};

INSTANTIATE_TEST_SUITE_P(Rules, Pools, ::testing::Values(false, true),
                         [](const auto& param) { return param.param ? "Exclusive" : "Granular"; });

TEST_P(Pools, EveryKindGivesTheSameAnswer) {
  for (const Call& call : calls()) {
    const std::vector<double> wanted = numbers(call.run(inputs_of(call, Device("cpu"))));
    EXPECT_EQ(numbers(call.run(inputs_of(call, device()))), wanted) << call.op;
  }
}

TEST_P(Pools, BytesOfAnyNumberComeAndGo) {
  for (int64_t size = 1; size <= 70; ++size) {
    std::vector<uint8_t> bytes(static_cast<size_t>(size));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    const Tensor there = Tensor::copy_from_host(bytes.data(), {size}, DType::u8, device());
    EXPECT_EQ(there.to_host<uint8_t>(), bytes);
    EXPECT_EQ(there.to(Device("cpu")).to_host<uint8_t>(), bytes);
    EXPECT_EQ(there.to(Device("cpu")).to(device()).to_host<uint8_t>(), bytes);
  }
}

TEST_P(Pools, ViewsAreReadAndWrittenWhereTheyBegin) {
  std::vector<uint8_t> bytes(200);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
  for (int64_t begin = 0; begin < 40; begin += 3) {
    for (const int64_t length : {1, 2, 5, 16, 31, 64}) {
      Tensor whole = Tensor::copy_from_host(bytes.data(), {200}, DType::u8, device());
      Tensor part = narrow(whole, 0, begin, length);
      std::vector<uint8_t> wanted(bytes.begin() + begin, bytes.begin() + begin + length);
      EXPECT_EQ(part.to_host<uint8_t>(), wanted);
      for (uint8_t& byte : wanted) byte = static_cast<uint8_t>(random_());
      copy_from(part, Tensor::copy_from_host(wanted.data(), {length}, DType::u8));
      std::vector<uint8_t> changed = bytes;
      std::copy(wanted.begin(), wanted.end(), changed.begin() + begin);
      EXPECT_EQ(whole.to_host<uint8_t>(), changed) << begin << " " << length;
    }
  }
}

TEST_P(Pools, AnOutputBesideAnInputOfItsBlockIsWrittenRight) {
  const std::vector<float> values = positive_floats({60}, 3, Device("cpu")).to_host<float>();
  Tensor there = Tensor::from<float>(values, {60}, device());
  Tensor here = Tensor::from<float>(values, {60}, Device("cpu"));
  for (Tensor* x : {&there, &here}) {
    Tensor left = narrow(*x, 0, 0, 20), middle = narrow(*x, 0, 20, 20), right = narrow(*x, 0, 40, 20);
    add_(left, right);
    copy_from(middle, left);
    mul_(right, flip(middle, {0}));
    exp_(narrow(*x, 0, 5, 10));
  }
  EXPECT_EQ(numbers(there), numbers(here));
}

TEST_P(Pools, ARefusedKindGoesThroughTheHostInWholeMultiples) {
  on_fresh_tables(EP_PRIMITIVE_softmax, [&](Device) {
    fakes::masking_control().refuse({EP_PRIMITIVE_softmax});
    const Tensor x = positive_floats({3, 7}, 4, device());
    const std::vector<double> got = numbers(softmax(x, 1)), wanted = numbers(softmax(x.to(Device("cpu")), 1));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6);
  });
}

class Creating : public Masking {
 protected:
  struct Seen {
    Status status;
    uint64_t creates = 0, trims = 0, launches = 0;
  };
  // Runs tanh on empty tables, with `fails` results `answer` of primitive_create.
  Seen tanh_where_create(ep_status answer, int64_t fails) {
    Seen seen;
    on_fresh_tables(-1, [&](Device device) {
      const Tensor x = positive_floats({4, 6}, 1, device);
      fakes::MaskingControl& control = fakes::masking_control();
      control.create_answer = answer;
      control.create_fails = fails;
      control.creates = control.trims = control.launches = 0;
      try {
        const std::vector<float> wanted = tanh(x.to(Device("cpu"))).to_host<float>();
        EXPECT_EQ(tanh(x).to_host<float>(), wanted);
      } catch (const Error& error) {
        seen.status = error.status();
      }
      seen.creates = control.creates;
      seen.trims = control.trims;
      seen.launches = control.launches;
      control.create_fails = 0;
    });
    return seen;
  }
};

TEST_F(Creating, UnsupportedIsTheNextRung) {
  const Seen seen = tanh_where_create(EP_STATUS_UNSUPPORTED, 1);
  EXPECT_TRUE(seen.status.ok()) << seen.status.message();
  EXPECT_EQ(seen.creates, 1u);
  EXPECT_EQ(seen.launches, 0u) << "the host computed it";
}

TEST_F(Creating, OutOfDeviceMemoryIsAskedAgainOnceTheCachesWentBack) {
  const Seen seen = tanh_where_create(EP_STATUS_OUT_OF_DEVICE_MEMORY, 1);
  EXPECT_TRUE(seen.status.ok()) << seen.status.message();
  EXPECT_EQ(seen.creates, 2u);
  EXPECT_EQ(seen.trims, 1u);
  EXPECT_EQ(seen.launches, 1u);
}

TEST_F(Creating, OutOfDeviceMemoryTwiceIsTheErrorOfTheOp) {
  const Seen seen = tanh_where_create(EP_STATUS_OUT_OF_DEVICE_MEMORY, 2);
  EXPECT_EQ(seen.status.code(), Code::out_of_device_memory);
  EXPECT_EQ(seen.creates, 2u);
  EXPECT_EQ(seen.launches, 0u);
}

TEST_F(Creating, AnyOtherFailureIsTheErrorOfTheOpInTheDevicesWords) {
  for (const ep_status answer : {EP_STATUS_INTERNAL, EP_STATUS_OUT_OF_HOST_MEMORY}) {
    const Seen seen = tanh_where_create(answer, 1);
    EXPECT_EQ(seen.status.code(), static_cast<Code>(answer));
    EXPECT_EQ(seen.creates, 1u);
    EXPECT_EQ(seen.launches, 0u) << "no other rung hides the failure";
    for (const char* part : {"tanh: the masking fake cannot make the primitive.", "creating a primitive on masking:0",
                             "while running tanh(f32 [4, 6]) on masking:0"}) {
      EXPECT_NE(seen.status.message().find(part), std::string::npos) << seen.status.message();
    }
    EXPECT_TRUE(tanh_where_create(answer, 0).status.ok()) << "the failure is not remembered";
  }
}

}  // namespace
}  // namespace tenon
