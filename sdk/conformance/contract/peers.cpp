// Copies between two devices of the plug-in, if the plug-in claims them.
#include <algorithm>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t room = 100000;

// Another device of the plug-in, with a block of memory in each of its pools, and a stream.
class Peer {
 public:
  explicit Peer(Subject& subject) : subject_(subject) {}
  ~Peer() {
    for (ep_memory* block : blocks) ops.memory_free(device, block);
    if (stream != nullptr) ops.stream_destroy(device, stream);
    if (device != nullptr) ops.device_close(device);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Errors: Code::unsupported if device `index` is unusable.
  Status open(uint32_t index) {
    const ep_plugin_ops& plugin = subject_.plugin;
    info = with_header<ep_device_info>(EP_STRUCT_DEVICE_INFO);
    TENON_RETURN_IF_ERROR(subject_.call("device_info", plugin.device_info, plugin.plugin, index, &info));
    if (info.unusable_reason.size > 0) return Status(Code::unsupported, "it cannot be used.");
    ops = with_header<ep_device_ops>(EP_STRUCT_DEVICE_OPS);
    return subject_.call("device_open", plugin.device_open, plugin.plugin, index, &device, &ops);
  }
  Status prepare() {
    const ep_stream_desc desc = stream_desc(EP_STREAM_COMPUTE);
    TENON_RETURN_IF_ERROR(subject_.call("stream_create", ops.stream_create, device, &desc, &stream));
    for (uint32_t pool = 0; pool < info.pool_count; ++pool) {
      ep_memory* block = nullptr;
      if (holds_images(info, pool)) {
        blocks.push_back(block);
        continue;
      }
      TENON_RETURN_IF_ERROR(subject_.call("memory_allocate", ops.memory_allocate, device, pool, room, &block));
      blocks.push_back(block);
    }
    return {};
  }
  Status upload(uint32_t pool, const std::vector<uint8_t>& bytes) {
    const ep_buffer dst{blocks[pool], 0};
    const void* src = bytes.data();
    TENON_RETURN_IF_ERROR(subject_.call("upload", ops.upload, stream, dst, src, uint64_t{bytes.size()}));
    subject_.drain(ops, stream);
    return {};
  }
  Result<std::vector<uint8_t>> download(uint32_t pool) {
    std::vector<uint8_t> bytes(room, 0);
    void* dst = bytes.data();
    const ep_buffer src{blocks[pool], 0};
    TENON_RETURN_IF_ERROR(subject_.call("download", ops.download, stream, dst, src, room));
    subject_.drain(ops, stream);
    return bytes;
  }

  ep_device_info info{};
  ep_device_ops ops{};
  ep_device* device = nullptr;
  ep_stream* stream = nullptr;
  std::vector<ep_memory*> blocks;  // one per pool

 private:
  Subject& subject_;
};

Status copy_from(Subject& subject, const Stream& stream, ep_buffer dst, const Peer& peer, ep_buffer src,
                 uint64_t size) {
  return subject.call("peer_copy", subject.ops.peer_copy, stream.get(), dst, peer.device, src, size);
}

// Copies between many pairs of offsets, from each pool of the peer to each pool of the device.
Status copy_all_pools(Subject& subject, const Stream& stream, Peer& peer) {
  struct Move {
    uint64_t src, dst, size;
  };
  constexpr Move moves[] = {{0, 0, 1},        {3, 1, 4},        {5, 7, 17},     {0, 0, room},
                            {room - 1, 0, 1}, {0, room - 1, 1}, {64, 1, 70001}, {4095, 4097, 8191}};
  for (uint32_t from = 0; from < peer.info.pool_count; ++from) {
    if (holds_images(peer.info, from)) continue;
    const std::vector<uint8_t> there = random_bytes(room, 50 + from);
    TENON_RETURN_IF_ERROR(peer.upload(from, there));
    for (uint32_t to = 0; to < subject.info.pool_count; ++to) {
      if (holds_images(subject.info, to)) continue;
      TENON_ASSIGN_OR_RETURN(const Memory memory, subject.allocate(room, to));
      std::vector<uint8_t> want = random_bytes(room, 60 + to), got(room, 0);
      const std::vector<uint8_t> before = want;
      const Drain drain(subject, stream);
      TENON_RETURN_IF_ERROR(subject.upload(stream, memory, 0, before));
      for (const Move& move : moves) {
        const ep_buffer dst{memory.get(), move.dst}, src{peer.blocks[from], move.src};
        TENON_RETURN_IF_ERROR(copy_from(subject, stream, dst, peer, src, move.size));
        std::copy_n(there.begin() + static_cast<int64_t>(move.src), move.size,
                    want.begin() + static_cast<int64_t>(move.dst));
        TENON_RETURN_IF_ERROR(subject.download(stream, memory, 0, got));
        TENON_RETURN_IF_ERROR(subject.finish(stream));
        if (got == want) continue;
        return broken(
            "M08", "after a peer copy of {} bytes from offset {} of pool {} to offset {} of pool {} byte {} is wrong",
            move.size, move.src, from, move.dst, to,
            std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin());
      }
    }
    TENON_ASSIGN_OR_RETURN(const std::vector<uint8_t> after, peer.download(from));
    if (after != there) return broken("M08", "a peer copy changed its source");
  }
  return {};
}

// Submits steps that depend on each other, without waiting between them.
Status copy_in_order(Subject& subject, const Stream& stream, Peer& peer) {
  constexpr int steps = 16;
  TENON_ASSIGN_OR_RETURN(const Memory a, subject.allocate(room));
  TENON_ASSIGN_OR_RETURN(const Memory b, subject.allocate(room));
  const std::vector<uint8_t> there = random_bytes(room, 70), here = random_bytes(room, 71);
  TENON_RETURN_IF_ERROR(peer.upload(0, there));
  std::vector<std::vector<uint8_t>> got(steps, std::vector<uint8_t>(room, 0));
  const Drain drain(subject, stream);
  for (std::vector<uint8_t>& one : got) {
    TENON_RETURN_IF_ERROR(subject.upload(stream, a, 0, here));
    TENON_RETURN_IF_ERROR(copy_from(subject, stream, {a.get(), 0}, peer, {peer.blocks[0], 0}, room));
    TENON_RETURN_IF_ERROR(subject.copy(stream, b, 0, a, 0, room));
    TENON_RETURN_IF_ERROR(subject.upload(stream, a, 0, here));
    TENON_RETURN_IF_ERROR(subject.download(stream, b, 0, one));
  }
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  for (const std::vector<uint8_t>& one : got) {
    if (one != there) return broken("S01", "a peer copy was not done in the order of its stream");
  }
  return {};
}

// `copies` is set to true if the two devices are peers.
Status copy_from_device(Subject& subject, uint32_t index, std::string* refusal, bool* copies) {
  Peer peer(subject);
  const Status opened = peer.open(index);
  if (opened.code() == Code::unsupported) return {};
  TENON_RETURN_IF_ERROR(opened);
  const Status asked = subject.call("peer_open", subject.ops.peer_open, subject.device, peer.device);
  if (asked.code() == Code::unsupported) {
    *refusal = asked.message();
    return {};
  }
  if (!asked.ok())
    return broken("M10", "peer_open answered '{}': {}", code_name(asked.code()), without_rule(asked).message());
  *copies = true;
  TENON_RETURN_IF_ERROR(peer.prepare());
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_RETURN_IF_ERROR(copy_in_order(subject, stream, peer));
  return copy_all_pools(subject, stream, peer);
}

}  // namespace

// Runs twice with each device, because closing a device must end its relation to its peer.
Status peers_copy(Subject& subject) {
  if (subject.ops.peer_open == nullptr) return skipped("it has no peer_open.");
  uint32_t count = 0;
  TENON_RETURN_IF_ERROR(subject.call("device_count", subject.plugin.device_count, subject.plugin.plugin, &count));
  std::string refusal = "there is no second device that can be used.";
  bool copies = false;
  for (uint32_t turn = 0; turn < 2 * count; ++turn) {
    if (turn / 2 == subject.target.device) continue;
    TENON_RETURN_IF_ERROR(copy_from_device(subject, turn / 2, &refusal, &copies));
  }
  return copies ? Status() : skipped("{}", refusal);
}

}  // namespace tenon::conformance
