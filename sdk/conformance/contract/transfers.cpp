// Transfers: they move exactly the given bytes, in the order of the stream, between all pools.
#include <algorithm>
#include <optional>
#include <string_view>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {

namespace {

struct Move {
  uint64_t src, dst, size;
};

// Two blocks, and a host copy of their expected bytes. Each step waits, so that only the last step can have caused a
// wrong byte.
class Moves {
 public:
  static constexpr uint64_t room = 100032;  // a multiple of every granularity

  explicit Moves(Subject& subject) : subject_(subject) {}
  Status prepare() {
    TENON_ASSIGN_OR_RETURN(stream_, subject_.make_stream());
    TENON_ASSIGN_OR_RETURN(a_, subject_.allocate(room));
    TENON_ASSIGN_OR_RETURN(b_, subject_.allocate(room));
    drain_.emplace(subject_, stream_);
    TENON_RETURN_IF_ERROR(subject_.upload(stream_, a_, 0, in_a_));
    TENON_RETURN_IF_ERROR(subject_.upload(stream_, b_, 0, in_b_));
    TENON_RETURN_IF_ERROR(check(a_, in_a_, "an upload of a whole block"));
    return check(b_, in_b_, "an upload of a whole block");
  }
  Status upload(const Move& move);
  Status download(const Move& move);
  Status copy(const Move& move);

 private:
  // Downloads bytes [offset, offset + size) of `memory`, with guards around the destination.
  Status fetch(const Memory& memory, uint64_t offset, uint64_t size);
  // Compares all of `memory` with `want`, after the step `what`.
  Status check(const Memory& memory, const std::vector<uint8_t>& want, std::string_view what);

  Subject& subject_;
  Stream stream_;
  Memory a_, b_;
  std::vector<uint8_t> in_a_ = random_bytes(room, 1), in_b_ = random_bytes(room, 2), fresh_, got_;
  std::optional<Drain> drain_;
};

Status Moves::fetch(const Memory& memory, uint64_t offset, uint64_t size) {
  got_.assign(size + 2, 0x3c);
  TENON_RETURN_IF_ERROR(subject_.download(stream_, memory, offset, {got_.data() + 1, size}));
  TENON_RETURN_IF_ERROR(subject_.finish(stream_));
  if (got_.front() == 0x3c && got_.back() == 0x3c) return {};
  return broken("M08", "a download of {} bytes from offset {} wrote outside of its place", size, offset);
}

Status Moves::check(const Memory& memory, const std::vector<uint8_t>& want, std::string_view what) {
  TENON_RETURN_IF_ERROR(fetch(memory, 0, room));
  const auto differ = std::mismatch(want.begin(), want.end(), got_.begin() + 1);
  if (differ.first == want.end()) return {};
  return broken("M08", "after {} byte {} of the block is {}, not {}", what, differ.first - want.begin(), *differ.second,
                *differ.first);
}

Status Moves::upload(const Move& move) {
  fresh_ = random_bytes(move.size, move.size + move.src);
  TENON_RETURN_IF_ERROR(subject_.upload(stream_, a_, move.src, fresh_));
  std::copy(fresh_.begin(), fresh_.end(), in_a_.begin() + static_cast<int64_t>(move.src));
  return check(a_, in_a_, fmt::format("an upload of {} bytes to offset {}", move.size, move.src));
}

Status Moves::download(const Move& move) {
  TENON_RETURN_IF_ERROR(fetch(a_, move.src, move.size));
  const auto* want = in_a_.data() + move.src;
  const auto differ = std::mismatch(want, want + move.size, got_.begin() + 1);
  if (differ.first == want + move.size) return {};
  return broken("M08", "byte {} of a download of {} bytes from offset {} is {}, not {}", differ.first - want, move.size,
                move.src, *differ.second, *differ.first);
}

Status Moves::copy(const Move& move) {
  TENON_RETURN_IF_ERROR(subject_.copy(stream_, b_, move.dst, a_, move.src, move.size));
  std::copy_n(in_a_.begin() + static_cast<int64_t>(move.src), move.size,
              in_b_.begin() + static_cast<int64_t>(move.dst));
  return check(b_, in_b_, fmt::format("a copy of {} bytes from offset {} to offset {}", move.size, move.src, move.dst));
}

}  // namespace

Status transfers_exact(Subject& subject) {
  constexpr uint64_t room = Moves::room;
  constexpr Move moves[] = {{0, 0, 1},     {1, 2, 3},      {3, 1, 4},        {5, 7, 17},       {0, 0, room},
                            {64, 1, 4096}, {1, 64, 70001}, {room - 1, 0, 1}, {0, room - 1, 1}, {4095, 4097, 8191}};
  Moves state(subject);
  TENON_RETURN_IF_ERROR(state.prepare());
  // On a device with a copy granularity, all moves use it as their unit.
  const uint64_t unit = subject.granularity();
  for (const Move& in_bytes : moves) {
    Move move = in_bytes;
    for (uint64_t* part : {&move.src, &move.dst, &move.size})
      *part = std::max(unit, *part / unit * unit) * (*part != 0);
    if (std::max(move.src, move.dst) + move.size > room) continue;
    TENON_RETURN_IF_ERROR(state.upload(move));
    TENON_RETURN_IF_ERROR(state.download(move));
    TENON_RETURN_IF_ERROR(state.copy(move));
  }
  return {};
}

// Submits steps that depend on each other, without waiting between them.
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
      if (holds_images(subject.info, from) || holds_images(subject.info, to)) continue;
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
