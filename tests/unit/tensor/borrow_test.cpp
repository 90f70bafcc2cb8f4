// Tensor::borrow: memory of the caller is read and written in place, and given back once.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>

#include "core/ops/ops.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

class Borrow : public InFlight {
 protected:
  std::shared_ptr<LentMemory> lend(size_t count) { return LentMemory::of(random_floats(random_, count)); }
  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  // Another handle to, or a view of, one of `held`.
  Tensor another(const std::vector<Tensor>& held) {
    const Tensor& from = held[static_cast<size_t>(below(static_cast<int64_t>(held.size())))];
    if (from.rank() < 2) return from;
    switch (below(5)) {
      case 0: return from;
      case 1: return transpose(from, 0, 1);
      case 2: return slice(from, 0, from.dims()[0] / 2, from.dims()[0]);
      case 3: return select(from, 1, -1);
      default: return unsqueeze(from, 0);
    }
  }
};

TEST_F(Borrow, SharesTheMemoryInBothDirections) {
  const auto lent = lend(12);
  const Tensor tensor = borrow(lent, {3, 4});
  EXPECT_EQ(tensor.data(), lent->values.data());
  EXPECT_EQ(tensor.device(), Device::host());
  EXPECT_EQ(tensor.strides(), (Dims{4, 1}));
  EXPECT_EQ(tensor.to_host<float>(), lent->values);
  lent->values[7] = 40.5f;
  EXPECT_EQ(tensor.to_host<float>()[7], 40.5f);
  Tensor copy = tensor;
  neg_(copy);
  EXPECT_EQ(lent->values[7], -40.5f);
}

TEST_F(Borrow, ASpanIsRowMajorAndMustFillTheShape) {
  std::vector<int32_t> values{1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::borrow(std::span(values), {2, 3});
  EXPECT_EQ(tensor.data(), values.data());
  EXPECT_EQ(tensor.dtype(), DType::i32);
  EXPECT_EQ(tensor.strides(), (Dims{3, 1}));
  fill_(tensor[1], 9);
  tensor.wait();
  EXPECT_EQ(values, (std::vector<int32_t>{1, 2, 3, 9, 9, 9}));
  try {
    Tensor::borrow(std::span(values), {4, 2});
    FAIL() << "six values filled eight places";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "Tensor::borrow: 6 values do not fill shape [4, 2].");
  }
}

TEST_F(Borrow, TheDeleterRunsOnceAfterTheLastHandleOrView) {
  for (int round = 0; round < 20; ++round) {
    const auto lent = lend(24);
    std::vector<Tensor> held{borrow(lent, {4, 6})};
    while (held.size() < 12) held.push_back(another(held));
    std::shuffle(held.begin(), held.end(), random_);
    while (!held.empty()) {
      EXPECT_EQ(lent->returned, 0) << held.size() << " handles are left";
      held.pop_back();
    }
    EXPECT_EQ(lent->returned, 1);
    EXPECT_EQ(lent.use_count(), 1) << "the deleter itself is gone";
  }
}

TEST_F(Borrow, AssignedAndMovedHandlesCountAsOne) {
  const auto lent = lend(4), other = lend(4);
  Tensor tensor = borrow(lent, {4});
  Tensor moved = std::move(tensor);
  EXPECT_FALSE(tensor.defined());
  EXPECT_EQ(lent->returned, 0);
  const Tensor& itself = moved;
  moved = itself;
  EXPECT_EQ(lent->returned, 0);
  moved = borrow(other, {4});
  EXPECT_EQ(lent->returned, 1);
  EXPECT_EQ(other->returned, 0);
  moved = Tensor();
  EXPECT_EQ(other->returned, 1);
}

TEST_F(Borrow, ThreadsThatDropHandlesGiveItBackOnce) {
  for (int round = 0; round < 50; ++round) {
    const auto lent = lend(16);
    Tensor tensor = borrow(lent, {4, 4});
    std::vector<std::thread> threads;
    const std::vector<float> expected = walk(lent->values, {4, 4}, {1, 4});
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([mine = transpose(tensor, 0, 1), &expected]() mutable {
        for (int repeat = 0; repeat < 20; ++repeat) mine = Tensor(mine);
        EXPECT_EQ(mine.to_host<float>(), expected);
        mine = Tensor();
      });
    }
    tensor = Tensor();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(lent->returned, 1);
  }
}

TEST_F(Borrow, NoDeleterIsFine) {
  std::vector<float> values = random_floats(random_, 3);
  EXPECT_EQ(Tensor::borrow(values.data(), {3}, {}, DType::f32, nullptr).to_host<float>(), values);
}

// The deleter overwrites the memory, so that a later read is noticed.
TEST_F(Borrow, WorkInFlightThatReadsItKeepsIt) {
  constexpr int64_t elements = 1 << 18;
  poison(elements);
  const auto lent = lend(elements);
  const std::vector<float> values = lent->values;
  Tensor tensor = Tensor::borrow(lent->values.data(), {elements}, {}, DType::f32, [lent] {
    std::fill(lent->values.begin(), lent->values.end(), -1234.0f);
    ++lent->returned;
  });
  fakes::async_control().hold = true;
  const Tensor there = tensor.to(device());
  tensor = Tensor();
  EXPECT_EQ(lent->returned, 0) << "the copy to the device has not begun";
  fakes::async_control().hold = false;
  EXPECT_EQ(there.to_host<float>(), values);
  while (lent->returned == 0) std::this_thread::yield();
  settle();
  EXPECT_EQ(lent->returned, 1);
}

TEST_F(Borrow, ADeleterOnAThreadOfTheVmIsRefusedWorkAndHarmsNobody) {
  constexpr int64_t elements = 1 << 18;
  const auto lent = lend(elements);
  const std::vector<float> values = lent->values;
  const Tensor other = Tensor::from<float>(values, {elements}, device());
  settle();
  Status inside;
  std::atomic<bool> ended{false};
  fakes::async_control().hold = true;
  Tensor there;
  {
    const Tensor tensor = Tensor::borrow(lent->values.data(), {elements}, {}, DType::f32, [&, lent] {
      inside = error_of([&] { neg(other).to_host<float>(); });
      ended = true;
      throw std::runtime_error("the pool is gone");
    });
    there = tensor.to(device());
  }
  fakes::async_control().hold = false;
  while (!ended) std::this_thread::yield();  // nobody waits, so the launch thread sees the end of the copy
  EXPECT_EQ(inside.code(), Code::invalid_argument);
  EXPECT_NE(inside.message().find("A deleter of borrowed memory may not submit work"), std::string::npos)
      << inside.message();
  EXPECT_EQ(there.to_host<float>(), values);
  EXPECT_EQ(neg(neg(other)).to_host<float>(), values);
}

TEST_F(Borrow, WorkInFlightThatWritesItKeepsIt) {
  constexpr int64_t elements = 1 << 18;
  const auto lent = lend(elements);
  const std::vector<float> source = random_floats(random_, elements);
  const Tensor there = Tensor::from<float>(source, {elements}, device());
  std::atomic<bool> arrived{false};
  Tensor tensor = Tensor::borrow(lent->values.data(), {elements}, {}, DType::f32, [lent, &source, &arrived] {
    arrived = lent->values == source;
    ++lent->returned;
  });
  settle();
  fakes::async_control().hold = true;
  const vm::Operand dst{tensor.impl()->storage, 0, true, true}, src{there.impl()->storage, 0, false, false};
  ASSERT_TRUE(vm::copy(dst, src, elements * sizeof(float), {}).ok());
  tensor = Tensor();
  EXPECT_EQ(lent->returned, 0) << "the copy from the device has not begun";
  fakes::async_control().hold = false;
  while (lent->returned == 0) std::this_thread::yield();
  settle();
  EXPECT_EQ(lent->returned, 1);
  EXPECT_TRUE(arrived);
}

TEST_F(Borrow, FailedWorkGivesItBackToo) {
  const auto lent = lend(64);
  {
    const Tensor there = borrow(lent, {64}).to(device());
    fakes::async_control().fail_launch = 0;
    EXPECT_EQ(error_of([&] { relu(there).wait(); }).code(), Code::internal);
  }
  while (lent->returned == 0) std::this_thread::yield();
  settle();
  EXPECT_EQ(lent->returned, 1);
}

TEST_F(Borrow, ReadsAnyStrides) {
  for (int round = 0; round < 200; ++round) {
    const auto rank = static_cast<int32_t>(round % (EP_MAX_RANK + 1));
    Dims dims, strides;
    int64_t reach = 1;
    for (int32_t axis = 0; axis < rank; ++axis) {
      dims.push_back(below(rank > 4 ? 3 : 6) + 1);
      strides.push_back(below(9));
      reach += (dims[axis] - 1) * strides[axis];
    }
    const auto lent = lend(static_cast<size_t>(reach));
    const Tensor tensor = borrow(lent, dims, strides);
    SCOPED_TRACE(fmt::format("dims {} strides {}", dims, strides));
    const std::vector<float> expected = walk(lent->values, dims, rank == 0 ? Dims{} : strides);
    EXPECT_EQ(tensor.to_host<float>(), expected);
    std::vector<float> negative = expected;
    for (float& value : negative) value = -value;
    EXPECT_EQ(neg(tensor).to_host<float>(), negative);
    EXPECT_EQ(tensor.to(device()).to_host<float>(), expected);
  }
}

// Rows have gaps between them and columns are reversed. The bytes between the elements must not change.
TEST_F(Borrow, AnOpWithOutWritesItsElementsAndNothingElse) {
  const Dims dims{3, 4}, strides{2, 7};
  const std::vector<float> source = random_floats(random_, 12);
  const Tensor input = Tensor::from<float>(source, dims, Device("cpu"));
  for (int way = 0; way < 3; ++way) {
    const auto lent = LentMemory::of(std::vector<float>(26, 99.0f));
    Tensor target = borrow(lent, dims, strides);
    if (way == 0) neg_out(target, input);
    if (way == 1) copy_(target, input);
    if (way == 2) target.copy_from(source.data());
    std::vector<float> expected(26, 99.0f);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t column = 0; column < 4; ++column) {
        expected[row * 2 + column * 7] = (way == 0 ? -1.0f : 1.0f) * source[row * 4 + column];
      }
    }
    EXPECT_EQ(lent->values, expected) << "way " << way;
    add_(target, 1.0);
    EXPECT_EQ(lent->values[0], expected[0] + 1.0f);
    EXPECT_EQ(lent->values[1], 99.0f);
  }
}

TEST_F(Borrow, AnOpComputesTheSameFromMemoryOfAnyAlignment) {
  const std::vector<float> values = random_floats(random_, 8 * 12), weights = random_floats(random_, 12 * 5);
  const Tensor b = Tensor::from<float>(weights, {12, 5}, Device("cpu"));
  const Tensor expected = matmul(Tensor::from<float>(values, {8, 12}, Device("cpu")), b);
  for (size_t shift = 0; shift < 16; ++shift) {
    const auto lent = LentMemory::of(std::vector<float>(8 * 12 + shift, 55.0f));
    std::copy(values.begin(), values.end(), lent->values.begin() + static_cast<std::ptrdiff_t>(shift));
    const Tensor a = Tensor::borrow(lent->values.data() + shift, {8, 12}, {}, DType::f32, nullptr);
    const std::vector<float> got = matmul(a, b).to_host<float>(), wanted = expected.to_host<float>();
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << "shift " << shift;
  }
}

TEST_F(Borrow, AnEmptyTensorNeedsNoMemory) {
  int returned = 0;
  {
    const Tensor tensor = Tensor::borrow(nullptr, {0, 3}, {}, DType::f32, [&] { ++returned; });
    EXPECT_EQ(tensor.dims(), (Dims{0, 3}));
    EXPECT_EQ(tensor.elements(), 0);
    EXPECT_EQ(tensor.bytes(), 0);
    EXPECT_EQ(tensor.data(), nullptr);
    EXPECT_EQ(tensor.to_host<float>(), std::vector<float>());
    EXPECT_EQ(relu(tensor).dims(), (Dims{0, 3}));
    EXPECT_EQ(tensor.to(device()).dims(), (Dims{0, 3}));
    EXPECT_EQ(returned, 0);
  }
  EXPECT_EQ(returned, 1);
}

TEST_F(Borrow, ATensorOfRankZeroHasOneElement) {
  const auto lent = lend(1);
  const Tensor tensor = borrow(lent, {});
  EXPECT_EQ(tensor.rank(), 0);
  EXPECT_EQ(tensor.item(), Scalar(static_cast<double>(lent->values[0])));
}

struct Refusal {
  const char* name;
  bool data;  // given or not
  int64_t past;
  Dims dims, strides;
  DType dtype;
  Code code;
  std::vector<std::string> parts;
};

TEST_F(Borrow, ARefusalSaysWhyAndLeavesTheDeleterAlone) {
  constexpr int64_t big = int64_t{1} << 61;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  constexpr Code bad = Code::invalid_argument;
  const Refusal refusals[] = {
      {"no data", false, 0, {2, 3}, {}, DType::f32, bad, {"no data", "24 bytes", "[2, 3]"}},
      {"no data, strided", false, 0, {2, 3}, {10, 1}, DType::f32, bad, {"no data", "52 bytes", "[10, 1]"}},
      {"a negative stride", true, 0, {2, 3}, {3, -1}, DType::f32, bad, {"[3, -1]", "-1 is negative"}},
      {"a negative stride, no elements", true, 0, {0, 3}, {3, -1}, DType::f32, bad, {"[3, -1]", "-1 is negative"}},
      {"too few strides", true, 0, {2, 3}, {1}, DType::f32, bad, {"[1]", "[2, 3]", "different ranks"}},
      {"too many strides", true, 0, {}, {1}, DType::f32, bad, {"[1]", "[]", "different ranks"}},
      {"a negative dim", true, 0, {2, -3}, {}, DType::f32, bad, {"[2, -3]", "-3 is negative"}},
      {"many elements", true, 0, {most, most, most}, {}, DType::u8, bad, {std::to_string(most), "2^63 - 1"}},
      {"many bytes", true, 0, {big, 2}, {}, DType::f64, bad, {std::to_string(big), "f64", "2^63 - 1"}},
      {"a far element", true, 0, {3, 2}, {most, 1}, DType::u8, bad, {std::to_string(most), "2^63 - 1 bytes"}},
      {"a far byte", true, 0, {2}, {big}, DType::f64, bad, {std::to_string(big), "f64", "2^63 - 1 bytes"}},
      {"an odd address", true, 1, {2}, {}, DType::f32, Code::unsupported, {"1 bytes past a multiple of 4", "f32"}},
      {"half an element", true, 4, {2}, {}, DType::f64, Code::unsupported, {"4 bytes past a multiple of 8", "f64"}},
      {"no dtype", true, 0, {2}, {}, DType::none, bad, {"[2]", "no dtype has number 0"}},
      {"an unknown dtype", true, 0, {2}, {}, static_cast<DType>(99), bad, {"no dtype has number 99"}},
      {"packed, strided", true, 0, {3, 4}, {1, 3}, DType::i4, bad, {"[1, 3]", "[3, 4]", "packed i4"}},
  };
  alignas(8) char memory[64] = {};
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    auto witness = std::make_shared<int>(0);
    void* data = refusal.data ? memory + refusal.past : nullptr;
    expect_error([&] { Tensor::borrow(data, refusal.dims, refusal.strides, refusal.dtype, [witness] { ++*witness; }); },
                 refusal.code, refusal.parts);
    EXPECT_EQ(*witness, 0);
    EXPECT_EQ(witness.use_count(), 1) << "the deleter that was not run is gone";
  }
}

TEST_F(Borrow, RankNineIsRefused) {
  const std::vector<int64_t> nine(9, 1);
  float value = 3;
  bool ran = false;
  expect_error([&] { Tensor::borrow(&value, Dims(std::span(nine)), {}, DType::f32, [&] { ran = true; }); },
               Code::invalid_argument, {"rank 9", "at most rank 8"});
  EXPECT_FALSE(ran);
}

TEST_F(Borrow, PackedTypesTakeHalfAByteEach) {
  std::vector<unsigned char> nibbles = {0x21, 0x43, 0xf5};
  const Tensor tensor = Tensor::borrow(nibbles.data(), {5}, {}, DType::u4, nullptr);
  EXPECT_EQ(tensor.bytes(), 3);
  std::vector<unsigned char> seen(3, 0xa5);
  tensor.copy_to_host(seen.data());
  EXPECT_EQ(seen, nibbles);
  EXPECT_EQ(Tensor::borrow(nibbles.data() + 2, {1}, {}, DType::i4, nullptr).item(), Scalar(5));
}

TEST_F(Borrow, TheDeleterMayUseTensorsItself) {
  const auto first = lend(4), second = lend(4);
  Tensor other = borrow(second, {4});
  std::vector<float> seen;
  Tensor tensor = Tensor::borrow(first->values.data(), {4}, {}, DType::f32, [&] {
    seen = neg(other).to_host<float>();
    other = Tensor();
  });
  tensor = Tensor();
  EXPECT_EQ(second->returned, 1);
  ASSERT_EQ(seen.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(seen[i], -second->values[i]);
}

// A static that is constructed before the runtime, so it is destroyed after the runtime's end.
Tensor outlives_main;

TEST(BorrowDeathTest, TheDeleterRunsAfterMainToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end_with_it = [] {
    static float values[2] = {1.5f, 2.5f};
    outlives_main = Tensor::borrow(values, {2}, {}, DType::f32, [] { std::fputs("given back. ", stderr); });
    if (outlives_main.to_host<float>()[1] != 2.5f) std::abort();
    std::exit(3);
  };
  EXPECT_EXIT(end_with_it(), ::testing::ExitedWithCode(3), "^given back. $");
}

}  // namespace
}  // namespace tenon::testing
