#include "loader/settings/thread_limit.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringbuf text;
  file >> &text;
  return std::move(text).str();
}

int32_t quota_in_cpus(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int32_t>(std::clamp<int64_t>(quota / period, 1, INT32_MAX));
}

int32_t version_2_quota(const std::string& folder) {
  std::istringstream text(read_text(fmt::format("{}/cpu.max", folder)));
  int64_t quota = 0;
  int64_t period = 0;
  return text >> quota >> period ? quota_in_cpus(quota, period) : 0;
}

int32_t version_1_quota(const std::string& folder) {
  std::istringstream quota_text(read_text(fmt::format("{}/cpu.cfs_quota_us", folder)));
  std::istringstream period_text(read_text(fmt::format("{}/cpu.cfs_period_us", folder)));
  int64_t quota = 0;
  int64_t period = 0;
  return quota_text >> quota && period_text >> period ? quota_in_cpus(quota, period) : 0;
}

int32_t least(int32_t a, int32_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// The least quota of the folder `path` below `mount` and of its parents up to and including `mount`. Inside a container
// `path` may name folders that exist only outside; then `mount` is the group of the process.
template <class Quota>
int32_t least_on_the_way(const std::string& mount, std::string path, Quota quota) {
  int32_t result = quota(mount);
  while (path.size() > 1) {
    result = least(result, quota(mount + path));
    path.resize(path.rfind('/'));
  }
  return result;
}

bool has_cpu_controller(const std::string& controllers) {
  return fmt::format(",{},", controllers).find(",cpu,") != std::string::npos;
}

}  // namespace

int32_t affinity_count() {
  for (size_t cpus = 1024; cpus <= (1 << 20); cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (!set) return 1;
    const size_t size = CPU_ALLOC_SIZE(cpus);
    const int failed = sched_getaffinity(0, size, set);
    const int error = errno;
    const int count = failed ? 0 : CPU_COUNT_S(size, set);
    CPU_FREE(set);
    if (!failed) return std::max(count, 1);
    if (error != EINVAL) return 1;
  }
  return 1;
}

int32_t cgroup_quota(const std::string& membership, const std::string& root) {
  int32_t result = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/' || path.find("/../") != std::string::npos) continue;
    if (controllers.empty()) {
      result = least(result, least_on_the_way(root, path, version_2_quota));
      result = least(result, least_on_the_way(fmt::format("{}/unified", root), path, version_2_quota));
    } else if (has_cpu_controller(controllers)) {
      result = least(result, least_on_the_way(fmt::format("{}/{}", root, controllers), path, version_1_quota));
      result = least(result, least_on_the_way(fmt::format("{}/cpu", root), path, version_1_quota));
    }
  }
  return result;
}

int32_t thread_limit() {
  int32_t limit = least(affinity_count(), cgroup_quota(read_text("/proc/self/cgroup"), "/sys/fs/cgroup"));
  return std::max<int32_t>(1, least(limit, settings().threads));
}

}  // namespace tenon::loader
