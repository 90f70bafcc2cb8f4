// Kinds that sort or search elements, and random, at the borders of tiles, pieces and levels: on the fake driver, and
// with longer rows on a GPU if there is one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "providers/cuda/kernels/arguments.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

template <class T>
constexpr int32_t dtype_of = std::is_same_v<T, float>    ? EP_DTYPE_f32
                             : std::is_same_v<T, double> ? EP_DTYPE_f64
                                                         : EP_DTYPE_i16;

// A few distinct numbers, including both zeros, infinities and, for floats, NaN.
template <class T>
std::vector<T> numbers_with_equals(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    const auto drawn = static_cast<int32_t>(engine() % 4001) - 2000;
    value = static_cast<T>(drawn);
    if constexpr (std::is_floating_point_v<T>) {
      if (drawn > 1990) value = std::numeric_limits<T>::quiet_NaN();
      if (drawn == 1990) value = -std::numeric_limits<T>::infinity();
      if (drawn % 97 == 0) value = drawn < 0 ? -T{0} : T{0};
    }
  }
  return values;
}

template <class T>
std::vector<int64_t> sorted_positions(const T* row, int64_t length, bool descending) {
  const auto less = [](T x, T y) { return x == x && (y != y || x < y); };
  std::vector<int64_t> positions(static_cast<size_t>(length));
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(),
                   [&](int64_t i, int64_t j) { return descending ? less(row[j], row[i]) : less(row[i], row[j]); });
  return positions;
}

class CudaKernelsInOrder : public FakeCuda {
 protected:
  // Sorts rows, or takes the first k elements of each, and compares bits and positions.
  template <class T>
  void check(int64_t rows, int64_t length, int64_t k, bool descending) {
    const bool whole = k == length;
    const std::vector<T> x = numbers_with_equals<T>(static_cast<size_t>(rows * length), static_cast<uint32_t>(length));
    const auto size = static_cast<size_t>(rows * k);
    ep_primitive_desc desc =
        descriptor(whole ? EP_PRIMITIVE_sort : EP_PRIMITIVE_top_k,
                   {dense(EP_ROLE_DST, dtype_of<T>, {rows, k}), dense(EP_ROLE_DST_INDICES, EP_DTYPE_i64, {rows, k}),
                    dense(EP_ROLE_SRC, dtype_of<T>, {rows, length})});
    if (whole)
      desc.attributes.sort = {1, descending ? 1 : 0};
    else
      desc.attributes.top_k = {1, descending ? 1 : 0};
    ep_memory* values = with(std::vector<T>(size, T{77}));
    ep_memory* places = with(std::vector<int64_t>(size, -1));
    ASSERT_EQ(launch(desc, {values, places, with(x)}), EP_STATUS_OK) << cuda().host.sentence();
    const std::vector<T> got = get<T>(values, size);
    const std::vector<int64_t> at = get<int64_t>(places, size);
    for (int64_t row = 0; row < rows; ++row) {
      const T* const from = x.data() + row * length;
      const std::vector<int64_t> want = sorted_positions(from, length, descending);
      for (int64_t i = 0; i < k; ++i) {
        const auto to = static_cast<size_t>(row * k + i);
        const int64_t place = want[static_cast<size_t>(i)];
        ASSERT_EQ(at[to], place) << rows << " x " << length << ", row " << row << ", element " << i;
        ASSERT_EQ(std::memcmp(&got[to], from + place, sizeof(T)), 0) << rows << " x " << length << " " << i;
      }
    }
  }
};

TEST_F(CudaKernelsInOrder, SortsRowsOfEveryLength) {
  for (const bool descending : {false, true}) {
    check<float>(1, 1, 1, descending);
    check<float>(600, 3, 3, descending);  // one full tile of 256 rows, and one that is not full
    check<float>(3, 512, 512, descending);
    check<float>(2, 1024, 1024, descending);
    check<float>(2, 1025, 1025, descending);
    check<float>(3, 2048, 2048, descending);
    check<float>(1, 4096, 4096, descending);
    check<float>(2, 4097, 4097, descending);
    check<double>(2, 2048, 2048, descending);
    check<double>(2, 2049, 2049, descending);
    check<int16_t>(2, 5000, 5000, descending);
  }
}

// Pieces of several tiles.
TEST_F(CudaKernelsInOrder, SortsLongRows) {
  check<float>(1, on_fake() ? 70001 : 3000001, on_fake() ? 70001 : 3000001, false);
  check<int16_t>(2, on_fake() ? 40000 : 1000003, on_fake() ? 40000 : 1000003, true);
  if (!on_fake()) check<double>(1, 1000003, 1000003, true);
}

// One level, two and three; as many elements as a level takes, and more.
TEST_F(CudaKernelsInOrder, TakesTheFirstOfRowsOfEveryLength) {
  for (const bool largest : {false, true}) {
    check<float>(600, 5, 2, largest);
    check<float>(2, 1024, 1000, largest);
    check<float>(2, 4097, 5, largest);
    check<float>(1, 20001, 1024, largest);
    check<float>(1, 20001, 1025, largest);
    check<double>(2, 9000, 300, largest);
  }
  check<float>(1, on_fake() ? 70001 : 3000001, 64, true);
  if (!on_fake()) check<float>(1000, 5000, 100, true);
}

// Nonzero elements in several pieces; fewer than the rows of the result, and more.
TEST_F(CudaKernelsInOrder, FindsWhatIsNotZero) {
  const int64_t columns = 3, rows = on_fake() ? 25001 : 1000001;
  std::vector<int32_t> x(static_cast<size_t>(rows * columns));
  std::mt19937 engine(3);
  for (int32_t& value : x) value = engine() % 3 == 0 ? static_cast<int32_t>(engine()) | 1 : 0;
  std::vector<int64_t> want;
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (x[static_cast<size_t>(i)] != 0) want.insert(want.end(), {i / columns, i % columns});
  }
  const auto all = static_cast<int64_t>(want.size() / 2);
  for (const int64_t room : {all - 1000, all + 1000}) {
    const ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_nonzero, {dense(EP_ROLE_DST, EP_DTYPE_i64, {room, 2}), dense(EP_ROLE_DST_COUNT, EP_DTYPE_i64, {1}),
                               dense(EP_ROLE_SRC, EP_DTYPE_i32, {rows, columns})});
    ep_memory* result = with(std::vector<int64_t>(static_cast<size_t>(2 * room), 77));
    ep_memory* count = with(std::vector<int64_t>{77});
    ASSERT_EQ(launch(desc, {result, count, with(x)}), EP_STATUS_OK) << cuda().host.sentence();
    EXPECT_EQ(get<int64_t>(count, 1)[0], all);
    std::vector<int64_t> expected = want;
    expected.resize(static_cast<size_t>(2 * room));
    EXPECT_TRUE(get<int64_t>(result, expected.size()) == expected) << room;
  }
}

TEST_F(CudaKernelsInOrder, FindsDifferentElementsOfALongList) {
  const int64_t n = on_fake() ? 20011 : 1000003;
  std::vector<int16_t> x = numbers_with_equals<int16_t>(static_cast<size_t>(n), 5);
  std::map<int16_t, int64_t> first;
  std::map<int16_t, int64_t> counts;
  for (int64_t i = 0; i < n; ++i) {
    first.try_emplace(x[static_cast<size_t>(i)], i);
    ++counts[x[static_cast<size_t>(i)]];
  }
  std::vector<int16_t> different;
  for (const auto& [value, place] : first) different.push_back(value);
  const auto all = static_cast<int64_t>(different.size());
  for (const int32_t order : {EP_UNIQUE_SORTED, EP_UNIQUE_FIRST}) {
    if (order == EP_UNIQUE_FIRST)
      std::sort(different.begin(), different.end(), [&](int16_t a, int16_t b) { return first[a] < first[b]; });
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_unique,
                   {dense(EP_ROLE_DST, EP_DTYPE_i16, {n}), dense(EP_ROLE_DST_COUNT, EP_DTYPE_i64, {1}),
                    dense(EP_ROLE_DST_INDICES, EP_DTYPE_i64, {n}), dense(EP_ROLE_DST_INVERSE, EP_DTYPE_i64, {n}),
                    dense(EP_ROLE_DST_COUNTS, EP_DTYPE_i64, {n}), dense(EP_ROLE_SRC, EP_DTYPE_i16, {n})});
    desc.attributes.unique = {-1, order};
    const auto size = static_cast<size_t>(n);
    const auto poisoned = [&] { return with(std::vector<int64_t>(size, 77)); };
    ep_memory* values = with(std::vector<int16_t>(size, 77));
    ep_memory* const lists[] = {with(std::vector<int64_t>{77}), poisoned(), poisoned(), poisoned()};
    ASSERT_EQ(launch(desc, {values, lists[0], lists[1], lists[2], lists[3], with(x)}), EP_STATUS_OK)
        << cuda().host.sentence();
    ASSERT_EQ(get<int64_t>(lists[0], 1)[0], all);
    const std::vector<int16_t> got = get<int16_t>(values, size);
    const std::vector<int64_t> indices = get<int64_t>(lists[1], size);
    const std::vector<int64_t> inverse = get<int64_t>(lists[2], size);
    const std::vector<int64_t> sizes = get<int64_t>(lists[3], size);
    for (size_t i = 0; i < size; ++i) {
      const bool exists = i < different.size();
      ASSERT_EQ(got[i], exists ? different[i] : 0) << order << " " << i;
      ASSERT_EQ(indices[i], exists ? first[different[i]] : 0) << order << " " << i;
      ASSERT_EQ(sizes[i], exists ? counts[different[i]] : 0) << order << " " << i;
      ASSERT_EQ(different[static_cast<size_t>(inverse[i])], x[i]) << order << " " << i;
    }
  }
}

// The known result of Random123 for counter 0 and key 0. A long run equals its parts, from any address.
TEST_F(CudaKernelsInOrder, RandomWordsAreThoseOfPhilox) {
  const int64_t count = on_fake() ? 5003 : 5000003;
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_random, {dense(EP_ROLE_DST, EP_DTYPE_u32, {count})});
  desc.attributes.random.distribution = EP_RANDOM_BITS;
  const auto size = static_cast<size_t>(count);
  const auto at = [](uint64_t seed, uint64_t offset) {
    return std::vector<ep_scalar>{{EP_DTYPE_u64, 0, {.u64 = seed}}, {EP_DTYPE_u64, 0, {.u64 = offset}}};
  };
  ep_memory* whole = block(size * 4);
  ASSERT_EQ(launch(desc, {whole}, at(0, 0)), EP_STATUS_OK) << cuda().host.sentence();
  const std::vector<uint32_t> words = get<uint32_t>(whole, size);
  EXPECT_EQ(words[0], 0x6627e8d5U);
  EXPECT_EQ(words[1], 0xe169c58dU);
  EXPECT_EQ(words[2], 0xbc57ac4cU);
  EXPECT_EQ(words[3], 0x9b00dbd8U);
  desc.operands[0] = dense(EP_ROLE_DST, EP_DTYPE_u32, {101});
  ep_memory* part = block(101 * 4);
  ASSERT_EQ(launch(desc, {part}, at(0, 700)), EP_STATUS_OK) << cuda().host.sentence();
  const std::vector<uint32_t> later = get<uint32_t>(part, 101);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), words.begin() + 2800));
}

// Their mean, deviation and tails.
TEST_F(CudaKernelsInOrder, NormalNumbersAreNormal) {
  const int64_t count = on_fake() ? 60001 : 4000001;
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_random, {dense(EP_ROLE_DST, EP_DTYPE_f32, {count})});
  desc.attributes.random.distribution = EP_RANDOM_NORMAL;
  ep_memory* result = block(static_cast<uint64_t>(count) * 4);
  ASSERT_EQ(launch(desc, {result}, {{EP_DTYPE_u64, 0, {.u64 = 5}}, {EP_DTYPE_u64, 0, {.u64 = 9}}}), EP_STATUS_OK)
      << cuda().host.sentence();
  double sum = 0, squares = 0, beyond = 0;
  for (const float value : get<float>(result, static_cast<size_t>(count))) {
    sum += value;
    squares += static_cast<double>(value) * value;
    if (std::fabs(value) > 2) ++beyond;
  }
  const auto n = static_cast<double>(count);
  const double error = 5 / std::sqrt(n);
  EXPECT_NEAR(sum / n, 0, error);
  EXPECT_NEAR(squares / n, 1, 1.5 * error);
  EXPECT_NEAR(beyond / n, 0.0455, 0.25 * error);
}

}  // namespace
}  // namespace tenon::provider::cuda
