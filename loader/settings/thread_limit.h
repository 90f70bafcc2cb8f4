// How many CPUs the process may use: affinity and cgroup quota.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::loader {

// CPUs in the calling thread's affinity mask; at least 1.
int32_t affinity_count();

// The least CPU quota, rounded down but at least 1, on the way from the process's cgroup to the root; 0: none.
// `membership` is the text of /proc/self/cgroup, `root` where cgroups are mounted: /sys/fs/cgroup. Knows versions 1
// and 2.
int32_t cgroup_quota(const std::string& membership, const std::string& root);

}  // namespace tenon::loader
