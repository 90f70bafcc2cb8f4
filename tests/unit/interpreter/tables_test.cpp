// The tables of a thread, which remember its calls.
#include "core/interpreter/tables.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/interpreter/prepared_index.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

constexpr uint64_t kSignatures = 10'000;

std::unique_ptr<Prepared> with_key(uint64_t number, size_t operands) {
  auto prepared = std::make_unique<Prepared>();
  prepared->key = {number * 77, number, ~number};
  prepared->op = op_table().data();
  prepared->device = Device("cpu").state();
  prepared->outputs.resize(1);
  prepared->operands.resize(operands);
  return prepared;
}

uint64_t hash_of(const Prepared& prepared) { return tenon::hash_of(prepared.key.data(), prepared.key.size()); }

// The number of hits among `count` signatures in one round.
uint64_t hits(Tables& tables, uint64_t count) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto probe = with_key(i, 0);
    const PreparedEntry* entry = tables.find(hash_of(*probe), probe->key.data(), probe->key.size());
    found += entry != nullptr && entry->prepared->key == probe->key;
  }
  return found;
}

TEST(Tables, KeepTenThousandSignaturesInRotation) {
  Tables tables;
  for (uint64_t i = 0; i < kSignatures; ++i) {
    std::unique_ptr<Prepared> prepared = with_key(i, 3);
    const uint64_t hash = hash_of(*prepared);
    ASSERT_NE(tables.insert(hash, std::move(prepared)), nullptr);
  }
  for (int round = 0; round < 3; ++round) EXPECT_GE(hits(tables, kSignatures), kSignatures * 99 / 100);
}

TEST(Tables, AreBoundedByBytesAndForgetWhatWasUsedLeast) {
  Tables tables;
  for (uint64_t i = 0; i < 10 * kSignatures; ++i) {
    std::unique_ptr<Prepared> prepared = with_key(i, 8);
    const uint64_t hash = hash_of(*prepared);
    tables.insert(hash, std::move(prepared));
    if (i % 50 == 9) {
      ASSERT_EQ(hits(tables, 10), 10u) << "what is used all the time was forgotten after " << i;
    }
    ASSERT_LE(tables.prepared_bytes(), Tables::kPreparedBytes);
  }
}

TEST(Tables, FindNothingThatWasRemovedAndAllThatWasNot) {
  Tables tables;
  uint64_t last = 0;
  for (uint64_t i = 0; i < 5 * kSignatures; ++i) {
    std::unique_ptr<Prepared> prepared = with_key(i, 16);
    const uint64_t hash = hash_of(*prepared);
    const PreparedEntry* entry = tables.insert(hash, std::move(prepared));
    ASSERT_NE(entry, nullptr);
    ASSERT_EQ(entry->prepared->key[1], i);
    last = i;
  }
  uint64_t found = 0;
  for (uint64_t i = 0; i <= last; ++i) {
    const auto probe = with_key(i, 0);
    found += tables.find(hash_of(*probe), probe->key.data(), probe->key.size()) != nullptr;
  }
  EXPECT_GT(found, 1000u);
  EXPECT_LT(found, last);
}

TEST(PreparedIndex, SharesBetweenThreadsAndKeepsNothingAlive) {
  const Tensor x = positive_floats({7, 9}, 1, Device("cpu"));
  std::unique_ptr<Prepared> made = with_key(123456, 1);
  const std::vector<uint64_t> key = made->key;
  const uint64_t hash = hash_of(*made);
  std::shared_ptr<const Prepared> mine = share_prepared(hash, std::move(made));
  std::thread([&] {
    EXPECT_EQ(find_prepared(hash, key.data(), key.size()), mine);
    EXPECT_EQ(share_prepared(hash, with_key(123456, 1)), mine);
  }).join();
  mine = nullptr;
  EXPECT_EQ(find_prepared(hash, key.data(), key.size()), nullptr);
}

}  // namespace
}  // namespace tenon
