// Command lists: the driver captures a stream into a graph, which can be launched many times.
#include <utility>

#include "providers/cuda/device.h"

struct ep_command_list {
  const ep_host* host = nullptr;
  CUgraphExec graph = nullptr;
  std::shared_ptr<tenon::provider::cuda::FaultLog> faults;
  std::weak_ptr<tenon::provider::cuda::FaultLog> last;  // fault log of the stream of the last replay
  uint64_t last_sequence = 0;                           // number of the last replay in that log
};

namespace tenon::provider::cuda {
namespace {

void destroy_list(const ep_device* device, ep_command_list* list) {
  {
    const Current current(device);
    if (list->graph != nullptr) device->driver->graph_exec_destroy(list->graph);
    list->faults->release(*device->driver);
  }
  destroy(list);
}

// Not supported with bindings: a graph holds the addresses of its kernels, and updating a node costs as much as a
// launch.
ep_status command_list_begin(ep_stream* stream, const ep_command_list_desc* desc, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  if (desc->binding_count != 0) {
    return fail_text(stream->host, error, EP_STATUS_UNSUPPORTED,
                     "A captured graph has fixed addresses, so bindings are not supported.");
  }
  auto faults = std::make_shared<FaultLog>();
  faults->keep_launches();
  ep_command_list* list = make<ep_command_list>(stream->host);
  list->host = stream->host;
  list->faults = faults;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) {
    result = device->driver->stream_begin_capture(stream->handle, CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  if (result != CUDA_SUCCESS) {
    destroy(list);
    return driver_failed(device, result, "beginning to capture a stream", error);
  }
  stream->list = list;
  stream->own_faults = std::move(stream->faults);
  stream->faults = std::move(faults);
  stream->recorded_calls = 0;
  stream->recording_failed = false;
  stream->records = true;
  return EP_STATUS_OK;
}

// Ends the capture and instantiates the graph.
CUresult make_graph(const ep_device* device, const ep_stream* stream, CUgraphExec* out_graph) {
  const Driver& driver = *device->driver;
  CUgraph captured = nullptr;
  CUresult result = driver.stream_end_capture(stream->handle, &captured);
  if (result == CUDA_SUCCESS && captured == nullptr) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (result == CUDA_SUCCESS && !stream->recording_failed) result = driver.graph_instantiate(out_graph, captured, 0);
  if (captured != nullptr) driver.graph_destroy(captured);
  return result;
}

// The error if there is no list. `result`: from the driver; CUDA_SUCCESS if the driver did not fail.
ep_status no_list(ep_device* device, CUresult result, ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  if (result == CUDA_SUCCESS) {
    return fail_text(device->host, error, EP_STATUS_UNSUPPORTED, "A recorded call has failed.");
  }
  if (status_of(result) != EP_STATUS_INTERNAL) return driver_failed(device, result, "making a graph", error);
  return fail(device->host, error, EP_STATUS_UNSUPPORTED, "The driver cannot make a graph from the recording: %s.",
              device->driver->text_of(result).c_str());
}

ep_status command_list_end(ep_stream* stream, ep_command_list** out_list, ep_command_list_info* out_info,
                           ep_error** error) {
  if (!stream->records) {
    return fail_text(stream->host, error, EP_STATUS_INVALID_ARGUMENT, "The stream does not record.");
  }
  ep_device* device = stream->device;
  ep_command_list* list = std::exchange(stream->list, nullptr);
  CUresult result = CUDA_SUCCESS;
  {
    const Current current(device);
    result = make_graph(device, stream, &list->graph);
  }
  stream->faults = std::move(stream->own_faults);
  stream->records = false;
  if (result != CUDA_SUCCESS || stream->recording_failed) {
    destroy_list(device, list);
    return no_list(device, result, error);
  }
  ep_command_list_info info{};
  info.host_bytes = sizeof *list;
  fill(out_info, info);
  *out_list = list;
  return EP_STATUS_OK;
}

// Called when the last replay of `list` is done; its faults are then known.
void settle(ep_command_list* list) {
  if (const std::shared_ptr<FaultLog> log = list->last.lock()) FaultLog::end_replay(*log, list->last_sequence);
  list->last.reset();
}

void command_list_destroy(ep_device* device, ep_command_list* list) noexcept {
  if (list == nullptr) return;
  settle(list);
  destroy_list(device, list);
}

ep_status command_list_replay(ep_command_list* list, ep_stream* stream, const ep_command_list_replay_desc* replay,
                              ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  settle(list);
  const bool may_fault = list->faults->last() != 0;
  if (may_fault) stream->faults->add_replay(replay->tag, list->faults);
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = device->driver->graph_launch(list->graph, stream->handle);
  if (result != CUDA_SUCCESS) {
    if (may_fault) stream->faults->cancel();
    return driver_failed(device, result, "launching a graph", error);
  }
  if (may_fault) {
    list->last = stream->faults;
    list->last_sequence = stream->faults->last();
  }
  return EP_STATUS_OK;
}

}  // namespace

void fill_command_list(ep_device_ops* ops) {
  ops->command_list_begin = entry<command_list_begin>;
  ops->command_list_end = entry<command_list_end>;
  ops->command_list_destroy = command_list_destroy;
  ops->command_list_replay = entry<command_list_replay>;
}

}  // namespace tenon::provider::cuda
