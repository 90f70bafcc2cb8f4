// Every rank of a launch runs these tests. Exchanges are compared with loops over the data that every rank would send.
#include "core/global/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>

#include "primitives/text/format.h"
#include "sdk/provider/float_formats.h"

namespace tenon::global {
namespace {

Communicator& world() {
  static const auto* world = [] {
    Result<std::shared_ptr<Communicator>> joined = Communicator::world();
    if (!joined.ok()) {
      std::fprintf(stderr, "%s\n", joined.status().message().c_str());
      std::exit(1);
    }
    return new std::shared_ptr<Communicator>(joined.value());
  }();
  return **world;
}

// The data of rank `rank`: the same on every rank that asks, different for each rank and number.
std::vector<int64_t> numbers_of(int32_t rank, int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed * 1000 + static_cast<uint64_t>(rank));
  std::uniform_int_distribution<int64_t> values(-9, 9);
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t& number : numbers) number = values(generator) | 1;  // never 0, so that products are meaningful
  return numbers;
}

int64_t combine(Reduction reduction, int64_t a, int64_t b) {
  switch (reduction) {
    case Reduction::sum: return a + b;
    case Reduction::prod: return a * b;
    case Reduction::max: return std::max(a, b);
    default: return std::min(a, b);
  }
}

// Elements of a type as the bytes that are sent.
struct F16 {
  uint16_t bits;
  explicit F16(double value = 0) : bits(static_cast<uint16_t>(provider::F16::from_f32(static_cast<float>(value)))) {}
  friend bool operator==(F16, F16) = default;
};
struct Bf16 {
  uint16_t bits;
  explicit Bf16(double value = 0) : bits(provider::bf16_from_f32(static_cast<float>(value))) {}
  friend bool operator==(Bf16, Bf16) = default;
};

template <class T, DType dtype>
struct Element {
  using Type = T;
  static constexpr DType type = dtype;
};

template <class T>
std::vector<T> as(const std::vector<int64_t>& numbers) {
  std::vector<T> elements;
  for (const int64_t number : numbers) elements.push_back(static_cast<T>(number));
  return elements;
}

template <class T>
std::vector<T> poisoned(size_t count) {
  std::vector<T> elements(count);
  if (count > 0) std::memset(static_cast<void*>(elements.data()), 0xAB, count * sizeof(T));
  return elements;
}

template <class E>
class Elements : public testing::Test {};
using AllElements =
    testing::Types<Element<int8_t, DType::i8>, Element<int16_t, DType::i16>, Element<int32_t, DType::i32>,
                   Element<int64_t, DType::i64>, Element<uint16_t, DType::u16>, Element<uint64_t, DType::u64>,
                   Element<F16, DType::f16>, Element<Bf16, DType::bf16>, Element<float, DType::f32>,
                   Element<double, DType::f64>>;
TYPED_TEST_SUITE(Elements, AllElements);

TYPED_TEST(Elements, AllReduceCombinesWhatEveryRankHas) {
  using T = typename TypeParam::Type;
  Communicator& ranks = world();
  for (const Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min}) {
    // Products are of powers of two, so that no type rounds them.
    const auto values_of = [&](int32_t rank, int64_t count) {
      std::vector<int64_t> numbers = numbers_of(rank, count, 1);
      const bool is_unsigned = TypeParam::type == DType::u16 || TypeParam::type == DType::u64;
      for (int64_t& number : numbers) {
        if (reduction == Reduction::prod) number = (number & 2) != 0 ? 2 : -1;
        if (is_unsigned) number = std::abs(number);
      }
      return numbers;
    };
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{17}, int64_t{70001}}) {
      std::vector<int64_t> wanted;
      for (int32_t rank = 0; rank < ranks.size(); ++rank) {
        const std::vector<int64_t> theirs = values_of(rank, count);
        if (rank == 0) wanted = theirs;
        for (size_t i = 0; rank > 0 && i < theirs.size(); ++i) wanted[i] = combine(reduction, wanted[i], theirs[i]);
      }
      const std::vector<T> src = as<T>(values_of(ranks.rank(), count));
      std::vector<T> dst = poisoned<T>(src.size());
      const Status reduced = ranks.all_reduce(src.data(), dst.data(), count, TypeParam::type, reduction);
      ASSERT_TRUE(reduced.ok()) << reduced.message();
      EXPECT_EQ(dst == as<T>(wanted), true) << count << " elements, reduction " << static_cast<int>(reduction);
      std::vector<T> both = src;
      ASSERT_TRUE(ranks.all_reduce(both.data(), both.data(), count, TypeParam::type, reduction).ok());
      EXPECT_EQ(both == dst, true) << "in place";
    }
  }
}

// Rank k has k elements more than rank 0, and rank 2 none.
std::vector<int64_t> uneven_counts(int32_t ranks) {
  std::vector<int64_t> counts;
  for (int32_t rank = 0; rank < ranks; ++rank) counts.push_back(rank == 2 ? 0 : 1000 + rank);
  return counts;
}

TYPED_TEST(Elements, AllGatherPutsUnevenPartsInTheOrderOfRanks) {
  using T = typename TypeParam::Type;
  Communicator& ranks = world();
  const std::vector<int64_t> counts = uneven_counts(ranks.size());
  std::vector<T> wanted;
  for (int32_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<T> theirs = as<T>(numbers_of(rank, counts[static_cast<size_t>(rank)], 2));
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  const std::vector<T> src = as<T>(numbers_of(ranks.rank(), counts[static_cast<size_t>(ranks.rank())], 2));
  std::vector<T> dst = poisoned<T>(wanted.size());
  const Status gathered = ranks.all_gather(src.data(), dst.data(), counts, TypeParam::type);
  ASSERT_TRUE(gathered.ok()) << gathered.message();
  EXPECT_EQ(dst == wanted, true);
}

TEST(Communicator, ReduceScatterGivesEachRankItsPartOfTheSums) {
  Communicator& ranks = world();
  const std::vector<int64_t> counts = uneven_counts(ranks.size());
  int64_t total = 0, begin = 0;
  for (int32_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank < ranks.rank()) begin += counts[static_cast<size_t>(rank)];
    total += counts[static_cast<size_t>(rank)];
  }
  std::vector<int64_t> sums(static_cast<size_t>(total));
  for (int32_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<int64_t> theirs = numbers_of(rank, total, 3);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
  }
  const int64_t own = counts[static_cast<size_t>(ranks.rank())];
  const std::vector<double> src = as<double>(numbers_of(ranks.rank(), total, 3));
  std::vector<double> dst = poisoned<double>(static_cast<size_t>(own));
  const Status scattered = ranks.reduce_scatter(src.data(), dst.data(), counts, DType::f64, Reduction::sum);
  ASSERT_TRUE(scattered.ok()) << scattered.message();
  const std::vector<double> all = as<double>(sums);
  EXPECT_TRUE(std::equal(dst.begin(), dst.end(), all.begin() + begin));
}

TEST(Communicator, AllToAllGivesEachPairItsPart) {
  Communicator& ranks = world();
  const int32_t n = ranks.size(), own = ranks.rank();
  const auto count = [n](int32_t from, int32_t to) { return int64_t{(from * n + to) % 3 * 500}; };  // some are empty
  std::vector<int64_t> src_counts, dst_counts, src, wanted;
  for (int32_t rank = 0; rank < n; ++rank) {
    src_counts.push_back(count(own, rank));
    dst_counts.push_back(count(rank, own));
    const auto part = numbers_of(own * 100 + rank, count(own, rank), 4);
    src.insert(src.end(), part.begin(), part.end());
    const auto theirs = numbers_of(rank * 100 + own, count(rank, own), 4);
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  std::vector<int64_t> dst = poisoned<int64_t>(wanted.size());
  const Status exchanged = ranks.all_to_all(src.data(), dst.data(), src_counts, dst_counts, DType::i64);
  ASSERT_TRUE(exchanged.ok()) << exchanged.message();
  EXPECT_EQ(dst, wanted);
}

TEST(Communicator, BroadcastGivesAllWhatTheRootHas) {
  Communicator& ranks = world();
  for (int32_t root = 0; root < ranks.size(); ++root) {
    std::vector<int64_t> data = numbers_of(ranks.rank(), 3001, 5);
    const Status sent = ranks.broadcast(data.data(), 3001, DType::i64, root);
    ASSERT_TRUE(sent.ok()) << sent.message();
    EXPECT_EQ(data, numbers_of(root, 3001, 5)) << "from rank " << root;
  }
}

// Each pair in turn; the other ranks continue to the barrier.
TEST(Communicator, SendAndReceiveMoveBetweenTwo) {
  Communicator& ranks = world();
  for (int32_t from = 0; from < ranks.size(); ++from) {
    for (int32_t to = 0; to < ranks.size(); ++to) {
      if (from == to) continue;
      const std::vector<int64_t> sent = numbers_of(from * 10 + to, 2049, 6);
      if (ranks.rank() == from) {
        ASSERT_TRUE(ranks.send(sent.data(), 2049, DType::i64, to).ok());
      }
      if (ranks.rank() != to) continue;
      std::vector<int64_t> got = poisoned<int64_t>(2049);
      const Status received = ranks.receive(got.data(), 2049, DType::i64, from);
      ASSERT_TRUE(received.ok()) << received.message();
      EXPECT_EQ(got, sent) << "from " << from << " to " << to;
    }
  }
  EXPECT_TRUE(ranks.barrier().ok());
}

TEST(Communicator, BoolsReduceByAnyAndAll) {
  Communicator& ranks = world();
  const std::vector<uint8_t> src = {1, 0, static_cast<uint8_t>(ranks.rank() == 0)};
  std::vector<uint8_t> any(3, 7), all(3, 7);
  ASSERT_TRUE(ranks.all_reduce(src.data(), any.data(), 3, DType::boolean, Reduction::any).ok());
  ASSERT_TRUE(ranks.all_reduce(src.data(), all.data(), 3, DType::boolean, Reduction::all).ok());
  EXPECT_EQ(any, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(all, (std::vector<uint8_t>{1, 0, static_cast<uint8_t>(ranks.size() == 1)}));
}

TEST(Communicator, ExtremesKeepNaN) {
  Communicator& ranks = world();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float last = ranks.rank() == ranks.size() - 1 ? nan : 1.0F, first = ranks.rank() == 0 ? nan : 1.0F;
  for (const Reduction reduction : {Reduction::max, Reduction::min}) {
    const float src[] = {last, first, static_cast<float>(ranks.rank())};
    float dst[3] = {-7, -7, -7};
    ASSERT_TRUE(ranks.all_reduce(src, dst, 3, DType::f32, reduction).ok());
    EXPECT_TRUE(std::isnan(dst[0]) && std::isnan(dst[1]));
    EXPECT_EQ(dst[2], reduction == Reduction::max ? static_cast<float>(ranks.size() - 1) : 0.0F);
  }
}

TEST(Communicator, SplitNumbersTheRanksOfAColorByKey) {
  Communicator& ranks = world();
  const int32_t color = ranks.rank() % 2;
  const Result<std::shared_ptr<Communicator>> part = ranks.split(color, -ranks.rank());
  ASSERT_TRUE(part.ok()) << part.status().message();
  Communicator& own = *part.value();
  EXPECT_EQ(own.size(), (ranks.size() + 1 - color) / 2);
  EXPECT_EQ(own.rank(), own.size() - 1 - ranks.rank() / 2) << "the greatest rank has the least key";
  int32_t sum = ranks.rank();
  ASSERT_TRUE(own.all_reduce(&sum, &sum, 1, DType::i32, Reduction::sum).ok());
  int32_t wanted = 0;
  for (int32_t rank = color; rank < ranks.size(); rank += 2) wanted += rank;
  EXPECT_EQ(sum, wanted);
  const Result<std::shared_ptr<Communicator>> without = ranks.split(ranks.rank() == 0 ? -1 : 0, 0);
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_EQ(without.value() == nullptr, ranks.rank() == 0);
  if (ranks.rank() > 0) {
    EXPECT_EQ(without.value()->size(), ranks.size() - 1);
  }
}

TEST(Communicator, RefusesOnSightAndGoesOn) {
  Communicator& ranks = world();
  int32_t value = 1;
  EXPECT_EQ(ranks.all_reduce(&value, &value, 1, DType::i4, Reduction::sum).code(), Code::unsupported);
  EXPECT_EQ(ranks.all_reduce(&value, &value, 1, DType::i32, Reduction::any).message(),
            "all_reduce of i32 does not support reduction number 6.");
  EXPECT_EQ(ranks.all_reduce(&value, &value, -1, DType::i32, Reduction::sum).message(),
            "all_reduce of -1 elements: a count must be at least 0.");
  const std::vector<int64_t> counts(static_cast<size_t>(ranks.size() + 1));
  EXPECT_EQ(ranks.all_gather(&value, &value, counts, DType::i32).message(),
            fmt::format("all_gather has {} counts, and there are {} ranks.", ranks.size() + 1, ranks.size()));
  EXPECT_EQ(ranks.broadcast(&value, 1, DType::i32, ranks.size()).code(), Code::invalid_argument);
  EXPECT_EQ(ranks.send(&value, 1, DType::i32, ranks.rank()).code(), Code::invalid_argument);
  EXPECT_TRUE(ranks.barrier().ok());
}

// Random exchanges one after the other, the same on all ranks by the seed, without a pause between them.
TEST(Communicator, ManyExchangesKeepTheirOrder) {
  Communicator& ranks = world();
  std::mt19937 generator(11);
  for (int round = 0; round < 300; ++round) {
    const int64_t count = std::uniform_int_distribution<int64_t>(0, 5000)(generator);
    const auto root = static_cast<int32_t>(generator() % static_cast<uint32_t>(ranks.size()));
    const auto seed = static_cast<uint64_t>(round + 100);
    std::vector<int64_t> own = numbers_of(ranks.rank(), count, seed);
    if (generator() % 2 == 0) {
      ASSERT_TRUE(ranks.broadcast(own.data(), count, DType::i64, root).ok());
      ASSERT_EQ(own, numbers_of(root, count, seed)) << "round " << round;
    } else {
      ASSERT_TRUE(ranks.all_reduce(own.data(), own.data(), count, DType::i64, Reduction::sum).ok());
      std::vector<int64_t> wanted(static_cast<size_t>(count));
      for (int32_t rank = 0; rank < ranks.size(); ++rank) {
        const std::vector<int64_t> theirs = numbers_of(rank, count, seed);
        for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += theirs[i];
      }
      ASSERT_EQ(own, wanted) << "round " << round;
    }
  }
}

// Larger than what is sent at once, and than what is sent in one piece.
TEST(Communicator, LargeReductions) {
  const char* carrier = std::getenv("TENON_COLLECTIVES");
  const bool fast = carrier != nullptr && std::string_view(carrier) == "mpi";
  const auto of = [](int32_t rank, int64_t i) { return static_cast<float>((i + rank) % 11 - 5); };
  const auto sum = [&of](int64_t i) {
    float total = 0;
    for (int32_t rank = 0; rank < world().size(); ++rank) total += of(rank, i);
    return total;
  };
  for (const int64_t count : {int64_t{9'001}, int64_t{300'002}, int64_t{fast ? 17'000'003 : 40'003}}) {
    std::vector<float> src(static_cast<size_t>(count)), dst(src.size(), -1);
    for (int64_t i = 0; i < count; ++i) src[static_cast<size_t>(i)] = of(world().rank(), i);
    ASSERT_TRUE(world().all_reduce(src.data(), dst.data(), count, DType::f32, Reduction::sum).ok());
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) wrong += dst[static_cast<size_t>(i)] != sum(i) ? 1 : 0;
    EXPECT_EQ(wrong, 0) << count;

    std::vector<int64_t> counts(static_cast<size_t>(world().size()), count / world().size() / 2);
    counts.back() += count - std::accumulate(counts.begin(), counts.end(), int64_t{0});
    const int64_t first = counts.front() * world().rank(), own = counts[static_cast<size_t>(world().rank())];
    ASSERT_TRUE(world().reduce_scatter(src.data(), dst.data(), counts, DType::f32, Reduction::sum).ok());
    for (int64_t i = 0; i < own; ++i) wrong += dst[static_cast<size_t>(i)] != sum(first + i) ? 1 : 0;
    EXPECT_EQ(wrong, 0) << count;

    ASSERT_TRUE(world().all_reduce(src.data(), src.data(), count, DType::f32, Reduction::max).ok());
    for (int64_t i = 0; i < count; ++i) {
      float most = of(0, i);
      for (int32_t rank = 1; rank < world().size(); ++rank) most = std::max(most, of(rank, i));
      wrong += src[static_cast<size_t>(i)] != most ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << count;
  }
}

}  // namespace
}  // namespace tenon::global
