// Cutting claims into islands, on random programs.
#include "core/graph/execute/cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon::graph {
namespace {

using Edges = std::vector<std::vector<uint32_t>>;
using Parts = std::vector<std::vector<uint32_t>>;

Edges random_program(std::mt19937& random, uint32_t size) {
  Edges preds(size);
  for (uint32_t node = 1; node < size; ++node) {
    for (uint32_t edges = random() % 3; edges > 0; --edges)
      preds[node].push_back(static_cast<uint32_t>(random() % node));
  }
  return preds;
}

std::vector<uint32_t> random_claims(std::mt19937& random, uint32_t size, uint32_t islands) {
  std::vector<uint32_t> claims(size);
  for (uint32_t& claim : claims) claim = static_cast<uint32_t>(random() % (islands + 1));
  return claims;
}

std::vector<uint32_t> groups_of(const Parts& parts, uint32_t size) {
  std::vector<uint32_t> group(size);
  for (uint32_t node = 0; node < size; ++node) group[node] = node;
  for (const std::vector<uint32_t>& part : parts) {
    for (uint32_t node : part) group[node] = part[0];
  }
  return group;
}

// True if the program has a circle when each part is one node.
bool has_circle(const Edges& preds, const Parts& parts) {
  const auto size = static_cast<uint32_t>(preds.size());
  const std::vector<uint32_t> group = groups_of(parts, size);
  std::vector<bool> done(size, false);
  for (bool any = true; any;) {
    any = false;
    for (uint32_t one = 0; one < size; ++one) {
      if (group[one] != one || done[one]) continue;
      bool ready = true;
      for (uint32_t node = 0; node < size; ++node) {
        if (group[node] != one) continue;
        for (uint32_t pred : preds[node]) ready = ready && (group[pred] == one || done[group[pred]]);
      }
      done[one] = ready;
      any = any || ready;
    }
  }
  for (uint32_t one = 0; one < size; ++one) {
    if (group[one] == one && !done[one]) return true;
  }
  return false;
}

TEST(CutIslands, LeavesNoCircleAndNoNodeOut) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const uint32_t size = 2 + static_cast<uint32_t>(random() % 30);
    const Edges preds = random_program(random, size);
    const std::vector<uint32_t> claims = random_claims(random, size, 1 + static_cast<uint32_t>(random() % 4));
    const Parts parts = cut_islands(preds, claims);
    std::vector<int> seen(size, 0);
    for (const std::vector<uint32_t>& part : parts) {
      EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
      for (uint32_t node : part) {
        ++seen[node];
        EXPECT_EQ(claims[node], claims[part[0]]);
      }
    }
    for (uint32_t node = 0; node < size; ++node) EXPECT_EQ(seen[node], claims[node] != 0 ? 1 : 0);
    EXPECT_FALSE(has_circle(preds, parts)) << "round " << round;
  }
}

TEST(CutIslands, KeepsWhatNoPathLeavesInOnePiece) {
  // 0 -> 1 -> 3, 0 -> 2 -> 3: a diamond, and 4 apart.
  const Edges diamond = {{}, {0}, {0}, {1, 2}, {}};
  EXPECT_EQ(cut_islands(diamond, std::vector<uint32_t>{7, 7, 7, 7, 7}), (Parts{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(cut_islands(diamond, std::vector<uint32_t>{0, 0, 0, 0, 0}), Parts());
}

TEST(CutIslands, CutsWhereAPathLeavesAndComesBack) {
  // Node 1 of the chain is not claimed.
  EXPECT_EQ(cut_islands(Edges{{}, {0}, {1}}, std::vector<uint32_t>{1, 0, 1}), (Parts{{0}, {2}}));
  // Each island alone could stay whole, but together they would wait for each other.
  const Parts parts = cut_islands(Edges{{}, {}, {0}, {1}}, std::vector<uint32_t>{1, 2, 2, 1});
  EXPECT_EQ(parts, (Parts{{0, 3}, {1}, {2}}));
}

}  // namespace
}  // namespace tenon::graph
