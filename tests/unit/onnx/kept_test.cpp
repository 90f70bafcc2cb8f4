#include "sdk/onnx/importer/kept.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace tenon::onnx {
namespace {

TEST(Kept, MakesEachValueOnce) {
  Kept kept;
  int made = 0;
  const auto make = [&] { return ++made; };
  const int& first = kept.get<int>("a", nullptr, make);
  EXPECT_EQ(&kept.get<int>("a", nullptr, make), &first);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(kept.get<int>("b", nullptr, make), 2);
  EXPECT_EQ(kept.get<int>("a", &made, make), 3);
  EXPECT_EQ(kept.get<std::string>("a", nullptr, [] { return std::string("text"); }), "text");
  EXPECT_EQ(kept.get<int>("a", nullptr, make), 1);
}

TEST(Kept, KeepsNothingIfMakingFails) {
  Kept kept;
  const auto fail = []() -> int { throw std::runtime_error("no"); };
  EXPECT_THROW(kept.get<int>("a", nullptr, fail), std::runtime_error);
  EXPECT_EQ(kept.get<int>("a", nullptr, [] { return 7; }), 7);
}

TEST(Kept, ACopyBeginsEmpty) {
  Kept kept;
  kept.get<int>("a", nullptr, [] { return 1; });
  Kept copy(kept);
  EXPECT_EQ(copy.get<int>("a", nullptr, [] { return 2; }), 2);
  Kept moved(std::move(kept));
  EXPECT_EQ(moved.get<int>("a", nullptr, [] { return 3; }), 1);
  moved = copy;
  EXPECT_EQ(moved.get<int>("a", nullptr, [] { return 4; }), 4);
}

}  // namespace
}  // namespace tenon::onnx
