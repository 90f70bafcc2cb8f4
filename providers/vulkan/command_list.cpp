#include "providers/vulkan/queue/command_list.h"

#include "providers/vulkan/device.h"

struct ep_command_list {
  const ep_host* host;
  std::shared_ptr<tenon::provider::vulkan::CommandList> commands;
};

namespace tenon::provider::vulkan {
namespace {

// A command buffer contains the buffers of its copies, so replays cannot replace them.
ep_status command_list_begin(ep_stream* stream, const ep_command_list_desc* desc, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  if (desc->binding_count != 0) {
    return fail_text(stream->host, error, EP_STATUS_UNSUPPORTED,
                     "A recorded command buffer has fixed addresses, so bindings are not supported.");
  }
  return stream->commands->begin_list(error);
}

ep_status command_list_end(ep_stream* stream, ep_command_list** out_list, ep_command_list_info* out_info,
                           ep_error** error) {
  if (!stream->commands->records()) {
    return fail_text(stream->host, error, EP_STATUS_INVALID_ARGUMENT, "The stream does not record.");
  }
  std::shared_ptr<CommandList> commands;
  if (const ep_status status = stream->commands->end_list(&commands, error); status != EP_STATUS_OK) return status;
  ep_command_list_info info{};
  info.host_bytes = sizeof(ep_command_list) + sizeof(CommandList);
  info.device_bytes = commands->device_bytes();
  *out_list = make<ep_command_list>(stream->host, stream->host, std::move(commands));
  fill(out_info, info);
  return EP_STATUS_OK;
}

// The last replay is done, but its stream may not have noticed yet.
void command_list_destroy(ep_device*, ep_command_list* list) noexcept {
  if (list == nullptr) return;
  if (const std::shared_ptr<CommandStream> last = list->commands->last.lock()) (void)last->retire(nullptr);
  destroy(list);
}

ep_status command_list_replay(ep_command_list* list, ep_stream* stream, const ep_command_list_replay_desc* replay,
                              ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  return stream->commands->replay(list->commands, replay->tag, error);
}

}  // namespace

void fill_command_list(ep_device_ops* ops) {
  ops->command_list_begin = entry<command_list_begin>;
  ops->command_list_end = entry<command_list_end>;
  ops->command_list_destroy = command_list_destroy;
  ops->command_list_replay = entry<command_list_replay>;
}

}  // namespace tenon::provider::vulkan
