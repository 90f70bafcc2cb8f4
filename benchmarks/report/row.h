// One row of a table: a piece of work, done our way and by peers in the same process, so that the figure is a ratio.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::bench {

// One way of doing the work. `run(n)` does it n times and is timed as a whole.
struct Side {
  std::string label;  // "libtorch 1.13.1, 1 thread"
  std::function<void(int64_t n)> run;
};

// `ours` against the fastest of `peers`. A row has at most one of the three bars; 0 says that a bar is not stated.
struct Row {
  std::string name;  // "relu, 4 floats"
  Side ours;
  std::vector<Side> peers = {};             // may be empty: then only our time is printed
  double bar = 0;                           // the largest ratio of ours to the peer
  std::function<std::string()> check = {};  // empty text: the answer is right; else what is wrong, and the row is void
  double bytes = 0;                         // moved by one run, for GB/s; 0: not printed
  double slack_ns = 0;                      // how much longer than the peer ours may take
  double most_ns = 0;                       // the longest time of ours
  int64_t burst = 0;                        // runs per batch; 0: as many as the measured time asks for
  std::function<void()> settle = {};        // runs after each batch and is not timed: waits for what is under way
};

}  // namespace tenon::bench
