// Cancelling primitive_create and graph_compile.
#include <algorithm>
#include <cstring>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/primitive/check.h"
#include "sdk/conformance/primitive/graph_work.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {
namespace {

constexpr int64_t kMostStops = 4;

// A function that creates an object, and the object.
template <class Handle, class Info, class Desc>
struct Maker {
  const char* name;
  ep_status (*make)(ep_device*, const Desc*, Handle**, Info*, ep_error**);
  uint32_t info_type;
  const Desc* desc;

  // Creates the object; returns false if cancelled. The host requests this from call number `from` of cancel_requested
  // on; -1: never. `questions` gets the number of those calls.
  Result<bool> once(Subject& subject, int64_t from, int64_t* questions) const {
    auto* const untouched = reinterpret_cast<Handle*>(uintptr_t{0x5a5a5a5a5a5a});
    Handle* made = untouched;
    auto info = with_header<Info>(info_type);
    const Info before = info;
    ep_status answer = EP_STATUS_OK;
    const auto call = [&](ep_error** error) { return answer = make(subject.device, desc, &made, &info, error); };
    subject.host.cancel_after(from);
    const Status status = subject.call(name, call);
    *questions = subject.host.cancel_questions();
    subject.host.cancel_after(-1);
    if (status.ok()) subject.destroy(made);
    if (status.ok()) return true;
    if (answer != EP_STATUS_CANCELLED) return status;
    if (from < 0 || *questions <= from) {
      return broken("E04", "{} answered 'cancelled', and cancel_requested had not said 1", name);
    }
    if (made == untouched && std::memcmp(&info, &before, sizeof info) == 0) return false;
    return broken("E01", "{} answered 'cancelled' and wrote an out-parameter", name);
  }

  // Cancels the function at each of its first calls of cancel_requested; afterwards it must succeed. Returns the number
  // of its calls of cancel_requested.
  Result<int64_t> stop_everywhere(Subject& subject) const {
    int64_t all = 0, ignored = 0;
    TENON_RETURN_IF_ERROR(once(subject, -1, &all).status());
    for (int64_t from = 0; from < std::min(all, kMostStops); ++from) {
      const Status stopped = once(subject, from, &ignored).status();
      if (stopped.code() == Code::internal) return stopped;
      if (!stopped.ok()) {
        return broken("E04", "{} was asked to stop and answered '{}': {}", name, code_name(stopped.code()),
                      without_rule(stopped).message());
      }
      const Status again = once(subject, -1, &ignored).status();
      if (again.ok()) continue;
      return broken("E04", "after it was asked to stop, the same {} fails: {}", name, without_rule(again).message());
    }
    return all;
  }
};

Result<int64_t> stop_primitives(Subject& subject) {
  int64_t questions = 0;
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  const Status status = for_each_of(find_samples(subject), [&](const cases::Case& sample) {
    const auto desc = accepted_desc(subject, sample);
    TENON_RETURN_IF_ERROR(desc.status());
    const bool sound = run_case(subject, stream, sample).ok();
    const Maker<ep_primitive, ep_primitive_info, ep_primitive_desc> maker{
        "primitive_create", subject.ops.primitive_create, EP_STRUCT_PRIMITIVE_INFO, &desc.value()};
    const auto asked = maker.stop_everywhere(subject);
    TENON_RETURN_IF_ERROR(asked.status());
    questions += asked.value();
    if (asked.value() == 0 || !sound) return Status();
    const Status ran = run_case(subject, stream, sample);
    if (ran.ok() || ran.code() == skip_code) return Status();
    if (ran.parts().rule == "S01") return ran;  // wrong at random, not because of the cancelled call
    return broken("E04", "after a cancelled create: {}", without_rule(ran).message());
  });
  if (!status.ok()) return status;
  return questions;
}

Result<int64_t> stop_graphs(Subject& subject) {
  if (subject.ops.graph_compile == nullptr) return int64_t{0};
  for (const cases::Case& sample : find_sound_samples(subject)) {
    if (!has_dense_outputs(sample)) continue;
    GraphWork work(subject, {sample}, {});
    const auto answers = ask_capability(subject, work.table());
    if (!answers.ok() || answers->front().island == 0) continue;
    const Maker<ep_graph, ep_graph_info, ep_graph_desc> maker{"graph_compile", subject.ops.graph_compile,
                                                              EP_STRUCT_GRAPH_INFO, &work.table()};
    auto asked = maker.stop_everywhere(subject);
    if (asked.status().code() == Code::unsupported) continue;
    return asked;
  }
  return int64_t{0};
}

}  // namespace

// A create that is cancelled, at each of its first calls of cancel_requested, returns 'cancelled' or finishes. The next
// create succeeds, and no memory is leaked.
Status creates_cancelled(Subject& subject) {
  if (subject.ops.primitive_create == nullptr) return skipped("the device has no primitive_create.");
  TENON_ASSIGN_OR_RETURN(const int64_t primitives, stop_primitives(subject));
  TENON_ASSIGN_OR_RETURN(const int64_t graphs, stop_graphs(subject));
  subject.close();
  if (subject.host.bytes_held() != 0 || subject.host.errors_alive() != 0) {
    return broken("L01", "after cancelled creates the plug-in was shut down and holds {} bytes of the host's memory",
                  subject.host.bytes_held());
  }
  return primitives + graphs == 0 ? skipped("it never asks the host whether to stop.") : Status();
}

}  // namespace tenon::conformance
