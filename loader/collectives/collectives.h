// Collectives: finds and opens the plug-in that carries data between processes (ep_api/ep_collectives.h).
//
// The same files are looked at as for devices: libtenon_<name>.so in the same folders, by the same rules of trust. A
// note of another kind ends a candidate of either search. Nothing happens before the first call.
//
// Threads: every function may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ep_api/ep_collectives.h"
#include "loader/loader.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// What the plug-in says of itself (ep_collectives_info), copied.
struct CollectivesInfo {
  std::string name, unusable_reason, remedy;
  uint64_t memory_handles = 0, stream_handles = 0;  // bits 1 << EP_HANDLE_*
  uint64_t dtypes = 0, reduced_dtypes = 0;          // bits 1 << dtype
  uint64_t reductions = 0;                          // bits 1 << EP_REDUCE_*
  int64_t largest_count = 0;                        // 0: no limit

  bool usable() const { return unusable_reason.empty(); }
};

// A plug-in that was opened. It lives until shutdown_all. `ops` has whole pairs: world_join and communicator_split,
// ticket_make and ticket_join, or both.
struct OpenCollectives {
  std::string plugin;
  CollectivesInfo info;
  ep_collectives_ops ops{};
};

// Whether a plug-in with this table finds ranks (world_join), or joins them by tickets.
inline bool finds_ranks(const ep_collectives_ops& ops) { return ops.world_join != nullptr; }
inline bool joins_by_tickets(const ep_collectives_ops& ops) { return ops.ticket_join != nullptr; }

// Opens the plug-in `name`, which finds ranks; empty: the first of the setting `collectives` that does, else the first
// one that is usable. The same name gives the same pointer. Errors: none is there, or none is usable: the message says
// how far each candidate came.
Result<OpenCollectives*> open_collectives(std::string_view name = {});

// Opens the first plug-in, of those in the setting if it names any, that joins by tickets and takes memory of the type
// `handle` (EP_HANDLE_*). NULL: there is none.
OpenCollectives* open_collectives_of_memory(int32_t handle);

#pragma GCC visibility push(default)  // exported by libtenon.so
// Every plug-in of this kind that was found, taken as far as `usable`.
std::vector<Candidate> explain_collectives();
#pragma GCC visibility pop

// Adds a plug-in that is linked into the program; it comes before all files. To be called before open_collectives.
void register_collectives(std::string name, ep_collectives_query_fn query);

// Whether a host may work with the table; `what` begins the sentence. Errors: another version; a function is NULL.
Status check_collectives(const ep_collectives_ops& ops, const std::string& what);

// Shuts all of them down; what open_collectives gave is invalid. `forget`: registrations are forgotten too, and the
// next call searches anew.
void shut_down_collectives(bool forget);

}  // namespace tenon::loader
