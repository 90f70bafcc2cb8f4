#include "providers/nccl/plugin.h"

EP_COLLECTIVES_NOTE("nccl", "0.1.0", 0)

namespace tenon::provider::nccl {
namespace {

void shutdown(ep_collectives* plugin) noexcept { destroy(plugin); }

ep_status describe(ep_collectives* plugin, ep_collectives_info* out_info, ep_error**) {
  const Lock lock(plugin->mutex);
  Libraries& libraries = plugin->libraries;
  libraries.load();
  ep_collectives_info info{};
  info.name = to_ep_string(libraries.name);
  info.unusable_reason = to_ep_string(libraries.why_not);
  info.remedy = to_ep_string(libraries.remedy);
  info.memory_handles = UINT64_C(1) << EP_HANDLE_CUDA_POINTER;
  info.dtypes = carried_dtypes();
  info.reduced_dtypes = reduced_dtypes();
  info.reductions = known_reductions();
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status query(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error) {
  if (const ep_status status = negotiate(host, out_ops, error, EP_STRUCT_COLLECTIVES_OPS); status != EP_STATUS_OK) {
    return status;
  }
  ep_collectives_ops ops{};
  ops.version_major = EP_COLLECTIVES_MAJOR;
  ops.version_minor = EP_COLLECTIVES_MINOR;
  ops.plugin = make<ep_collectives>(host);
  ops.shutdown = shutdown;
  ops.describe = entry<describe>;
  ops.communicator_destroy = communicator_destroy;
  ops.exchange_start = entry<exchange_start>;
  ops.exchange_wait = entry<exchange_wait>;
  ops.exchange_destroy = exchange_destroy;
  ops.ticket_make = entry<ticket_make>;
  ops.ticket_join = entry<ticket_join>;
  fill(out_ops, ops);
  return EP_STATUS_OK;
}

}  // namespace
}  // namespace tenon::provider::nccl

ep_status ep_collectives_query_v0(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error) try {
  return tenon::provider::nccl::query(host, out_ops, error);
} catch (...) {
  return tenon::provider::caught(host, error);
}
