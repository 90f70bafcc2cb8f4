// Demands of precision: a device whose tier is below the demand is skipped, with the reason in the report; a device
// that meets it runs natively, and no choice made without a demand is used for one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "core/device/device_state.h"
#include "core/graph/execute/executable.h"
#include "core/graph/recorder.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/ops.h"
#include "core/primitive/primitive_cache.h"
#include "loader/loader.h"
#include "tests/fakes/masking/masking.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

constexpr uint64_t f32 = uint64_t{1} << EP_DTYPE_f32;
constexpr const char* below = "f32 is of tier portable, and the program demands full";

// The device "relaxing" is the CPU with the statement that f32 is portable; "flushing" states that it flushes f32
// denormals.
class Demand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(Device::host().spelling(), "cpu:0");
    fakes::masking_wrap(std::string(std::getenv("MASKED_PROVIDER")));
    open("relaxing", f32, 0);
    open("flushing", 0, f32);
  }
  void SetUp() override {
    fakes::masking_control().reset();
    clear_primitive_cache(device().state());
  }
  void TearDown() override { ASSERT_TRUE(loader::set_argument("fallback", "host").ok()); }

  static Device device() { return Device("relaxing"); }

  // The ops that ran in `body`, on a thread with empty tables.
  template <class Body>
  static std::vector<ExecutionEntry> ran(const Body& body) {
    std::vector<ExecutionEntry> entries;
    std::thread([&] {
      ExecutionScope scope;
      body();
      entries = scope.take();
    }).join();
    return entries;
  }
  // Like the function above, with a demanded precision. Returns only the last entry.
  template <class Body>
  static ExecutionEntry under(Precision precision, const Body& body) {
    const std::vector<ExecutionEntry> entries = ran([&] {
      const PrecisionScope scope(precision);
      body();
    });
    return entries.empty() ? ExecutionEntry() : entries.back();
  }

 private:
  static void open(const char* name, uint64_t portable, uint64_t flushed) {
    fakes::masking_control().reset();
    fakes::masking_control().portable = portable;
    fakes::masking_control().flushed = flushed;
    loader::register_provider(name, fakes::masking_query);
    Device(name).spelling();
    positive_floats({1}, 1, Device(name));
  }
};

TEST_F(Demand, ADeviceBelowItIsPassedOverWithTheReason) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  const ExecutionEntry stated = under(Precision::stated, [&] { exp(x); });
  EXPECT_EQ(stated.rung, Rung::native) << stated.reason;
  EXPECT_EQ(stated.tier, "portable");
  EXPECT_EQ(under(Precision::portable, [&] { exp(x); }).tier, "portable");
  std::vector<float> result;
  const ExecutionEntry full = under(Precision::full, [&] { result = exp(x).to_host<float>(); });
  EXPECT_EQ(full.rung, Rung::host);
  EXPECT_EQ(full.device, "relaxing:0");
  EXPECT_NE(full.reason.find(std::string("native: ") + below), std::string::npos) << full.reason;
  EXPECT_EQ(result, exp(x.to(Device("cpu"))).to_host<float>());
}

TEST_F(Demand, NoRungBelowNativeMakesItAnError) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  ASSERT_TRUE(loader::set_argument("fallback", "native").ok());
  const PrecisionScope scope(Precision::full);
  try {
    cosh(x);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find(below), std::string::npos) << error.what();
  }
}

TEST_F(Demand, WhatTheDeviceStatesReachesNoProvider) {
  const Tensor x = positive_floats({4, 7}, 1, device());
  under(Precision::stated, [&] { sqrt(x); });
  const uint64_t primitives = primitive_cache_stats(device().state()).primitives;
  under(Precision::portable, [&] { sqrt(x); });
  EXPECT_EQ(primitive_cache_stats(device().state()).primitives, primitives) << "one primitive serves both";
  EXPECT_EQ(fakes::masking_control().demands, 0u);
  under(Precision::full, [&] { sqrt(x); });
  EXPECT_EQ(fakes::masking_control().demands, 1u) << "the provider may keep more than its device states";
}

TEST_F(Demand, AProviderMayKeepItForSingleKinds) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  fakes::masking_control().keep({EP_PRIMITIVE_unary});
  const ExecutionEntry kept = under(Precision::full, [&] { exp(x); });
  EXPECT_EQ(kept.rung, Rung::native) << kept.reason;
  EXPECT_EQ(kept.tier, "full");
  EXPECT_EQ(under(Precision::full, [&] { matmul(x, transpose(x, 0, 1)); }).rung, Rung::host);
}

TEST_F(Demand, ADecompositionIsTakenIfAllItsPartsKeepIt) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  fakes::masking_control().keep({EP_PRIMITIVE_unary, EP_PRIMITIVE_binary, EP_PRIMITIVE_reduce});
  const std::vector<ExecutionEntry> entries = ran([&] {
    const PrecisionScope scope(Precision::full);
    softmax(x, 1);
  });
  ASSERT_GT(entries.size(), 1u);
  EXPECT_EQ(entries.back().rung, Rung::decomposed);
  EXPECT_NE(entries.back().reason.find(below), std::string::npos) << entries.back().reason;
  for (size_t i = 0; i + 1 < entries.size(); ++i) EXPECT_EQ(entries[i].tier, "full") << entries[i].op;
  fakes::masking_control().keep({EP_PRIMITIVE_unary, EP_PRIMITIVE_reduce});
  clear_primitive_cache(device().state());
  EXPECT_EQ(under(Precision::full, [&] { softmax(x, 1); }).rung, Rung::host);
}

TEST_F(Demand, WhatOnlyMovesElementsKeepsEveryTier) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  for (const ExecutionEntry& entry : ran([&] {
         const PrecisionScope scope(Precision::full);
         concat({x, x}, 0);
         pad(x, {1, 2});
         contiguous(transpose(x, 0, 1));
       })) {
    EXPECT_EQ(entry.rung, Rung::native) << entry.op << ": " << entry.reason;
    EXPECT_EQ(entry.tier, "full") << entry.op;
  }
}

TEST_F(Demand, OtherTypesOfTheDeviceAreNotConcerned) {
  const Tensor x = cast(positive_floats({4, 6}, 1, device()), DType::f64);
  const ExecutionEntry entry = under(Precision::full, [&] { exp(x); });
  EXPECT_EQ(entry.rung, Rung::native) << entry.reason;
  EXPECT_EQ(entry.tier, "full");
}

TEST_F(Demand, OfTierFullIsNotKeptByADeviceThatFlushesDenormals) {
  const Tensor x = positive_floats({4, 6}, 1, Device("flushing"));
  EXPECT_EQ(under(Precision::portable, [&] { exp(x); }).rung, Rung::native);
  EXPECT_EQ(under(Precision::stated, [&] { exp(x); }).tier, "full");
  const ExecutionEntry entry = under(Precision::full, [&] { exp(x); });
  EXPECT_EQ(entry.rung, Rung::host);
  EXPECT_NE(entry.reason.find("denormals of f32 count as 0"), std::string::npos) << entry.reason;
}

TEST_F(Demand, RelaxedReachesAProviderThatMakesUseOfIt) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  EXPECT_EQ(under(Precision::relaxed, [&] { exp(x); }).tier, "portable") << "the provider has no narrower way";
  EXPECT_GT(fakes::masking_control().relaxed_demands, 0u);
  EXPECT_EQ(fakes::masking_control().relaxed_creates, 0u);
  fakes::masking_control().keep({EP_PRIMITIVE_unary});
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(under(Precision::relaxed, [&] { exp(x); }).tier, "relaxed");
    EXPECT_EQ(under(Precision::stated, [&] { exp(x); }).tier, "portable");
  }
  EXPECT_EQ(fakes::masking_control().relaxed_creates, 1u);
  EXPECT_EQ(under(Precision::relaxed, [&] { neg(x); }).rung, Rung::native);
}

bool multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// One thread, one signature, and a constant that the host packs for each precision.
TEST_F(Demand, RelaxedAndFullResultsStayApart) {
  const Tensor x = positive_floats({100, 110}, 1, Device("cpu")), y = positive_floats({110, 120}, 2, Device("cpu"));
  const auto bits = [&](Precision precision, std::string* tier) {
    const PrecisionScope scope(precision);
    ExecutionScope listed;
    const std::vector<float> values = matmul(x, y).to_host<float>();
    *tier = listed.take().at(0).tier;
    return values;
  };
  std::string tier;
  const std::vector<float> full = bits(Precision::stated, &tier);
  EXPECT_EQ(tier, "full");
  const std::vector<float> relaxed = bits(Precision::relaxed, &tier);
  EXPECT_EQ(tier, multiplies_bf16() ? "relaxed" : "full");
  EXPECT_EQ(relaxed != full, multiplies_bf16());
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(bits(Precision::stated, &tier), full);
    EXPECT_EQ(bits(Precision::relaxed, &tier), relaxed);
  }
}

TEST_F(Demand, OfTheSettingHoldsForOpsThatAskForNothing) {
  const Tensor x = positive_floats({4, 6}, 1, device());
  ASSERT_TRUE(loader::set_argument("precision", "full").ok());
  EXPECT_EQ(under(Precision::stated, [&] { exp(x); }).rung, Rung::host);
  EXPECT_EQ(under(Precision::portable, [&] { exp(x); }).rung, Rung::native);
  EXPECT_EQ(
      loader::set_argument("precision", "half").message(),
      "the value 'half' of the argument 'precision' is invalid: it may be one of stated, relaxed, portable, full.");
  ASSERT_TRUE(loader::set_argument("precision", "stated").ok());
  EXPECT_EQ(under(Precision::stated, [&] { exp(x); }).rung, Rung::native);
}

TEST(PrecisionName, IsReadBack) {
  for (Precision each : {Precision::stated, Precision::relaxed, Precision::portable, Precision::full}) {
    EXPECT_EQ(precision_from_name(precision_name(each)).value(), each);
  }
  EXPECT_EQ(precision_from_name("half").status().message(),
            "precision: 'half' is unknown; it may be stated, relaxed, portable or full.");
}

// One thread and one signature, with changing demands: by layout class and by exact signature.
TEST_F(Demand, TakesTurnsWithOtherDemandsOfTheSameSignature) {
  const Tensor x = positive_floats({4, 6}, 1, device()), cpu = positive_floats({4, 6}, 1, Device("cpu"));
  for (int turn = 0; turn < 3; ++turn) {
    for (const auto& [precision, rung] : {std::pair(Precision::stated, Rung::native),
                                          {Precision::full, Rung::host},
                                          {Precision::portable, Rung::native}}) {
      const PrecisionScope scope(precision);
      ExecutionScope listed;
      exp(x);
      sum(x, {1});
      std::vector<Rung> rungs;
      for (const ExecutionEntry& entry : listed.take()) {
        if (entry.device == "relaxing:0") rungs.push_back(entry.rung);
      }
      EXPECT_EQ(rungs, std::vector<Rung>(2, rung));
    }
  }
  // Without a report the layout class is used: its counters show it.
  const auto on_host = [] {
    uint64_t launches = 0;
    for (const ExecutionEntry& entry : execution_report()) {
      if (entry.op == "tanh" && entry.device == "relaxing:0" && entry.rung == Rung::host) launches += entry.launches;
    }
    return launches;
  };
  const uint64_t before = on_host();
  for (int turn = 0; turn < 4; ++turn) {
    tanh(x);
    const PrecisionScope scope(Precision::full);
    tanh(x);
  }
  EXPECT_EQ(on_host() - before, 4u);
}

TEST_F(Demand, IsRecordedWithAProgram) {
  graph::Recorder recorder(device());
  Tensor output;
  {
    const InterpreterScope recording(recorder);
    const Tensor x = recorder.input(DType::f32, {4, 6});
    const PrecisionScope scope(Precision::full);
    const Tensor exact = exp(x);
    {
      const PrecisionScope inner(Precision::stated);
      output = relu(exact);
    }
  }
  const graph::Executable program = graph::prepare(recorder.finish(std::span(&output, 1)), {.whole_graphs = false});
  const Tensor x = positive_floats({4, 6}, 1, device());
  const std::vector<ExecutionEntry> entries = ran([&] { run(program, std::span(&x, 1)); });
  std::vector<std::pair<std::string, Rung>> rungs;
  for (const ExecutionEntry& entry : entries) {
    if (entry.device == "relaxing:0") rungs.emplace_back(entry.op, entry.rung);
  }
  EXPECT_EQ(rungs, (std::vector<std::pair<std::string, Rung>>{{"exp", Rung::host}, {"relu", Rung::native}}));
}

TEST_F(Demand, EndsWithItsScope) {
  EXPECT_EQ(current_precision(), Precision::stated);
  {
    const PrecisionScope outer(Precision::full);
    {
      const PrecisionScope inner(Precision::relaxed);
      EXPECT_EQ(current_precision(), Precision::relaxed);
    }
    EXPECT_EQ(current_precision(), Precision::full);
    std::thread([] { EXPECT_EQ(current_precision(), Precision::stated) << "another thread's is its own"; }).join();
  }
  EXPECT_EQ(current_precision(), Precision::stated);
}

}  // namespace
}  // namespace tenon
