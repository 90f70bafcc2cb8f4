// The tests of the contract, one function each; table.cpp lists them. A test gets a Subject that is loaded, started or
// opened, as its row states. It returns ok, skipped(...) or broken(rule, ...). Afterwards the caller closes the Subject
// and collects the violations that its host recorded.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "primitives/text/format.h"
#include "sdk/conformance/subject.h"

namespace tenon::conformance {

enum class Needs : uint8_t { nothing, library, plugin, device, events, primitives };

struct ContractTest {
  const char* name;
  const char* rule;
  Needs needs;
  const char* claim;
  Status (*run)(Subject& subject);
};

std::span<const ContractTest> contract_tests();

// Loads, starts or opens a Subject as `test` needs, runs the test, closes the Subject, and reports violations.
Status run_contract_test(const ContractTest& test, const Target& target);

// --- shared by the tests ---

// An out-parameter, under its name in ep_api.h, that a failing call must not write.
template <class T>
struct Poisoned {
  explicit Poisoned(std::string_view its_name) : name(its_name) {
    std::memset(static_cast<void*>(&value), 0xa5, sizeof value);
  }
  // " out_info (byte 8 of it)" if the call wrote there, else empty.
  std::string written() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    const auto* end = bytes + sizeof value;
    const auto* at = std::find_if(bytes, end, [](unsigned char byte) { return byte != 0xa5; });
    if (at == end) return {};
    return std::is_class_v<T> ? fmt::format(" {} (byte {} of it)", name, at - bytes) : fmt::format(" {}", name);
  }
  std::string_view name;
  T value;
};

// Checks that `call(error)` fails, with and without a place for the error, with one of `codes` (any if `codes` is
// empty), and that it does not write `outs`.
template <class Call, class... Outs>
Status refuses(Subject& subject, const char* name, std::initializer_list<Code> codes, const Call& call,
               const Outs&... outs) {
  note_call(name);
  if (call(nullptr) == EP_STATUS_OK) return broken("E03", "{} answered 'ok' where it must fail", name);
  const Status status = subject.call(name, call);
  if (status.ok()) return broken("E03", "{} failed without a place for its error, and with one answered 'ok'", name);
  if (const std::string written = (std::string() + ... + outs.written()); !written.empty()) {
    return broken("E01", "{} answered '{}' and wrote{}", name, code_name(status.code()), written);
  }
  for (Code code : codes) {
    if (status.code() == code) return {};
  }
  if (codes.size() == 0) return {};
  return broken("E03", "{} answered '{}', not '{}'", name, code_name(status.code()), code_name(*codes.begin()));
}

// Pseudo-random bytes without zeros. The same seed gives the same bytes.
std::vector<uint8_t> random_bytes(size_t size, uint64_t seed);

// Opens the device if it is closed, and uses memory, a stream, an event, transfers, and one primitive of each kind that
// the provider claims (or only that of find_sound_samples()[only]). Returns the first failure or wrong result.
Status exercise(Subject& subject);
Status exercise(Subject& subject, size_t only);
// Compiles and launches a small graph, if the device accepts it.
Status exercise_graphs(Subject& subject, const Stream& stream);
// Records a copy and replays it, if the device can record.
Status exercise_lists(Subject& subject, const Stream& stream);
// Imports a block by its own native handle, if the device accepts it.
Status exercise_interop(Subject& subject, const Stream& stream);

// --- the tests ---

Status file_symbols(Subject& subject);
Status loader_accepts(Subject& subject);

Status query_versions(Subject& subject);
Status query_newer_host(Subject& subject);
Status query_twice(Subject& subject);

Status structs_short(Subject& subject);
Status structs_long(Subject& subject);

Status devices_described_alike(Subject& subject);
Status devices_unknown_index(Subject& subject);

Status memory_distinct(Subject& subject);
Status memory_aligned(Subject& subject);
Status memory_too_large(Subject& subject);
Status memory_mapped(Subject& subject);
Status memory_imported(Subject& subject);

Status transfers_exact(Subject& subject);
Status transfers_in_order(Subject& subject);
Status transfers_between_pools(Subject& subject);
Status peers_copy(Subject& subject);

Status events_never_recorded(Subject& subject);
Status events_mean_done(Subject& subject);
Status events_time_out(Subject& subject);
Status events_record_replaces(Subject& subject);
Status events_wait_captures(Subject& subject);
Status events_outlive_stream(Subject& subject);
Status events_device_time(Subject& subject);

Status streams_ordered_by_events(Subject& subject);
Status streams_keep_launches_apart(Subject& subject);
Status streams_outlive_unrelated(Subject& subject);
Status streams_on_threads(Subject& subject);
Status streams_hints(Subject& subject);
Status streams_share_a_primitive(Subject& subject);

Status support_pure(Subject& subject);
Status support_unknown(Subject& subject);
Status support_refusals(Subject& subject);
Status launch_deterministic(Subject& subject);
Status launch_late(Subject& subject);
Status launch_floating_point(Subject& subject);
Status faults_in_order(Subject& subject);
Status faults_none(Subject& subject);

Status creates_cancelled(Subject& subject);

Status graphs_answers(Subject& subject);
Status graphs_results(Subject& subject);
Status graphs_faults(Subject& subject);

Status interop_memory(Subject& subject);
Status interop_refusals(Subject& subject);

Status layouts_described(Subject& subject);
Status layouts_there_and_back(Subject& subject);
Status layouts_results(Subject& subject);

Status lists_recording(Subject& subject);
Status lists_replays(Subject& subject);
Status lists_faults(Subject& subject);
Status lists_bindings(Subject& subject);

Status modules_described(Subject& subject);
Status modules_results(Subject& subject);
Status modules_arguments(Subject& subject);
Status modules_faults(Subject& subject);
Status modules_refusals(Subject& subject);

Status host_memory_fails(Subject& subject);
Status host_keeps_blobs(Subject& subject);
Status teardown_null(Subject& subject);
Status teardown_leaks(Subject& subject);
Status teardown_again(Subject& subject);
Status teardown_exit(Subject& subject);
Status process_prints_nothing(Subject& subject);

}  // namespace tenon::conformance
