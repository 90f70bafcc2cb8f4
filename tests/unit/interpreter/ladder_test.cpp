// The ladder: a device that computes nothing gives the same results as a device that computes everything.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/interpreter/execution_report.h"
#include "core/ops/ops.h"
#include "loader/loader.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

struct Call {
  const char* op;
  std::function<Tensor(Device)> run;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> list{
      {"relu",
       [](Device d) {
         return relu(positive_floats({3, 5}, 1, d));
       }},
      {"add",
       [](Device d) {
         return add(positive_floats({3, 5}, 1, d), positive_floats({5}, 2, d));
       }},
      {"strided mul",
       [](Device d) {
         return mul(transpose(positive_floats({3, 5}, 1, d), 0, 1), positive_floats({5, 3}, 2, d));
       }},
      {"softmax",
       [](Device d) {
         return softmax(positive_floats({4, 6}, 3, d), 1);
       }},
      {"matmul",
       [](Device d) {
         return matmul(positive_floats({4, 6}, 4, d), positive_floats({6, 2}, 5, d));
       }},
      {"sum",
       [](Device d) {
         return sum(positive_floats({4, 6}, 6, d), {0});
       }},
      {"layer_norm",
       [](Device d) {
         return layer_norm(positive_floats({4, 6}, 7, d), {6}, positive_floats({6}, 8, d), positive_floats({6}, 9, d));
       }},
      {"conv2d",
       [](Device d) {
         return conv2d(positive_floats({1, 2, 6, 6}, 10, d), positive_floats({3, 2, 3, 3}, 11, d));
       }},
      {"in place",
       [](Device d) {
         Tensor x = positive_floats({4, 6}, 12, d);
         Tensor column = select(x, 1, 2);
         exp_(column);
         return x;
       }},
  };
  return list;
}

TEST(Ladder, HostRungGivesTheHostsBits) {
  for (const Call& call : calls()) {
    const std::vector<float> wanted = call.run(Device("cpu")).to_host<float>();
    EXPECT_EQ(call.run(Device("null")).to_host<float>(), wanted) << call.op;
  }
}

TEST(Ladder, ReportsTheRungTheReasonAndTheBytes) {
  const Tensor x = positive_floats({4, 6}, 1, Device("null"));
  ExecutionScope scope;
  relu(x);
  const std::vector<ExecutionEntry> entries = scope.take();
  ASSERT_FALSE(entries.empty());
  const ExecutionEntry& entry = entries.back();
  EXPECT_EQ(entry.op, "relu");
  EXPECT_EQ(entry.device, "null:0");
  EXPECT_EQ(entry.rung, Rung::host);
  EXPECT_EQ(entry.bytes_copied, 2u * 24 * sizeof(float));
  EXPECT_NE(entry.reason.find("native: "), std::string::npos) << entry.reason;
}

TEST(Ladder, FallbackNativeMakesARefusalAnError) {
  const Tensor x = positive_floats({4, 6}, 1, Device("null"));
  ASSERT_TRUE(loader::set_argument("fallback", "native").ok());
  try {
    softmax(x, 0);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("softmax(f32 [4, 6]) cannot run on null:0 with fallback native"),
              std::string::npos)
        << error.what();
  }
  ASSERT_TRUE(loader::set_argument("fallback", "host").ok());
  EXPECT_EQ(softmax(x, 0).dims(), x.dims());
}

}  // namespace
}  // namespace tenon
