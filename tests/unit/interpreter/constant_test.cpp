// Constants that primitives take packed: on the CPU provider, whose convolutions prefer that, and on the asynchronous
// fake, which packs every constant.
#include "core/interpreter/constant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/device/device_state.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/launch.h"
#include "core/ops/ops.h"
#include "core/tensor/unread.h"
#include "core/vm/vm.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

using fakes::async_control;

// Runs every primitive with the tensors of `constants` as constants, like a program that holds them.
class WithConstants final : public Interpreter {
 public:
  explicit WithConstants(std::vector<Tensor> constants) {
    for (const Tensor& tensor : constants) held_.push_back(Constant::of(tensor));
  }
  std::string name() const override { return "the interpreter with constants"; }
  bool host_value_known(const Tensor&) override { return true; }
  void apply(const OpCall& call) override {
    if (call.op->form != OpForm::kernel) return eager_interpreter().apply(call);
    uint32_t mask = 0;
    for (size_t i = 0; i < call.inputs.size(); ++i) mask |= uint32_t{constant_of(call.inputs[i]) != nullptr} << i;
    prepared = value_or_throw(prepare(call, value_or_throw(device_of(call)), Reach::setting, Sizes::open, mask));
    Tensor inputs[EP_MAX_OPERANDS];
    OwnedInputs<EP_MAX_OPERANDS> owned(call);
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      Constant* constant = constant_of(call.inputs[i]);
      if (constant != nullptr) owned.stand_in(i, constant->input_of(*prepared, i));
    }
    run_prepared(&owned, *prepared);
  }

  std::unique_ptr<Prepared> prepared;  // the last primitive that was prepared

 private:
  Constant* constant_of(const Tensor* tensor) const {
    if (tensor == nullptr) return nullptr;
    for (const auto& one : held_) {
      const Tensor original = one->original();
      if (original.defined() && original.impl()->storage == tensor->impl()->storage) return one.get();
    }
    return nullptr;
  }
  std::vector<std::shared_ptr<Constant>> held_;
};

using Program = std::function<Tensor(const Tensor& x, const Tensor& weight)>;

Tensor with_constant(const Program& program, const Tensor& x, const Tensor& weight, bool* packed = nullptr) {
  WithConstants interpreter({weight});
  const InterpreterScope scope(interpreter);
  Tensor result = program(x, weight);
  if (packed != nullptr) *packed = interpreter.prepared->packed_input >= 0;
  return result;
}

struct Case {
  std::string name;
  Dims x, weight;
  Program run;
  bool packs_on_cpu;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {"3x3", {2, 16, 9, 8}, {32, 16, 3, 3}, [](auto& x, auto& w) { return conv2d(x, w, {}, 1, 1); }, true},
      {"3x3 channels-last",
       {2, 16, 9, 8},
       {32, 16, 3, 3},
       [](auto& x, auto& w) { return conv2d(contiguous(x, "channels_last"), w, {}, 2, 1); },
       true},
      {"depthwise",
       {1, 32, 9, 8},
       {32, 1, 3, 3},
       [](auto& x, auto& w) { return conv2d(x, w, {}, 1, 1, 1, 32); },
       false},
      {"depthwise channels-last",
       {1, 32, 9, 8},
       {32, 1, 3, 3},
       [](auto& x, auto& w) { return conv2d(contiguous(x, "channels_last"), w, {}, 1, 1, 1, 32); },
       true},
      {"matmul", {5, 6}, {6, 7}, [](auto& x, auto& w) { return matmul(x, w); }, false},
      {"a transposed factor", {5, 6}, {7, 6}, [](auto& x, auto& w) { return linear(x, w); }, false},
      {"twice the same", {6, 6}, {6, 6}, [](auto&, auto& w) { return matmul(w, w); }, false},
  };
  return list;
}

class ConstantTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (opened_) retire("packing");
    EXPECT_EQ(async_control().violation(), "");
    async_control().reset();
  }
  Device packing_device() {
    static const bool registered = [] {
      loader::register_provider("packing", fakes::async_query);
      return true;
    }();
    static_cast<void>(registered);
    async_control().reset();
    async_control().memory = uint64_t{64} << 20;
    async_control().reference = async_control().packs = true;
    async_control().delay_us = 50;
    opened_ = true;
    return Device("packing:0");
  }

 private:
  bool opened_ = false;
};

// The cpu provider computes with packed weights in its own kernels, and otherwise in oneDNN's: the order of a sum may
// differ.
TEST_F(ConstantTest, PackedHasTheNumbersOfUnpackedOnTheCpu) {
  const Device cpu("cpu");
  for (const Case& one : cases()) {
    const Tensor x = positive_floats(one.x, 1, cpu), w = positive_floats(one.weight, 2, cpu);
    bool packed = false;
    const Tensor found = with_constant(one.run, x, w, &packed);
    const std::vector<float> got = found.to_host<float>(), want = one.run(x, w).to_host<float>();
    ASSERT_EQ(got.size(), want.size()) << one.name;
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6F * want[i]) << one.name << ", " << i;
    EXPECT_EQ(packed, one.packs_on_cpu) << one.name;
  }
}

TEST_F(ConstantTest, PackedHasTheBitsOfUnpackedOnAQueue) {
  const Device device = packing_device();
  for (const Case& one : cases()) {
    const Tensor x = positive_floats(one.x, 1, device), w = positive_floats(one.weight, 2, device);
    const uint64_t reads = async_control().packed_reads;
    const Tensor found = with_constant(one.run, x, w);
    EXPECT_EQ(found.to_host<float>(), one.run(x, w).to_host<float>()) << one.name;
    EXPECT_EQ(async_control().packed_reads - reads, 1u) << one.name;
  }
}

TEST_F(ConstantTest, PrimitivesOfOneLayoutShareWhatIsPacked) {
  const Device device = packing_device();
  const Tensor w = positive_floats({4, 3, 3, 3}, 2, device);
  const std::shared_ptr<Constant> held = Constant::of(w);
  const Program conv = [](const Tensor& x, const Tensor& weight) { return conv2d(x, weight); };
  for (int64_t size = 4; size < 8; ++size) {
    const Tensor x = positive_floats({1, 3, size, size}, 1, device);
    EXPECT_EQ(with_constant(conv, x, w).to_host<float>(), conv(x, w).to_host<float>());
  }
  EXPECT_EQ(async_control().packed, 1u);
  EXPECT_EQ(async_control().packed_reads, 4u);
  EXPECT_EQ(held->packed_bytes(), 4u * 3 * 3 * 3 * sizeof(float));
}

TEST_F(ConstantTest, WhatServesOnePrimitiveAloneIsPackedForEach) {
  const Device device = packing_device();
  async_control().packs_alone = true;
  const Tensor w = positive_floats({4, 3, 3, 3}, 2, device);
  const std::shared_ptr<Constant> held = Constant::of(w);
  const Program conv = [](const Tensor& x, const Tensor& weight) { return conv2d(x, weight); };
  for (const int64_t size : {4, 5, 4, 5}) {
    const Tensor x = positive_floats({1, 3, size, size}, 1, device);
    EXPECT_EQ(with_constant(conv, x, w).to_host<float>(), conv(x, w).to_host<float>());
  }
  EXPECT_EQ(async_control().packed, 2u);
}

TEST_F(ConstantTest, TheSameElementsAreOneConstant) {
  const Tensor w = positive_floats({4, 6}, 1, Device("cpu"));
  const std::shared_ptr<Constant> first = Constant::of(w);
  EXPECT_EQ(Constant::of(reshape(reshape(w, {24}), {4, 6})), first);
  EXPECT_NE(Constant::of(transpose(w, 0, 1)), first);
  EXPECT_NE(Constant::of(slice(w, 0, 1, 3)), first);
  Tensor written = w;
  mul_(written, Scalar(2));
  EXPECT_NE(Constant::of(w), first);
}

TEST_F(ConstantTest, MemoryIsCountedAndGivenBack) {
  const Device device = packing_device();
  const Tensor x = positive_floats({1, 16, 8, 8}, 1, device);
  const Program conv = [](const Tensor& input, const Tensor& weight) { return conv2d(input, weight); };
  const uint64_t bytes = 64 * 16 * 9 * sizeof(float), before = device.memory_stats().live;
  {
    Tensor w = positive_floats({64, 16, 3, 3}, 2, device);
    const std::vector<float> wanted = conv(x, w).to_host<float>();
    const std::shared_ptr<Constant> held = Constant::of(w);
    EXPECT_EQ(with_constant(conv, x, w).to_host<float>(), wanted);
    EXPECT_EQ(device.memory_stats().packed, bytes);
    EXPECT_GE(device.memory_stats().live, before + 2 * bytes);
    const TensorMeta shape{w.dtype(), w.dims(), w.strides()};
    WithConstants interpreter({w});
    {
      const InterpreterScope scope(interpreter);
      conv(x, w);
    }
    w = Tensor();
    held->give_back();
    device.synchronize();
    EXPECT_LT(device.memory_stats().live, before + 2 * bytes);
    const Tensor packed = held->input_of(*interpreter.prepared, 1);
    EXPECT_EQ(packed.dims(), shape.dims);
    const Prepared& prepared = *interpreter.prepared;
    Tensor result;
    const Tensor* inputs[] = {&x, &packed, nullptr, nullptr};
    OpCall call;
    call.op = prepared.op;
    call.inputs = {inputs, 2};
    call.outputs = {&result, 1};
    OwnedInputs<EP_MAX_OPERANDS> owned(call);
    run_prepared(&owned, prepared);
    EXPECT_EQ(result.to_host<float>(), wanted);
    try {
      held->input_of(prepared, 0);
      ADD_FAILURE() << "the original is gone";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "conv: a constant of shape [64, 16, 3, 3] was dropped, but a primitive needs it as it was.");
    }
  }
  EXPECT_EQ(device.memory_stats().packed, 0u);
  device.synchronize();
  EXPECT_LE(device.memory_stats().live, before);
}

TEST_F(ConstantTest, WhatNobodyHasReadIsReadForPackingAlone) {
  const Device cpu("cpu");
  const Tensor x = positive_floats({1, 64, 9, 8}, 1, cpu), w = positive_floats({64, 64, 3, 3}, 2, cpu);
  const Program conv = [](const Tensor& input, const Tensor& weight) { return conv2d(input, weight, {}, 1, 1); };
  const std::vector<float> wanted = conv(x, w).to_host<float>(), elements = w.to_host<float>();
  const uint64_t bytes = elements.size() * sizeof(float), before = cpu.memory_stats().live;
  bool broken = true;
  {
    const Tensor unread = unread_tensor(w.dims(), DType::f32, cpu, [&](void* out) {
      if (broken) return Status(Code::internal, "The disk is broken.");
      std::memcpy(out, elements.data(), bytes);
      return Status();
    });
    const std::shared_ptr<Constant> held = Constant::of(unread);
    EXPECT_THROW(with_constant(conv, x, unread), Error);
    EXPECT_EQ(held->packed_bytes(), 0u);
    EXPECT_LE(cpu.memory_stats().live, before);
    broken = false;
    bool packed = false;
    EXPECT_EQ(with_constant(conv, x, unread, &packed).to_host<float>(), wanted);
    EXPECT_TRUE(packed);
    EXPECT_TRUE(is_unread(unread));
    EXPECT_GE(cpu.memory_stats().live, before + bytes);
    EXPECT_LT(cpu.memory_stats().live, before + bytes + bytes / 2);
    broken = true;  // the packed bytes serve the next primitives, and the elements are not read
    EXPECT_EQ(with_constant(conv, x, unread).to_host<float>(), wanted);
    broken = false;
    EXPECT_EQ(conv(x, unread).to_host<float>(), wanted);  // needs the elements as they are
    EXPECT_FALSE(is_unread(unread));
  }
  EXPECT_LE(cpu.memory_stats().live, before);
}

TEST_F(ConstantTest, AFailureWhilePackingIsAnErrorAndTheNextCallWorks) {
  const Device device = packing_device();
  const Tensor x = positive_floats({1, 3, 5, 5}, 1, device), w = positive_floats({4, 3, 3, 3}, 2, device);
  const std::shared_ptr<Constant> held = Constant::of(w);
  const Program conv = [](const Tensor& input, const Tensor& weight) { return conv2d(input, weight); };
  async_control().fail_pack = 0;
  try {
    with_constant(conv, x, w);
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_device_memory);
    EXPECT_NE(std::string(error.what()).find("pack: this packing was told to fail."), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(held->packed_bytes(), 0u);
  EXPECT_EQ(device.memory_stats().packed, 0u);
  async_control().fail_pack = -1;
  EXPECT_EQ(with_constant(conv, x, w).to_host<float>(), conv(x, w).to_host<float>());
  device.synchronize();
}

TEST_F(ConstantTest, ThreadsPackOnce) {
  const Device device = packing_device();
  const Tensor x = positive_floats({1, 3, 5, 5}, 1, device), w = positive_floats({4, 3, 3, 3}, 2, device);
  const std::shared_ptr<Constant> held = Constant::of(w);
  const Program conv = [](const Tensor& input, const Tensor& weight) { return conv2d(input, weight); };
  const std::vector<float> wanted = conv(x, w).to_host<float>();
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> found(4);
  for (auto& result : found)
    threads.emplace_back([&result, &conv, &x, &w] { result = with_constant(conv, x, w).to_host<float>(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : found) EXPECT_EQ(result, wanted);
  EXPECT_EQ(async_control().packed, 1u);
}

}  // namespace
}  // namespace tenon
