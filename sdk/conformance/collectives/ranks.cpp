#include "sdk/conformance/collectives/ranks.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "loader/collectives/collectives.h"
#include "loader/note/note.h"
#include "loader/trust/trust.h"

namespace tenon::conformance {
namespace {

std::string name_of(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem();
  constexpr std::string_view head = "libtenon_";
  return stem.starts_with(head) ? stem.substr(head.size()) : stem;
}

}  // namespace

ep_collective_desc collective(int32_t kind, DType dtype, const void* src, void* dst, int64_t count) {
  auto desc = with_header<ep_collective_desc>(EP_STRUCT_COLLECTIVE_DESC);
  desc.kind = kind;
  desc.dtype = static_cast<int32_t>(dtype);
  desc.memory_type = EP_HANDLE_HOST_POINTER;
  desc.src = reinterpret_cast<uintptr_t>(src);
  desc.dst = reinterpret_cast<uintptr_t>(dst);
  desc.count = count;
  return desc;
}

Status Ranks::load() {
  TENON_ASSIGN_OR_RETURN(const loader::CheckedFile file, loader::open_checked(path_, false));
  TENON_ASSIGN_OR_RETURN(const loader::PluginNote note, loader::read_note(file.descriptor.get(), file.identity.size));
  TENON_RETURN_IF_ERROR(loader::check_note(note, name_of(path_), EP_PLUGIN_KIND_COLLECTIVES));
  TENON_ASSIGN_OR_RETURN(library_,
                         loader::Library::load(file, EP_COLLECTIVES_QUERY_SYMBOL, loader::Binding::program_first));
  query = reinterpret_cast<ep_collectives_query_fn>(library_->entry());
  ops = with_header<ep_collectives_ops>(EP_STRUCT_COLLECTIVES_OPS);
  TENON_RETURN_IF_ERROR(call(EP_COLLECTIVES_QUERY_SYMBOL, query, static_cast<const ep_host*>(host.table()), &ops));
  TENON_RETURN_IF_ERROR(loader::check_collectives(ops, "the table"));
  started = true;
  return {};
}

Status Ranks::join() {
  info = with_header<ep_communicator_info>(EP_STRUCT_COMMUNICATOR_INFO);
  return call("world_join", ops.world_join, ops.plugin, &world, &info);
}

void Ranks::leave() {
  if (!started) return;
  started = false;
  ops.communicator_destroy(std::exchange(world, nullptr));
  ops.shutdown(ops.plugin);
  // A library of MPI is not unloaded while its threads run.
  static auto* mapped = new std::vector<std::unique_ptr<loader::Library>>;
  mapped->push_back(std::move(library_));
}

Status Ranks::finish(ep_exchange* exchange) {
  const auto limit_ns = static_cast<uint64_t>(time_limit_ * 1e9);
  const Status ended = call("exchange_wait", ops.exchange_wait, exchange, limit_ns);
  if (ended.code() == Code::timeout) {
    // The exchange still uses memory that would be freed, and the other ranks would wait for the next test.
    std::printf("rank %d: FAILED: an exchange has not ended within %g s (rule K08).\n", rank(), time_limit_);
    std::fflush(stdout);
    std::_Exit(1);
  }
  ops.exchange_destroy(exchange);
  return ended;
}

Status Ranks::run(ep_communicator* communicator, const ep_collective_desc& desc) {
  ep_exchange* exchange = nullptr;
  TENON_RETURN_IF_ERROR(start(communicator, desc, &exchange));
  return finish(exchange);
}

Status Ranks::tell(int32_t to, int32_t number, ep_communicator* communicator) {
  ep_collective_desc desc = collective(EP_COLLECTIVE_send, DType::i32, &number, nullptr, 1);
  desc.peer = to;
  return run(communicator != nullptr ? communicator : world, desc);
}

Status Ranks::hear(int32_t from, int32_t* number, ep_communicator* communicator) {
  ep_collective_desc desc = collective(EP_COLLECTIVE_receive, DType::i32, nullptr, number, 1);
  desc.peer = from;
  return run(communicator != nullptr ? communicator : world, desc);
}

}  // namespace tenon::conformance
