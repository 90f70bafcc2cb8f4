// Failures of the nccl plug-in on the fake driver and the fake NCCL. One process plays both ranks. This works because
// no call waits for the other rank.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/device/device_state.h"
#include "core/ops/ops.h"
#include "core/tensor/native.h"
#include "ep_api/collective_kinds.h"
#include "loader/collectives/collectives.h"
#include "loader/host/host.h"

namespace tenon {
namespace {

const loader::OpenCollectives& plugin() {
  static const auto* opened = loader::open_collectives_of_memory(EP_HANDLE_CUDA_POINTER);
  if (opened == nullptr) throw Error(Code::not_found, "The nccl plug-in is not usable.");
  return *opened;
}

template <class Call>
Status call(const Call& call) {
  return loader::call_plugin("nccl", "a call", call);
}

ep_ticket make_ticket() {
  ep_ticket ticket{};
  const Status made =
      call([&](ep_error** error) { return plugin().ops.ticket_make(plugin().ops.plugin, &ticket, error); });
  throw_if_error(made);
  return ticket;
}

// One rank and the tensors that it exchanges.
class Rank {
 public:
  Rank(const ep_ticket& ticket, int32_t rank, int32_t size, Device device)
      : src(full({4}, rank + 1, DType::f32, device)), dst(zeros({4}, DType::f32, device)) {
    ep_ticket_desc desc{};
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_TICKET_DESC;
    desc.ticket = ticket;
    desc.rank = rank;
    desc.size = size;
    const auto& uuid = device.state()->opened->info.uuid;
    std::copy(uuid.begin(), uuid.end(), desc.device_uuid);
    joined = join(desc);
  }
  ~Rank() { plugin().ops.communicator_destroy(communicator); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  Status join(const ep_ticket_desc& desc) {
    return call(
        [&](ep_error** error) { return plugin().ops.ticket_join(plugin().ops.plugin, &desc, &communicator, error); });
  }
  // Starts an all-reduce of src into dst.
  Status start() {
    ep_collective_desc desc{};
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_COLLECTIVE_DESC;
    desc.kind = EP_COLLECTIVE_all_reduce;
    desc.dtype = EP_DTYPE_f32;
    desc.reduction = EP_REDUCE_sum;
    desc.memory_type = EP_HANDLE_CUDA_POINTER;
    const NativePlace from = native_place(src), to = native_place(dst);
    desc.src = from.handle.value + from.offset;
    desc.dst = to.handle.value + to.offset;
    desc.count = 4;
    return call([&](ep_error** error) { return plugin().ops.exchange_start(communicator, &desc, &exchange, error); });
  }
  Status wait(uint64_t timeout_ns = 20'000'000'000) {
    return call([&](ep_error** error) { return plugin().ops.exchange_wait(exchange, timeout_ns, error); });
  }
  void give_up() { plugin().ops.exchange_destroy(std::exchange(exchange, nullptr)); }

  Tensor src, dst;
  ep_communicator* communicator = nullptr;
  ep_exchange* exchange = nullptr;
  Status joined;
};

TEST(Nccl, TwoRanksSum) {
  const ep_ticket ticket = make_ticket();
  Rank first(ticket, 0, 2, "cuda:0"), second(ticket, 1, 2, "cuda:1");
  ASSERT_EQ(first.joined.message(), "");
  ASSERT_EQ(second.joined.message(), "");
  ASSERT_TRUE(first.start().ok());
  EXPECT_EQ(first.wait(1'000'000).code(), Code::timeout) << "the other rank has not come";
  ASSERT_TRUE(second.start().ok());
  ASSERT_EQ(second.wait().message(), "");
  ASSERT_EQ(first.wait().message(), "");
  EXPECT_EQ(first.wait(0).message(), "") << "asked again";
  first.give_up();
  second.give_up();
  EXPECT_EQ(first.dst.to_host<float>(), std::vector<float>(4, 3));
  EXPECT_EQ(second.dst.to_host<float>(), std::vector<float>(4, 3));
}

TEST(Nccl, AnExchangeThatIsGivenUpEndsTheOtherRanks) {
  const ep_ticket ticket = make_ticket();
  Rank first(ticket, 0, 2, "cuda:0"), second(ticket, 1, 2, "cuda:1");
  ASSERT_TRUE(second.start().ok());
  EXPECT_EQ(second.wait(1'000'000).code(), Code::timeout);
  ASSERT_TRUE(first.start().ok());
  first.give_up();  // before anyone has waited for both, so that nothing of the exchange is sent
  EXPECT_EQ(first.start().code(), Code::device_lost);
  const Status ended = second.wait();
  EXPECT_EQ(ended.code(), Code::device_lost);
  EXPECT_NE(std::string(ended.message()).find("ncclRemoteError"), std::string::npos) << ended.message();
  EXPECT_EQ(second.start().code(), Code::device_lost) << "it stays lost";
  EXPECT_EQ(second.dst.to_host<float>(), std::vector<float>(4, 0)) << "memory of what was given up";
}

TEST(Nccl, TwoRanksOnOneDeviceAreRefused) {
  const ep_ticket ticket = make_ticket();
  Rank first(ticket, 0, 2, "cuda:0"), second(ticket, 1, 2, "cuda:0");
  ASSERT_TRUE(first.start().ok());
  const Status ended = first.wait();
  EXPECT_EQ(ended.code(), Code::device_lost);
  EXPECT_NE(std::string(ended.message()).find("ncclInvalidUsage"), std::string::npos) << ended.message();
  first.give_up();
}

TEST(Nccl, ATicketOfAnotherDeviceOrRankIsRefused) {
  Rank sound(make_ticket(), 0, 1, "cuda:0");
  ep_ticket_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_TICKET_DESC;
  desc.ticket = make_ticket();
  desc.size = 1;
  desc.device_uuid[0] = 0xEE;
  plugin().ops.communicator_destroy(std::exchange(sound.communicator, nullptr));
  const Status unknown = sound.join(desc);
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_NE(std::string(unknown.message()).find("none of the 2 devices of CUDA has this UUID"), std::string::npos)
      << unknown.message();
  desc.rank = 1;
  EXPECT_EQ(sound.join(desc).code(), Code::invalid_argument);
  EXPECT_EQ(sound.communicator, nullptr);
}

}  // namespace
}  // namespace tenon
