// The query: versions, a host newer than the plug-in, and a second plug-in.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <thread>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

int64_t threads_now() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

}  // namespace

// A plug-in of major version 0 must refuse a host of another minor. From 1.0 on it must serve every minor.
Status query_versions(Subject& subject) {
  struct Version {
    uint32_t major, minor;
  };
  std::vector<Version> others = {{EP_ABI_MAJOR + 1, 0}, {EP_ABI_MAJOR + 7, EP_ABI_MINOR}};
  if (EP_ABI_MAJOR == 0) {
    for (uint32_t minor = 0; minor <= EP_ABI_MINOR + 3; ++minor) {
      if (minor != EP_ABI_MINOR) others.push_back({0, minor});
    }
  }
  for (const Version& version : others) {
    ep_host host = *subject.host.table();
    host.abi_major = version.major;
    host.abi_minor = version.minor;
    Poisoned<ep_plugin_ops> out("out_ops");
    out.value.struct_size = sizeof out.value;
    out.value.struct_type = EP_STRUCT_PLUGIN_OPS;
    const ep_plugin_ops before = out.value;
    const Status status =
        subject.call(EP_PLUGIN_QUERY_SYMBOL, subject.query, static_cast<const ep_host*>(&host), &out.value);
    if (status.code() != Code::version) {
      return broken("V01", "to a host of ABI {}.{} the query answered '{}', not 'version'", version.major,
                    version.minor, code_name(status.code()));
    }
    if (std::memcmp(&before, &out.value, sizeof before) != 0) {
      return broken("E01", "the query refused a host of ABI {}.{} and wrote into out_ops", version.major,
                    version.minor);
    }
  }
  return {};
}

// A host with a longer table than the plug-in knows, and with an unknown extension in its chain.
Status query_newer_host(Subject& subject) {
  struct {
    ep_host known;
    uint64_t later[8];
  } host{};
  struct {
    uint32_t size, type;
    const void* next;
  } extension = {16, 0x7fff0000, nullptr};
  host.known = *subject.host.table();
  host.known.struct_size = sizeof host;
  host.known.next = &extension;
  std::fill(std::begin(host.later), std::end(host.later), ~uint64_t{0});
  auto ops = with_header<ep_plugin_ops>(EP_STRUCT_PLUGIN_OPS);
  const Status status =
      subject.call(EP_PLUGIN_QUERY_SYMBOL, subject.query, static_cast<const ep_host*>(&host.known), &ops);
  if (!status.ok()) {
    return broken("V02", "a host table with 64 more bytes and an unknown extension was refused: {}",
                  without_rule(status).message());
  }
  ops.shutdown(ops.plugin);
  return {};
}

Status query_twice(Subject& subject) {
  const int64_t threads = threads_now();
  ep_plugin_ops both[2];
  for (ep_plugin_ops& ops : both) {
    ops = with_header<ep_plugin_ops>(EP_STRUCT_PLUGIN_OPS);
    TENON_RETURN_IF_ERROR(subject.call(EP_PLUGIN_QUERY_SYMBOL, subject.query, subject.host.table(), &ops));
  }
  const int64_t more = threads_now() - threads;
  if (more != 0) return broken("Q01", "the query started {} threads", more);
  if (both[0].plugin != nullptr && both[0].plugin == both[1].plugin) {
    return broken("Q01", "two queries gave the same plug-in");
  }
  both[0].shutdown(both[0].plugin);
  uint32_t count = 0;
  const Status after = subject.call("device_count", both[1].device_count, both[1].plugin, &count);
  if (!after.ok()) {
    return broken("Q01", "after one of two plug-ins was shut down the other answers: {}",
                  without_rule(after).message());
  }
  both[1].shutdown(both[1].plugin);
  return {};
}

}  // namespace tenon::conformance
