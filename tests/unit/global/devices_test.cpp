// Every rank of a launch runs these tests, each with a device of its own (GLOBAL_DEVICES names their provider). The
// plug-in sends the memory of the devices directly if it can, otherwise through the host.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "core/global/communicator.h"
#include "core/global/global.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

Communicator& world() { return *value_or_throw(Communicator::world()); }

std::string_view provider() {
  const char* named = std::getenv("GLOBAL_DEVICES");
  return named != nullptr ? named : "cuda";
}
Device own_device() { return Placement::all(provider()).device(); }

// How often this rank has requested an exchange from NCCL; -1 if NCCL is not the fake, because only the fake counts.
int64_t calls() {
  void* const nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (nccl == nullptr) return -1;
  const auto count = reinterpret_cast<uint64_t (*)()>(dlsym(nccl, "fake_nccl_calls"));
  return count != nullptr ? static_cast<int64_t>(count()) : -1;
}

// Element i of the data of rank `rank`.
float value_of(int32_t rank, int64_t i) { return static_cast<float>((i * 5 + rank * 3) % 11 - 4); }

Tensor on_device(const std::vector<float>& values) {
  return Tensor::from(std::span<const float>(values), {values.size()}, own_device());
}
Tensor room(int64_t elements) { return tenon::full({elements}, -99.0, DType::f32, own_device()); }

std::vector<float> values_of(int32_t rank, int64_t begin, int64_t count) {
  std::vector<float> values;
  for (int64_t i = begin; i < begin + count; ++i) values.push_back(value_of(rank, i));
  return values;
}
std::vector<float> sums(int64_t begin, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int32_t rank = 0; rank < world().size(); ++rank) {
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] += value_of(rank, begin + i);
  }
  return values;
}

TEST(Devices, TheCommunicatorSaysWhatItCarries) {
  const Device own = own_device();
  EXPECT_TRUE(world().carries(own, DType::f32, true));
  EXPECT_TRUE(world().carries(own, DType::bf16, true));
  EXPECT_TRUE(world().carries(own, DType::boolean, false));
  EXPECT_TRUE(world().carries(own, DType::i16, false));
  EXPECT_FALSE(world().carries(own, DType::i16, true)) << "NCCL sums no i16";
  EXPECT_FALSE(world().carries(own, DType::i4, false)) << "its elements do not fill whole bytes";
  EXPECT_FALSE(world().carries(Device::host(), DType::f32, true));
}

TEST(Devices, OneDeviceForTwoRanksGoesThroughTheHost) {
  const Device first(fmt::format("{}:0", provider()));
  const std::shared_ptr<Communicator> part = value_or_throw(world().split(0, world().rank()));
  EXPECT_EQ(part->carries(first, DType::f32, true), part->size() == 1);
}

TEST(Devices, ExchangesOfTensorsGiveWhatALoopGives) {
  Communicator& ranks = world();
  const int32_t n = ranks.size(), own = ranks.rank();
  const int64_t before = calls();
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{1003}}) {
    const Tensor src = on_device(values_of(own, 0, count)), all = room(count);
    ASSERT_EQ(ranks.call(src, all, {Collective::all_reduce}).message(), "");
    EXPECT_EQ(all.to_host<float>(), sums(0, count)) << "all_reduce of " << count;
    EXPECT_EQ(src.to_host<float>(), values_of(own, 0, count)) << "its source";

    // Even parts and uneven ones; rank 2 has none of the latter.
    for (const int64_t step : {0, 1}) {
      std::vector<int64_t> counts;
      for (int32_t rank = 0; rank < n; ++rank) counts.push_back(step == 1 && rank == 2 ? 0 : count + rank * step);
      const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
      const int64_t mine = counts[static_cast<size_t>(own)];
      const int64_t begin = std::accumulate(counts.begin(), counts.begin() + own, int64_t{0});
      const Tensor gathered = room(total), scattered = room(mine);
      ASSERT_EQ(
          ranks.call(on_device(values_of(own, 0, mine)), gathered, {Collective::all_gather, Reduction::sum, counts})
              .message(),
          "");
      std::vector<float> wanted;
      for (int32_t rank = 0; rank < n; ++rank) {
        const std::vector<float> theirs = values_of(rank, 0, counts[static_cast<size_t>(rank)]);
        wanted.insert(wanted.end(), theirs.begin(), theirs.end());
      }
      EXPECT_EQ(gathered.to_host<float>(), wanted) << "all_gather of " << count << " by " << step;
      ASSERT_EQ(ranks
                    .call(on_device(values_of(own, 0, total)), scattered,
                          {Collective::reduce_scatter, Reduction::sum, counts})
                    .message(),
                "");
      EXPECT_EQ(scattered.to_host<float>(), sums(begin, mine)) << "reduce_scatter of " << count << " by " << step;

      // Rank a sends each rank counts[a] elements.
      const std::vector<int64_t> sent(static_cast<size_t>(n), mine);
      const Tensor received = room(total);
      ASSERT_EQ(ranks
                    .call(on_device(values_of(own, 0, mine * n)), received,
                          {Collective::all_to_all, Reduction::sum, sent, counts})
                    .message(),
                "");
      wanted.clear();
      for (int32_t rank = 0; rank < n; ++rank) {
        const int64_t each = counts[static_cast<size_t>(rank)];
        const std::vector<float> theirs = values_of(rank, each * own, each);
        wanted.insert(wanted.end(), theirs.begin(), theirs.end());
      }
      EXPECT_EQ(received.to_host<float>(), wanted) << "all_to_all of " << count << " by " << step;
    }
  }
  if (before >= 0) {
    EXPECT_GT(calls(), before);
  }
}

// A part of a tensor that does not start at the beginning of its memory.
TEST(Devices, PartsOfTensorsTravelToo) {
  const Tensor whole = on_device(values_of(world().rank(), 0, 100)), result = room(100);
  const Tensor part = tenon::slice(whole, 0, 37, 60), half = tenon::slice(result, 0, 50, 73);
  ASSERT_EQ(world().call(part, half, {Collective::all_reduce}).message(), "");
  std::vector<float> wanted(100, -99.0F);
  const std::vector<float> sum = sums(37, 23);
  std::copy(sum.begin(), sum.end(), wanted.begin() + 50);
  EXPECT_EQ(result.to_host<float>(), wanted);
}

TEST(Devices, BoxingStaysOnTheDevicesWhereItCan) {
  if (world().size() == 1) GTEST_SKIP() << "nothing moves on one rank";
  const Placement all = Placement::all(provider());
  const int64_t before = calls();
  const Tensor sum =
      to_global(to_global(on_device(values_of(world().rank(), 0, 30)), all, {Sbp::partial()}), {Sbp::broadcast()});
  EXPECT_EQ(to_local(sum).to_host<float>(), sums(0, 30));
  EXPECT_EQ(to_local(sum).device(), own_device());
  const int64_t after = calls();
  if (before >= 0) {
    EXPECT_EQ(after - before, 1);
  }
  const Tensor small = to_global(
      to_global(on_device(values_of(world().rank(), 0, 30)).to(DType::i16), all, {Sbp::partial()}), {Sbp::broadcast()});
  EXPECT_EQ(to_local(small).to(DType::f32).to_host<float>(), sums(0, 30));
  EXPECT_EQ(calls(), after) << "NCCL sums no i16";
}

// Must be last: a difference breaks the communicator. The test uses one of its own.
TEST(Devices, RanksThatDifferInMemoryAreNamed) {
  if (world().size() == 1) GTEST_SKIP() << "one rank does not differ";
  const std::shared_ptr<Communicator> part = value_or_throw(world().split(0, world().rank()));
  ASSERT_TRUE(part->carries(own_device(), DType::f32, true));
  const bool on_host = part->rank() == 0;
  const Tensor data = on_device(values_of(part->rank(), 0, 8));
  const Tensor there = on_host ? data.to(Device::host()) : data;
  const Tensor result = Tensor::empty({8}, DType::f32, there.device());
  const std::string said(part->call(there, result, {Collective::all_reduce}).message());
  EXPECT_NE(said.find("The ranks do not agree"), std::string::npos) << said;
  EXPECT_NE(said.find("all_reduce of f32[8] on devices"), std::string::npos) << said;
}

}  // namespace
}  // namespace tenon::global
