// One row of a table: work done by Tenon and by peers in the same process, so that the figure is a ratio.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::bench {

// One way to do the work. `run(n)` does it n times; the whole call is timed.
struct Side {
  std::string label;  // "libtorch 1.13.1, 1 thread"
  std::function<void(int64_t n)> run;
};

// `ours` against the fastest of `peers`. A row states at most one of the three bars; 0 means that a bar is not stated.
struct Row {
  std::string name;  // "relu, 4 floats"
  Side ours;
  std::vector<Side> peers = {};  // if empty, only our time is printed
  double bar = 0;                // the largest ratio of ours to the peer
  std::function<std::string()> check =
      {};               // returns an empty text if the answer is right; else the error, and the row is void
  double bytes = 0;     // bytes that one run moves, for GB/s; 0: not printed
  double slack_ns = 0;  // nanoseconds by which ours may exceed the peer
  double most_ns = 0;   // limit of our time, in nanoseconds
  int64_t burst = 0;    // runs per batch; 0: chosen by the time of a batch
  std::function<void()> settle = {};  // runs after each batch, not timed: waits for work in flight
};

}  // namespace tenon::bench
