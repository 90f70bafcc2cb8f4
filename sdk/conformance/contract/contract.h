// The tests of the contract, one function each, registered in table.cpp. A test drives a Subject that is as far as it
// needs it to be, and answers ok, skipped(...) or broken(rule, ...); the caller closes the Subject and asks its host
// what else went wrong.
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

// Brings a Subject as far as `test` needs, runs it, closes, and reports what the host noticed.
Status run_contract_test(const ContractTest& test, const Target& target);

// --- what the tests share ---

// An out-parameter, by its name in ep_api.h, that a failing call must leave alone.
template <class T>
struct Poisoned {
  explicit Poisoned(std::string_view its_name) : name(its_name) {
    std::memset(static_cast<void*>(&value), 0xa5, sizeof value);
  }
  // " out_info (byte 8 of it)" where it was written, else empty.
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

// `call(error)` must fail, with and without a place for its error, with one of `codes` (any if empty), and leave `outs`
// untouched.
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

// Bytes that look random and hold no zero, the same for the same seed.
std::vector<uint8_t> random_bytes(size_t size, uint64_t seed);

// Opens the device if need be and uses it: memory, a stream, an event, transfers, and one primitive of each kind it
// claims (of the kind of find_sound_samples()[only] alone). Any failure of a call and any wrong result is returned.
Status exercise(Subject& subject);
Status exercise(Subject& subject, size_t only);

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

Status streams_ordered_by_events(Subject& subject);
Status streams_keep_launches_apart(Subject& subject);
Status streams_outlive_unrelated(Subject& subject);
Status streams_on_threads(Subject& subject);

Status support_pure(Subject& subject);
Status support_unknown(Subject& subject);
Status support_refusals(Subject& subject);
Status launch_deterministic(Subject& subject);
Status launch_late(Subject& subject);
Status faults_in_order(Subject& subject);

Status host_memory_fails(Subject& subject);
Status teardown_null(Subject& subject);
Status teardown_leaks(Subject& subject);
Status teardown_again(Subject& subject);
Status teardown_exit(Subject& subject);
Status process_prints_nothing(Subject& subject);

}  // namespace tenon::conformance
