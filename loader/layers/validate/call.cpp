#include "loader/layers/validate/call.h"

#include <fmt/ostream.h>

#include "loader/host/error.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

bool destroys(Slot slot) {
  return slot == Slot::memory_free || slot == Slot::stream_destroy || slot == Slot::event_destroy ||
         slot == Slot::primitive_destroy || slot == Slot::graph_destroy || slot == Slot::semaphore_destroy ||
         slot == Slot::command_list_destroy || slot == Slot::module_destroy;
}

// The contract's rules on threads: which functions may run at the same time on one handle.
Use use_of(Slot slot, Kind kind, const Layer& layer) {
  if (destroys(slot)) return Use::alone;
  if (kind == Kind::event && slot == Slot::event_record) return Use::alone;
  if (kind == Kind::list) return Use::work;
  if (kind == Kind::stream && slot != Slot::stream_synchronize && !layer.synchronous()) return Use::work;
  return Use::visit;
}

bool conflict(Use a, Use b) { return a == Use::alone || b == Use::alone || (a == Use::work && b == Use::work); }

}  // namespace

std::string Call::breach(std::string_view rule, std::string_view side, const std::string& what) const {
  return fmt::format("{}, broken by the {}: {} on {}: {}.", rule, side, slot_name(slot_),
                     layer != nullptr ? layer->spelling : "an unknown device", what);
}

void Call::refuse(std::string_view rule, const std::string& what) {
  refused_ = true;
  note(rule, what);
}

void Call::note(std::string_view rule, const std::string& what) { sentences_.push_back(breach(rule, "host", what)); }

void Call::blame(std::string_view rule, const std::string& what) {
  blamed_ = true;
  sentences_.push_back(breach(rule, "provider", what));
}

void Call::enter_device(const ep_device* device) {
  Layer* found = Objects::instance().layer_of(device);
  if (found == nullptr) {
    return refuse("M04", fmt::format("its {} is not one that is open", layer == nullptr ? "device" : "peer"));
  }
  (layer == nullptr ? layer : peer) = found;
  if (found->closed) refuse("D01", fmt::format("the {} was closed before", peer == nullptr ? "device" : "peer"));
}

Object* Call::enter(Kind kind, const void* handle) {
  const std::string name = kind_names[static_cast<int>(kind)];
  if (handle == nullptr) {
    if (!destroys(slot_)) refuse("M04", fmt::format("the {} is NULL", name));
    return nullptr;
  }
  Object* object = Objects::instance().find(handle);
  if (object == nullptr || object->kind != kind) {
    refuse("M04", fmt::format("the {} is not a handle that the device gave, or was destroyed long ago", name));
    return nullptr;
  }
  if (layer == nullptr) layer = object->layer;
  if (!object->alive) {
    refuse("M04", fmt::format("the {} was destroyed before", name));
    return nullptr;
  }
  if (object->layer != (peer != nullptr ? peer : layer)) {
    refuse("M04", fmt::format("the {} is one of {}", name, object->layer->spelling));
    return nullptr;
  }
  const Use use = use_of(slot_, kind, *object->layer);
  const auto me = std::this_thread::get_id();
  for (const User& user : object->users) {
    if (user.thread == me || !conflict(use, user.use)) continue;
    refuse("C01", fmt::format("thread {} is inside {} with the same {}", fmt::streamed(user.thread),
                              slot_name(user.slot), name));
    return nullptr;
  }
  object->users.push_back({me, slot_, use});
  entered_.push_back(object);
  return object;
}

void Call::check_unused(Object& object) {
  const std::vector<const Stream*> busy = Objects::instance().unseen(object.uses);
  if (busy.empty()) return;
  note("M06", fmt::format("work that uses the {} is not known to be done; the layer waits for it", object.kind_name()));
  for (const Stream* stream : busy) {
    if (stream->alive) drain.push_back({stream->layer, static_cast<ep_stream*>(stream->inner)});
  }
}

void Call::leave() {
  const auto me = std::this_thread::get_id();
  for (Object* object : entered_) {
    auto& users = object->users;
    const auto mine = std::find_if(users.begin(), users.end(),
                                   [&](const User& user) { return user.thread == me && user.slot == slot_; });
    if (mine != users.end()) users.erase(mine);
  }
  entered_.clear();
}

ep_status Call::answer(ep_status status, ep_error* made, ep_error** error) {
  for (const std::string& one : sentences_) log(LogTopic::validate, LogLevel::error, one);
  if (!refused_ && !blamed_) {
    if (error != nullptr && made != nullptr) *error = made;
    return status;
  }
  std::string text = sentences_.front();
  if (made != nullptr) {
    text += fmt::format(" Its answer was: {}", made->sentence);
    release_error(made);
  }
  const ep_status code = refused_ ? EP_STATUS_INVALID_ARGUMENT : EP_STATUS_INTERNAL;
  if (error != nullptr) {
    *error = make_error(code, text,
                        refused_ ? "The host broke this rule of ep_api/README.md; the provider was not called."
                                 : "Report it to the provider's author: it is a rule of ep_api/README.md.");
  }
  return code;
}

}  // namespace tenon::loader::validate
