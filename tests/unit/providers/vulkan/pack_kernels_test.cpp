// Kernels that access 16 bytes at once, on every device: every length and offset, without touching other bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

using provider::dense;
using provider::descriptor;
using provider::scalar_operand;
using provider::strided;
using Image = std::vector<uint8_t>;

constexpr uint64_t image_bytes = 32768;

// A block of random bytes, and its expected content after a launch.
class Board {
 public:
  explicit Board(Device& device, uint32_t seed)
      : device_(device), random_(seed), memory_(device.allocate(image_bytes)) {
    fresh();
  }

  void fresh() {
    for (uint8_t& byte : before) byte = static_cast<uint8_t>(random_());
    after = before;
    device_.ops.upload(device_.stream, {memory_, 0}, before.data(), image_bytes, nullptr);
  }
  uint64_t any(uint64_t end) { return random_() % end; }
  // An offset for `elements` of `size` bytes in third number `part` of the block, aligned in one case of three.
  uint64_t place(uint64_t part, uint64_t size) {
    return part * 10240 + 256 + (any(3) == 0 ? 0 : any(16 / size) * size);
  }
  template <class T>
  T get(uint64_t offset, uint64_t i) const {
    T value;
    std::memcpy(&value, &before[offset + i * sizeof(T)], sizeof(T));
    return value;
  }
  template <class T>
  void put(uint64_t offset, uint64_t i, T value) {
    std::memcpy(&after[offset + i * sizeof(T)], &value, sizeof(T));
  }
  ep_buffer at(uint64_t offset) const { return {memory_, offset}; }

  // Launches, and compares the whole block with `after`.
  void check(const ep_primitive_desc& desc, const std::vector<ep_buffer>& operands,
             const std::vector<ep_scalar>& scalars = {}) {
    ASSERT_EQ(device_.launch(device_.create(desc), operands, scalars), EP_STATUS_OK);
    Image found(image_bytes);
    device_.ops.download(device_.stream, found.data(), {memory_, 0}, image_bytes, nullptr);
    ASSERT_EQ(device_.ops.stream_synchronize(device_.stream, nullptr), EP_STATUS_OK);
    const auto different = std::mismatch(found.begin(), found.end(), after.begin()).first - found.begin();
    EXPECT_EQ(different, static_cast<ptrdiff_t>(image_bytes))
        << operands[0].offset << ", " << operands[1].offset << ": " << desc.operands[0].dims[0] << " elements";
  }

  Image before = Image(image_bytes);
  Image after;

 private:
  Device& device_;
  std::mt19937 random_;
  ep_memory* memory_;
};

ep_primitive_desc xor_of(int32_t dtype, int64_t n, const ep_operand_desc& y) {
  ep_primitive_desc desc =
      descriptor(EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, dtype, {n}), dense(EP_ROLE_SRC, dtype, {n}), y});
  desc.attributes.binary.op = EP_BINARY_bitwise_xor;
  return desc;
}

template <class T>
void check_xor(Device& device, int32_t dtype) {
  Board board(device, 31 + static_cast<uint32_t>(dtype));
  for (int64_t round = 0; round < 40; ++round) {
    const auto n = static_cast<int64_t>(round < 34 ? round + 1 : 200 + board.any(800));
    const uint64_t x = board.place(0, sizeof(T));
    const uint64_t y = board.place(1, sizeof(T));
    const uint64_t dst = round % 4 == 0 ? x : board.place(2, sizeof(T));  // sometimes in place
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<T>(dst, i, board.get<T>(x, i) ^ board.get<T>(y, i));
    board.check(xor_of(dtype, n, dense(EP_ROLE_SRC_B, dtype, {n})), {board.at(dst), board.at(x), board.at(y)});
  }
}

TEST(VulkanPacks, ComputeEveryLengthAtEveryOffset) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  check_xor<uint8_t>(device, EP_DTYPE_u8);
  check_xor<uint8_t>(device, EP_DTYPE_i8);
  check_xor<uint16_t>(device, EP_DTYPE_u16);
  check_xor<uint32_t>(device, EP_DTYPE_i32);
  check_xor<uint64_t>(device, EP_DTYPE_u64);
}

TEST(VulkanPacks, NeedNoNarrowStorage) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}, {"features", "baseline"}});
  check_xor<uint32_t>(device, EP_DTYPE_u32);
}

template <class T>
void check_one_for_all(Device& device, int32_t dtype) {
  Board board(device, 51 + static_cast<uint32_t>(dtype));
  for (int64_t n : {1, 7, 16, 33, 500}) {
    const uint64_t x = board.place(0, sizeof(T));
    const uint64_t y = board.place(1, sizeof(T));
    const uint64_t dst = board.place(2, sizeof(T));
    board.fresh();
    const T value = board.get<T>(y, 0);
    for (int64_t i = 0; i < n; ++i) board.put<T>(dst, i, board.get<T>(x, i) ^ value);
    board.check(xor_of(dtype, n, strided(EP_ROLE_SRC_B, dtype, {n}, {0})), {board.at(dst), board.at(x), board.at(y)});
    board.fresh();
    ep_scalar scalars[2] = {{EP_DTYPE_i32, 0, {}}, {dtype, 0, {}}};
    scalars[1].value.u64 = value;
    for (int64_t i = 0; i < n; ++i) board.put<T>(dst, i, board.get<T>(x, i) ^ value);
    board.check(xor_of(dtype, n, scalar_operand(EP_ROLE_SRC_B, dtype)), {board.at(dst), board.at(x), {}},
                {scalars[0], scalars[1]});
  }
}

TEST(VulkanPacks, TakeOneElementForAllFromMemoryOrTheLaunch) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  check_one_for_all<uint8_t>(device, EP_DTYPE_u8);
  check_one_for_all<uint16_t>(device, EP_DTYPE_u16);
  check_one_for_all<uint32_t>(device, EP_DTYPE_u32);
  check_one_for_all<uint64_t>(device, EP_DTYPE_u64);
}

template <class T>
void check_moves(Device& device, int32_t dtype) {
  Board board(device, 71 + static_cast<uint32_t>(dtype));
  for (int64_t n : {1, 15, 16, 61, 700}) {
    const uint64_t condition = 30976 + board.any(4);
    const uint64_t y = board.place(0, sizeof(T));
    const uint64_t z = board.place(1, sizeof(T));
    const uint64_t dst = board.place(2, sizeof(T));
    board.fresh();
    for (int64_t i = 0; i < n; ++i)
      board.put<T>(dst, i, board.get<uint8_t>(condition, i) != 0 ? board.get<T>(y, i) : board.get<T>(z, i));
    ep_primitive_desc where =
        descriptor(EP_PRIMITIVE_ternary, {dense(EP_ROLE_DST, dtype, {n}), dense(EP_ROLE_SRC, EP_DTYPE_bool, {n}),
                                          dense(EP_ROLE_SRC_B, dtype, {n}), dense(EP_ROLE_SRC_C, dtype, {n})});
    where.attributes.ternary.op = EP_TERNARY_where;
    board.check(where, {board.at(dst), board.at(condition), board.at(y), board.at(z)});
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<T>(dst, i, board.get<T>(y, i));
    board.check(descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, dtype, {n}), dense(EP_ROLE_SRC, dtype, {n})}),
                {board.at(dst), board.at(y)});
  }
}

TEST(VulkanPacks, MoveElementsOfEverySize) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  check_moves<uint8_t>(device, EP_DTYPE_f8e5m2);
  check_moves<uint16_t>(device, EP_DTYPE_f16);
  check_moves<uint32_t>(device, EP_DTYPE_f32);
  check_moves<uint64_t>(device, EP_DTYPE_f64);
}

// Inputs and results of different sizes. Each has its own packs.
TEST(VulkanPacks, ComputeAcrossSizes) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  Board board(device, 91);
  for (int64_t n : {1, 4, 15, 16, 61, 700}) {
    const uint64_t x = board.place(0, 8);
    const uint64_t y = board.place(1, 8);
    const uint64_t dst = board.place(2, 8);
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<uint8_t>(dst, i, board.get<int32_t>(x, i) < board.get<int32_t>(y, i));
    ep_primitive_desc less = xor_of(EP_DTYPE_i32, n, dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {n}));
    less.operands[0].dtype = EP_DTYPE_bool;
    less.attributes.binary.op = EP_BINARY_lt;
    board.check(less, {board.at(dst), board.at(x), board.at(y)});
    const auto cast = [&](int32_t to, int32_t from) {
      board.check(descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, to, {n}), dense(EP_ROLE_SRC, from, {n})}),
                  {board.at(dst), board.at(x)});
    };
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<float>(dst, i, board.get<uint8_t>(x, i));
    cast(EP_DTYPE_f32, EP_DTYPE_u8);
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<int16_t>(dst, i, static_cast<int16_t>(board.get<int32_t>(x, i)));
    cast(EP_DTYPE_i16, EP_DTYPE_i32);
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<int64_t>(dst, i, board.get<int16_t>(x, i));
    cast(EP_DTYPE_i64, EP_DTYPE_i16);
    board.fresh();
    for (int64_t i = 0; i < n; ++i) board.put<uint8_t>(dst, i, board.get<uint64_t>(x, i) != 0);
    cast(EP_DTYPE_bool, EP_DTYPE_u64);
  }
}

TEST(VulkanPacks, TellOfTheDivisorThatIsZero) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  constexpr int64_t n = 1030;
  ep_memory* memory = device.allocate(3 * 4 * n);
  std::vector<int32_t> y(n, 3);
  y[517] = 0;
  device.upload({memory, 0}, std::vector<int32_t>(n, 12));
  device.upload({memory, 4 * n}, y);
  EXPECT_EQ(device.run(device.binary(EP_BINARY_div, n, false), {memory, 8 * n}, {memory, 0}, {memory, 4 * n}, 0, 9),
            EP_STATUS_OK);
  std::vector<int32_t> expected(n, 4);
  expected[517] = 0;
  EXPECT_EQ(device.download({memory, 8 * n}, n), expected);
  ep_fault fault{};
  ASSERT_EQ(device.ops.stream_take_fault(device.stream, &fault, nullptr), EP_STATUS_OK);
  EXPECT_EQ(fault.tag, 9U);
  EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
}

}  // namespace
}  // namespace tenon::testing
