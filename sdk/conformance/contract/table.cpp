// The tests of the contract. A new test is a function and a row.
#include <iterator>

#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

constexpr ContractTest tests[] = {
    {"loader/accepts", "N01", Needs::nothing, "The loader of a host accepts its note, tables and devices.",
     loader_accepts},
    {"file/symbols", "N04", Needs::library, "It exports only the query and links to no library of the host.",
     file_symbols},

    {"query/versions", "V01", Needs::library, "It answers 'version' to a host of another ABI version.", query_versions},
    {"query/newer_host", "V02", Needs::library, "Fields that a newer host adds are ignored.", query_newer_host},
    {"query/twice", "Q01", Needs::library, "Two loaded copies are independent; the query starts no thread.",
     query_twice},

    {"structs/short", "T01", Needs::device, "A struct is filled up to struct_size and no further.", structs_short},
    {"structs/long", "T02", Needs::device, "The part of a struct it does not know stays zero.", structs_long},

    {"devices/described_alike", "D03", Needs::plugin, "A device describes itself in the same way each time.",
     devices_described_alike},
    {"devices/unknown_index", "E03", Needs::plugin, "A request for a missing device fails with 'not found'.",
     devices_unknown_index},

    {"memory/distinct", "M08", Needs::device, "Blocks of any size keep the bytes that were written to them.",
     memory_distinct},
    {"memory/aligned", "M03", Needs::device, "A block starts at a multiple of minimum_alignment.", memory_aligned},
    {"memory/too_large", "E03", Needs::device, "A block that does not fit fails with 'out of device memory'.",
     memory_too_large},
    {"memory/mapped", "M02", Needs::device, "Mapped memory is the same for host and device, and stays mapped.",
     memory_mapped},
    {"memory/imported", "M09", Needs::device, "Imported host memory is used in place; the host still owns it.",
     memory_imported},

    {"transfers/exact", "M08", Needs::device, "A copy moves exactly the requested bytes.", transfers_exact},
    {"transfers/in_order", "S01", Needs::device, "The work of a stream runs in the order of submission.",
     transfers_in_order},
    {"transfers/between_pools", "M08", Needs::device, "Bytes can be copied between every two pools.",
     transfers_between_pools},
    {"transfers/from_a_peer", "M10", Needs::device, "A device copies from each peer that peer_open accepts.",
     peers_copy},

    {"events/never_recorded", "S02", Needs::events,
     "A wait for an event that was never recorded fails with 'invalid argument'.", events_never_recorded},
    {"events/mean_done", "S04", Needs::events, "If an event has fired, all work before it is done.", events_mean_done},
    {"events/time_out", "S03", Needs::events, "A wait ends after its time limit, and may be repeated.",
     events_time_out},
    {"events/record_replaces", "S02", Needs::events, "An event that is recorded again marks the later point.",
     events_record_replaces},
    {"events/wait_captures", "S05", Needs::events,
     "A stream waits for the point that the event marks at the time of the call.", events_wait_captures},
    {"events/outlive_stream", "S07", Needs::events, "An event can be used after its stream was destroyed.",
     events_outlive_stream},
    {"events/device_time", "S10", Needs::events, "The device reports the time between two events in nanoseconds.",
     events_device_time},

    {"streams/ordered_by_events", "S05", Needs::events, "A stream that waits for an event sees the work before it.",
     streams_ordered_by_events},
    {"streams/keep_launches_apart", "S01", Needs::primitives, "Launches on two streams do not disturb each other.",
     streams_keep_launches_apart},
    {"streams/outlive_unrelated", "M07", Needs::primitives,
     "Objects that no launch uses can be destroyed while launches run.", streams_outlive_unrelated},
    {"streams/on_threads", "C01", Needs::device, "Several threads, each with its stream, do not disturb each other.",
     streams_on_threads},
    {"streams/hints", "S09", Needs::device, "A stream can be created with any purpose and priority, and works.",
     streams_hints},
    {"streams/share_a_primitive", "C01", Needs::primitives,
     "Two threads launch one primitive at once, each on its stream with its own operands.", streams_share_a_primitive},

    {"support/pure", "P03", Needs::device,
     "Two queries of support for one descriptor give the same answer and keep no memory.", support_pure},
    {"support/unknown", "P02", Needs::device, "A descriptor with an unknown value gets the answer 'unsupported'.",
     support_unknown},
    {"support/refusals", "E01", Needs::device, "A refusal gives a reason and writes nothing else.", support_refusals},

    {"creates/cancelled", "E04", Needs::primitives,
     "A create that the host cancels answers 'cancelled' or finishes; the next create works.", creates_cancelled},

    {"launch/deterministic", "P15", Needs::primitives, "A deterministic primitive gives the same bits twice.",
     launch_deterministic},
    {"launch/late", "P14", Needs::primitives, "A primitive can be launched long after it was made.", launch_late},
    {"launch/floating_point", "C02", Needs::primitives,
     "A launch computes with the default floating-point state and restores the caller's state.", launch_floating_point},
    {"faults/in_order", "F01", Needs::primitives, "Faults come in launch order, with tags, and later work runs.",
     faults_in_order},
    {"faults/none", "E03", Needs::primitives,
     "If no launch finds invalid data, there is no fault and nothing is written.", faults_none},

    {"graphs/answers", "G01", Needs::device,
     "Two queries for one table give the same answers; unknown nodes are refused.", graphs_answers},
    {"graphs/results", "G06", Needs::device, "A graph gives the reference's results and writes nothing else.",
     graphs_results},
    {"graphs/faults", "G07", Needs::device, "A fault names the node of the graph that found invalid data.",
     graphs_faults},

    {"interop/memory", "I01", Needs::device, "Memory imported by a handle is used in place; the caller still owns it.",
     interop_memory},
    {"interop/refusals", "I02", Needs::device, "An import refuses an invalid handle and keeps no resource of it.",
     interop_refusals},

    {"layouts/described", "Y01", Needs::device, "The device describes each preferred layout in the same way each time.",
     layouts_described},
    {"layouts/there_and_back", "Y02", Needs::device,
     "Elements keep their bits if they are converted to a preferred layout and back.", layouts_there_and_back},
    {"layouts/results", "Y03", Needs::device, "A primitive gives the reference's results in its preferred layouts.",
     layouts_results},

    {"lists/recording", "K01", Needs::events, "A stream that records runs nothing and answers 'busy' to other calls.",
     lists_recording},
    {"lists/replays", "K02", Needs::events, "Each replay gives the results of the recorded calls.", lists_replays},
    {"lists/faults", "K08", Needs::events, "A fault in a replay names the replay and the recorded call.", lists_faults},
    {"lists/bindings", "K09", Needs::events, "A replay uses the buffers that it is given.", lists_bindings},

    {"modules/described", "Z01", Needs::device,
     "Each dialect is described in the same way each time; its limits are at least the required minimum.",
     modules_described},
    {"modules/results", "Z07", Needs::device, "A kernel runs its source text once for each work-item.",
     modules_results},
    {"modules/arguments", "Z08", Needs::device, "A kernel receives parameters, workspace, scratch and local memory.",
     modules_arguments},
    {"modules/faults", "F01", Needs::device, "A fault that a kernel raises carries the tag of the launch.",
     modules_faults},
    {"modules/refusals", "Z04", Needs::device, "A source text with an error or an unknown part is refused.",
     modules_refusals},

    {"host/memory_fails", "O01", Needs::library, "If an allocation of host memory fails, only that call fails.",
     host_memory_fails},
    {"host/keeps_blobs", "H03", Needs::library, "Blobs that were stored in earlier runs change no result.",
     host_keeps_blobs},
    {"teardown/null", "P01", Needs::device, "Destroying NULL has no effect.", teardown_null},
    {"teardown/leaks", "L01", Needs::library, "After shutdown it holds no memory of the host.", teardown_leaks},
    {"teardown/again", "L01", Needs::library, "It can be opened and shut down again and again.", teardown_again},
    {"teardown/exit", "X01", Needs::nothing, "A process that used it exits normally.", teardown_exit},
    {"process/prints_nothing", "X03", Needs::library, "It writes to neither standard output nor standard error.",
     process_prints_nothing},
};

}  // namespace

std::span<const ContractTest> contract_tests() { return tests; }

}  // namespace tenon::conformance
