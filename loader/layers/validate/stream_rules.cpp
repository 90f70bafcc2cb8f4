// The rules of streams and events: what was submitted, which work waits for which, and what the host has seen.
#include "loader/layers/validate/rules.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

constexpr size_t kept_launches = 65536;

void check_recorded(Call& call, const Event* event) {
  if (event == nullptr) return;
  if (!event->recorded) return call.refuse("S02", "the event was never recorded");
  const Objects& all = Objects::instance();
  call.captured = event->clock;
  call.at = event->point;
  if (all.seen.at(call.at.stream) >= call.at.number) call.known = "S05";
  if (all.seen_alone.at(call.at.stream) >= call.at.number) call.known = "S04";
}

void see(Call& call, ep_status status) {
  if (status != EP_STATUS_OK) return;
  Objects::instance().seen.join(call.captured);
  Objects::instance().seen_alone.raise(call.at.stream, call.at.number);
}

// `status` is the provider's answer about the recorded event `event`.
void check_answer(Call& call, ep_status status, const Event& event) {
  if (call.layer->lost || event.point != call.at) return;
  if (status == EP_STATUS_INVALID_ARGUMENT) return call.blame("S02", "it refuses an event that was recorded");
  if ((status != EP_STATUS_BUSY && status != EP_STATUS_TIMEOUT) || *call.known == '\0') return;
  const std::string_view why = std::string_view(call.known) == "S04"
                                   ? "later work of the stream that recorded it was seen done"
                                   : "work of another stream that came after it was seen done";
  call.blame(call.known, fmt::format("it says that the event has not fired, but {}", why));
}

// Removes launches that the host has seen done, since all their faults have been reported.
void forget_launches(Stream& stream) {
  const uint64_t seen = Objects::instance().seen.at(stream.number);
  while (!stream.launched.empty() && stream.launched.front().point <= seen) stream.launched.pop_front();
}

}  // namespace

void submitted(Stream& stream, std::initializer_list<Object*> objects) {
  if (stream.layer->synchronous()) return;
  stream.waited.raise(stream.number, ++stream.point);
  for (Object* object : objects) {
    if (object != nullptr) object->uses.raise(stream.number, stream.point);
  }
  while (stream.launched.size() > kept_launches) stream.launched.pop_front();
}

void before(Tag<Slot::stream_create>, Call& call, Device&, Argument<const ep_stream_desc*>& desc,
            Argument<ep_stream**>&, Error&) {
  if (desc.value == nullptr) return call.refuse("A01", "the description of the stream is NULL");
  if (desc.value->struct_type == EP_STRUCT_STREAM_DESC && desc.value->struct_size >= sizeof(ep_stream_desc)) return;
  call.refuse("T01", fmt::format("the description's struct_size is {} and its struct_type {}", desc.value->struct_size,
                                 desc.value->struct_type));
}

void after(Tag<Slot::stream_create>, Call&, ep_status, Device&, Argument<const ep_stream_desc*>& desc,
           Argument<ep_stream**>& out, Error&) {
  if (out.object != nullptr) out.object->timed = (desc.value->flags & EP_STREAM_FLAG_TIMED) != 0;
}

void before(Tag<Slot::stream_destroy>, Call& call, Device&, StreamHandle& stream) {
  if (stream.object == nullptr || call.layer->synchronous() || call.layer->lost) return;
  if (stream.object->recording != nullptr) call.note("K04", "it records, and the host has not ended the recording");
  if (stream.object->point <= Objects::instance().seen.at(stream.object->number)) return;
  call.note("M06", "its work is not known to be done; the layer waits for it");
  call.drain.push_back({call.layer, stream.pass()});
}

void after(Tag<Slot::stream_destroy>, Call&, ep_status, Device&, StreamHandle& stream) {
  if (stream.object != nullptr) Objects::instance().bury(stream.object);
}

void before(Tag<Slot::stream_synchronize>, Call& call, StreamHandle& stream, Error&) {
  if (stream.object == nullptr) return;
  call.captured = stream.object->waited;
  call.at = {stream.object->number, stream.object->point};
}

void after(Tag<Slot::stream_synchronize>, Call& call, ep_status status, StreamHandle&, Error&) { see(call, status); }

void after(Tag<Slot::stream_take_fault>, Call& call, ep_status status, StreamHandle& stream, Argument<ep_fault*>& out,
           Error&) {
  if (status == EP_STATUS_NOT_FOUND) return forget_launches(*stream.object);
  if (status != EP_STATUS_OK) return;
  if (out.written.flags & EP_FAULT_FLAG_OVERFLOW) return;
  auto& launched = stream.object->launched;
  const auto found = std::find_if(launched.begin(), launched.end(),
                                  [&](const Stream::Launched& one) { return one.tag == out.written.tag; });
  if (found == launched.end()) {
    return call.blame(
        "F01", fmt::format("the fault's tag {} belongs to no launch of the stream after the one of the last fault",
                           out.written.tag));
  }
  const uint32_t node = EP_FAULT_NODE(out.written.flags);
  if (node >= std::max(found->nodes, 1u)) {
    call.blame(found->rule, fmt::format("the fault names node {}, and what was launched has {}", node, found->nodes));
  }
  launched.erase(launched.begin(), found);
}

void before(Tag<Slot::event_destroy>, Call& call, Device&, EventHandle& event) {
  if (event.object != nullptr) call.check_unused(*event.object);
}

void after(Tag<Slot::event_destroy>, Call&, ep_status, Device&, EventHandle& event) {
  if (event.object != nullptr) Objects::instance().bury(event.object);
}

void after(Tag<Slot::event_record>, Call&, ep_status status, EventHandle& event, StreamHandle& stream, Error&) {
  if (status != EP_STATUS_OK) return;
  submitted(*stream.object, {event.object});
  event.object->recorded = true;
  event.object->timed = stream.object->timed;
  event.object->clock = stream.object->waited;
  event.object->point = {stream.object->number, stream.object->point};
}

void before(Tag<Slot::event_query>, Call& call, EventHandle& event, Error&) { check_recorded(call, event.object); }
void after(Tag<Slot::event_query>, Call& call, ep_status status, EventHandle& event, Error&) {
  check_answer(call, status, *event.object);
  see(call, status);
}

void before(Tag<Slot::event_host_wait>, Call& call, EventHandle& event, Number&, Error&) {
  check_recorded(call, event.object);
}
void after(Tag<Slot::event_host_wait>, Call& call, ep_status status, EventHandle& event, Number&, Error&) {
  check_answer(call, status, *event.object);
  see(call, status);
}

void before(Tag<Slot::stream_wait_event>, Call& call, StreamHandle&, EventHandle& event, Error&) {
  check_recorded(call, event.object);
}

void after(Tag<Slot::stream_wait_event>, Call& call, ep_status status, StreamHandle& stream, EventHandle& event,
           Error&) {
  check_answer(call, status, *event.object);
  if (status != EP_STATUS_OK) return;
  stream.object->waited.join(call.captured);
  submitted(*stream.object, {event.object});
}

void before(Tag<Slot::event_elapsed>, Call& call, EventHandle& begin, EventHandle& end, Argument<uint64_t*>&, Error&) {
  for (const Event* event : {begin.object, end.object}) {
    if (event == nullptr || call.refused()) return;
    if (!event->recorded || !event->timed) {
      return call.refuse("S10", "an event was not recorded on a stream with EP_STREAM_FLAG_TIMED");
    }
    if (Objects::instance().seen.at(event->point.stream) < event->point.number) {
      return call.refuse("S10", "the host has not observed that an event has fired");
    }
  }
}

void after(Tag<Slot::event_elapsed>, Call& call, ep_status status, EventHandle&, EventHandle&, Argument<uint64_t*>&,
           Error&) {
  if (status != EP_STATUS_INVALID_ARGUMENT && status != EP_STATUS_BUSY) return;
  call.blame("S10", fmt::format("it answered {} about events that were recorded on timed streams and seen", status));
}

}  // namespace tenon::loader::validate
