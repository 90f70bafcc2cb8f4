// Early: where the exchanges of a program stand. Internal to core/lazy.
#pragma once

#include "core/graph/graph.h"

namespace tenon::lazy {

// Moves each exchange (core/global/exchange.h) to where what it carries is ready, so that it goes on while the program
// computes what comes next. Their order becomes that in which what they carry was ready, which all ranks have alike:
// what an exchange carries was made of what earlier ones brought, so no exchange comes before one that it needs.
void begin_exchanges_early(graph::Graph* program);

}  // namespace tenon::lazy
