// The tests of the contract. A new test is a function and a row.
#include <iterator>

#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

constexpr ContractTest tests[] = {
    {"loader/accepts", "N01", Needs::nothing, "A host's loader takes it: note, tables, devices.", loader_accepts},
    {"file/symbols", "N04", Needs::library, "It exports the query alone and links nothing of the host.", file_symbols},

    {"query/versions", "V01", Needs::library, "A host of a version it was not built for gets 'version'.",
     query_versions},
    {"query/newer_host", "V02", Needs::library, "Fields that a newer host adds are ignored.", query_newer_host},
    {"query/twice", "Q01", Needs::library, "Two plug-ins are independent; the query starts no thread.", query_twice},

    {"structs/short", "T01", Needs::device, "A struct is filled up to struct_size and no further.", structs_short},
    {"structs/long", "T02", Needs::device, "The part of a struct it does not know stays zero.", structs_long},

    {"devices/described_alike", "D03", Needs::plugin, "A device describes itself in the same way each time.",
     devices_described_alike},
    {"devices/unknown_index", "E03", Needs::plugin, "A request for a missing device fails with 'not found'.",
     devices_unknown_index},

    {"memory/distinct", "M08", Needs::device, "Blocks of any size hold what was put there.", memory_distinct},
    {"memory/aligned", "M03", Needs::device, "A block starts at a multiple of minimum_alignment.", memory_aligned},
    {"memory/too_large", "E03", Needs::device, "A block that does not fit fails with 'out of device memory'.",
     memory_too_large},
    {"memory/mapped", "M02", Needs::device, "Host and device see the same memory through a map, which is permanent.",
     memory_mapped},
    {"memory/imported", "M09", Needs::device, "Imported host memory is used in place and stays the host's.",
     memory_imported},

    {"transfers/exact", "M08", Needs::device, "Exactly the bytes asked for are moved.", transfers_exact},
    {"transfers/in_order", "S01", Needs::device, "Work of a stream runs in its order.", transfers_in_order},
    {"transfers/between_pools", "M08", Needs::device, "Every pool can be copied to every other.",
     transfers_between_pools},
    {"transfers/from_a_peer", "M10", Needs::device, "A device copies from each peer that peer_open accepts.",
     peers_copy},

    {"events/never_recorded", "S02", Needs::events, "A wait for an event never recorded is 'invalid argument'.",
     events_never_recorded},
    {"events/mean_done", "S04", Needs::events, "An event seen means that the work before it is done.",
     events_mean_done},
    {"events/time_out", "S03", Needs::events, "A wait ends when its time has passed, and may be repeated.",
     events_time_out},
    {"events/record_replaces", "S02", Needs::events, "An event recorded again means the later point.",
     events_record_replaces},
    {"events/wait_captures", "S05", Needs::events, "A stream waits for the point the event holds at the call.",
     events_wait_captures},
    {"events/outlive_stream", "S07", Needs::events, "An event can be used after its stream was destroyed.",
     events_outlive_stream},
    {"events/device_time", "S10", Needs::events, "The device reports the time between two events in nanoseconds.",
     events_device_time},

    {"streams/ordered_by_events", "S05", Needs::events, "A stream that waits for an event sees the work before it.",
     streams_ordered_by_events},
    {"streams/keep_launches_apart", "S01", Needs::primitives, "Launches on two streams do not disturb each other.",
     streams_keep_launches_apart},
    {"streams/outlive_unrelated", "M07", Needs::primitives,
     "Destroying what a launch in flight does not use leaves it alone.", streams_outlive_unrelated},
    {"streams/on_threads", "C01", Needs::device, "Several threads, each with its stream, do not disturb each other.",
     streams_on_threads},
    {"streams/hints", "S09", Needs::device, "A stream of any purpose and priority is made, and works.", streams_hints},
    {"streams/share_a_primitive", "C01", Needs::primitives,
     "Two threads launch one primitive at once, each on its stream with its own operands.", streams_share_a_primitive},

    {"support/pure", "P03", Needs::device, "Support gives the same answer to the same question and keeps nothing.",
     support_pure},
    {"support/unknown", "P02", Needs::device,
     "A descriptor with something that the provider cannot know is 'unsupported'.", support_unknown},
    {"support/refusals", "E01", Needs::device, "A refusal has a reason and writes nothing else.", support_refusals},

    {"creates/cancelled", "E04", Needs::primitives,
     "A create that the host asks to stop is 'cancelled' or finishes, and works the next time.", creates_cancelled},

    {"launch/deterministic", "P15", Needs::primitives, "A deterministic primitive gives the same bits twice.",
     launch_deterministic},
    {"launch/late", "P14", Needs::primitives, "A primitive can be launched long after it was made.", launch_late},
    {"launch/floating_point", "C02", Needs::primitives,
     "A launch computes with the default floating-point state and gives the caller's back.", launch_floating_point},
    {"faults/in_order", "F01", Needs::primitives, "Faults come in launch order, with tags, and later work runs.",
     faults_in_order},
    {"faults/none", "E03", Needs::primitives, "Where no launch met bad data there is no fault, and nothing is written.",
     faults_none},

    {"graphs/answers", "G01", Needs::device,
     "The same table gets the same answers, and nodes that a device cannot know are refused.", graphs_answers},
    {"graphs/results", "G06", Needs::device, "A graph gives the reference's results and writes nothing else.",
     graphs_results},
    {"graphs/faults", "G07", Needs::device, "A fault names the node of the graph that met bad data.", graphs_faults},

    {"interop/memory", "I01", Needs::device, "Memory imported by a handle is that memory, and stays the caller's.",
     interop_memory},
    {"interop/refusals", "I02", Needs::device, "An import refuses an invalid handle, and keeps nothing of it.",
     interop_refusals},

    {"layouts/described", "Y01", Needs::device,
     "The device describes each layout that it prefers in the same way each time.", layouts_described},
    {"layouts/there_and_back", "Y02", Needs::device, "Elements go into each such layout and come back as they were.",
     layouts_there_and_back},
    {"layouts/results", "Y03", Needs::device,
     "A primitive gives the reference's results in the layouts that it prefers.", layouts_results},

    {"lists/recording", "K01", Needs::events, "A stream that records runs nothing and is busy for all else.",
     lists_recording},
    {"lists/replays", "K02", Needs::events, "A replay gives what the recorded calls would give, each time.",
     lists_replays},
    {"lists/faults", "K08", Needs::events, "A fault of a replay names the replay and the recorded call.", lists_faults},
    {"lists/bindings", "K09", Needs::events, "A replay works on the buffers that it is given.", lists_bindings},

    {"modules/described", "Z01", Needs::device,
     "Each dialect is described in the same way each time, and its limits reach the minimum.", modules_described},
    {"modules/results", "Z07", Needs::device, "A kernel computes what its text says, each item once.", modules_results},
    {"modules/arguments", "Z08", Needs::device, "A kernel gets parameters, workspace, scratch and local memory.",
     modules_arguments},
    {"modules/faults", "F01", Needs::device, "A fault that a kernel raises carries the tag of the launch.",
     modules_faults},
    {"modules/refusals", "Z04", Needs::device, "A text with an error, or with something unknown, is refused.",
     modules_refusals},

    {"host/memory_fails", "O01", Needs::library, "Any allocation of the host may fail, and nothing else breaks.",
     host_memory_fails},
    {"host/keeps_blobs", "H03", Needs::library, "Blobs that it or others kept in earlier runs change no result.",
     host_keeps_blobs},
    {"teardown/null", "P01", Needs::device, "Destroying NULL is nothing.", teardown_null},
    {"teardown/leaks", "L01", Needs::library, "After shutdown nothing of the host's memory is held.", teardown_leaks},
    {"teardown/again", "L01", Needs::library, "It can be opened and shut down again and again.", teardown_again},
    {"teardown/exit", "X01", Needs::nothing, "A process that used it exits as it should.", teardown_exit},
    {"process/prints_nothing", "X03", Needs::library, "It writes to neither standard output nor standard error.",
     process_prints_nothing},
};

}  // namespace

std::span<const ContractTest> contract_tests() { return tests; }

}  // namespace tenon::conformance
