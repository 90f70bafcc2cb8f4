// The structs behind the handles of the MPI plug-in, and the functions that its files offer each other.
//
// MPI belongs to the process, not to the plug-in: either the plug-in or the application before it initialises MPI once.
// The plug-in holds its lock during each MPI call. Only world_join and communicator_split wait for other ranks.
#pragma once

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ep_api/collective_kinds.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

namespace tenon::provider::mpi {

struct Room {
  std::unique_ptr<char[]> memory = nullptr;
  size_t bytes = 0;
};

}  // namespace tenon::provider::mpi

struct ep_collectives {
  const ep_host* host;
  std::string name;
  std::recursive_mutex mutex;
  bool joined = false;
  bool initialised = false;            // true: this plug-in has initialised MPI
  bool given_up = false;               // true: an exchange was given up, so nobody may wait for MPI's end
  std::vector<ep_exchange*> in_steps;  // pending reductions; a wait for one advances all
  tenon::provider::mpi::Room spare;    // memory of the largest reduction so far, for reuse
  std::map<std::pair<int32_t, int32_t>, MPI_Op> own_ops;  // by dtype and reduction, where MPI lacks one
};

struct ep_communicator {
  const ep_host* host;
  ep_collectives* plugin;
  MPI_Comm comm;  // MPI_COMM_NULL if there is no launcher and so only one rank
  int32_t rank, size;
  uint32_t exchanges_in_steps = 0;  // number of exchanges in steps so far
};

struct ep_exchange {
  const ep_host* host;
  ep_collectives* plugin;
  MPI_Request request;
  bool is_receive;
  // Counts and offsets by rank, in elements. MPI reads them while the exchange is under way.
  std::vector<int> src_counts, src_starts, dst_counts, dst_starts;
  bool ended;
  std::string failure;  // not empty: the exchange has ended with this error

  // For exchanges in steps (steps.cpp): the messages under way, in elements of `element_bytes`, and the source and
  // destination of the next ones.
  std::vector<MPI_Request> requests;
  MPI_Comm comm;
  int tag;  // differs between pending exchanges, so that their messages do not mix
  int32_t rank;
  MPI_Datatype type;
  size_t element_bytes;
  const char* src;
  char* dst;
  // For reductions: the other ranks' parts for this rank, one after the other. They are reduced when all have arrived.
  tenon::provider::mpi::Room room;
  MPI_Op op;
  bool part_is_due;     // true: a part has to be reduced
  bool gathers;         // true: an all-reduce, so the reduced parts go to all ranks
  int64_t piece, left;  // elements of the current piece of an all-reduce, and elements after it
};

namespace tenon::provider::mpi {

using Lock = std::lock_guard<std::recursive_mutex>;

// True if MPI has been finalised, perhaps by the application. No MPI function may be called then.
inline bool is_over() {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

// The error for an MPI call that returned `code`.
ep_status mpi_failed(const ep_host* host, ep_error** error, const char* function, int code);
std::string mpi_text(int code);

// Returns an MPI type of the size of `dtype`, for moving elements; MPI_DATATYPE_NULL if there is none.
MPI_Datatype carried_type(int32_t dtype);
// Finds the MPI type and operation that reduce `dtype` with `reduction`. Returns false if there is none.
bool reduced_type(ep_collectives& plugin, int32_t dtype, int32_t reduction, MPI_Datatype* type, MPI_Op* op);
// Bit sets of 1 << dtype (types that can be moved, types that can be reduced) and of 1 << EP_REDUCE_*.
uint64_t carried_dtypes();
uint64_t reduced_dtypes();
uint64_t known_reductions();
// Creates and frees the operations that MPI lacks: max and min of floats with NaN, and all operations on f16 and bf16.
int make_own_ops(ep_collectives& plugin);
void free_own_ops(ep_collectives& plugin);

ep_status world_join(ep_collectives* plugin, ep_communicator** out_communicator, ep_communicator_info* out_info,
                     ep_error** error);
ep_status communicator_split(ep_communicator* communicator, int32_t color, int32_t key,
                             ep_communicator** out_communicator, ep_communicator_info* out_info, ep_error** error);
void communicator_destroy(ep_communicator* communicator) noexcept;
// True if an exchange is done in steps of our own. All ranks decide alike.
bool goes_in_steps(const ep_communicator& communicator, const ep_collective_desc& desc);
int start_in_steps(ep_communicator& communicator, const ep_collective_desc& desc, MPI_Datatype type, MPI_Op op,
                   ep_exchange& exchange);
// To be called after a step: begins the next one if there is one. `goes_on`: true if a step is under way.
int next_step(ep_exchange& exchange, bool* goes_on);
// Abandons the exchange. If it has ended, the next one may use its memory.
void leave_steps(ep_exchange& exchange);

// Finalises MPI if the plug-in has initialised it and no exchange was given up.
void leave(ep_collectives& plugin) noexcept;

ep_status exchange_start(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                         ep_error** error);
ep_status exchange_wait(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error);
void exchange_destroy(ep_exchange* exchange) noexcept;

}  // namespace tenon::provider::mpi
