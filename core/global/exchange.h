// Exchange: elements that the ranks along a line give each other. Internal.
//
// In a program it is a node, `global::exchange(list, token)`, which gives a list and the next token, a tensor without
// elements. A program takes its first token as an input and gives the last one as an output. So no pass removes an
// exchange, joins two, or changes their order, and every rank runs all of them in the order in which they were
// recorded. A program runs in the process that has recorded it: its text names exchanges by the numbers that they have
// there. Of a larger one the node only begins the exchange, and who reads the list waits.
#pragma once

#include <cstdint>
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

  auto operator<=>(const ExchangePlan&) const = default;
};

// When the caller needs what an exchange gives. Later: the exchange goes on beside the caller, who goes on to compute.
enum class Needed : uint8_t { now, later };
// Exchanges of so many bytes are worth a thread beside the caller's: it costs less than they do.
constexpr int64_t kLarge = 256 << 10;

// What this rank gets for `list`, which is dense, has one axis, and lies where the line takes it; sums are added.
// Where a program is recorded, a value of it. Errors: those of Communicator; of what is needed later they come to
// whoever uses the result.
Tensor exchange(const Tensor& list, const ExchangePlan& plan, Needed needed = Needed::now);

// Of a node with these attributes: when what it carries was ready (Recorded::time). Null: `op` is no exchange.
const int64_t* ready_of(const OpInfo& op, const void* attributes);

// The first token of every program: a tensor without elements.
const Tensor& first_token();

}  // namespace tenon::global
