// Copies between two devices of the fake driver.
#include <cstring>
#include <random>
#include <thread>

#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

// Another device of the plug-in, with its own stream.
class OtherDevice {
 public:
  OtherDevice(OpenProvider& provider, uint32_t index) {
    ops_.struct_size = sizeof ops_;
    ops_.struct_type = EP_STRUCT_DEVICE_OPS;
    const ep_plugin_ops& plugin = provider.plugin;
    EXPECT_EQ(plugin.device_open(plugin.plugin, index, &device_, &ops_, nullptr), EP_STATUS_OK);
    EXPECT_EQ(ops_.stream_create(device_, &kComputeStream, &stream_, nullptr), EP_STATUS_OK);
  }
  ~OtherDevice() {
    ops_.stream_synchronize(stream_, nullptr);
    for (ep_memory* memory : blocks_) ops_.memory_free(device_, memory);
    ops_.stream_destroy(device_, stream_);
    ops_.device_close(device_);
  }
  OtherDevice(const OtherDevice&) = delete;
  OtherDevice& operator=(const OtherDevice&) = delete;

  ep_device* device() const { return device_; }
  ep_stream* stream() const { return stream_; }
  const ep_device_ops& ops() const { return ops_; }
  // A block that contains `bytes`.
  ep_memory* with(const std::vector<unsigned char>& bytes, uint32_t pool = 0) {
    ep_memory* memory = nullptr;
    EXPECT_EQ(ops_.memory_allocate(device_, pool, bytes.size(), &memory, nullptr), EP_STATUS_OK);
    EXPECT_EQ(ops_.upload(stream_, {memory, 0}, bytes.data(), bytes.size(), nullptr), EP_STATUS_OK);
    EXPECT_EQ(ops_.stream_synchronize(stream_, nullptr), EP_STATUS_OK);
    blocks_.push_back(memory);
    return memory;
  }

 private:
  ep_device_ops ops_{};
  ep_device* device_ = nullptr;
  ep_stream* stream_ = nullptr;
  std::vector<ep_memory*> blocks_;
};

std::vector<unsigned char> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(engine());
  return bytes;
}

class FakeCudaPeers : public FakeCuda {
 protected:
  ep_status open_way(ep_device* peer) {
    ep_error* error = nullptr;
    return cuda().ops.peer_open(cuda().device, peer, &error);
  }
  // Copies with many offsets and sizes from `src`, a block of pool `from` on the peer, to a block of pool `to`.
  void copies_are_exact(OtherDevice& peer, uint32_t from, uint32_t to) {
    constexpr uint64_t bytes = 70000;
    const std::vector<unsigned char> source = random_bytes(bytes, 3);
    std::vector<unsigned char> expected = random_bytes(bytes, 4);
    ep_memory* src = peer.with(source, from);
    ep_memory* dst = nullptr;
    ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, to, bytes, &dst, nullptr), EP_STATUS_OK);
    put(dst, expected.data(), bytes);
    const uint64_t ranges[][3] = {{0, 0, 1}, {1, 2, 3}, {255, 17, 4096}, {4099, 8191, 1}, {30001, 4567, 39999}};
    for (const auto& [to_offset, from_offset, size] : ranges) {
      ASSERT_EQ(cuda().ops.peer_copy(cuda().stream, {dst, to_offset}, peer.device(), {src, from_offset}, size, nullptr),
                EP_STATUS_OK)
          << cuda().host.sentence();
      std::memcpy(&expected[to_offset], &source[from_offset], size);
    }
    EXPECT_EQ(get<unsigned char>(dst, bytes), expected) << from << to;
    cuda().ops.memory_free(cuda().device, dst);
  }
};

TEST_F(FakeCudaPeers, MoveExactlyTheirBytesBetweenAnyPools) {
  fake().delay_us = 100;
  OtherDevice peer(cuda(), 1);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
  for (const uint32_t from : {0U, 1U}) {
    for (const uint32_t to : {0U, 1U}) copies_are_exact(peer, from, to);
  }
  EXPECT_EQ(fake().violation(), "");
}

TEST_F(FakeCudaPeers, MoveExactlyTheirBytesBetweenPlainBlocks) {
  close();
  fake().pools = false;
  provider_ = std::make_unique<OpenProvider>("cuda");
  OtherDevice peer(cuda(), 1);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);  // access that was granted before
  copies_are_exact(peer, 0, 0);
}

// Access has one direction.
TEST_F(FakeCudaPeers, AreOpenOneWay) {
  OtherDevice peer(cuda(), 1);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
  const std::vector<unsigned char> bytes = random_bytes(512, 1);
  ep_memory* here = with(bytes);
  ep_memory* there = peer.with(bytes);
  ASSERT_EQ(peer.ops().peer_copy(peer.stream(), {there, 0}, cuda().device, {here, 0}, 64, nullptr), EP_STATUS_OK);
  EXPECT_NE(fake().violation().find("that device 1 has no access to"), std::string::npos) << fake().violation();
  fake().forgive();
  ASSERT_EQ(peer.ops().peer_open(peer.device(), cuda().device, nullptr), EP_STATUS_OK);
  ASSERT_EQ(peer.ops().peer_copy(peer.stream(), {there, 3}, cuda().device, {here, 300}, 200, nullptr), EP_STATUS_OK);
  std::vector<unsigned char> got(512);
  ASSERT_EQ(peer.ops().download(peer.stream(), got.data(), {there, 0}, 512, nullptr), EP_STATUS_OK);
  ASSERT_EQ(peer.ops().stream_synchronize(peer.stream(), nullptr), EP_STATUS_OK);
  EXPECT_EQ(std::memcmp(&got[3], &bytes[300], 200), 0);
}

// Work before and after a copy on its stream, without a wait in between.
TEST_F(FakeCudaPeers, KeepTheOrderOfTheirStream) {
  fake().delay_us = 2000;
  OtherDevice peer(cuda(), 1);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
  ep_memory* dst = block(64);
  ep_memory* after = block(64);
  for (unsigned char round = 1; round < 30; ++round) {
    const std::vector<unsigned char> older(64, static_cast<unsigned char>(100 + round));
    const std::vector<unsigned char> newer(64, round);
    ep_memory* src = peer.with(newer);
    std::vector<unsigned char> got(64);
    ASSERT_EQ(cuda().ops.upload(cuda().stream, {dst, 0}, older.data(), 64, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.peer_copy(cuda().stream, {dst, 0}, peer.device(), {src, 0}, 32, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.copy(cuda().stream, {after, 0}, {dst, 0}, 64, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.upload(cuda().stream, {dst, 0}, older.data(), 64, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cuda().ops.download(cuda().stream, got.data(), {after, 0}, 64, nullptr), EP_STATUS_OK);
    ep_event* one = event();
    ASSERT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
    wait(one);
    ASSERT_EQ(got[0], newer[0]);
    ASSERT_EQ(got[31], newer[0]);
    ASSERT_EQ(got[32], older[0]);
  }
}

TEST_F(FakeCudaPeers, AreRefusedWithBothNamesWhereThereIsNoWay) {
  fake().peers = false;
  OtherDevice peer(cuda(), 1);
  EXPECT_EQ(open_way(peer.device()), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(cuda().host.sentence(),
            "Fake GPU 0 (cuda:0) cannot reach the memory of Fake GPU 1 (cuda:1): the driver has no direct path.");
}

// Access that was granted to a closed device is granted again to its successor.
TEST_F(FakeCudaPeers, AreOpenedAgainWithTheirDevice) {
  for (const bool pools : {true, false}) {
    close();
    fake().pools = pools;
    provider_ = std::make_unique<OpenProvider>("cuda");
    for (uint32_t round = 0; round < 3; ++round) {
      OtherDevice peer(cuda(), 1);
      ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
      copies_are_exact(peer, 0, 0);
    }
    OtherDevice peer(cuda(), 1);
    ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
    OtherDevice again(cuda(), 0);
    EXPECT_EQ(again.ops().peer_open(again.device(), peer.device(), nullptr), EP_STATUS_OK);
    EXPECT_EQ(again.ops().peer_open(again.device(), cuda().device, nullptr), EP_STATUS_OK);  // one GPU, opened twice
    const std::vector<unsigned char> bytes = random_bytes(64, 9);
    ep_memory* src = with(bytes);
    ep_memory* dst = again.with(random_bytes(64, 10));
    EXPECT_EQ(again.ops().peer_copy(again.stream(), {dst, 0}, cuda().device, {src, 0}, 64, nullptr), EP_STATUS_OK);
  }
}

TEST_F(FakeCudaPeers, LeaveTheThreadsContextAsItWas) {
  std::thread other([this] {
    OtherDevice peer(cuda(), 1);
    ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
    EXPECT_EQ(contexts_of_this_thread(), 0U);
    ep_memory* src = peer.with(random_bytes(64, 1));
    ep_memory* dst = block(64);
    EXPECT_EQ(cuda().ops.peer_copy(cuda().stream, {dst, 0}, peer.device(), {src, 0}, 64, nullptr), EP_STATUS_OK);
    EXPECT_EQ(contexts_of_this_thread(), 0U);
    fake().peers = false;
    ep_error* error = nullptr;
    EXPECT_EQ(peer.ops().peer_open(peer.device(), cuda().device, &error), EP_STATUS_UNSUPPORTED);
    EXPECT_EQ(contexts_of_this_thread(), 0U);
    EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  });
  other.join();
}

// Without access a real driver would silently copy through host memory. The fake reports that as a violation.
TEST_F(FakeCudaPeers, WantTheirWayOpened) {
  OtherDevice peer(cuda(), 1);
  ep_memory* src = peer.with(random_bytes(64, 1));
  ep_memory* dst = block(64);
  EXPECT_EQ(cuda().ops.peer_copy(cuda().stream, {dst, 0}, peer.device(), {src, 0}, 64, nullptr), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
  EXPECT_NE(fake().violation().find("that device 0 has no access to"), std::string::npos) << fake().violation();
  fake().forgive();
}

TEST_F(FakeCudaPeers, ALostPeerIsToldApart) {
  OtherDevice peer(cuda(), 1);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
  ep_memory* src = peer.with(random_bytes(64, 11));
  ep_memory* dst = with(random_bytes(64, 12));
  fake().lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  ASSERT_EQ(peer.ops().copy(peer.stream(), {src, 0}, {src, 32}, 16, nullptr), EP_STATUS_DEVICE_LOST);
  fake().lost = 0;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.peer_copy(cuda().stream, {dst, 0}, peer.device(), {src, 0}, 64, &error), EP_STATUS_CANCELLED);
  EXPECT_EQ(cuda().host.sentence(), "Fake GPU 1 (cuda:1), the source of the copy, is lost.");
  EXPECT_EQ(cuda().ops.copy(cuda().stream, {dst, 0}, {dst, 32}, 16, nullptr), EP_STATUS_OK);
}

TEST_F(FakeCudaPeers, StayLostWithTheirDevice) {
  OtherDevice peer(cuda(), 1);
  ASSERT_EQ(open_way(peer.device()), EP_STATUS_OK);
  ep_memory* src = peer.with(random_bytes(64, 1));
  ep_memory* dst = block(64);
  fake().lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.peer_copy(cuda().stream, {dst, 0}, peer.device(), {src, 0}, 64, &error), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(cuda().host.sentence(),
            "Fake GPU 0 was lost while copying from Fake GPU 1 (cuda:1): CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory "
            "access was encountered).");
  fake().lost = 0;
  EXPECT_EQ(open_way(peer.device()), EP_STATUS_DEVICE_LOST);
}

}  // namespace
}  // namespace tenon::provider::cuda
