// Events: never recorded, recorded again, waited for by a stream, and recorded again after such a wait.
#include <chrono>
#include <thread>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

// Copies that take longer than the calls that submit them, and a download of the last result.
class LongWork {
 public:
  explicit LongWork(Subject& subject) : subject_(subject) {}
  Status prepare() {
    TENON_ASSIGN_OR_RETURN(a_, subject_.allocate(size));
    TENON_ASSIGN_OR_RETURN(b_, subject_.allocate(size));
    return {};
  }
  Status submit(const Stream& stream, uint64_t seed) {
    sent_ = random_bytes(size, seed);
    received_.assign(size, 0);
    TENON_RETURN_IF_ERROR(subject_.upload(stream, a_, 0, sent_));
    TENON_RETURN_IF_ERROR(move(stream));
    return subject_.download(stream, a_, 0, received_);
  }
  // Submits only the copies within the device. The host buffers stay in use until all submitted work is done.
  Status move(const Stream& stream) {
    for (int i = 0; i < 8; ++i) {
      TENON_RETURN_IF_ERROR(subject_.copy(stream, b_, 0, a_, 0, size));
      TENON_RETURN_IF_ERROR(subject_.copy(stream, a_, 0, b_, 0, size));
    }
    return {};
  }
  bool done() const { return sent_ == received_; }

 private:
  static constexpr uint64_t size = 1 << 20;
  Subject& subject_;
  Memory a_, b_;
  std::vector<uint8_t> sent_, received_;
};

}  // namespace

Status events_never_recorded(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Event event, subject.make_event());
  const ep_device_ops& ops = subject.ops;
  const auto query = [&](ep_error** error) { return ops.event_query(event.get(), error); };
  const auto host_wait = [&](ep_error** error) { return ops.event_host_wait(event.get(), 1000, error); };
  const auto stream_wait = [&](ep_error** error) { return ops.stream_wait_event(stream.get(), event.get(), error); };
  const auto must = [&](const char* name, const auto& call) {
    const Status status = refuses(subject, name, {Code::invalid_argument}, call);
    if (status.ok()) return status;
    return broken("S02", "{} of an event that was never recorded: {}", name, without_rule(status).message());
  };
  TENON_RETURN_IF_ERROR(must("event_query", query));
  TENON_RETURN_IF_ERROR(must("event_host_wait", host_wait));
  TENON_RETURN_IF_ERROR(must("stream_wait_event", stream_wait));
  return subject.finish(stream);
}

// A thread that sees an event also sees the results of all work before it, including downloads. Queries alone are
// enough for the event to fire.
Status events_mean_done(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Event event, subject.make_event());
  LongWork work(subject);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(work.prepare());
  for (uint64_t round = 0; round < 3; ++round) {
    TENON_RETURN_IF_ERROR(work.submit(stream, 60 + round));
    TENON_RETURN_IF_ERROR(subject.record_event(event, stream));
    const auto begin = std::chrono::steady_clock::now();
    const auto patience = std::chrono::nanoseconds(wait_limit_ns / 20);
    Status seen = round == 2 ? subject.wait(event) : subject.call("event_query", subject.ops.event_query, event.get());
    while (seen.code() == Code::busy && std::chrono::steady_clock::now() - begin < patience) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      seen = subject.call("event_query", subject.ops.event_query, event.get());
    }
    if (seen.code() == Code::busy)
      return broken("S03", "an event that was recorded does not come, however often it is queried");
    TENON_RETURN_IF_ERROR(seen);
    if (!work.done()) return broken("S04", "an event was seen before the work recorded before it was done");
  }
  TENON_RETURN_IF_ERROR(work.submit(stream, 70));
  TENON_RETURN_IF_ERROR(subject.call("stream_synchronize", subject.ops.stream_synchronize, stream.get()));
  if (!work.done()) return broken("S04", "stream_synchronize returned before the work was done");
  return {};
}

Status events_time_out(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Event event, subject.make_event());
  LongWork work(subject);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(work.prepare());
  TENON_RETURN_IF_ERROR(work.submit(stream, 80));
  TENON_RETURN_IF_ERROR(subject.record_event(event, stream));
  const Status at_once = subject.call("event_host_wait", subject.ops.event_host_wait, event.get(), uint64_t{0});
  if (at_once.ok() && !work.done()) return broken("S04", "event_host_wait answered ok before the work was done");
  if (!at_once.ok() && at_once.code() != Code::timeout) {
    return broken("S03", "event_host_wait(0) answered '{}': {}", code_name(at_once.code()),
                  without_rule(at_once).message());
  }
  TENON_RETURN_IF_ERROR(subject.call("event_host_wait", subject.ops.event_host_wait, event.get(), ~uint64_t{0}));
  return work.done() ? Status() : broken("S04", "event_host_wait answered ok before the work was done");
}

// An event that is recorded again fires only for the later point.
Status events_record_replaces(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Event event, subject.make_event());
  LongWork first(subject), second(subject);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(first.prepare());
  TENON_RETURN_IF_ERROR(second.prepare());
  TENON_RETURN_IF_ERROR(first.submit(stream, 90));
  TENON_RETURN_IF_ERROR(subject.record_event(event, stream));
  TENON_RETURN_IF_ERROR(subject.wait(event));
  TENON_RETURN_IF_ERROR(second.submit(stream, 91));
  TENON_RETURN_IF_ERROR(subject.record_event(event, stream));
  TENON_RETURN_IF_ERROR(subject.wait(event));
  if (!first.done() || !second.done()) return broken("S02", "an event recorded again still stands for its first point");
  return {};
}

namespace {

constexpr int kMostWork = 64;  // number of LongWork that delays even a fast device

// The second stream has `amount` long works before its wait. A device that reads the point of the event when it
// executes the wait, instead of during the call, finds the later point, and the second stream waits for itself. `held`
// is true if the stream had not reached the wait when the event was recorded again.
Status wait_behind_work(Subject& subject, const Stream& first, const Stream& second, int amount, bool* held) {
  TENON_ASSIGN_OR_RETURN(const Event event, subject.make_event());
  TENON_ASSIGN_OR_RETURN(const Event before, subject.make_event());
  LongWork work(subject), ahead(subject);
  const Drain drain_first(subject, first), drain_second(subject, second);
  TENON_RETURN_IF_ERROR(work.prepare());
  TENON_RETURN_IF_ERROR(ahead.prepare());
  TENON_RETURN_IF_ERROR(work.submit(first, 95));
  TENON_RETURN_IF_ERROR(subject.record_event(event, first));
  TENON_RETURN_IF_ERROR(ahead.submit(second, 94));
  for (int i = 1; i < amount; ++i) TENON_RETURN_IF_ERROR(ahead.move(second));
  TENON_RETURN_IF_ERROR(subject.record_event(before, second));
  TENON_RETURN_IF_ERROR(subject.call("stream_wait_event", subject.ops.stream_wait_event, second.get(), event.get()));
  TENON_RETURN_IF_ERROR(subject.record_event(event, second));
  *held = subject.call("event_query", subject.ops.event_query, before.get()).code() == Code::busy;
  const Status seen = subject.call("event_host_wait", subject.ops.event_host_wait, event.get(), wait_limit_ns / 12);
  if (seen.code() == Code::timeout) {
    static_cast<void>(subject.record_event(event, first));  // fires the event, so that the waiting stream continues
    return broken("S05", "stream_wait_event waits for a point recorded after the call");
  }
  TENON_RETURN_IF_ERROR(seen);
  if (!work.done()) return broken("S05", "an event recorded on a second stream came before the first one's work");
  return subject.finish(first);
}

}  // namespace

// A stream waits for the point that the event had at the call. A faster device gets more work before the wait.
Status events_wait_captures(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream first, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Stream second, subject.make_stream());
  bool held = false;
  for (int amount = 1; !held && amount <= kMostWork; amount *= 4) {
    TENON_RETURN_IF_ERROR(wait_behind_work(subject, first, second, amount, &held));
  }
  return {};
}

// Events outlive the stream that recorded them: the host queries the first, waits for the second, another stream waits
// for the third, and all are recorded again on that stream.
Status events_outlive_stream(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(Stream gone, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Stream stays, subject.make_stream());
  LongWork work(subject), later(subject);
  TENON_RETURN_IF_ERROR(work.prepare());
  TENON_RETURN_IF_ERROR(later.prepare());
  Event events[3];
  const Drain drain(subject, stays);
  {
    const Drain drain_gone(subject, gone);
    TENON_RETURN_IF_ERROR(work.submit(gone, 97));
    for (Event& event : events) {
      TENON_ASSIGN_OR_RETURN(event, subject.make_event());
      TENON_RETURN_IF_ERROR(subject.record_event(event, gone));
    }
  }
  gone.reset();
  const Status answers[] = {
      subject.call("event_query", subject.ops.event_query, events[0].get()), subject.wait(events[1]),
      subject.call("stream_wait_event", subject.ops.stream_wait_event, stays.get(), events[2].get())};
  for (const Status& answer : answers) {
    if (!answer.ok()) {
      return broken("S07", "the stream that recorded an event was synchronised and destroyed, and then: {}",
                    without_rule(answer).message());
    }
  }
  TENON_RETURN_IF_ERROR(later.submit(stays, 98));
  for (const Event& event : events) {
    TENON_RETURN_IF_ERROR(subject.record_event(event, stays));
    TENON_RETURN_IF_ERROR(subject.wait(event));
  }
  if (!work.done() || !later.done()) return broken("S07", "an event that outlived its stream came too early");
  return {};
}

}  // namespace tenon::conformance
