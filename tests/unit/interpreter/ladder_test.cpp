// The ladder: a device that computes nothing gives the answers of one that computes everything.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "core/interpreter/placement.h"
#include "core/ops/ops.h"
#include "loader/loader.h"

namespace tenon {
namespace {

Tensor input(const Dims& dims, uint32_t seed, Device device) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(0.25f, 2.0f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(engine);
  return Tensor::from<float>(data, dims, device);
}

struct Call {
  const char* op;
  std::function<Tensor(Device)> run;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> list{
      {"relu",
       [](Device d) {
         return relu(input({3, 5}, 1, d));
       }},
      {"add",
       [](Device d) {
         return add(input({3, 5}, 1, d), input({5}, 2, d));
       }},
      {"strided mul",
       [](Device d) {
         return mul(transpose(input({3, 5}, 1, d), 0, 1), input({5, 3}, 2, d));
       }},
      {"softmax",
       [](Device d) {
         return softmax(input({4, 6}, 3, d), 1);
       }},
      {"matmul",
       [](Device d) {
         return matmul(input({4, 6}, 4, d), input({6, 2}, 5, d));
       }},
      {"sum",
       [](Device d) {
         return sum(input({4, 6}, 6, d), {0});
       }},
      {"layer_norm",
       [](Device d) {
         return layer_norm(input({4, 6}, 7, d), {6}, input({6}, 8, d), input({6}, 9, d));
       }},
      {"conv2d",
       [](Device d) {
         return conv2d(input({1, 2, 6, 6}, 10, d), input({3, 2, 3, 3}, 11, d));
       }},
      {"in place",
       [](Device d) {
         Tensor x = input({4, 6}, 12, d);
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
  const Tensor x = input({4, 6}, 1, Device("null"));
  PlacementScope scope;
  relu(x);
  const std::vector<PlacementEntry> entries = scope.take();
  ASSERT_FALSE(entries.empty());
  const PlacementEntry& entry = entries.back();
  EXPECT_EQ(entry.op, "relu");
  EXPECT_EQ(entry.device, "null:0");
  EXPECT_EQ(entry.rung, Rung::host);
  EXPECT_EQ(entry.bytes_copied, 2u * 24 * sizeof(float));
  EXPECT_NE(entry.reason.find("native: "), std::string::npos) << entry.reason;
}

TEST(Ladder, FallbackNativeMakesARefusalAnError) {
  const Tensor x = input({4, 6}, 1, Device("null"));
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
