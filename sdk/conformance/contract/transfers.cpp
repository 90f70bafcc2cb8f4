// Transfers: they move exactly the given bytes, in the order of the stream, between all pools.
#include <algorithm>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {

Status transfers_exact(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  constexpr uint64_t room = 100000;
  TENON_ASSIGN_OR_RETURN(const Memory a, subject.allocate(room));
  TENON_ASSIGN_OR_RETURN(const Memory b, subject.allocate(room));
  struct Move {
    uint64_t src, dst, size;
  };
  constexpr Move moves[] = {{0, 0, 1},     {1, 2, 3},      {3, 1, 4},        {5, 7, 17},       {0, 0, room},
                            {64, 1, 4096}, {1, 64, 70001}, {room - 1, 0, 1}, {0, room - 1, 1}, {4095, 4097, 8191}};
  std::vector<uint8_t> in_a = random_bytes(room, 1), in_b = random_bytes(room, 2);
  TENON_RETURN_IF_ERROR(subject.upload(stream, a, 0, in_a));
  TENON_RETURN_IF_ERROR(subject.upload(stream, b, 0, in_b));
  std::vector<std::vector<uint8_t>> kept;
  const Drain drain(subject, stream);
  for (const Move& move : moves) {
    kept.push_back(random_bytes(move.size, move.size + move.src));
    const std::vector<uint8_t>& fresh = kept.back();
    TENON_RETURN_IF_ERROR(subject.upload(stream, a, move.src, fresh));
    std::copy(fresh.begin(), fresh.end(), in_a.begin() + static_cast<int64_t>(move.src));
    TENON_RETURN_IF_ERROR(subject.copy(stream, b, move.dst, a, move.src, move.size));
    std::copy_n(in_a.begin() + static_cast<int64_t>(move.src), move.size,
                in_b.begin() + static_cast<int64_t>(move.dst));
    std::vector<uint8_t> got(room + 2, 0x3c);
    TENON_RETURN_IF_ERROR(subject.download(stream, b, 0, {got.data() + 1, room}));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    if (got.front() != 0x3c || got.back() != 0x3c) return broken("M08", "a download wrote beside its place");
    const auto differ = std::mismatch(in_b.begin(), in_b.end(), got.begin() + 1);
    if (differ.first == in_b.end()) continue;
    return broken("M08", "after a copy of {} bytes from offset {} to {} byte {} is {}, not {}", move.size, move.src,
                  move.dst, differ.first - in_b.begin(), *differ.second, *differ.first);
  }
  return {};
}

// Submits steps of which each needs the one before, without waiting in between.
Status transfers_in_order(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  constexpr uint64_t size = 20000;
  constexpr int steps = 64;
  TENON_ASSIGN_OR_RETURN(const Memory a, subject.allocate(size));
  TENON_ASSIGN_OR_RETURN(const Memory b, subject.allocate(size));
  std::vector<std::vector<uint8_t>> sent, received(steps, std::vector<uint8_t>(size, 0));
  const Drain drain(subject, stream);
  for (int i = 0; i < steps; ++i) sent.push_back(random_bytes(size, 100 + static_cast<uint64_t>(i)));
  for (int i = 0; i < steps; ++i) {
    TENON_RETURN_IF_ERROR(subject.upload(stream, a, 0, sent[static_cast<size_t>(i)]));
    TENON_RETURN_IF_ERROR(subject.copy(stream, b, 0, a, 0, size));
    TENON_RETURN_IF_ERROR(subject.download(stream, b, 0, received[static_cast<size_t>(i)]));
  }
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  for (int i = 0; i < steps; ++i) {
    if (sent[static_cast<size_t>(i)] != received[static_cast<size_t>(i)]) {
      return broken("S01", "step {} of {} on one stream did not see the step before it", i, steps);
    }
  }
  return {};
}

Status transfers_between_pools(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  constexpr uint64_t size = 5000;
  for (uint32_t from = 0; from < subject.info.pool_count; ++from) {
    for (uint32_t to = 0; to < subject.info.pool_count; ++to) {
      TENON_ASSIGN_OR_RETURN(const Memory src, subject.allocate(size, from));
      TENON_ASSIGN_OR_RETURN(const Memory dst, subject.allocate(size, to));
      const std::vector<uint8_t> sent = random_bytes(size, 40 + from * 8 + to);
      std::vector<uint8_t> received(size, 0);
      const Drain drain(subject, stream);
      TENON_RETURN_IF_ERROR(subject.upload(stream, src, 0, sent));
      TENON_RETURN_IF_ERROR(subject.copy(stream, dst, 0, src, 0, size));
      TENON_RETURN_IF_ERROR(subject.download(stream, dst, 0, received));
      TENON_RETURN_IF_ERROR(subject.finish(stream));
      if (sent != received) return broken("M08", "a copy from pool {} to pool {} changed the bytes", from, to);
    }
  }
  return {};
}

}  // namespace tenon::conformance
