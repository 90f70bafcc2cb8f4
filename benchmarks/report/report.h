// Measuring one piece of work against a peer in the same process, so that the figure is a ratio.
//
// Each side is timed in batches long enough for the clock; batches of the sides alternate, so that what else the
// machine does falls on both. The median of the batches counts, with the distance between quartiles as its spread. The
// answer is checked before anything is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::bench {

// One way of doing the work. `run(n)` does it n times.
struct Side {
  std::string label;  // "libtorch 1.13.1, 1 thread"
  std::function<void(int64_t n)> run;
};

// One row of the table: `ours` against the fastest of `peers`.
struct Row {
  std::string name;  // "relu, 4 floats"
  Side ours;
  std::vector<Side> peers;                  // may be empty: then only our time is printed
  double bar = 0;                           // most that ours / peer may be; 0: none stated
  std::function<std::string()> check = {};  // empty text: the sides agree; else what is wrong, and the row is void
  double bytes = 0;                         // moved by one run, for GB/s; 0: not printed
  double slack_ns = 0;  // instead of a bar: how much longer than the peer ours may take; 0: none stated
};

// Measures and prints `rows`, one line each: name, median and spread of each side in ns, ratio, bar, "ok" or "over".
// Returns the number of rows that were void or over their bar.
// Options: --filter TEXT (rows whose name contains it), --samples N (batches per side, 15 by default).
int run(const std::vector<Row>& rows, int argc, char** argv);

// Keeps the compiler from dropping the computation of `value`.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(&value) : "memory");
}

}  // namespace tenon::bench
