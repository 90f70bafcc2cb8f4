#include "sdk/provider/plugin.h"

#include <climits>

#include "providers/mpi/plugin.h"

EP_COLLECTIVES_NOTE("mpi", "0.1.0", 0)

namespace tenon::provider::mpi {
namespace {

void shutdown(ep_collectives* plugin) noexcept {
  leave(*plugin);
  destroy(plugin);
}

ep_status describe(ep_collectives* plugin, ep_collectives_info* out_info, ep_error**) {
  if (plugin->name.empty()) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int size = 0;
    MPI_Get_library_version(text, &size);  // one of the few functions that may be called before MPI_Init
    const std::string_view whole(text, static_cast<size_t>(size));
    plugin->name = whole.substr(0, whole.find_first_of(",\n"));
  }
  ep_collectives_info info{};
  info.name = to_ep_string(plugin->name);
  info.dtypes = carried_dtypes();
  info.reduced_dtypes = reduced_dtypes();
  info.reductions = known_reductions();
  info.largest_count = INT_MAX;
  fill(out_info, info);
  return EP_STATUS_OK;
}

void fill_plugin(ep_collectives_ops* ops) {
  ops->shutdown = shutdown;
  ops->describe = entry<describe>;
  ops->world_join = entry<world_join>;
  ops->communicator_split = entry<communicator_split>;
  ops->communicator_destroy = communicator_destroy;
  ops->exchange_start = entry<exchange_start>;
  ops->exchange_wait = entry<exchange_wait>;
  ops->exchange_destroy = exchange_destroy;
}

}  // namespace

std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  MPI_Error_string(code, text, &size);
  return {text, static_cast<size_t>(size)};
}

ep_status mpi_failed(const ep_host* host, ep_error** error, const char* function, int code) {
  return fail(host, error, EP_STATUS_DEVICE_LOST, "%s failed: %s.", function, mpi_text(code).c_str());
}

}  // namespace tenon::provider::mpi

ep_status ep_collectives_query_v0(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::mpi::fill_plugin);
}
