// The state behind the handles of the fake, and the functions that its files share.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ep_api/collective_kinds.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/pipes/wires.h"

struct ep_collectives {
  const ep_host* host;
  std::mutex mutex;
  std::string breaks;  // the rule to break
  int64_t delay_us = 0, mb_per_s = 0;
  std::chrono::steady_clock::time_point busy_until;  // when the data given so far is sent
  bool joined = false;
  int described = 0;
  tenon::fakes::Wires wires;
  std::deque<ep_exchange*> receives;  // not ended yet, in the order of their starts
};

struct ep_communicator {
  const ep_host* host;
  ep_collectives* plugin;
  uint64_t id;               // the same number on all ranks of the communicator
  std::vector<int32_t> all;  // position: rank of the communicator; element: rank of the world
  int32_t rank;
  uint64_t collectives, splits;  // number of calls so far

  int32_t size() const { return static_cast<int32_t>(all.size()); }
};

struct ep_exchange {
  const ep_host* host;
  ep_collectives* plugin;
  ep_collective_desc desc;
  std::vector<int64_t> src_counts, dst_counts;
  uint64_t id, number;  // the id of the communicator, the number of the collective
  std::vector<int32_t> all;
  int32_t rank;
  std::vector<std::string> parts;  // the data of each rank; the rank's own from the start
  std::vector<bool> come;
  std::chrono::steady_clock::time_point not_before;
  bool ended, lost;
  std::string failure;
  int asked;  // number of calls of exchange_wait
};

namespace tenon::fakes {

// Takes received messages, and ends the exchange if it is complete. The caller holds the lock of the plug-in.
void advance(ep_exchange& exchange);
// Combines the parts in dst.
void finish(ep_exchange& exchange);

size_t bytes_of(int32_t dtype);

}  // namespace tenon::fakes
