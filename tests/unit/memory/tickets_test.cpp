// The allocator's handling of the tickets of blocks that are freed while work uses them. The next owner of the bytes
// must get every ticket, whatever happened to the bytes in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <vector>

#include "core/memory/caching_allocator.h"
#include "core/memory/size_class.h"
#include "core/vm/engine.h"
#include "tests/unit/memory/counting_device.h"

namespace tenon::memory {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A stream of the VM whose instructions complete when the test says so.
class TestStream {
 public:
  explicit TestStream(uint16_t id) : id_(id) {
    stream_.id = id;
    vm::engine().streams[id] = &stream_;
  }
  ~TestStream() { vm::engine().streams[id_] = nullptr; }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  Ticket ticket(uint64_t number) const { return Ticket::make(id_, number); }
  void retire(uint64_t number) { stream_.retired = number; }

 private:
  uint16_t id_;
  vm::Stream stream_;
};

class Tickets : public ::testing::Test {
 protected:
  Tickets() {
    for (uint16_t i = 0; i < 8; ++i) streams_[i] = std::make_unique<TestStream>(static_cast<uint16_t>(4000 + i));
  }
  ~Tickets() override {
    for (const auto& stream : streams_) stream->retire(1000);
    allocator_.reset();
    EXPECT_EQ(device_.provider().held, 0u);
  }

  Block take(uint64_t bytes) {
    waits_.clear();
    Result<Block> block = allocator_->allocate(bytes, &waits_);
    EXPECT_TRUE(block.ok()) << block.status().message();
    return block.value();
  }
  void give(const Block& block, const std::vector<Ticket>& pending = {}) { allocator_->release(block, pending); }
  Ticket ticket(size_t stream, uint64_t number = 1) const { return streams_[stream]->ticket(number); }

  // The streams of the tickets that the last take() returned, as indices of streams_.
  std::set<int> waited_for() const {
    std::set<int> found;
    for (Ticket ticket : waits_) found.insert(ticket.stream() - 4000);
    return found;
  }

  CountingDevice device_;
  std::array<std::unique_ptr<TestStream>, 8> streams_;
  std::unique_ptr<Allocator> allocator_ = make_allocator(&device_.opened());
  TicketList waits_;
};

TEST_F(Tickets, ComeWithABlockUntilTheyAreDone) {
  for (uint64_t bytes : {uint64_t{3 * kMiB}, uint64_t{100000}, kSmallLimit}) {
    std::vector<Block> others;  // the rest of a slab, so that no block without tickets is left
    for (int i = 0; bytes == kSmallLimit && i < 7; ++i) others.push_back(take(bytes));
    give(take(bytes), {ticket(0, 3), ticket(1, 5)});
    const Block again = take(bytes);
    EXPECT_EQ(waited_for(), (std::set<int>{0, 1})) << bytes;
    give(again, {ticket(0, 3), ticket(1, 5)});
    streams_[1]->retire(5);
    const Block once_more = take(bytes);
    EXPECT_EQ(waited_for(), (std::set<int>{0})) << bytes;
    streams_[0]->retire(3);
    give(once_more, {ticket(0, 3)});
    const Block free = take(bytes);
    EXPECT_TRUE(waits_.empty()) << bytes;
    give(free);
    for (const Block& block : others) give(block);
    for (const auto& stream : streams_) stream->retire(0);
  }
}

TEST_F(Tickets, OfANeighbourStayWithTheBytesInWhateverOrderTheyAreFreed) {
  std::array<int, 3> order{0, 1, 2};
  do {
    std::array<Block, 3> blocks{take(kMiB / 4), take(kMiB / 4), take(kMiB / 4)};
    ASSERT_EQ(blocks[1].offset, blocks[0].offset + kMiB / 4);
    ASSERT_EQ(blocks[2].offset, blocks[1].offset + kMiB / 4);
    for (int i : order) give(blocks[static_cast<size_t>(i)], {ticket(static_cast<size_t>(i))});
    const Block whole = take(2 * kMiB);  // the whole extent
    EXPECT_EQ(whole.memory, blocks[0].memory);
    EXPECT_EQ(waited_for(), (std::set<int>{0, 1, 2})) << order[0] << order[1] << order[2];
    for (const auto& stream : streams_) stream->retire(1);
    give(whole);
    for (const auto& stream : streams_) stream->retire(0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Tickets, OfABlockThatIsCutStayWithBothParts) {
  give(take(2 * kMiB), {ticket(2)});
  const Block part = take(kMiB / 2);
  EXPECT_EQ(waited_for(), (std::set<int>{2}));
  const Block rest = take(kMiB + kMiB / 2);
  EXPECT_EQ(rest.memory, part.memory);
  EXPECT_EQ(waited_for(), (std::set<int>{2}));
  give(part);
  give(rest);
}

TEST_F(Tickets, OfARangeCutIntoSmallBlocksComeWithEachOfThem) {
  give(take(2 * kMiB), {ticket(3)});
  std::vector<Block> small;
  for (int i = 0; i < 8; ++i) {
    small.push_back(take(kSmallLimit));
    EXPECT_EQ(waited_for(), (std::set<int>{3})) << i;
  }
  for (const Block& block : small) give(block);
}

// Eight blocks fill a slab of the largest class. Each is freed with its own ticket.
TEST_F(Tickets, OfSmallBlocksOutliveTheSlabTheyWereCutFrom) {
  std::vector<Block> small;
  for (int i = 0; i < 8; ++i) small.push_back(take(kSmallLimit));
  for (size_t i = 0; i < 8; ++i) give(small[i], {ticket(i)});
  allocator_->trim();  // the slab returns to the heap; its extent does not return to the provider
  EXPECT_EQ(device_.provider().blocks, 1u);
  const Block whole = take(2 * kMiB);
  EXPECT_EQ(whole.memory, small[0].memory);
  EXPECT_EQ(waited_for(), (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  give(whole);
}

TEST_F(Tickets, KeepAnExtentFromTheProviderUntilTheyAreDone) {
  give(take(4 * kMiB), {ticket(4, 9)});
  streams_[4]->retire(8);
  allocator_->trim();
  EXPECT_EQ(device_.provider().blocks, 1u);
  allocator_->tick();
  allocator_->tick();
  EXPECT_EQ(device_.provider().blocks, 1u);
  streams_[4]->retire(9);
  allocator_->trim();
  EXPECT_EQ(device_.provider().blocks, 0u);
}

TEST_F(Tickets, AreAvoidedWhereBytesWithoutAnyFit) {
  for (uint64_t bytes : {uint64_t{3 * kMiB}, uint64_t{700}}) {
    const Block pending = take(bytes), clean = take(bytes);
    give(pending, {ticket(5)});
    give(clean);
    const Block taken = take(bytes);
    EXPECT_TRUE(waits_.empty()) << bytes;
    EXPECT_EQ(taken.offset, clean.offset) << bytes;
    give(taken);
  }
}

TEST_F(Tickets, OfOneStreamAreOneTheLatest) {
  give(take(kMiB), {ticket(6, 2), ticket(6, 7), ticket(6, 4)});
  const Block again = take(kMiB);
  ASSERT_EQ(waits_.size(), 1u);
  EXPECT_EQ(waits_.begin()->number(), 7u);
  give(again);
}

}  // namespace
}  // namespace tenon::memory
