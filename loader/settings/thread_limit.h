// The number of CPUs that the process may use: affinity and cgroup quota.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::loader {

// CPUs in the calling thread's affinity mask; at least 1.
int32_t affinity_count();

// The least CPU quota on the path from the process's cgroup to the root, rounded down but at least 1. 0 if there is
// none. `membership` is the text of /proc/self/cgroup, `root` the mount point of cgroups (/sys/fs/cgroup). Supports
// versions 1 and 2.
int32_t cgroup_quota(const std::string& membership, const std::string& root);

}  // namespace tenon::loader
