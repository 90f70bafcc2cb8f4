// Early: which exchanges a program makes, and where they stand. Internal to core/compile.
#pragma once

#include "core/graph/graph.h"

namespace tenon::lazy {

// Moves each exchange (core/global/exchange.h) to where what it carries is ready, so that it goes on while the program
// computes what comes next. Their order becomes that in which what they carry was ready, which all ranks have alike:
// what an exchange carries was made of what earlier ones brought, so no exchange comes before one that it needs.
// Small sums go together, as gradients of eager steps do (core/global/ahead.h): lists that all were ready before
// anybody could read the sum of one of them become one list, and their sums parts of its sum.
void begin_exchanges_early(graph::Graph* program);

}  // namespace tenon::lazy
