// Streams, transfers, events and faults on the fake driver.
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "providers/cuda/faults/fault_log.h"
#include "providers/cuda/transfer/staging.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

std::vector<uint32_t> counted(size_t count, uint32_t first) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_F(FakeCuda, TransfersOfEverySizeArriveWhole) {
  fake().delay_us = 200;
  for (const size_t bytes : {size_t{4}, size_t{Staging::slot_bytes}, size_t{Staging::slot_bytes + 4},
                             size_t{Staging::chunk_bytes}, size_t{2 * Staging::chunk_bytes + 12}}) {
    const std::vector<uint32_t> sent = counted(bytes / 4, 7);
    EXPECT_EQ(get<uint32_t>(with(sent), sent.size()), sent) << bytes;
  }
}

// More small uploads than the ring has slots, without waiting, remain in order.
TEST_F(FakeCuda, ManySmallUploadsKeepTheirOrder) {
  fake().delay_us = 300;
  const size_t count = 5 * Staging::slots;
  ep_memory* memory = block(count * 4);
  std::vector<uint32_t> sent = counted(count, 100);
  for (uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(cuda().ops.upload(cuda().stream, {memory, 4 * i}, &sent[i], 4, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.upload(cuda().stream, {memory, 0}, &sent[i], 4, nullptr), EP_STATUS_OK);
  }
  const std::vector<uint32_t> got = get<uint32_t>(memory, count);
  EXPECT_EQ(got[0], sent.back());
  EXPECT_TRUE(std::equal(got.begin() + 1, got.end(), sent.begin() + 1));
}

// A download does not wait in the call. Its event covers the host's half of the copy.
TEST_F(FakeCuda, DownloadsArriveWithTheirEvent) {
  fake().delay_us = 2000;
  const std::vector<uint32_t> sent = counted(1000, 1);
  ep_memory* memory = with(sent);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint32_t> got(sent.size(), 0xdeadbeef);
    ep_event* one = event();
    ASSERT_EQ(cuda().ops.download(cuda().stream, got.data(), {memory, 0}, 4000, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
    wait(one);
    ASSERT_EQ(got, sent);
  }
}

// Pinned memory needs no staging.
TEST_F(FakeCuda, PinnedMemoryIsCopiedDirectly) {
  ep_memory* pinned = nullptr;
  ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, 1, 4096, &pinned, nullptr), EP_STATUS_OK);
  void* pointer = nullptr;
  ASSERT_EQ(cuda().ops.memory_map(cuda().device, pinned, &pointer, nullptr), EP_STATUS_OK);
  const int64_t before = fake().pinned.load();
  const std::vector<uint32_t> sent = counted(1024, 5);
  std::memcpy(pointer, sent.data(), 4096);
  ep_memory* memory = block(4096);
  EXPECT_EQ(cuda().ops.upload(cuda().stream, {memory, 0}, pointer, 4096, nullptr), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  std::memset(pointer, 0, 4096);
  EXPECT_EQ(cuda().ops.download(cuda().stream, pointer, {memory, 0}, 4096, nullptr), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(fake().pinned.load(), before);
  EXPECT_EQ(std::memcmp(pointer, sent.data(), 4096), 0);
  cuda().ops.memory_free(cuda().device, pinned);
}

// The fake reports a direct copy that leaves pinned memory. After the block there is room up to the next multiple of
// 512 bytes.
TEST_F(FakeCuda, MemoryThatIsPinnedInPartGoesByWayOfTheStaging) {
  ep_memory* pinned = nullptr;
  ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, 1, 64, &pinned, nullptr), EP_STATUS_OK);
  void* pointer = nullptr;
  ASSERT_EQ(cuda().ops.memory_map(cuda().device, pinned, &pointer, nullptr), EP_STATUS_OK);
  const std::vector<uint32_t> sent = counted(100, 3);
  std::memcpy(pointer, sent.data(), 400);
  ep_memory* memory = block(400);
  EXPECT_EQ(cuda().ops.upload(cuda().stream, {memory, 0}, pointer, 400, nullptr), EP_STATUS_OK);
  EXPECT_EQ(get<uint32_t>(memory, 100), sent);
  std::memset(pointer, 0, 400);
  EXPECT_EQ(cuda().ops.download(cuda().stream, pointer, {memory, 0}, 400, nullptr), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(std::memcmp(pointer, sent.data(), 400), 0);
  EXPECT_EQ(fake().violation(), "");
  cuda().ops.memory_free(cuda().device, pinned);
}

TEST_F(FakeCuda, AnEventNeverRecordedIsAnArgumentError) {
  ep_event* one = event();
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.event_query(one, &error), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cuda().ops.event_host_wait(one, 0, &error), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cuda().ops.stream_wait_event(cuda().stream, one, &error), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cuda().host.sentence(), "The event was never recorded.");
}

// Each of two streams reads what the other writes, after an event, however long the writer takes.
TEST_F(FakeCuda, AStreamWaitsForAnotherOnesEvent) {
  ep_stream* other = nullptr;
  ASSERT_EQ(cuda().ops.stream_create(cuda().device, &kComputeStream, &other, nullptr), EP_STATUS_OK);
  fake().delay_us = 3000;
  ep_memory* first = block(4);
  ep_memory* second = block(4);
  for (uint32_t value = 0; value < 50; ++value) {
    ep_event* written = event();
    ep_event* read = event();
    uint32_t got = ~0U;
    ASSERT_EQ(cuda().ops.upload(cuda().stream, {first, 0}, &value, 4, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.event_record(written, cuda().stream, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.stream_wait_event(other, written, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.copy(other, {second, 0}, {first, 0}, 4, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.download(other, &got, {second, 0}, 4, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.event_record(read, other, nullptr), EP_STATUS_OK);
    wait(read);
    ASSERT_EQ(got, value);
  }
  ASSERT_EQ(cuda().ops.stream_synchronize(other, nullptr), EP_STATUS_OK);
  cuda().ops.stream_destroy(cuda().device, other);
}

// The driver's lower numbers are more urgent.
TEST_F(FakeCuda, AStreamHasThePriorityAskedFor) {
  for (const int32_t priority : {0, 3, -2}) {
    const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COPY, priority, 0};
    ep_stream* other = nullptr;
    ASSERT_EQ(cuda().ops.stream_create(cuda().device, &desc, &other, nullptr), EP_STATUS_OK);
    EXPECT_EQ(fake().last_priority, -priority);
    cuda().ops.stream_destroy(cuda().device, other);
  }
}

TEST_F(FakeCuda, AWaitWithALimitSaysThatTimeIsUp) {
  ep_stream* other = nullptr;
  ASSERT_EQ(cuda().ops.stream_create(cuda().device, &kComputeStream, &other, nullptr), EP_STATUS_OK);
  const std::vector<float> values = random_floats(1 << 20);
  ep_memory* memory = with(values);
  const ep_operand_desc all = dense(EP_ROLE_DST, EP_DTYPE_f32, {1 << 20});
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_unary, {all, dense(EP_ROLE_SRC, EP_DTYPE_f32, {1 << 20})});
  desc.attributes.unary.op = EP_UNARY_tan;
  ASSERT_EQ(launch(desc, {memory, memory}), EP_STATUS_OK);
  ep_event* one = event();
  ASSERT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.event_query(one, &error), EP_STATUS_BUSY);
  EXPECT_EQ(error, nullptr);
  EXPECT_EQ(cuda().ops.event_host_wait(one, 1000, &error), EP_STATUS_TIMEOUT);
  EXPECT_EQ(cuda().ops.event_host_wait(one, 600'000'000'000, &error), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.event_query(one, &error), EP_STATUS_OK);
  cuda().ops.stream_destroy(cuda().device, other);
}

// --- faults ---

class FakeCudaFaults : public FakeCuda {
 protected:
  static ep_primitive_desc division(int64_t count) {
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_i32, {count}), dense(EP_ROLE_SRC, EP_DTYPE_i32, {count}),
                              dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {count})});
    desc.attributes.binary.op = EP_BINARY_div;
    return desc;
  }
  ep_status take(ep_fault* fault) {
    ep_error* error = nullptr;
    return cuda().ops.stream_take_fault(cuda().stream, fault, &error);
  }
};

TEST_F(FakeCudaFaults, ArriveOncePerLaunchInLaunchOrder) {
  fake().delay_us = 100;
  const std::vector<int32_t> ones(64, 1);
  std::vector<int32_t> good(64, 3);
  std::vector<int32_t> bad = good;
  bad[10] = bad[40] = 0;
  ep_memory* numerator = with(ones);
  ep_memory* divisor = with(good);
  ep_memory* zeros = with(bad);
  ep_memory* result = block(256);
  for (const uint64_t tag : {5, 6, 7, 8, 9}) {
    ASSERT_EQ(launch(division(64), {result, numerator, tag % 2 == 1 ? zeros : divisor}, {}, tag), EP_STATUS_OK);
  }
  ep_event* one = event();
  ASSERT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
  wait(one);
  for (const uint64_t tag : {5, 7, 9}) {
    ep_fault fault{};
    ASSERT_EQ(take(&fault), EP_STATUS_OK);
    EXPECT_EQ(fault.tag, tag);
    EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
    EXPECT_EQ(fault.operand, 2);
    EXPECT_EQ(fault.value, 0);
  }
  ep_fault none{};
  EXPECT_EQ(take(&none), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(get<int32_t>(result, 64)[10], 0);
}

TEST_F(FakeCudaFaults, TheLeastIntegerByMinusOneWrapsInTheTypeThatIsStored) {
  const int64_t count = 16;
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_i8, {count}), dense(EP_ROLE_SRC, EP_DTYPE_i8, {count}),
                            dense(EP_ROLE_SRC_B, EP_DTYPE_i8, {count})});
  desc.attributes.binary.op = EP_BINARY_floor_div;
  const std::vector<int8_t> least(16, -128);
  const std::vector<int8_t> minus_one(16, -1);
  const auto result = block(16);
  ASSERT_EQ(launch(desc, {result, with(least), with(minus_one)}, {}, 3), EP_STATUS_OK);
  ASSERT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  ep_fault fault{};
  EXPECT_EQ(take(&fault), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(get<int8_t>(result, 16), least);
}

TEST_F(FakeCudaFaults, ABadIndexTellsTheLengthOfItsAxis) {
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_gather, {dense(EP_ROLE_DST, EP_DTYPE_f32, {3, 4}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {5, 4}),
                            dense(EP_ROLE_INDICES, EP_DTYPE_i32, {3})});
  desc.attributes.gather = {0, EP_GATHER_SLICES};
  std::vector<float> rows(20);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  ep_memory* taken = with(std::vector<float>(12, 77));
  ASSERT_EQ(launch(desc, {taken, with(rows), with(std::vector<int32_t>{-1, -6, 1})}, {}, 4), EP_STATUS_OK);
  ASSERT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  ep_fault fault{};
  ASSERT_EQ(take(&fault), EP_STATUS_OK);
  EXPECT_EQ(fault.tag, 4U);
  EXPECT_EQ(fault.code, EP_FAULT_INDEX_OUT_OF_RANGE);
  EXPECT_EQ(fault.operand, 2);
  EXPECT_EQ(fault.value, -6);
  EXPECT_EQ(fault.limit, 5);
  const std::vector<float> got = get<float>(taken, 12);
  EXPECT_EQ(got[3], 19);  // the last row
  EXPECT_EQ(got[8], 4);   // row 1
}

// More launches that may fault than there are slots. The host does not wait in between.
TEST_F(FakeCudaFaults, OutlastTheirSlots) {
  std::vector<int32_t> bad(64, 0);
  ep_memory* zeros = with(bad);
  ep_memory* result = block(256);
  const uint64_t launches = 3 * fault_slots + 17;
  for (uint64_t tag = 1; tag <= launches; ++tag) {
    ASSERT_EQ(launch(division(64), {result, zeros, zeros}, {}, tag), EP_STATUS_OK);
  }
  ASSERT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  for (uint64_t tag = 1; tag <= launches; ++tag) {
    ep_fault fault{};
    ASSERT_EQ(take(&fault), EP_STATUS_OK);
    ASSERT_EQ(fault.tag, tag);
  }
}

// An event may be queried after its stream is gone.
TEST_F(FakeCudaFaults, AnEventOutlivesItsStream) {
  ep_stream* other = nullptr;
  ASSERT_EQ(cuda().ops.stream_create(cuda().device, &kComputeStream, &other, nullptr), EP_STATUS_OK);
  ep_event* one = event();
  ASSERT_EQ(cuda().ops.event_record(one, other, nullptr), EP_STATUS_OK);
  ASSERT_EQ(cuda().ops.stream_synchronize(other, nullptr), EP_STATUS_OK);
  cuda().ops.stream_destroy(cuda().device, other);
  EXPECT_EQ(cuda().ops.event_query(one, nullptr), EP_STATUS_OK);
}

}  // namespace
}  // namespace tenon::provider::cuda
