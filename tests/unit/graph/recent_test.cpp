#include "core/graph/recent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::graph {
namespace {

template <class Key, class Value>
std::vector<Key> keys_of(const Recent<Key, Value>& map) {
  std::vector<Key> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

TEST(Recent, DropsTheLeastRecentlyUsedEntry) {
  Recent<std::string, int> map(2);
  EXPECT_FALSE(map.keep("a", 1));
  EXPECT_FALSE(map.keep("b", 2));
  ASSERT_NE(map.find("a"), nullptr);
  const auto dropped = map.keep("c", 3);
  ASSERT_TRUE(dropped);
  EXPECT_EQ(dropped->first, "b");
  EXPECT_EQ(dropped->second, 2);
  EXPECT_EQ(keys_of(map), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(map.find("b"), nullptr);
}

TEST(Recent, ReplacingAValueDropsNothing) {
  Recent<int, int> map(2);
  map.keep(1, 10);
  map.keep(2, 20);
  EXPECT_FALSE(map.keep(1, 11));
  EXPECT_EQ(*map.find(1), 11);
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(keys_of(map), (std::vector<int>{1, 2}));
}

TEST(Recent, LookingWithoutFindingIsNoUse) {
  Recent<int, int> map(2);
  map.keep(1, 10);
  map.keep(2, 20);
  EXPECT_TRUE(map.contains(1));
  EXPECT_EQ(map.keep(3, 30)->first, 1);
}

TEST(Recent, KeepsOneEntryAtLeast) {
  Recent<int, int> map(0);
  map.keep(1, 10);
  EXPECT_EQ(*map.find(1), 10);
  EXPECT_EQ(map.keep(2, 20)->first, 1);
  EXPECT_EQ(map.size(), 1u);
}

TEST(Recent, KeepsItsEntriesWhenMoved) {
  Recent<std::string, std::unique_ptr<int>> first(3);
  first.keep("a", std::make_unique<int>(1));
  first.keep("b", std::make_unique<int>(2));
  Recent<std::string, std::unique_ptr<int>> map(std::move(first));
  EXPECT_EQ(**map.find("a"), 1);
  map.keep("c", std::make_unique<int>(3));
  EXPECT_EQ(map.keep("d", std::make_unique<int>(4))->first, "b");
}

TEST(Recent, AgreesWithAListThatIsSearched) {
  constexpr size_t most = 7;
  Recent<int, int> map(most);
  std::vector<std::pair<int, int>> list;  // the most recently used entry first
  std::mt19937 random(3);
  for (int step = 0; step < 20000; ++step) {
    const int key = static_cast<int>(random() % 12);
    const auto at = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == key; });
    if (random() % 2 == 0) {
      const int* found = map.find(key);
      ASSERT_EQ(found != nullptr, at != list.end());
      if (at == list.end()) continue;
      ASSERT_EQ(*found, at->second);
      std::rotate(list.begin(), at, at + 1);
    } else {
      if (at != list.end()) list.erase(at);
      if (list.size() == most) list.pop_back();
      list.insert(list.begin(), {key, step});
      map.keep(key, step);
    }
    ASSERT_EQ(map.size(), list.size());
    ASSERT_TRUE(std::equal(map.begin(), map.end(), list.begin(), list.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
  }
}

}  // namespace
}  // namespace tenon::graph
