// The structs behind the handles of the MPI plug-in, and the functions that its files offer each other.
//
// MPI belongs to the process, not to the plug-in: it is initialised once, by us or by the application before us, and
// the lock of the plug-in is held around each call of it. No call waits for another rank but those of world_join and
// communicator_split.
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
  bool initialised = false;                               // MPI, by us
  bool given_up = false;                                  // an exchange was, so nobody may wait for MPI's end
  std::vector<ep_exchange*> in_steps;                     // reductions under way: whoever waits takes all of them on
  tenon::provider::mpi::Room spare;                       // of the largest reduction so far
  std::map<std::pair<int32_t, int32_t>, MPI_Op> own_ops;  // by dtype and reduction, where MPI's own do not serve
};

struct ep_communicator {
  const ep_host* host;
  ep_collectives* plugin;
  MPI_Comm comm;  // MPI_COMM_NULL: the one rank of a program without a launcher
  int32_t rank, size;
  uint32_t exchanges_in_steps = 0;  // so far
};

struct ep_exchange {
  const ep_host* host;
  ep_collectives* plugin;
  MPI_Request request;
  bool is_receive;
  // In elements, by rank. MPI reads them while the exchange is under way.
  std::vector<int> src_counts, src_starts, dst_counts, dst_starts;
  bool ended;
  std::string failure;  // ended, and not well

  // Of what goes in steps (steps.cpp): the messages under way, elements of `element_bytes` each, and where the next
  // ones are taken from and go.
  std::vector<MPI_Request> requests;
  MPI_Comm comm;
  int tag;  // of the exchange, so that the steps of several under way do not mix
  int32_t rank;
  MPI_Datatype type;
  size_t element_bytes;
  const char* src;
  char* dst;
  // Of a reduction: what the others have for this rank, a part behind the other, to be reduced when it has come.
  tenon::provider::mpi::Room room;
  MPI_Op op;
  bool part_is_due;     // to be reduced
  bool gathers;         // an all-reduce: the reduced parts go to all ranks
  int64_t piece, left;  // of an all-reduce, in elements: under way, and in all
};

namespace tenon::provider::mpi {

using Lock = std::lock_guard<std::recursive_mutex>;

// Whether MPI was finalised, by the application perhaps. After that nothing of it may be called.
inline bool is_over() {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

// The error of a call of MPI that answered `code`.
ep_status mpi_failed(const ep_host* host, ep_error** error, const char* function, int code);
std::string mpi_text(int code);

// MPI's type with as many bytes as `dtype`, to carry elements; MPI_DATATYPE_NULL if there is none.
MPI_Datatype carried_type(int32_t dtype);
// MPI's type and operation that reduce `dtype` by `reduction`. False: there is none.
bool reduced_type(ep_collectives& plugin, int32_t dtype, int32_t reduction, MPI_Datatype* type, MPI_Op* op);
// Bits 1 << dtype: what can be carried, and what can be reduced.
uint64_t carried_dtypes();
uint64_t reduced_dtypes();
uint64_t known_reductions();
// Makes and frees the operations that MPI lacks: the greater and the lesser of floats with NaN, and all of f16 and
// bf16.
int make_own_ops(ep_collectives& plugin);
void free_own_ops(ep_collectives& plugin);

ep_status world_join(ep_collectives* plugin, ep_communicator** out_communicator, ep_communicator_info* out_info,
                     ep_error** error);
ep_status communicator_split(ep_communicator* communicator, int32_t color, int32_t key,
                             ep_communicator** out_communicator, ep_communicator_info* out_info, ep_error** error);
void communicator_destroy(ep_communicator* communicator) noexcept;
// Whether an exchange goes in steps of ours; all ranks decide alike.
bool goes_in_steps(const ep_communicator& communicator, const ep_collective_desc& desc);
int start_in_steps(ep_communicator& communicator, const ep_collective_desc& desc, MPI_Datatype type, MPI_Op op,
                   ep_exchange& exchange);
// After a step: begins the next one, if there is one. `goes_on`: it is under way.
int next_step(ep_exchange& exchange, bool* goes_on);
// Nobody asks for the exchange any more. If it has ended, the next one may have its room.
void leave_steps(ep_exchange& exchange);

// Ends MPI, if we began it and nothing was given up.
void leave(ep_collectives& plugin) noexcept;

ep_status exchange_start(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                         ep_error** error);
ep_status exchange_wait(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error);
void exchange_destroy(ep_exchange* exchange) noexcept;

}  // namespace tenon::provider::mpi
