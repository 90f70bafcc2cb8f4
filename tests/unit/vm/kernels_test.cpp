// Kernels of compiled modules in segments, on the asynchronous fake: order, faults, scratch, lists, refusals.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/primitive/compiled_module.h"
#include "core/vm/command_list.h"
#include "core/vm/segment.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

using vm::SegmentAddress;

constexpr uint64_t kBytes = kWords * 4;

// The parameters of a launch of `affine`.
struct Parameters {
  uint32_t factor = 0;
  uint32_t sum = 0;
  int32_t how = fakes::kMixRuns;
  int32_t more = 0;  // buffers after the second one: workspace and scratch
};

// buffers[1] = buffers[0] * factor + sum, for each word; there are as many words as groups.
void affine(char* const* buffers, const char* parameters, uint64_t groups, ep_fault* fault) {
  Parameters told;
  std::memcpy(&told, parameters, sizeof told);
  for (uint64_t i = 0; i < groups; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, buffers[0] + 4 * i, 4);
    word = word * told.factor + told.sum;
    if (told.more == 2) {
      uint32_t scratch = 0;
      std::memcpy(&scratch, buffers[3], 4);
      word += scratch;
      std::memcpy(buffers[2], &word, 4);
    }
    std::memcpy(buffers[1] + 4 * i, &word, 4);
  }
  if (told.how == fakes::kMixFaults) {
    fault->code = EP_FAULT_INDEX_OUT_OF_RANGE;
    fault->value = 77;
    fault->limit = 7;
  }
}

class Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    machine.settle();
    fakes::async_control().reset();
    fakes::async_kernels()["affine"] = {kBytes, 2, affine};
  }
  void TearDown() override {
    machine.settle();
    EXPECT_EQ(fakes::async_control().violation(), "");
    EXPECT_EQ(fakes::async_control().modules.load(), 0);
    fakes::async_control().reset();
  }

  StorageHandle filled(int device, uint32_t value) {
    StorageHandle handle = std::move(machine.allocate(device, kWords)).value();
    EXPECT_TRUE(machine.upload(handle.get(), 0, std::vector<uint32_t>(kWords, value)).ok());
    return handle;
  }
  std::shared_ptr<CompiledModule> module(uint64_t flags = 0, int device = 0) {
    ModuleText text;
    text.name = "affine_module";
    text.text = "affine";
    text.entries.push_back({"affine", flags, 2, sizeof(Parameters), {1, 1, 1}, 0});
    auto made = compile_module(machine.device(device), text);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(made).value() : nullptr;
  }
  static Status add(vm::SegmentBuilder* builder, const std::shared_ptr<CompiledModule>& from, SegmentAddress dst,
                    SegmentAddress src, Parameters told, SegmentAddress workspace = {}, uint64_t scratch = 0) {
    const SegmentAddress buffers[] = {src, dst};
    const NodeName name{{"fused"}, vm::kNoInputs, {}, fmt::format("node {} (/affine)", told.sum)};
    vm::SegmentKernelLaunch launch;
    launch.module = from;
    launch.buffers = buffers;
    launch.parameters = std::as_bytes(std::span(&told, 1));
    launch.groups = {kWords, 1, 1};
    launch.workspace = workspace;
    launch.scratch_bytes = scratch;
    launch.name = &name;
    return builder->add(launch);
  }
  // `length` launches in a row, alternating between two ranges of a block. Bindings: input, output, block. Launch i
  // computes x * 3 + i; launch `odd` gets `how`.
  std::shared_ptr<const vm::Segment> chain(uint32_t length, uint32_t odd = ~0u, int32_t how = fakes::kMixRuns) {
    const auto from = module(EP_ENTRY_FLAG_FAULTS);
    vm::SegmentBuilder builder(machine.device(0), 3, nullptr);
    for (uint32_t i = 0; i < length; ++i) {
      const auto part = [](uint32_t turn) { return SegmentAddress::binding(2, turn % 2 * kBytes); };
      const Status added = add(&builder, from, i + 1 == length ? SegmentAddress::binding(1, 0) : part(i + 1),
                               i == 0 ? SegmentAddress::binding(0, 0) : part(i),
                               {3, i, i == odd ? how : static_cast<int32_t>(fakes::kMixRuns), 0});
      EXPECT_TRUE(added.ok()) << added.message();
    }
    return builder.finish();
  }
  static uint32_t chained(uint32_t length, uint32_t value) {
    for (uint32_t i = 0; i < length; ++i) value = 3 * value + i;
    return value;
  }
  StorageHandle block() {
    return StorageHandle(std::move(Storage::make_aligned(machine.device(0), 2 * kBytes)).value());
  }
  Status run(const vm::Segment& segment, Storage* input, Storage* output, uint16_t stream = 0) {
    const StorageHandle inner = block();
    const vm::Operand bindings[] = {{input, 0, false, false}, {output, 0, true, true}, {inner.get(), 0, true, true}};
    return vm::run({&segment, bindings, stream});
  }
  AsyncMachine& machine = AsyncMachine::modules();

  void expect_words(Storage* storage, uint32_t wanted) {
    const auto words = machine.download(storage);
    ASSERT_TRUE(words.ok()) << words.status().message();
    EXPECT_EQ(words.value(), std::vector<uint32_t>(kWords, wanted));
  }
};

TEST_F(Kernels, RunInTheOrderOfTheirSegmentAndOfStreams) {
  const auto segment = chain(9);
  fakes::async_control().delay_us = 200;
  for (uint32_t round = 0; round < 30; ++round) {
    const StorageHandle a = filled(0, round), b = filled(0, 0), c = filled(0, 0);
    ASSERT_TRUE(run(*segment, a.get(), b.get(), 1).ok());
    ASSERT_TRUE(run(*segment, b.get(), c.get(), 0).ok());
    expect_words(b.get(), chained(9, round));
    expect_words(c.get(), chained(9, chained(9, round)));
  }
  EXPECT_EQ(fakes::async_control().launches.load(), 30u * 18);
}

TEST_F(Kernels, StandBesidePrimitives) {
  vm::SegmentBuilder builder(machine.device(0), 3, nullptr);
  const auto from = module();
  ASSERT_TRUE(add(&builder, from, SegmentAddress::binding(2, 0), SegmentAddress::binding(0, 0), {5, 1}).ok());
  const SegmentAddress operands[] = {SegmentAddress::binding(1, 0), SegmentAddress::binding(2, 0),
                                     SegmentAddress::binding(2, 0)};
  ep_scalar scalars[2] = {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}};
  scalars[0].value.i64 = 9;
  const NodeName name{{"mix"}, vm::kNoInputs, {}, "node 2 (/mix)"};
  vm::SegmentLaunch launch;
  launch.primitive = std::move(machine.primitive(0, kWords)).value();
  launch.operands = operands;
  launch.scalars = scalars;
  launch.name = &name;
  ASSERT_TRUE(builder.add(launch).ok());
  const auto segment = builder.finish();
  const StorageHandle a = filled(0, 4), b = filled(0, 0);
  ASSERT_TRUE(run(*segment, a.get(), b.get()).ok());
  expect_words(b.get(), 32 * 21 + 9);
}

TEST_F(Kernels, HaveParametersOfTheirOwn) {
  vm::SegmentBuilder builder(machine.device(0), 3, nullptr);
  const auto from = module();
  {
    Parameters told{2, 5};
    ASSERT_TRUE(add(&builder, from, SegmentAddress::binding(1, 0), SegmentAddress::binding(0, 0), told).ok());
    told = {100, 100};
  }
  const auto segment = builder.finish();
  const StorageHandle a = filled(0, 4), b = filled(0, 0);
  ASSERT_TRUE(run(*segment, a.get(), b.get()).ok());
  expect_words(b.get(), 13);
}

TEST_F(Kernels, HaveWorkspaceAndScratchThatIsZero) {
  const auto from = module(EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH);
  vm::SegmentBuilder builder(machine.device(0), 3, nullptr);
  const Status added = add(&builder, from, SegmentAddress::binding(1, 0), SegmentAddress::binding(0, 0), {1, 2, 0, 2},
                           SegmentAddress::binding(2, 0), 256);
  ASSERT_TRUE(added.ok()) << added.message();
  const auto segment = builder.finish();
  EXPECT_EQ(segment->scratch_bytes(), 256u);
  const StorageHandle a = filled(0, 4), b = filled(0, 0);
  ASSERT_TRUE(run(*segment, a.get(), b.get()).ok());
  expect_words(b.get(), 6);
}

TEST_F(Kernels, ThatMeetBadDataNameTheirNodeAndPoisonWhatTheSegmentWrites) {
  const auto segment = chain(6, 4, static_cast<int32_t>(fakes::kMixFaults));
  const StorageHandle a = filled(0, 3), b = filled(0, 4);
  ASSERT_TRUE(run(*segment, a.get(), b.get()).ok());
  const auto words = machine.download(b.get());
  ASSERT_FALSE(words.ok());
  EXPECT_NE(words.status().message().find("node 4 (/affine)"), std::string::npos) << words.status().message();
  EXPECT_NE(words.status().message().find("77"), std::string::npos) << words.status().message();
}

TEST_F(Kernels, AreRecordedInCommandLists) {
  const auto segment = chain(7);
  const StorageHandle a = filled(0, 3), b = filled(0, 0), inner = block();
  const vm::CommandList::Binding bindings[] = {
      {{a.get(), 0, false, false}, kBytes}, {{b.get(), 0, true, true}, kBytes}, {{inner.get(), 0, true, true}, 0}};
  auto list = vm::CommandList::record(segment, bindings);
  ASSERT_TRUE(list.ok()) << list.status().message();
  for (uint32_t round = 0; round < 5; ++round) {
    const StorageHandle c = filled(0, round), d = filled(0, 0);
    const vm::Operand now[] = {{c.get(), 0, false, false}, {d.get(), 0, true, true}, {inner.get(), 0, true, true}};
    ASSERT_TRUE(list.value()->run(now, 0).ok());
    expect_words(d.get(), chained(7, round));
  }
  EXPECT_GT(list.value()->replays(), 0u);
}

TEST_F(Kernels, AreRefusedWhereALaunchGivesWhatTheEntryDoesNotTake) {
  const auto from = module();
  const auto elsewhere = module(0, 1);
  vm::SegmentBuilder builder(machine.device(0), 2, nullptr);
  const auto refusal = [&](const std::shared_ptr<CompiledModule>& of, SegmentAddress dst, SegmentAddress workspace = {},
                           uint64_t scratch = 0) {
    const Status status = add(&builder, of, dst, SegmentAddress::binding(0, 0), {1, 2}, workspace, scratch);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.message();
  };
  EXPECT_NE(refusal(elsewhere, SegmentAddress::binding(1, 0)).find("modules:1"), std::string::npos);
  EXPECT_NE(refusal(from, SegmentAddress::binding(2, 0)).find("binding 2"), std::string::npos);
  EXPECT_NE(refusal(from, SegmentAddress::binding(1, 0), SegmentAddress::binding(1, 0)).find("a workspace"),
            std::string::npos);
  EXPECT_NE(refusal(from, SegmentAddress::binding(1, 0), {}, 64).find("64 bytes of scratch"), std::string::npos);
}

TEST_F(Kernels, OfATextThatTheCompilerRefusesAreAnErrorWithItsWords) {
  ModuleText text;
  text.name = "unknown_module";
  text.text = "unknown";
  text.entries.push_back({"unknown", 0, 0, 0, {1, 1, 1}, 0});
  std::string output;
  const auto made = compile_module(machine.device(0), text, &output);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::invalid_argument);
  EXPECT_NE(made.status().message().find("line 1: nobody has registered 'unknown'"), std::string::npos)
      << made.status().message();
  EXPECT_NE(made.status().message().find("compiling unknown_module on modules:0"), std::string::npos);
  EXPECT_NE(output.find("nobody has registered"), std::string::npos);
}

TEST_F(Kernels, OfACancelledProgramAreNotCompiled) {
  const Cancellation stop;
  const CancellationScope scope(stop);
  stop.cancel();
  ModuleText text;
  text.name = "affine_module";
  text.text = "affine";
  text.entries.push_back({"affine", 0, 2, sizeof(Parameters), {1, 1, 1}, 0});
  const auto made = compile_module(machine.device(0), text);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::cancelled);
}

TEST_F(Kernels, AreOfTheDialectsThatTheDeviceNames) {
  const std::vector<Dialect> dialects = dialects_of(machine.device(0));
  ASSERT_EQ(dialects.size(), 1u);
  EXPECT_EQ(dialects[0].info.dialect, EP_DIALECT_C);
  EXPECT_EQ(dialects[0].compiler, "names");
}

}  // namespace
}  // namespace tenon::testing
