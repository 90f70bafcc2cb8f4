// Exchange: sends elements between the ranks of a line. Internal.
//
// In a program an exchange is a node, `global::exchange(list, token)`, which returns a list and the next token, a
// tensor without elements. A program takes its first token as an input and returns the last one as an output. So no
// pass can remove, merge or reorder exchanges. Before the passes run, core/compile/early.h merges and moves them, using
// facts that are the same on all ranks; so every rank runs the same exchanges in the same order. A program runs only in
// the process that recorded it: its text refers to exchanges by numbers of that process. The node of a large exchange
// only begins it, and the reader of the list waits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/global/communicator.h"
#include "core/global/moves.h"
#include "core/tensor/tensor.h"

namespace tenon {
struct OpInfo;
}

namespace tenon::global {

struct ExchangePlan {
  Communicator* line = nullptr;  // the communicator of a placement or of the world; both live until the process ends
  int64_t size = 0;              // the number of elements that this rank receives
  Exchange exchange = {};
  // If set, a rank that receives nothing continues at once, for every value of `needed`.
  bool between_placements = false;

  auto operator<=>(const ExchangePlan&) const = default;
};

// When the caller needs the result of an exchange. Later: the exchange runs in the background while the caller
// continues.
enum class Needed : uint8_t { now, later };
// Exchanges of at least this many bytes run on a background thread; for smaller ones the thread costs more than it
// saves.
constexpr int64_t kLarge = 256 << 10;
// Smaller sums are sent together in buckets of this many bytes. The first bucket is smaller, so that it is sent early.
constexpr int64_t kFirstBucket = int64_t{1} << 20, kBucket = int64_t{4} << 20;

// The elements that this rank receives for `list`, which must be dense, have one axis, and lie in memory that the line
// takes. Sums are added. While a program is recorded, returns a value of the program. Errors: those of Communicator;
// with Needed::later they are reported to users of the result.
Tensor exchange(const Tensor& list, const ExchangePlan& plan, Needed needed = Needed::now);

// The facts of an exchange node. Times are from GlobalProgram::time, which is the same on all ranks.
struct ExchangeNode {
  const ExchangePlan* plan = nullptr;
  int64_t ready = 0;  // when the elements that it sends were made
  int64_t asked = 0;  // when it was recorded; readers of its result were recorded later
};
// Nothing if `op` is not an exchange.
std::optional<ExchangeNode> exchange_of(const OpInfo& op, const void* attributes);
// Changes `attributes` so that the node does the same for `size` elements, which are ready at `ready`.
void set_size(void* attributes, int64_t size, int64_t ready);

// The token that every program starts with: a tensor without elements.
const Tensor& first_token();

}  // namespace tenon::global
