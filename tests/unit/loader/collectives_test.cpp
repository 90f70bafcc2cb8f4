// Collectives plug-ins in the loader: a toy that is linked into this program, without a file.
#include "loader/collectives/collectives.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "sdk/provider/negotiate.h"

namespace tenon::loader {
namespace {

struct Toy {
  uint32_t minor = EP_COLLECTIVES_MINOR;
  bool finds_ranks = true, has_split = true, has_tickets = false, has_join = true;
  std::string unusable;
  int ended = 0;
};
Toy toy;

ep_status query(const ep_host*, ep_collectives_ops* out_ops, ep_error**) {
  ep_collectives_ops ops{};
  ops.version_major = EP_COLLECTIVES_MAJOR;
  ops.version_minor = toy.minor;
  ops.shutdown = [](ep_collectives*) { ++toy.ended; };
  ops.describe = [](ep_collectives*, ep_collectives_info* out_info, ep_error**) {
    ep_collectives_info info{};
    info.name = provider::to_ep_string("Toy 7");
    info.unusable_reason = provider::to_ep_string(toy.unusable);
    info.remedy = provider::to_ep_string(toy.unusable.empty() ? "" : "Plug it in.");
    info.largest_count = 77;
    info.memory_handles = UINT64_C(1) << EP_HANDLE_CUDA_POINTER;
    provider::fill(out_info, info);
    return EP_STATUS_OK;
  };
  if (toy.finds_ranks) {
    ops.world_join = [](ep_collectives*, ep_communicator**, ep_communicator_info*, ep_error**) {
      return EP_STATUS_BUSY;
    };
  }
  if (toy.has_tickets) {
    ops.ticket_make = [](ep_collectives*, ep_ticket*, ep_error**) { return EP_STATUS_INTERNAL; };
  }
  if (toy.has_tickets && toy.has_join) {
    ops.ticket_join = [](ep_collectives*, const ep_ticket_desc*, ep_communicator**, ep_error**) {
      return EP_STATUS_INTERNAL;
    };
  }
  if (toy.finds_ranks && toy.has_split) {
    ops.communicator_split = [](ep_communicator*, int32_t, int32_t, ep_communicator**, ep_communicator_info*,
                                ep_error**) { return EP_STATUS_INTERNAL; };
  }
  ops.communicator_destroy = [](ep_communicator*) {};
  ops.exchange_start = [](ep_communicator*, const ep_collective_desc*, ep_exchange**, ep_error**) {
    return EP_STATUS_INTERNAL;
  };
  ops.exchange_wait = [](ep_exchange*, uint64_t, ep_error**) { return EP_STATUS_INTERNAL; };
  ops.exchange_destroy = [](ep_exchange*) {};
  provider::fill(out_ops, ops);
  return EP_STATUS_OK;
}

class Collectives : public LoaderTest {
 protected:
  void SetUp() override {
    LoaderTest::SetUp();
    toy = Toy();
  }
};

TEST_F(Collectives, TheRegisteredOneIsDescribedAndStaysTheSame) {
  register_collectives("toy", query);
  const Result<OpenCollectives*> opened = open_collectives();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened.value()->plugin, "toy");
  EXPECT_EQ(opened.value()->info.name, "Toy 7");
  EXPECT_EQ(opened.value()->info.largest_count, 77);
  EXPECT_EQ(open_collectives("toy").value(), opened.value());
  const std::vector<Candidate> all = explain_collectives();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].stage, Stage::usable);
  EXPECT_EQ(all[0].kind, uint32_t{EP_PLUGIN_KIND_COLLECTIVES});
  shutdown_all();
  EXPECT_EQ(toy.ended, 1);
  EXPECT_EQ(open_collectives().status().code(), Code::cancelled);
}

TEST_F(Collectives, OneThatJoinsByTicketsIsFoundByItsMemory) {
  toy.finds_ranks = false;
  toy.has_tickets = true;
  register_collectives("toy", query);
  const OpenCollectives* opened = open_collectives_of_memory(EP_HANDLE_CUDA_POINTER);
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->plugin, "toy");
  EXPECT_EQ(open_collectives_of_memory(EP_HANDLE_CL_MEM), nullptr) << "memory that it does not take";
  EXPECT_EQ(open_collectives().status().message(), "There is no plug-in that carries data between processes.");
  EXPECT_EQ(open_collectives("toy").status().message(),
            "The plug-in 'toy' cannot find the ranks; it needs a second plug-in that can.");
}

TEST_F(Collectives, OneThatFindsRanksIsNotAskedForMemory) {
  register_collectives("toy", query);
  EXPECT_EQ(open_collectives_of_memory(EP_HANDLE_CUDA_POINTER), nullptr);
}

TEST_F(Collectives, HalfAPairOfTicketsIsRefused) {
  toy.has_tickets = true;
  toy.has_join = false;
  register_collectives("toy", query);
  const std::string message(open_collectives().status().message());
  EXPECT_NE(message.find("lacks the function 'ticket_join' (rule J02)"), std::string::npos) << message;
}

TEST_F(Collectives, WithoutOneTheErrorSaysWhatToInstall) {
  const Status status = open_collectives().status();
  EXPECT_EQ(status.message(), "There is no plug-in that carries data between processes.");
  EXPECT_EQ(status.remedy(), "Install libtenon_mpi.so, which is built where MPI is (libopenmpi-dev).");
}

TEST_F(Collectives, ANameThatNoneHasListsThoseThereAre) {
  register_collectives("toy", query);
  const Status status = open_collectives("toys").status();
  EXPECT_EQ(status.message(), "No plug-in that carries data between processes is called 'toys'.\n  there are: toy");
  EXPECT_EQ(status.remedy(), "Did you mean toy?");
}

TEST_F(Collectives, OneOfAnotherVersionIsRefused) {
  toy.minor = 99;
  register_collectives("toy", query);
  EXPECT_EQ(open_collectives().status().message(),
            "No plug-in that carries data between processes works:\n  toy was refused (negotiated): the table of the "
            "plug-in 'toy' is of version 0.99, this host speaks 0.2 (rule J01).");
}

TEST_F(Collectives, OneThatMissesAFunctionIsRefused) {
  toy.has_split = false;
  register_collectives("toy", query);
  EXPECT_NE(open_collectives().status().message().find("lacks the function 'communicator_split' (rule J02)."),
            std::string::npos);
  EXPECT_EQ(toy.ended, 1);
}

TEST_F(Collectives, OneThatCannotBeUsedSaysWhyAndIsEnded) {
  toy.unusable = "The cable is out.";
  register_collectives("toy", query);
  const Status status = open_collectives().status();
  EXPECT_NE(status.message().find("toy was refused (usable): The cable is out."), std::string::npos)
      << status.message();
  EXPECT_EQ(status.remedy(), "Plug it in.");
  EXPECT_EQ(toy.ended, 1);
}

}  // namespace
}  // namespace tenon::loader
