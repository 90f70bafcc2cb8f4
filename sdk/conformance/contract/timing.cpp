// The device's time between events. Skipped on devices without event_elapsed.
#include <chrono>
#include <cmath>
#include <thread>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(50);

uint64_t nanoseconds(Clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

class Timing {
 public:
  explicit Timing(Subject& subject) : subject_(subject) {}

  Status prepare() {
    TENON_ASSIGN_OR_RETURN(timed_, subject_.make_stream(EP_STREAM_COMPUTE, 0, EP_STREAM_FLAG_TIMED));
    TENON_ASSIGN_OR_RETURN(plain_, subject_.make_stream());
    for (Event& event : events_) {
      TENON_ASSIGN_OR_RETURN(event, subject_.make_event());
    }
    TENON_ASSIGN_OR_RETURN(memory_, subject_.allocate(kBytes));
    return {};
  }

  // event_elapsed must fail for events without a time: never recorded, or recorded on a stream without times.
  Status refuses_others() {
    TENON_RETURN_IF_ERROR(must_refuse("were never recorded"));
    for (const Event& event : events_) {
      TENON_RETURN_IF_ERROR(subject_.record_event(event, plain_));
      TENON_RETURN_IF_ERROR(subject_.wait(event));
    }
    return must_refuse("were recorded on a stream without EP_STREAM_FLAG_TIMED");
  }

  // Records three points, with a pause of the host before the last if `pauses`. The times must add up and agree with
  // the host's clock: an event fires after the call that submitted the work before it, and before the host sees it.
  Status measure(bool pauses) {
    const Drain drain(subject_, timed_);
    const auto begin = Clock::now();
    TENON_RETURN_IF_ERROR(record_after_work(0));
    const auto first_seen = Clock::now();
    TENON_RETURN_IF_ERROR(record_after_work(1));
    if (pauses) std::this_thread::sleep_for(kPause);
    const auto last_begins = Clock::now();
    TENON_RETURN_IF_ERROR(record_after_work(2));
    const auto end = Clock::now();
    uint64_t first = 0, second = 0, both = 0;
    TENON_RETURN_IF_ERROR(elapsed(0, 1, &first));
    TENON_RETURN_IF_ERROR(elapsed(1, 2, &second));
    TENON_RETURN_IF_ERROR(elapsed(0, 2, &both));
    if (std::fabs(static_cast<double>(first + second) - static_cast<double>(both)) > 1e4 + 1e-3 * both) {
      return broken("S10", "event_elapsed says {} ns and {} ns for the parts of {} ns", first, second, both);
    }
    const uint64_t least = nanoseconds(last_begins - first_seen), most = nanoseconds(end - begin);
    if (both + 1'000'000 >= least - least / 10 && both <= most + most / 10 + 1'000'000) return {};
    return broken("S10", "event_elapsed says {} ns between two events that lie {} to {} ns apart", both, least, most);
  }

 private:
  static constexpr uint64_t kBytes = 1 << 20;

  Status record_after_work(int index) {
    TENON_RETURN_IF_ERROR(subject_.upload(timed_, memory_, 0, bytes_));
    TENON_RETURN_IF_ERROR(subject_.record_event(events_[index], timed_));
    return subject_.wait(events_[index]);
  }

  Status elapsed(int from, int to, uint64_t* out_ns) {
    const Status status =
        subject_.call("event_elapsed", subject_.ops.event_elapsed, events_[from].get(), events_[to].get(), out_ns);
    if (status.ok() || status.code() == Code::unsupported) return status;
    return broken("S10", "event_elapsed of two events that have come: {}", without_rule(status).message());
  }

  Status must_refuse(const char* what) {
    Poisoned<uint64_t> out("out_ns");
    const auto ask = [&](ep_error** error) {
      return subject_.ops.event_elapsed(events_[0].get(), events_[1].get(), &out.value, error);
    };
    const Status status = refuses(subject_, "event_elapsed", {Code::invalid_argument}, ask, out);
    return status.ok() ? status
                       : broken("S10", "event_elapsed of events that {}: {}", what, without_rule(status).message());
  }

  Subject& subject_;
  Stream timed_, plain_;
  Event events_[3];
  Memory memory_;
  const std::vector<uint8_t> bytes_ = random_bytes(kBytes, 5);
};

}  // namespace

Status events_device_time(Subject& subject) {
  if (subject.ops.event_elapsed == nullptr) return skipped("the device has no event_elapsed.");
  Timing timing(subject);
  TENON_RETURN_IF_ERROR(timing.prepare());
  TENON_RETURN_IF_ERROR(timing.refuses_others());
  for (const bool pauses : {true, false, true}) TENON_RETURN_IF_ERROR(timing.measure(pauses));
  return {};
}

}  // namespace tenon::conformance
