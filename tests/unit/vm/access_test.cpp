// Functions of the application as instructions.
#include <atomic>
#include <stdexcept>

#include "core/vm/engine.h"
#include "primitives/status/error.h"
#include "tests/unit/vm/host_device.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

using std::chrono::milliseconds;

// On devices whose memory the host can address, and on others.
class Accesses : public Machines, public ::testing::WithParamInterface<bool> {
 protected:
  Accesses() : on(GetParam() ? AsyncMachine::mapped() : AsyncMachine::get()) {}
  void TearDown() override {
    on.settle();
    Machines::TearDown();
  }

  StorageHandle filled_there(uint32_t value) {
    StorageHandle handle = std::move(on.allocate(0, kWords)).value();
    EXPECT_TRUE(on.upload(handle.get(), 0, std::vector<uint32_t>(kWords, value)).ok());
    return handle;
  }
  Status mix_there(Storage* dst, Storage* a, int64_t how = fakes::kMixRuns) {
    return on.mix(0, 0, {dst, 0}, {a, 0}, {a, 0}, kWords, 1, how, dst != a);
  }

  AsyncMachine& on;
};

TEST_P(Accesses, RunInTheOrderOfInstructions) {
  StorageHandle a = filled_there(3);
  fakes::async_control().delay_us = 2000;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(mix_there(a.get(), a.get()).ok());
  uint32_t wanted = 3;
  for (int i = 0; i < 8; ++i) wanted = 32 * wanted + 1;
  std::atomic<uint32_t> seen{0};
  ASSERT_TRUE(on.access({a.get(), 0}, kWords, true, true, [&](uint32_t* words) {
                  seen = words[5];
                  std::this_thread::sleep_for(milliseconds(5));
                  for (int64_t i = 0; i < kWords; ++i) words[i] += static_cast<uint32_t>(i);
                }).ok());
  ASSERT_TRUE(mix_there(a.get(), a.get()).ok());
  const auto words = on.download(a.get());
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_EQ(seen, wanted);
  for (uint32_t i = 0; i < kWords; ++i) EXPECT_EQ(words.value()[i], 32 * (wanted + i) + 1);
}

TEST_P(Accesses, ReturnBeforeTheFunctionHasRun) {
  StorageHandle a = filled_there(3);
  std::atomic<bool> go{false};
  std::atomic<bool> ran{false};
  ASSERT_TRUE(on.access({a.get(), 0}, kWords, true, false, [&](uint32_t*) {
                  while (!go) std::this_thread::yield();
                  ran = true;
                }).ok());
  EXPECT_FALSE(ran);
  StorageHandle b = filled_there(4);
  EXPECT_EQ(on.download(b.get()).value()[0], 4u) << "what has nothing to do with it does not wait for it";
  go = true;
  EXPECT_TRUE(vm::synchronize(on.device(0)).ok());
  EXPECT_TRUE(ran);
}

TEST_P(Accesses, PassOnWhatTheFunctionThrows) {
  StorageHandle a = filled_there(3);
  ASSERT_TRUE(on.access({a.get(), 0}, kWords, false, true, [](uint32_t*) {
                  throw Error(Code::not_found, "the file is gone.");
                }).ok());
  const auto words = on.download(a.get());
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.status().code(), Code::not_found);
  EXPECT_NE(words.status().message().find("access: the file is gone."), std::string::npos) << words.status().message();
  EXPECT_TRUE(vm::synchronize(on.device(0)).ok()) << "it was told";
  ASSERT_TRUE(on.access({a.get(), 0}, kWords, false, true, [](uint32_t* out) {
                  for (int64_t i = 0; i < kWords; ++i) out[i] = 9;
                }).ok());
  EXPECT_EQ(on.download(a.get()).value(), std::vector<uint32_t>(kWords, 9)) << "a whole overwrite heals";

  ASSERT_TRUE(on.access({a.get(), 0}, kWords, true, false, [](uint32_t*) { throw 7; }).ok());
  EXPECT_EQ(vm::synchronize(on.device(0)).code(), Code::internal) << "where nobody reads, synchronize tells it";
}

TEST_P(Accesses, DoNotRunOnPoison) {
  StorageHandle a = filled_there(3);
  StorageHandle b = filled_there(4);
  ASSERT_TRUE(mix_there(b.get(), a.get(), fakes::kMixFaults).ok());
  std::atomic<bool> ran{false};
  ASSERT_TRUE(on.access({b.get(), 0}, kWords, true, true, [&](uint32_t*) { ran = true; }).ok());
  EXPECT_EQ(on.download(b.get()).status().code(), Code::invalid_argument);
  EXPECT_FALSE(ran);
}

TEST_P(Accesses, MayNotSubmitWork) {
  StorageHandle a = filled_there(3);
  StorageHandle b = filled_there(4);
  std::vector<Status> answers;
  ASSERT_TRUE(on.access({a.get(), 0}, kWords, true, false, [&](uint32_t*) {
                  answers.push_back(mix_there(b.get(), b.get()));
                  answers.push_back(on.download(b.get()).status());
                  answers.push_back(on.upload(b.get(), 0, {1}));
                  answers.push_back(on.access({b.get(), 0}, 1, true, true, [](uint32_t*) {}));
                  answers.push_back(vm::synchronize(on.device(0)));
                  answers.push_back(vm::synchronize_all());
                  answers.push_back(vm::barrier(on.device(0)));
                }).ok());
  EXPECT_TRUE(vm::synchronize(on.device(0)).ok());
  ASSERT_EQ(answers.size(), 7u);
  for (const Status& answer : answers) {
    EXPECT_EQ(answer.code(), Code::invalid_argument);
    EXPECT_NE(answer.message().find("may not submit work"), std::string::npos) << answer.message();
  }
  EXPECT_TRUE(mix_there(b.get(), b.get()).ok()) << "other threads, and later calls, may";
}

TEST_P(Accesses, InSynchronousModeReturnTheErrorAndPoison) {
  StorageHandle a = filled_there(3);
  vm::synchronous_mode = true;
  EXPECT_EQ(on.access({a.get(), 0}, 1, true, true, [](uint32_t*) { throw std::runtime_error("no"); }).code(),
            Code::internal);
  vm::synchronous_mode = false;
  EXPECT_FALSE(on.download(a.get()).ok()) << "as in the asynchronous mode";
  EXPECT_TRUE(vm::synchronize(on.device(0)).ok());
}

TEST_P(Accesses, LetGoOfTheFunctionOnceItHasRun) {
  StorageHandle a = filled_there(3);
  StorageHandle bad = filled_there(4);
  const auto kept = std::make_shared<int>(1);
  for (int round = 0; round < 50; ++round) {  // a function that never runs was once destroyed a moment too late
    ASSERT_TRUE(mix_there(bad.get(), a.get(), fakes::kMixFaults).ok());
    ASSERT_TRUE(on.access({a.get(), 0}, kWords, true, false, [kept](uint32_t*) {}).ok());
    ASSERT_TRUE(on.access({bad.get(), 0}, kWords, true, false, [kept](uint32_t*) {}).ok());
    on.settle();
    ASSERT_TRUE(on.access({bad.get(), 0}, kWords, true, false, [kept](uint32_t*) {}).ok());
    on.settle();
    ASSERT_EQ(kept.use_count(), 1) << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Accesses, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Mapped" : "Copied"; });

TEST_F(Machines, AccessOnASynchronousDeviceRunsOnTheCaller) {
  HostDevice host;
  StorageHandle here(std::move(Storage::make(host.state(), kWords * 4)).value());
  StorageHandle a = filled(0, 3);
  fakes::async_control().delay_us = 3000;
  ASSERT_TRUE(mix(a.get(), a.get(), a.get(), 0).ok());
  ASSERT_TRUE(machine.copy({here.get(), 0}, {a.get(), 0}, kWords, true).ok());
  std::thread::id thread;
  uint32_t seen = 0;
  ASSERT_TRUE(machine
                  .access({here.get(), 0}, kWords, true, true,
                          [&](uint32_t* words) {
                            thread = std::this_thread::get_id();
                            seen = words[1];
                            words[1] = 8;
                          })
                  .ok());
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_EQ(seen, 97u) << "after the copy of the asynchronous device had arrived";
  EXPECT_EQ(machine.download(here.get()).value()[1], 8u);
  EXPECT_EQ(machine.access({here.get(), 0}, 1, true, true, [](uint32_t*) { throw 1; }).code(), Code::internal);
  EXPECT_TRUE(machine.upload(here.get(), 0, {1}).ok()) << "calls work again after the function";
}

}  // namespace
}  // namespace tenon::testing
