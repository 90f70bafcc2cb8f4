// Early: starts the exchanges of a program as soon as possible. Internal to core/compile.
#pragma once

#include "core/graph/graph.h"

namespace tenon::compilation {

// Moves each exchange (core/global/exchange.h) to the point where its data is ready, so that it overlaps with the
// computation that follows. Exchanges are ordered by when their data is ready, which is the same order on all ranks. An
// exchange never moves before another one that its data depends on. Small sums are merged, like gradients of eager
// steps (core/global/ahead.h): lists that are all ready before the first read of any of their sums become one list, and
// their sums become parts of its sum.
void begin_exchanges_early(graph::Graph* program);

}  // namespace tenon::compilation
