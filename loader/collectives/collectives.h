// Collectives: finds and opens the plug-in that carries data between processes (ep_api/ep_collectives.h).
//
// The search covers the same folders and files (libtenon_<name>.so) as the search for devices, with the same rules of
// trust. Each of the two searches refuses a plug-in whose note states the other kind. Nothing happens before the first
// call.
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

// The plug-in's description of itself (ep_collectives_info), copied.
struct CollectivesInfo {
  std::string name, unusable_reason, remedy;
  uint64_t memory_handles = 0, stream_handles = 0;  // bits 1 << EP_HANDLE_*
  uint64_t dtypes = 0, reduced_dtypes = 0;          // bits 1 << dtype
  uint64_t reductions = 0;                          // bits 1 << EP_REDUCE_*
  int64_t largest_count = 0;                        // 0: no limit

  bool usable() const { return unusable_reason.empty(); }
};

// An open plug-in. It lives until shutdown_all. `ops` has complete pairs: world_join and communicator_split, or
// ticket_make and ticket_join, or both pairs.
struct OpenCollectives {
  std::string plugin;
  CollectivesInfo info;
  ep_collectives_ops ops{};
};

// finds_ranks: true if the plug-in finds its ranks itself. joins_by_tickets: true if ranks can join by tickets.
inline bool finds_ranks(const ep_collectives_ops& ops) { return ops.world_join != nullptr; }
inline bool joins_by_tickets(const ep_collectives_ops& ops) { return ops.ticket_join != nullptr; }

// Opens the plug-in `name`, which must find ranks. If `name` is empty, opens the first usable plug-in that finds ranks,
// among those named in the setting `collectives` (an empty setting allows all). The same name returns the same pointer.
// Errors: no plug-in was found, or none is usable. The message lists how far each candidate came.
Result<OpenCollectives*> open_collectives(std::string_view name = {});

// Opens the first plug-in that joins by tickets and accepts memory of type `handle` (EP_HANDLE_*). If the setting names
// plug-ins, only those are tried. Returns NULL if there is none.
OpenCollectives* open_collectives_of_memory(int32_t handle);

#pragma GCC visibility push(default)  // exported by libtenon.so
// Every plug-in of this kind that was found, after all stages up to `usable`.
std::vector<Candidate> explain_collectives();
#pragma GCC visibility pop

// Adds a plug-in that is linked into the program. It precedes all files. Call this before open_collectives.
void register_collectives(std::string name, ep_collectives_query_fn query);

// Ok if the host can work with the table. `what` begins the error's sentence. Errors: another version; a required
// function is NULL.
Status check_collectives(const ep_collectives_ops& ops, const std::string& what);

// Shuts all of them down and makes the pointers from open_collectives invalid. With `forget`, registrations are removed
// too, and the next call searches again.
void shut_down_collectives(bool forget);

}  // namespace tenon::loader
