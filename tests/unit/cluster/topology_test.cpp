// The text of a topology, and the times of exchanges on it.
#include "core/cluster/topology.h"

#include <gtest/gtest.h>

#include <random>

#include "primitives/status/error.h"

namespace tenon::cluster {
namespace {

constexpr const char* kText =
    "# eight accelerators to a node\n"
    "rank: 400 TFLOP/s, 3 TB/s, 80 GB, 4 us\n"
    "node: 8 ranks, 5 us, 300 GB/s  # inside\n"
    "\n"
    "cluster: 50 GB/s, 512 nodes, 10 us\r\n";

std::string error_of(const std::string& text) {
  try {
    parse_topology(text);
  } catch (const Error& error) {
    return error.status().message();
  }
  return "no error";
}

TEST(Topology, IsReadAndWritten) {
  const Topology made = parse_topology(kText);
  EXPECT_EQ(made.ranks(), 4096);
  EXPECT_DOUBLE_EQ(made.compute, 400e12);
  EXPECT_DOUBLE_EQ(made.bandwidth, 3e12);
  EXPECT_DOUBLE_EQ(made.memory, 80e9);
  EXPECT_DOUBLE_EQ(made.start, 4e-6);
  ASSERT_EQ(made.levels.size(), 2U);
  EXPECT_EQ(made.levels[1].name, "cluster");
  EXPECT_EQ(made.levels[1].members, 512);
  EXPECT_DOUBLE_EQ(made.levels[1].latency, 10e-6);
  EXPECT_DOUBLE_EQ(made.levels[1].bandwidth, 50e9);
  EXPECT_EQ(to_string(parse_topology(to_string(made))), to_string(made));
}

TEST(Topology, NonsenseIsToldOfWithItsLine) {
  const std::string rank = "rank: 1 FLOP/s, 1 B/s\n", node = "node: 2 ranks, 1 s, 1 B/s\n";
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "there is no line 'rank:"},
           {rank, "there is no level"},
           {node, "line 1: there is no line 'rank:"},
           {rank + rank + node, "line 2: two lines describe the rank"},
           {"rank 1 FLOP/s\n" + node, "line 1: 'rank 1 FLOP/s' has no ':'"},
           {"rank: 1 FLOP/s\n" + node, "a rank needs its arithmetic"},
           {"rank: 1 FLOP/s, 1 B/s, 2 ranks\n" + node, "a rank has no ranks"},
           {rank + "node: 2 ranks, 1 B/s", "line 2: a level needs its number of ranks"},
           {rank + node + "cluster: 2 ranks, 1 s, 1 B/s", "line 3: '2 ranks' has the unit 'ranks'"},
           {rank + "node: 2.5 ranks, 1 s, 1 B/s",
            "2.5 ranks are not possible; the number of ranks must be whole and at most"},
           {rank + "node: 1e9 ranks, 1 s, 1 B/s", "are not possible; the number of ranks must be whole and at most"},
           {rank + "node: 2 ranks, 1 s, 1 s, 1 B/s", "'1 s' is given twice"},
           {rank + "node: -2 ranks, 1 s, 1 B/s", "'-2 ranks' is not a number above 0"},
           {rank + "node: nan ranks, 1 s, 1 B/s", "is not a number above 0"},
           {rank + "node: 2 ranks, 1 xs, 1 B/s", "has the unit 'xs'"},
           {rank + ": 2 ranks, 1 s, 1 B/s", "a name is expected before ':'"}}) {
    EXPECT_NE(error_of(text).find(said), std::string::npos) << text << "\n" << error_of(text);
  }
}

TEST(Topology, AnyBytesAreReadOrRefused) {
  std::mt19937_64 generator(9);
  size_t refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = kText;
    for (uint64_t changes = 1 + generator() % 6; changes > 0; --changes) {
      const size_t at = generator() % text.size();
      switch (generator() % 3) {
        case 0: text[at] = static_cast<char>(generator() % 256); break;
        case 1: text.erase(at, 1 + generator() % 9); break;
        default: text.insert(at, text.substr(generator() % text.size(), generator() % 20)); break;
      }
      if (text.empty()) text = "x";
    }
    try {
      const Topology made = parse_topology(text);
      EXPECT_GE(made.ranks(), 1);
      EXPECT_LE(made.ranks(), int64_t{1} << 24);
      EXPECT_LE(made.levels.size(), 8U);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
}

// A gather of 16 ranks in two nodes: each rank sends its part to one rank of the other node, and then both parts to the
// seven others of its node.
TEST(Lines, BytesCrossTheLevelsThatTheyMust) {
  const Topology topology =
      parse_topology("rank: 1 FLOP/s, 1 B/s\nnode: 8 ranks, 1 s, 10 B/s\ncluster: 2 nodes, 5 s, 1 B/s");
  const Lines lines(topology, {16});
  const global::Sent gather{global::Collective::all_gather, 0, 15};
  std::vector<double> levels(2, 0.0);
  lines.add_bytes(gather, 15, &levels);
  EXPECT_DOUBLE_EQ(levels[0], 14);
  EXPECT_DOUBLE_EQ(levels[1], 1);
  EXPECT_DOUBLE_EQ(lines.seconds(gather, 15), 3 * 1 + 14 / 10.0 + 1 * 5 + 1 / 1.0);
  const global::Sent pairs{global::Collective::all_to_all, 0, 15};
  levels = {0, 0};
  lines.add_bytes(pairs, 15, &levels);
  EXPECT_DOUBLE_EQ(levels[0], 7);
  EXPECT_DOUBLE_EQ(levels[1], 8);
}

TEST(Lines, OfAGridStandWhereTheRanksAre) {
  const Topology topology =
      parse_topology("rank: 1 FLOP/s, 1 B/s\nnode: 4 ranks, 1 s, 10 B/s\ncluster: 3 nodes, 5 s, 1 B/s");
  const Lines lines(topology, {3, 4});
  std::vector<double> levels(2, 0.0);
  lines.add_bytes({global::Collective::all_reduce, 1, 8}, 8, &levels);
  EXPECT_EQ(levels, (std::vector<double>{8, 0}));
  lines.add_bytes({global::Collective::all_reduce, 0, 8}, 8, &levels);
  EXPECT_EQ(levels, (std::vector<double>{8, 8}));
}

}  // namespace
}  // namespace tenon::cluster
