#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "providers/nccl/plugin.h"

namespace tenon::provider::nccl {
namespace {

using State = ep_communicator::State;

static_assert(sizeof(UniqueId) == sizeof(ep_ticket));

ep_status failed(const ep_host* host, ep_error** error, const char* function, const std::string& why) {
  return fail(host, error, EP_STATUS_DEVICE_LOST, "%s failed: %s.", function, why.c_str());
}

// Finds the device with this UUID. Returns false if there is none or the driver does not start; `why` then has the
// reason.
bool find_device(const Libraries& libraries, const uint8_t* uuid, CudaDevice* device, std::string* why) {
  int count = 0;
  CudaResult result = libraries.init(0);
  if (result == cuda_success) result = libraries.device_count(&count);
  if (result != cuda_success) {
    *why = libraries.cuda_text_of(result);
    return false;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    uint8_t own[16] = {};
    if (libraries.device_get(device, ordinal) != cuda_success) continue;
    if (libraries.device_uuid(own, *device) == cuda_success && std::equal(uuid, uuid + sizeof own, own)) return true;
  }
  *why = fmt::format("none of the {} devices of CUDA has this UUID", count);
  return false;
}

// Returns an empty string, or the error of the first step that fails.
std::string open_device(ep_communicator& communicator) {
  const Libraries& libraries = communicator.plugin->libraries;
  const auto said = [&](const char* what, CudaResult result) {
    return result == cuda_success ? std::string() : fmt::format("{}: {}", what, libraries.cuda_text_of(result));
  };
  Context context = nullptr;
  std::string why = said("cuDevicePrimaryCtxRetain", libraries.context_retain(&context, communicator.device));
  if (!why.empty()) return why;
  communicator.context = context;
  const InContext here(communicator);
  why = said("cuStreamCreateWithPriority", libraries.stream_create(&communicator.stream, stream_non_blocking, 0));
  if (why.empty()) why = said("cuEventCreate", libraries.event_create(&communicator.event, event_without_time));
  return why;
}

void close_device(ep_communicator& communicator) noexcept {
  const Libraries& libraries = communicator.plugin->libraries;
  if (communicator.context == nullptr) return;
  {
    const InContext here(communicator);
    if (communicator.event != nullptr) libraries.event_destroy(communicator.event);
    if (communicator.stream != nullptr) libraries.stream_destroy(communicator.stream);
  }
  libraries.context_release(communicator.device);
}

void end_in_hand(ep_communicator& communicator) {
  for (; communicator.in_hand > 0; --communicator.in_hand) {
    communicator.queue.front()->ended = true;
    communicator.queue.pop_front();
  }
}

bool is_between_two(const ep_exchange& exchange) {
  return exchange.desc.kind == EP_COLLECTIVE_send || exchange.desc.kind == EP_COLLECTIVE_receive;
}

// Passes the first exchange of the queue to NCCL. If it is a send or receive, passes the sends and receives directly
// after it too.
Result issue_next(ep_communicator& communicator) {
  const Libraries& libraries = communicator.plugin->libraries;
  const std::deque<ep_exchange*>& queue = communicator.queue;
  Result result = libraries.group_start();
  if (result != success) return result;
  do {
    const Result issued = issue(*queue[communicator.in_hand++]);
    if (result == success) result = issued;
  } while (communicator.in_hand < queue.size() && is_between_two(*queue[communicator.in_hand]) &&
           is_between_two(*queue[0]));
  const Result ended = libraries.group_end();
  return result == success ? ended : result;
}

// Asks NCCL for the state of the communicator. Returns false if it has failed; it is then given up.
bool ask(ep_communicator& communicator, Result* state) {
  const Result asked = communicator.plugin->libraries.get_async_error(communicator.comm, state);
  const Result worst = asked != success ? asked : *state;
  if (worst == success || worst == in_progress) return true;
  give_up(communicator, fmt::format("NCCL says {}", Libraries::text_of(worst)));
  return false;
}

// Returns true if the state of `communicator` has changed.
bool step(ep_communicator& communicator) {
  const Libraries& libraries = communicator.plugin->libraries;
  Result state = success;
  if (communicator.state == State::failed || !ask(communicator, &state)) return false;
  switch (communicator.state) {
    case State::making:
      if (state == in_progress) return false;
      communicator.state = State::idle;
      return true;
    case State::idle: {
      if (communicator.queue.empty()) return false;
      const Result issued = issue_next(communicator);
      if (issued != success && issued != in_progress) {
        give_up(communicator, fmt::format("NCCL refused it: {}", Libraries::text_of(issued)));
        return false;
      }
      communicator.state = State::issuing;
      return true;
    }
    case State::issuing: {
      // Until NCCL has put its work on the stream, an event would fire too early.
      if (state == in_progress) return false;
      const CudaResult recorded = libraries.event_record(communicator.event, communicator.stream);
      communicator.state = State::running;
      if (recorded != cuda_success) give_up(communicator, "cuEventRecord: " + libraries.cuda_text_of(recorded));
      return recorded == cuda_success;
    }
    case State::running: {
      const CudaResult reached = libraries.event_query(communicator.event);
      if (reached == cuda_not_ready) return false;
      if (reached != cuda_success) {
        give_up(communicator, "cuEventQuery: " + libraries.cuda_text_of(reached));
        return false;
      }
      end_in_hand(communicator);
      communicator.state = State::idle;
      return true;
    }
    default: return false;
  }
}

}  // namespace

void advance(ep_communicator& communicator) {
  const InContext here(communicator);
  while (step(communicator)) {
  }
}

void give_up(ep_communicator& communicator, const std::string& failure) {
  communicator.state = State::failed;
  communicator.failure = failure;
  communicator.in_hand = 0;
  for (ep_exchange* exchange : communicator.queue) {
    exchange->ended = true;
    exchange->failure = failure;
  }
  communicator.queue.clear();
  if (communicator.comm == nullptr) return;
  const InContext here(communicator);
  communicator.plugin->libraries.abort(communicator.comm);
  communicator.comm = nullptr;
}

ep_status ticket_make(ep_collectives* plugin, ep_ticket* out_ticket, ep_error** error) {
  const Lock lock(plugin->mutex);
  plugin->libraries.load();
  if (!plugin->libraries.why_not.empty()) {
    return fail_text(plugin->host, error, EP_STATUS_UNSUPPORTED, plugin->libraries.why_not, plugin->libraries.remedy);
  }
  UniqueId id{};
  const Result made = plugin->libraries.get_unique_id(&id);
  if (made != success) return failed(plugin->host, error, "ncclGetUniqueId", Libraries::text_of(made));
  std::memcpy(out_ticket->bytes, id.bytes, sizeof id);
  return EP_STATUS_OK;
}

ep_status ticket_join(ep_collectives* plugin, const ep_ticket_desc* desc, ep_communicator** out_communicator,
                      ep_error** error) {
  const Lock lock(plugin->mutex);
  const ep_host* host = plugin->host;
  Libraries& libraries = plugin->libraries;
  libraries.load();
  if (!libraries.why_not.empty()) {
    return fail_text(host, error, EP_STATUS_UNSUPPORTED, libraries.why_not, libraries.remedy);
  }
  if (desc->size < 1 || desc->rank < 0 || desc->rank >= desc->size) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "There is no rank %d of %d.", desc->rank, desc->size);
  }
  CudaDevice device = 0;
  std::string why;
  if (!find_device(libraries, desc->device_uuid, &device, &why)) {
    return fail(host, error, EP_STATUS_NOT_FOUND, "The device of the ticket was not found: %s.", why.c_str());
  }
  auto* made = make<ep_communicator>(host);
  made->plugin = plugin;
  made->rank = desc->rank;
  made->size = desc->size;
  made->device = device;
  made->state = State::making;
  why = open_device(*made);
  if (!why.empty()) {
    close_device(*made);
    destroy(made);
    return failed(host, error, "Opening the device", why);
  }
  UniqueId id{};
  std::memcpy(id.bytes, desc->ticket.bytes, sizeof id);
  Config config;
  Result joined = success;
  {
    const InContext here(*made);
    joined = libraries.init_rank(&made->comm, desc->size, id, desc->rank, &config);
  }
  if (joined != success && joined != in_progress) {
    made->comm = nullptr;
    close_device(*made);
    destroy(made);
    return failed(host, error, "ncclCommInitRankConfig", Libraries::text_of(joined));
  }
  plugin->communicators.push_back(made);
  *out_communicator = made;
  return EP_STATUS_OK;
}

// Uses ncclCommAbort, which does not wait for other ranks; ncclCommDestroy may.
void communicator_destroy(ep_communicator* communicator) noexcept {
  if (communicator == nullptr) return;
  const Lock lock(communicator->plugin->mutex);
  give_up(*communicator, "the communicator was destroyed");
  std::erase(communicator->plugin->communicators, communicator);
  close_device(*communicator);
  destroy(communicator);
}

}  // namespace tenon::provider::nccl
