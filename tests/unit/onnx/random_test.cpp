// Random numbers in models: new numbers in each run, or the same numbers from a seed.
#include <gtest/gtest.h>

#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

// The numbers of two runs of a model that only draws numbers.
std::vector<std::vector<float>> two_runs(bool seeded) {
  ModelBuilder builder;
  builder.output("y", kFloat, {"64"});
  proto::NodeProto& node = builder.node("RandomNormal", {}, {"y"}, "draw");
  builder.attribute(node, "shape", proto::AttributeProto::AttributeType_INTS).ints = {64};
  if (seeded) {
    proto::AttributeProto& seed = builder.attribute(node, "seed", proto::AttributeProto::AttributeType_FLOAT);
    seed.f = 7;
    builder.mark(seed, proto::AttributeProto::k_f);
  }
  const Model model = load_bytes(builder.bytes());
  return {model.run(Inputs())[0].to_host<float>(), model.run(Inputs())[0].to_host<float>()};
}

TEST(RandomNumbers, AreNewInEachRun) {
  const auto runs = two_runs(false);
  EXPECT_NE(runs[0], runs[1]);
}

TEST(RandomNumbers, OfASeedAreTheSame) {
  const auto runs = two_runs(true);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], std::vector<float>(64, 0.0f));
}

}  // namespace
}  // namespace tenon::onnx
