#include "loader/settings/thread_limit.h"

#include <sched.h>

#include <thread>

#include "fixture.h"

namespace tenon::loader {
namespace {

class ThreadLimit : public LoaderTest {};

TEST_F(ThreadLimit, ObeysAffinity) {
  int32_t counted = 0;
  std::thread([&] {
    cpu_set_t all;
    CPU_ZERO(&all);
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    EXPECT_EQ(affinity_count(), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    counted = thread_limit();
  }).join();
  EXPECT_EQ(counted, 1);
}

TEST_F(ThreadLimit, ObeysItsSetting) {
  set("TENON_THREADS", "1");
  restart();
  EXPECT_EQ(thread_limit(), 1);
  set("TENON_THREADS", "100000");
  restart();
  EXPECT_LE(thread_limit(), affinity_count()) << "it can only be less";
}

TEST_F(ThreadLimit, ReadsVersion2QuotasOnTheWayUp) {
  const std::string root = scratch().make_folder("cgroup");
  const std::string membership = "0::/user/session\n";
  EXPECT_EQ(cgroup_quota(membership, root), 0);
  scratch().write("cgroup/user/session/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_quota(membership, root), 0);
  scratch().write("cgroup/user/cpu.max", "350000 100000\n");
  EXPECT_EQ(cgroup_quota(membership, root), 3);
  scratch().write("cgroup/user/session/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_quota(membership, root), 1);
  EXPECT_EQ(cgroup_quota("0::/\n", root), 0);
  scratch().write("cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroup_quota("0::/\n", root), 2);
  EXPECT_EQ(cgroup_quota("0::/only/seen/outside\n", root), 2);
}

TEST_F(ThreadLimit, ReadsVersion1Quotas) {
  const std::string root = scratch().make_folder("cgroup");
  const std::string membership = "5:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/a\n";
  scratch().write("cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  scratch().write("cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroup_quota(membership, root), 0);
  scratch().write("cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cgroup_quota(membership, root), 2);
}

TEST_F(ThreadLimit, NonsenseIsNoQuota) {
  const std::string root = scratch().make_folder("cgroup");
  scratch().write("cgroup/cpu.max", "lots of\n");
  for (const char* membership : {"", "nonsense", "0::", "0::relative", "0::/../..", ":::::\n", "0::/a/../../b\n"}) {
    EXPECT_EQ(cgroup_quota(membership, root), 0) << membership;
  }
}

}  // namespace
}  // namespace tenon::loader
