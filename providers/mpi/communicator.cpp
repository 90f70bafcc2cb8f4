#include <cstdlib>

#include "providers/mpi/plugin.h"

namespace tenon::provider::mpi {
namespace {

// Variables that launchers set in the processes that they start. Without a launcher, MPI would start a daemon for a
// program of one rank, and end the process if it cannot.
bool has_launcher() {
  constexpr const char* variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
  for (const char* variable : variables) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

// Fills `out_info` and creates the handle, which takes ownership of `comm`.
ep_status make_communicator(ep_collectives* plugin, MPI_Comm comm, ep_communicator** out_communicator,
                            ep_communicator_info* out_info, ep_error** error) {
  int rank = 0, size = 0, node_rank = 0, node_size = 0;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  if (code != MPI_SUCCESS) return mpi_failed(plugin->host, error, "MPI_Comm_split_type", code);
  MPI_Comm_rank(node, &node_rank);
  MPI_Comm_size(node, &node_size);
  MPI_Comm_free(&node);
  *out_communicator = make<ep_communicator>(plugin->host, plugin->host, plugin, comm, rank, size);
  ep_communicator_info info{};
  info.rank = rank;
  info.size = size;
  info.node_rank = node_rank;
  info.node_size = node_size;
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_communicator_info one_rank() {
  ep_communicator_info info{};
  info.size = info.node_size = 1;
  return info;
}

}  // namespace

ep_status world_join(ep_collectives* plugin, ep_communicator** out_communicator, ep_communicator_info* out_info,
                     ep_error** error) {
  const Lock lock(plugin->mutex);
  if (plugin->joined) {
    return fail(plugin->host, error, EP_STATUS_BUSY, "The process has joined the communicator of all ranks already.");
  }
  int begun = 0;
  MPI_Initialized(&begun);
  if (is_over()) {
    return fail(plugin->host, error, EP_STATUS_UNSUPPORTED,
                "MPI has been finalised in this process and cannot be initialised again.");
  }
  if (begun == 0 && !has_launcher()) {
    *out_communicator = make<ep_communicator>(plugin->host, plugin->host, plugin, MPI_COMM_NULL, 0, 1);
    fill(out_info, one_rank());
    plugin->joined = true;
    return EP_STATUS_OK;
  }
  int level = MPI_THREAD_SERIALIZED;
  if (begun != 0) {
    MPI_Query_thread(&level);
  } else {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) return mpi_failed(plugin->host, error, "MPI_Init_thread", code);
    plugin->initialised = true;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    return fail_text(plugin->host, error, EP_STATUS_UNSUPPORTED,
                     "MPI was initialised for one thread alone; Tenon calls it from several, one at a time.",
                     "Initialise MPI with MPI_THREAD_SERIALIZED or more, or leave it to Tenon.");
  }
  MPI_Comm comm = MPI_COMM_NULL;
  int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (code != MPI_SUCCESS) return mpi_failed(plugin->host, error, "MPI_Comm_dup", code);
  code = make_own_ops(*plugin);
  if (code != MPI_SUCCESS) return mpi_failed(plugin->host, error, "MPI_Op_create", code);
  plugin->joined = true;
  return make_communicator(plugin, comm, out_communicator, out_info, error);
}

ep_status communicator_split(ep_communicator* communicator, int32_t color, int32_t key,
                             ep_communicator** out_communicator, ep_communicator_info* out_info, ep_error** error) {
  ep_collectives* plugin = communicator->plugin;
  const Lock lock(plugin->mutex);
  if (color < -1) {
    return fail(plugin->host, error, EP_STATUS_INVALID_ARGUMENT, "The color is %d; it must be at least -1.", color);
  }
  if (communicator->comm == MPI_COMM_NULL) {
    *out_communicator =
        color < 0 ? nullptr : make<ep_communicator>(plugin->host, plugin->host, plugin, MPI_COMM_NULL, 0, 1);
    fill(out_info, color < 0 ? ep_communicator_info{} : one_rank());
    return EP_STATUS_OK;
  }
  MPI_Comm comm = MPI_COMM_NULL;
  const int code = MPI_Comm_split(communicator->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm);
  if (code != MPI_SUCCESS) return mpi_failed(plugin->host, error, "MPI_Comm_split", code);
  if (comm != MPI_COMM_NULL) return make_communicator(plugin, comm, out_communicator, out_info, error);
  *out_communicator = nullptr;
  fill(out_info, ep_communicator_info{});
  return EP_STATUS_OK;
}

// MPI_Comm_free does not wait for other ranks, but an exchange that was given up still uses the communicator.
void communicator_destroy(ep_communicator* communicator) noexcept {
  if (communicator == nullptr) return;
  ep_collectives* plugin = communicator->plugin;
  const Lock lock(plugin->mutex);
  if (communicator->comm != MPI_COMM_NULL && !plugin->given_up && !is_over()) MPI_Comm_free(&communicator->comm);
  destroy(communicator);
}

void leave(ep_collectives& plugin) noexcept {
  const Lock lock(plugin.mutex);
  if (is_over() || plugin.given_up) return;
  free_own_ops(plugin);
  if (plugin.initialised) MPI_Finalize();
}

}  // namespace tenon::provider::mpi
