#include "core/device/process.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace tenon::process {
namespace {

bool attends_to_callbacks() { return (attention.load() & kCallback) != 0; }

TEST(CallbackScope, BindsItsOwnThreadAlone) {
  EXPECT_TRUE(usable().ok());
  const CallbackScope scope(Callback::access);
  EXPECT_EQ(usable().code(), Code::invalid_argument);
  {
    const CallbackScope inner(Callback::deleter);
    EXPECT_NE(usable().message().find("deleter"), std::string::npos);
  }
  EXPECT_NE(usable().message().find("access"), std::string::npos) << "the outer scope counts again";
  std::thread([] { EXPECT_TRUE(usable().ok()); }).join();
}

TEST(CallbackScope, IsLookedForAsLongAsOneLivesOnAnyThread) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(attends_to_callbacks());
    std::latch begun(1), seen(1);
    std::thread other([&] {
      const CallbackScope scope(Callback::access);
      begun.count_down();
      seen.wait();
    });
    begun.wait();
    { const CallbackScope scope(Callback::deleter); }
    EXPECT_TRUE(attends_to_callbacks()) << "the other thread's scope lives";
    seen.count_down();
    other.join();
    EXPECT_FALSE(attends_to_callbacks()) << "the last scope is gone, and no op has to look";
  }
}

}  // namespace
}  // namespace tenon::process
