#include "providers/nccl/plugin.h"
#include "sdk/provider/plugin.h"

EP_COLLECTIVES_NOTE("nccl", "0.1.0", 0)

namespace tenon::provider::nccl {
namespace {

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

void fill_plugin(ep_collectives_ops* ops) {
  ops->describe = entry<describe>;
  ops->communicator_destroy = communicator_destroy;
  ops->exchange_start = entry<exchange_start>;
  ops->exchange_wait = entry<exchange_wait>;
  ops->exchange_destroy = exchange_destroy;
  ops->ticket_make = entry<ticket_make>;
  ops->ticket_join = entry<ticket_join>;
}

}  // namespace
}  // namespace tenon::provider::nccl

ep_status ep_collectives_query_v0(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::nccl::fill_plugin);
}
