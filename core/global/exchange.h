// Exchange: elements that the ranks along a line give each other. Internal.
//
// In a program it is a node, `global::exchange(list, token)`, which gives a list and the next token, a tensor without
// elements. A program takes its first token as an input and gives the last one as an output. So no pass removes an
// exchange, joins two, or changes their order. Before the passes core/compile/early.h does, from facts that all ranks
// have alike; so every rank runs the same ones in one order. A program runs in the process that has recorded it: its
// text names exchanges by the numbers that they have there. Of a larger one the node only begins the exchange, and who
// reads the list waits.
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
  Communicator* line = nullptr;  // that of a placement, or the world: both stay until the process ends
  int64_t size = 0;              // how many elements this rank gets
  Exchange exchange = {};
  bool between_placements = false;  // a rank that gets nothing then goes on at once, whatever it needs

  auto operator<=>(const ExchangePlan&) const = default;
};

// When the caller needs what an exchange gives. Later: the exchange goes on beside the caller, who goes on to compute.
enum class Needed : uint8_t { now, later };
// Exchanges of so many bytes are worth a thread beside the caller's: it costs less than they do.
constexpr int64_t kLarge = 256 << 10;
// Smaller sums travel together, in buckets of so many bytes, the first one smaller, so that it goes soon.
constexpr int64_t kFirstBucket = int64_t{1} << 20, kBucket = int64_t{4} << 20;

// What this rank gets for `list`, which is dense, has one axis, and lies where the line takes it; sums are added.
// Where a program is recorded, a value of it. Errors: those of Communicator; of what is needed later they come to
// whoever uses the result.
Tensor exchange(const Tensor& list, const ExchangePlan& plan, Needed needed = Needed::now);

// What a node of a program does. Times are those of Recorded::time, which all ranks have alike.
struct ExchangeNode {
  const ExchangePlan* plan = nullptr;
  int64_t ready = 0;  // when what it carries was made
  int64_t asked = 0;  // when it was recorded: whoever reads what it brings came later
};
// Nothing: `op` is no exchange.
std::optional<ExchangeNode> exchange_of(const OpInfo& op, const void* attributes);
// Makes `attributes` those of a node that does the same for `size` elements, which are ready at `ready`.
void set_size(void* attributes, int64_t size, int64_t ready);

// The first token of every program: a tensor without elements.
const Tensor& first_token();

}  // namespace tenon::global
