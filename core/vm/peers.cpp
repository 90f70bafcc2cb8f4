#include "core/vm/peers.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

// The answer for each pair of devices, by their ids, which are never reused.
struct Answers {
  std::mutex mutex;
  std::map<std::pair<uint16_t, uint16_t>, bool> known;
};

Answers& answers() {
  static auto* all = new Answers;
  return *all;
}

}  // namespace

bool are_peers(DeviceState* to, DeviceState* from) {
  if (to->ops.peer_open == nullptr || to->opened->provider != from->opened->provider) return false;
  Answers& all = answers();
  const std::pair pair(to->id, from->id);
  std::lock_guard lock(all.mutex);
  if (const auto known = all.known.find(pair); known != all.known.end()) return known->second;
  ep_error* error = nullptr;
  const ep_status code = to->ops.peer_open(to->handle, from->handle, &error);
  const std::string ways = fmt::format("{} copies from {}", to->opened->spelling, from->opened->spelling);
  if (code == EP_STATUS_OK) {
    loader::log(loader::LogTopic::vm, loader::LogLevel::info, fmt::format("{} directly.", ways));
  } else {
    const Status why = loader::take_error(code, error, {});
    loader::log(loader::LogTopic::vm, loader::LogLevel::info,
                fmt::format("{} by way of the host: {}", ways, why.message()));
  }
  if (code == EP_STATUS_OK || code == EP_STATUS_UNSUPPORTED) all.known[pair] = code == EP_STATUS_OK;
  return code == EP_STATUS_OK;
}

}  // namespace tenon::vm
