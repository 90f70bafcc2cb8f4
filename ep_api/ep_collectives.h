// ep_collectives.h: the contract between a Tenon host and a plug-in that moves data between processes. Version 0.2.
//
// Such a plug-in is one shared library, libtenon_<name>.so. Its note has the kind EP_PLUGIN_KIND_COLLECTIVES, and it
// exports one symbol, ep_collectives_query_v0. The rules of ep_api.h for notes, errors, ownership, strings, structs
// that may grow and the host's services apply here too. This file has its own version, independent of ep_api.h.
//
//   plug-in -> communicator -> exchange
//
// A communicator is a group of processes, its ranks, numbered from 0. A launcher (mpirun, srun) starts and connects the
// ranks; a plug-in starts no process. An exchange is one collective in progress.
//
// There are two sorts of plug-ins. A plug-in that finds ranks (MPI) has world_join and communicator_split, and works on
// host memory. A plug-in that joins by tickets (NCCL) has ticket_make and ticket_join and works on device memory; a
// plug-in that finds ranks sends its tickets to the other ranks. A plug-in may be both.
//
//   * Order. All ranks of a communicator start the same collectives in the same order, with equal kind, dtype,
//     reduction, peer and counts. The host checks this and reports a rank that differs; a plug-in may rely on it.
//     `send` and `receive` involve only two ranks, and match in their order between these two.
//   * Asynchrony. exchange_start returns without waiting for another rank. The buffers belong to the exchange until
//     exchange_wait has returned OK. Exchanges of one communicator may end in any order. A communicator that was joined
//     by a ticket runs its exchanges in the order in which they were started; consecutive sends and receives count as
//     one exchange.
//   * Progress. Exchanges may progress only while a thread is in exchange_wait. Waiting for one exchange advances all
//     exchanges of the plug-in.
//   * Memory. `src` and `dst` do not overlap, but may be equal in all_reduce. They are host addresses, or handles of
//     device memory if ep_collectives_info names their type. All device work that uses them and was submitted earlier
//     has ended, unless the descriptor has a stream.
//   * Timeouts. A plug-in has no deadlines of its own: exchange_wait may return TIMEOUT any number of times. A host
//     that gives up destroys the exchange and never uses or frees its buffers again, since a late peer may still write
//     them.
//   * Loss. A plug-in that knows that a rank is gone returns DEVICE_LOST and names the rank, by its number in the
//     launch. From then on every communicator with that rank returns DEVICE_LOST.
//   * Threads. Only one thread at a time uses a communicator and its exchanges. Different communicators may be used by
//     different threads at the same time.
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

// The kinds of collectives: EP_COLLECTIVE_all_reduce and so on, int32_t.
#ifdef __cplusplus
#define EP_CONSTANT_(name, value) inline constexpr int32_t name = value;
#else
#define EP_CONSTANT_(name, value) enum { name = value };
#endif
#define EP_COLLECTIVE(name, id, reduces, per_rank) EP_CONSTANT_(EP_COLLECTIVE_##name, id)
#include "collectives.def"
#undef EP_COLLECTIVE
#undef EP_CONSTANT_

// The `peer` of a receive from any rank: it takes the first message that arrives. A communicator that was joined by a
// ticket need not support it.
#define EP_RANK_ANY (-1)

typedef struct ep_collectives ep_collectives;
typedef struct ep_communicator ep_communicator;
typedef struct ep_exchange ep_exchange;

// Properties of a plug-in. Strings live until shutdown.
typedef struct ep_collectives_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COLLECTIVES_INFO
  const void* next;
  ep_string name;             // for people: "Open MPI v4.1.4"
  ep_string unusable_reason;  // empty if usable. Else one sentence, and world_join would fail
  ep_string remedy;           // what to do about it, may be empty
  uint64_t memory_handles;    // bits 1 << EP_HANDLE_*: accepted types of device memory
  uint64_t stream_handles;    // bits 1 << EP_HANDLE_*: accepted types of streams
  uint64_t dtypes;            // bit 1 << dtype for each element type that can be sent
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

// A ticket: one rank makes it and sends it to the others, and all join one communicator with it. The bytes are opaque.
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
  uint8_t device_uuid[16];  // ep_device_info.uuid of this rank's device; no other rank uses this device
} ep_ticket_desc;

// One collective. n is the number of ranks, r is this rank, and counts are in elements, >= 0:
//   all_reduce      dst[i] = the reduction over all ranks of src[i], i < count
//   all_gather      dst = the parts of ranks 0 to n - 1, one after the other, dst_counts[k] elements of rank k; src is
//                   the own part, dst_counts[r] elements
//   reduce_scatter  src has parts for ranks 0 to n - 1, src_counts[k] for rank k; dst = the reduction over all ranks of
//                   their part r
//   all_to_all      src has parts for ranks 0 to n - 1, src_counts[k] for rank k; dst gets their parts for r in the
//                   order of ranks, dst_counts[k] of rank k
//   broadcast       dst = src of rank `peer`, count elements; `peer` has no dst, the others have no src
//   send, receive   count elements from src to `peer`; into dst from `peer`. Both sides have the same count
// Sums and products may be computed in any order and association, but the same on all ranks. f16 and bf16 are summed in
// f32 or in their own dtype.
typedef struct ep_collective_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COLLECTIVE_DESC
  const void* next;
  int32_t kind;         // EP_COLLECTIVE_*
  int32_t dtype;        // EP_DTYPE_*
  int32_t reduction;    // EP_REDUCE_sum, _prod, _max or _min if the kind reduces, else 0
  int32_t peer;         // for broadcast, send and receive, else 0
  uint64_t flags;       // 0
  int32_t memory_type;  // type of src and dst: EP_HANDLE_HOST_POINTER, or one of memory_handles for memory of the
                        // ticket's device
  int32_t stream_type;  // 0, or one of stream_handles: the exchange begins when work already submitted to `stream` has
  uint64_t stream;      // ended, and later work of `stream` waits for the exchange
  uint64_t src;
  uint64_t dst;
  int64_t count;              // for kinds without counts per rank
  const int64_t* src_counts;  // one for each rank, borrowed for the call; NULL if the kind has none
  const int64_t* dst_counts;
} ep_collective_desc;

typedef struct ep_collectives_ops {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COLLECTIVES_OPS
  const void* next;
  uint32_t version_major;  // EP_COLLECTIVES_MAJOR and _MINOR
  uint32_t version_minor;
  ep_collectives* plugin;  // passed to the calls below; a plug-in has no globals except those of its library

  // Ends the plug-in after all communicators are destroyed. May wait for the other ranks, but not for abandoned
  // exchanges.
  void (*shutdown)(ep_collectives* plugin);
  // Describes the plug-in. Makes no connection, starts no thread, may be called any number of times.
  ep_status (*describe)(ep_collectives* plugin, ep_collectives_info* out_info, ep_error** error);
  // Makes the communicator of all ranks that the launcher started; every rank calls it. Optional, with
  // communicator_split: a plug-in that joins by tickets needs neither. Without a launcher the communicator has only
  // this rank. May wait until all ranks have called it. Errors: BUSY if the process already has one; errors of the
  // library.
  ep_status (*world_join)(ep_collectives* plugin, ep_communicator** out_communicator, ep_communicator_info* out_info,
                          ep_error** error);
  // Optional, with world_join. Makes one communicator for each `color` >= 0, of the ranks that passed it. Its ranks are
  // ordered by `key`, then by their rank in `communicator`. A rank with color -1 gets NULL and an info of zeros. All
  // ranks of `communicator` call it; may wait for them. Owner: caller. Errors: OUT_OF_HOST_MEMORY, DEVICE_LOST.
  ep_status (*communicator_split)(ep_communicator* communicator, int32_t color, int32_t key,
                                  ep_communicator** out_communicator, ep_communicator_info* out_info, ep_error** error);
  // Destroys `communicator`. Does not wait for other ranks. NULL is allowed.
  void (*communicator_destroy)(ep_communicator* communicator);
  // Starts the collective that `desc` describes. Owner: caller, who destroys the exchange. Errors: INVALID_ARGUMENT for
  // an impossible peer or count; UNSUPPORTED for a kind, dtype, reduction, memory or stream that the info does not
  // name, or counts beyond its limit; OUT_OF_HOST_MEMORY; DEVICE_LOST.
  ep_status (*exchange_start)(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                              ep_error** error);
  // Waits at most `timeout_ns` for `exchange` to end; 0 checks once. Returns OK on every call after it has ended; its
  // buffers then belong to the caller again. Errors: TIMEOUT if it has not ended yet; DEVICE_LOST; errors of the
  // library.
  ep_status (*exchange_wait)(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error);
  // Destroys `exchange`. If it has not ended, it is abandoned: the caller keeps its buffers unused until the process
  // ends. NULL is allowed.
  void (*exchange_destroy)(ep_exchange* exchange);
  // Makes the ticket of a new communicator. Optional, with ticket_join. Errors: UNSUPPORTED; errors of the library.
  ep_status (*ticket_make)(ep_collectives* plugin, ep_ticket* out_ticket, ep_error** error);
  // Makes the communicator of a ticket. Each of its ranks calls it. It does not wait for the others: the ranks connect
  // during exchange_wait. Optional, with ticket_make. Owner: caller. Errors: INVALID_ARGUMENT for an impossible rank;
  // NOT_FOUND if there is no such device; OUT_OF_HOST_MEMORY; errors of the library.
  ep_status (*ticket_join)(ep_collectives* plugin, const ep_ticket_desc* desc, ep_communicator** out_communicator,
                           ep_error** error);
} ep_collectives_ops;

// The only exported symbol. Like ep_plugin_query_v0, it fills `out_ops`, whose struct_size and struct_type the host has
// set. Errors: VERSION, if the plug-in was built for another major or minor of ep_host or of this file.
typedef ep_status (*ep_collectives_query_fn)(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error);
#define EP_COLLECTIVES_QUERY_SYMBOL "ep_collectives_query_v0"
EP_EXPORT ep_status ep_collectives_query_v0(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error);

#define EP_COLLECTIVES_NOTE(plugin_name, plugin_version, note_flags) \
  EP_PLUGIN_NOTE_OF_KIND(plugin_name, plugin_version, note_flags, EP_PLUGIN_KIND_COLLECTIVES)

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENON_EP_API_EP_COLLECTIVES_H_
