// ep_collectives.h: the contract between a Tenon host and a plug-in that carries data between processes. Version 0.2.
//
// Such a plug-in is one shared library, libtenon_<name>.so, whose note says EP_PLUGIN_KIND_COLLECTIVES and which
// exports one symbol, ep_collectives_query_v0. All that ep_api.h says of notes, errors, ownership, strings, structs
// that may grow and the host's services holds here too. The version is this file's own: it grows without ep_api.h.
//
//   plug-in -> communicator -> exchange
//
// A communicator is a group of processes, its ranks, numbered from 0. Ranks are started and connected by a launcher
// (mpirun, srun); a plug-in starts nobody. An exchange is one collective under way.
//
// There are two sorts of plug-ins, by the functions of the table. One that finds ranks (MPI) has world_join and
// communicator_split, and takes memory of the host. One that joins by tickets (NCCL) has ticket_make and ticket_join,
// takes memory of devices, and works beside one that finds ranks, which carries its tickets. A plug-in may be both.
//
//   * Order. All ranks of a communicator start the same collectives in the same order: kind, dtype, reduction, peer and
//     counts agree. The host makes sure of it and tells whoever differs; a plug-in may rely on it. `send` and `receive`
//     concern two ranks alone, and match in their order between these two.
//   * Asynchrony. exchange_start returns without waiting for another rank. The buffers belong to the exchange until
//     exchange_wait has answered OK. Exchanges of one communicator may end in any order. One that was joined by a
//     ticket carries its exchanges out in the order of their starts; sends and receives in a row count as one.
//   * Progress. Exchanges may go on only while somebody is in exchange_wait; a wait for one helps all of the plug-in
//   on.
//   * Memory. `src` and `dst` do not overlap, but may be one in all_reduce. They are addresses of the process where the
//     plug-in finds ranks, and of a device where ep_collectives_info names its type of handle. All work on them that
//     was submitted to the device earlier has ended, unless the descriptor has a stream.
//   * Silence. A plug-in has no deadlines of its own: exchange_wait answers TIMEOUT as often as it is asked. Whoever
//     gives up destroys the exchange and never touches or frees its buffers again: a late peer may still write them.
//   * Loss. A plug-in that knows that a rank is gone answers DEVICE_LOST and names the rank, by its number in the
//     launch. This is sticky for every communicator with that rank.
//   * Threads. One communicator with its exchanges, one thread at a time; different communicators, any threads.
#ifndef TENON_EP_API_EP_COLLECTIVES_H_
#define TENON_EP_API_EP_COLLECTIVES_H_

#include "ep_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EP_COLLECTIVES_MAJOR 0
#define EP_COLLECTIVES_MINOR 2

#define EP_STRUCT_COLLECTIVES_OPS 0x100
#define EP_STRUCT_COLLECTIVES_INFO 0x101
#define EP_STRUCT_COMMUNICATOR_INFO 0x102
#define EP_STRUCT_COLLECTIVE_DESC 0x103
#define EP_STRUCT_TICKET_DESC 0x104

// EP_COLLECTIVE_all_reduce and so on, int32_t.
#ifdef __cplusplus
#define EP_CONSTANT_(name, value) inline constexpr int32_t name = value;
#else
#define EP_CONSTANT_(name, value) enum { name = value };
#endif
#define EP_COLLECTIVE(name, id, reduces, per_rank) EP_CONSTANT_(EP_COLLECTIVE_##name, id)
#include "collectives.def"
#undef EP_COLLECTIVE
#undef EP_CONSTANT_

// The `peer` of a receive that takes what comes first, from any rank. A communicator that was joined by a ticket need
// not know it.
#define EP_RANK_ANY (-1)

typedef struct ep_collectives ep_collectives;
typedef struct ep_communicator ep_communicator;
typedef struct ep_exchange ep_exchange;

// What a plug-in says of itself. Strings live until shutdown.
typedef struct ep_collectives_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COLLECTIVES_INFO
  const void* next;
  ep_string name;             // what people call it: "Open MPI v4.1.4"
  ep_string unusable_reason;  // empty: usable. Else one sentence; world_join would fail
  ep_string remedy;           // what to do about it, may be empty
  uint64_t memory_handles;    // bits 1 << EP_HANDLE_*: the memory of devices that exchanges take
  uint64_t stream_handles;    // bits 1 << EP_HANDLE_*: the streams in whose order exchanges can run
  uint64_t dtypes;            // bit 1 << dtype for each element type that can be carried
  uint64_t reduced_dtypes;    // bit 1 << dtype for each element type that can be reduced
  uint64_t reductions;        // bit 1 << EP_REDUCE_* for each reduction
  int64_t largest_count;      // most elements in one count of a descriptor; 0: no limit
} ep_collectives_info;

// This process in a communicator.
typedef struct ep_communicator_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COMMUNICATOR_INFO
  const void* next;
  int32_t rank;       // 0 to size - 1
  int32_t size;       // >= 1
  int32_t node_rank;  // among the ranks of the same machine: 0 to node_size - 1
  int32_t node_size;
} ep_communicator_info;

// What one rank makes and gives to all others, so that they become one communicator. Any bytes.
typedef struct ep_ticket {
  uint8_t bytes[128];
} ep_ticket;

// This process, in the communicator of a ticket.
typedef struct ep_ticket_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_TICKET_DESC
  const void* next;
  ep_ticket ticket;
  int32_t rank;             // 0 to size - 1
  int32_t size;             // >= 1
  uint8_t device_uuid[16];  // ep_device_info.uuid of the device whose memory this rank gives; no other rank has it
} ep_ticket_desc;

// One collective. With n ranks, this one r, counts in elements >= 0:
//   all_reduce      dst[i] = the reduction over all ranks of src[i], i < count
//   all_gather      dst = the parts of ranks 0 to n - 1, one behind the other, dst_counts[k] elements of rank k; src is
//                   the own part, dst_counts[r] elements
//   reduce_scatter  src has parts for ranks 0 to n - 1, src_counts[k] for rank k; dst = the reduction over all ranks of
//                   their part r
//   all_to_all      src has parts for ranks 0 to n - 1, src_counts[k] for rank k; dst gets their parts for r in the
//                   order of ranks, dst_counts[k] of rank k
//   broadcast       dst = src of rank `peer`, count elements; `peer` has no dst, the others have no src
//   send, receive   count elements from src to `peer`; into dst from `peer`. Both sides have the same count
// Sums and products may be formed in any order and association, the same on all ranks. f16 and bf16 are summed in f32
// or as they are.
typedef struct ep_collective_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COLLECTIVE_DESC
  const void* next;
  int32_t kind;       // EP_COLLECTIVE_*
  int32_t dtype;      // EP_DTYPE_*
  int32_t reduction;  // EP_REDUCE_sum, _prod, _max or _min where the kind reduces, else 0
  int32_t peer;       // of broadcast, send and receive, else 0
  uint64_t flags;     // 0
  int32_t
      memory_type;  // EP_HANDLE_HOST_POINTER, or one of memory_handles: what src and dst are, of the ticket's device
  int32_t stream_type;  // 0, or one of stream_handles: the exchange begins when work already submitted to `stream` has
  uint64_t stream;      // ended, and later work of `stream` waits for the exchange
  uint64_t src;
  uint64_t dst;
  int64_t count;              // of the kinds without counts per rank
  const int64_t* src_counts;  // one for each rank, borrowed for the call; NULL where the kind has none
  const int64_t* dst_counts;
} ep_collective_desc;

typedef struct ep_collectives_ops {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COLLECTIVES_OPS
  const void* next;
  uint32_t version_major;  // EP_COLLECTIVES_MAJOR and _MINOR
  uint32_t version_minor;
  ep_collectives* plugin;  // given back in the calls below; a plug-in has no globals but its library's

  // Ends the plug-in after every communicator was destroyed. May wait for the other ranks, but for no exchange that was
  // given up.
  void (*shutdown)(ep_collectives* plugin);
  // Describes the plug-in. Connects to nobody, starts no thread, may be called any number of times.
  ep_status (*describe)(ep_collectives* plugin, ep_collectives_info* out_info, ep_error** error);
  // Makes the communicator of all ranks that the launcher started, as every rank does. Optional, with
  // communicator_split: a plug-in that joins by tickets needs neither. Without a launcher the communicator has this
  // rank alone. May wait until all ranks have come. Errors: BUSY if the process has one already; what the library says.
  ep_status (*world_join)(ep_collectives* plugin, ep_communicator** out_communicator, ep_communicator_info* out_info,
                          ep_error** error);
  // Optional, with world_join. Makes communicators of the ranks that gave the same `color` >= 0, in the order of `key`,
  // then of their ranks in `communicator`. A rank with color -1 gets NULL and an info of zeros. All ranks of
  // `communicator` call it; may wait for them. Owner: caller. Errors: OUT_OF_HOST_MEMORY, DEVICE_LOST.
  ep_status (*communicator_split)(ep_communicator* communicator, int32_t color, int32_t key,
                                  ep_communicator** out_communicator, ep_communicator_info* out_info, ep_error** error);
  // Destroys `communicator`. Waits for nobody. NULL is fine.
  void (*communicator_destroy)(ep_communicator* communicator);
  // Starts the collective that `desc` describes. Owner: caller, who destroys the exchange. Errors: INVALID_ARGUMENT for
  // a peer or a count that cannot be; UNSUPPORTED for a kind, dtype, reduction, memory or stream that the info does not
  // name, or counts beyond its limit; OUT_OF_HOST_MEMORY; DEVICE_LOST.
  ep_status (*exchange_start)(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                              ep_error** error);
  // Waits at most `timeout_ns` for `exchange` to end; 0 asks once. OK, again and again, once it has ended: its buffers
  // are the caller's then. Errors: TIMEOUT if it has not ended yet; DEVICE_LOST; what the library says.
  ep_status (*exchange_wait)(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error);
  // Destroys `exchange`. If it has not ended, it is given up: its buffers stay untouched until the process ends. NULL
  // is fine.
  void (*exchange_destroy)(ep_exchange* exchange);
  // Makes the ticket of a new communicator. Optional, with ticket_join. Errors: UNSUPPORTED, what the library says.
  ep_status (*ticket_make)(ep_collectives* plugin, ep_ticket* out_ticket, ep_error** error);
  // Makes the communicator of a ticket. Each of its ranks calls it, and it waits for none of them: they come together
  // while exchanges are waited for. Optional, with ticket_make. Owner: caller. Errors: INVALID_ARGUMENT for a rank that
  // cannot be; NOT_FOUND if there is no such device; OUT_OF_HOST_MEMORY; what the library says.
  ep_status (*ticket_join)(ep_collectives* plugin, const ep_ticket_desc* desc, ep_communicator** out_communicator,
                           ep_error** error);
} ep_collectives_ops;

// The one exported symbol. Fills `out_ops`, whose struct_size and struct_type the host has set, as ep_plugin_query_v0
// does. Errors: VERSION, if the major or minor of ep_host or of this file is not what the plug-in was built for.
typedef ep_status (*ep_collectives_query_fn)(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error);
#define EP_COLLECTIVES_QUERY_SYMBOL "ep_collectives_query_v0"
EP_EXPORT ep_status ep_collectives_query_v0(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error);

#define EP_COLLECTIVES_NOTE(plugin_name, plugin_version, note_flags) \
  EP_PLUGIN_NOTE_OF_KIND(plugin_name, plugin_version, note_flags, EP_PLUGIN_KIND_COLLECTIVES)

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENON_EP_API_EP_COLLECTIVES_H_
