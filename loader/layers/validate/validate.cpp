#include "loader/layers/validate/validate.h"

#include <tuple>

#include "loader/host/error.h"
#include "loader/layers/validate/rules.h"
#include "loader/layers/validate/services.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace validate {
namespace {

bool is_submission(Slot slot) {
  return slot == Slot::copy || slot == Slot::upload || slot == Slot::download || slot == Slot::peer_copy ||
         slot == Slot::primitive_launch || slot == Slot::graph_launch || slot == Slot::event_record ||
         slot == Slot::stream_wait_event || slot == Slot::stream_synchronize || slot == Slot::stream_wait_semaphore ||
         slot == Slot::stream_signal_semaphore || slot == Slot::command_list_replay || slot == Slot::kernel_launch;
}

void check_lost(Call& call, ep_status status, bool lost_before) {
  if (status == EP_STATUS_DEVICE_LOST) call.layer->lost = true;
  if (status != EP_STATUS_OK || !lost_before || !is_submission(call.slot())) return;
  call.blame("D02", "it returned OK after the device was lost");
}

void check_status(Call& call, ep_status status) {
  if (status >= EP_STATUS_OK && status <= EP_STATUS_INTERNAL) return;
  call.blame("R01", fmt::format("its status {} is not one of the known ones", status));
}

// True for a call that may return CANCELLED: a compilation, or a launch or transfer of a synchronous device.
bool is_stoppable(const Call& call) {
  switch (call.slot()) {
    case Slot::primitive_create:
    case Slot::graph_compile:
    case Slot::module_create: return true;
    case Slot::primitive_launch:
    case Slot::primitive_pack:
    case Slot::graph_launch:
    case Slot::kernel_launch:
    case Slot::copy:
    case Slot::upload:
    case Slot::download: return call.layer->synchronous();
    default: return false;
  }
}

void check_cancelled(Call& call, ep_status status) {
  if (status != EP_STATUS_CANCELLED || call.slot() == Slot::peer_copy) return;
  if (is_stoppable(call) && cancel_was_requested()) return;
  call.blame("E04", "it answered CANCELLED, and cancel_requested had not said 1 in this call");
}

// Waits for the work in flight on an object that is destroyed, so that the provider survives.
void drain(const Call& call) {
  for (const Call::Drain& each : call.drain) {
    static_cast<void>(each.layer->inner.stream_synchronize(each.stream, nullptr));
  }
}

template <class T>
constexpr bool is_error = std::is_same_v<T, Argument<ep_error**>>;

template <class Arguments>
Argument<ep_error**>* error_of(Arguments& arguments) {
  using Last = std::tuple_element_t<std::tuple_size_v<Arguments> - 1, Arguments>;
  if constexpr (is_error<Last>) {
    return &std::get<std::tuple_size_v<Arguments> - 1>(arguments);
  } else {
    return nullptr;
  }
}

struct Validating {
  template <Slot slot, class... Args>
  static auto call(Args... args) {
    using Answer = decltype((std::declval<ep_device_ops>().*SlotTraits<slot>::member)(args...));
    Call call(slot);
    std::unique_lock lock(Objects::instance().mutex);
    std::tuple<Argument<Args>...> arguments{Argument<Args>(call, args)...};
    std::apply(
        [&](auto&... each) {
          if (!call.refused()) before(Tag<slot>(), call, each...);
        },
        arguments);
    ep_status status = EP_STATUS_OK;
    if (!call.refused()) {
      const bool lost_before = call.layer->lost;
      lock.unlock();
      begin_stoppable_call();
      drain(call);
      status = std::apply([&](auto&... each) { return run<slot>(*call.layer, each...); }, arguments);
      lock.lock();
      check_status(call, status);
      check_lost(call, status, lost_before);
      check_cancelled(call, status);
      std::apply(
          [&](auto&... each) {
            (each.after(call, status), ...);
            after(Tag<slot>(), call, status, each...);
            (each.end(!call.blamed()), ...);
          },
          arguments);
    }
    call.leave();
    lock.unlock();
    Argument<ep_error**>* error = error_of(arguments);
    status = call.answer(status, error == nullptr ? nullptr : error->made, error == nullptr ? nullptr : error->out);
    if constexpr (!std::is_void_v<Answer>) return status;
  }

 private:
  template <Slot slot, class... Each>
  static ep_status run(const Layer& layer, Each&... each) {
    const auto function = layer.inner.*SlotTraits<slot>::member;
    if constexpr (std::is_void_v<decltype(function(each.pass()...))>) {
      function(each.pass()...);
      return EP_STATUS_OK;
    } else {
      return function(each.pass()...);
    }
  }
};

}  // namespace

void Argument<ep_error**>::after(Call& call, ep_status status) {
  if (made != nullptr && !is_live_error(made)) {
    call.blame("E02", "its error was not made by error_make, or was given out before");
    made = nullptr;
    return;
  }
  const bool quiet = status == EP_STATUS_OK || status == EP_STATUS_BUSY;
  if (quiet && made != nullptr) return call.blame("E02", fmt::format("it set an error though it answered {}", status));
  if (made != nullptr && made->status != status) {
    call.blame("E02", fmt::format("its error says {} and its answer {}", made->status, status));
  }
  const bool terse = quiet || status == EP_STATUS_TIMEOUT || status == EP_STATUS_NOT_FOUND ||
                     status == EP_STATUS_FAULT;  // out_fault has the details
  if (!terse && made == nullptr && out != nullptr) {
    call.blame("E02", fmt::format("it answered {} and set no error", status));
  }
}

void discard(Layer& layer, Kind kind, void* handle) {
  const ep_device_ops& ops = layer.inner;
  switch (kind) {
    case Kind::memory: return ops.memory_free(layer.handle, static_cast<ep_memory*>(handle));
    case Kind::stream: return ops.stream_destroy(layer.handle, static_cast<ep_stream*>(handle));
    case Kind::event: return ops.event_destroy(layer.handle, static_cast<ep_event*>(handle));
    case Kind::primitive: return ops.primitive_destroy(layer.handle, static_cast<ep_primitive*>(handle));
    case Kind::graph: return ops.graph_destroy(layer.handle, static_cast<ep_graph*>(handle));
    case Kind::list: return ops.command_list_destroy(layer.handle, static_cast<ep_command_list*>(handle));
    case Kind::module: return ops.module_destroy(layer.handle, static_cast<ep_module*>(handle));
    case Kind::kernel: return;  // destroyed with its module
    case Kind::semaphore: return ops.semaphore_destroy(layer.handle, static_cast<ep_semaphore*>(handle));
  }
}

void before(Tag<Slot::device_close>, Call& call, Device&) {
  const Layer& layer = *call.layer;
  std::string left;
  for (size_t kind = 0; kind < std::size(kind_names); ++kind) {
    if (layer.alive[kind] == 0) continue;
    left += fmt::format("{}{} of {}", left.empty() ? "" : ", ", layer.alive[kind], kind_names[kind]);
  }
  if (!left.empty()) call.note("D01", fmt::format("objects made from it still exist: {}", left));
  const auto& objects = Objects::instance().objects;
  const bool used = std::any_of(objects.begin(), objects.end(), [&](const auto& entry) {
    return entry.second->layer == &layer && !entry.second->users.empty();
  });
  if (used) call.refuse("C01", "another thread is inside the provider with a handle of the device");
}

void after(Tag<Slot::device_close>, Call& call, ep_status, Device&) {
  call.layer->closed = true;
  Objects::instance().forget(*call.layer);
}

}  // namespace validate

void validate_device(OpenDevice& device) {
  using namespace validate;
  track_errors();
  static auto* layers = new std::vector<std::unique_ptr<Layer>>;
  auto layer = std::make_unique<Layer>();
  layer->inner = device.ops;
  layer->handle = device.handle;
  layer->spelling = device.spelling;
  layer->provider = device.provider;
  layer->info = device.info;
  wrap_table<Validating>(device.ops);
  Objects& all = Objects::instance();
  std::lock_guard lock(all.mutex);
  all.devices[device.handle] = layer.get();
  layers->push_back(std::move(layer));
}

}  // namespace tenon::loader
