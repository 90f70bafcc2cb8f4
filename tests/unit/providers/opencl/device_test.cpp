// Tests that need a device: compiler errors, more faults than one read takes, programs without primitives.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

constexpr int64_t count = 300;

ep_primitive_desc elementwise(int32_t kind, int32_t dtype, std::initializer_list<int32_t> roles) {
  ep_primitive_desc desc{};
  desc.kind = kind;
  for (int32_t role : roles) {
    ep_operand_desc& operand = desc.operands[desc.operand_count++];
    operand.role = role;
    operand.dtype = dtype;
    operand.rank = 1;
    operand.dims[0] = count;
    operand.strides[0] = 1;
  }
  return desc;
}

ep_primitive_desc relu() {
  ep_primitive_desc desc = elementwise(EP_PRIMITIVE_unary, EP_DTYPE_f32, {EP_ROLE_DST, EP_ROLE_SRC});
  desc.attributes.unary.op = EP_UNARY_relu;
  return desc;
}

// A primitive and blocks for its operands, filled from `inputs`.
class Running {
 public:
  Running(OpenProvider& provider, const ep_primitive_desc& desc) : provider_(provider), operands_(desc.operand_count) {
    ep_primitive_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
    EXPECT_EQ(provider.ops.primitive_create(provider.device, &desc, &primitive_, &info, nullptr), EP_STATUS_OK)
        << provider.host.sentence();
    for (ep_buffer& operand : operands_) {
      EXPECT_EQ(provider.ops.memory_allocate(provider.device, 0, count * 8, &operand.memory, nullptr), EP_STATUS_OK);
    }
  }
  ~Running() {
    provider_.ops.stream_synchronize(provider_.stream, nullptr);
    for (ep_buffer& operand : operands_) provider_.ops.memory_free(provider_.device, operand.memory);
    provider_.ops.primitive_destroy(provider_.device, primitive_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  template <class T>
  void upload(size_t operand, const std::vector<T>& values) {
    EXPECT_EQ(
        provider_.ops.upload(provider_.stream, operands_[operand], values.data(), values.size() * sizeof(T), nullptr),
        EP_STATUS_OK);
    EXPECT_EQ(provider_.ops.stream_synchronize(provider_.stream, nullptr), EP_STATUS_OK);
  }
  template <class T>
  std::vector<T> result() {
    std::vector<T> values(count);
    EXPECT_EQ(provider_.ops.download(provider_.stream, values.data(), operands_[0], count * sizeof(T), nullptr),
              EP_STATUS_OK);
    EXPECT_EQ(provider_.ops.stream_synchronize(provider_.stream, nullptr), EP_STATUS_OK);
    return values;
  }
  void launch(uint64_t tag) {
    ep_launch launch{};
    launch.operands = operands_.data();
    launch.operand_count = static_cast<uint32_t>(operands_.size());
    launch.tag = tag;
    EXPECT_EQ(provider_.ops.primitive_launch(primitive_, provider_.stream, &launch, nullptr, nullptr), EP_STATUS_OK)
        << provider_.host.sentence();
  }

 private:
  OpenProvider& provider_;
  ep_primitive* primitive_ = nullptr;
  std::vector<ep_buffer> operands_;
};

TEST(Compiler, AnErrorIsTheOpsOwnAndQuotesTheLog) {
  OpenProvider provider("opencl", {{"build", "-DSRC_DTYPE=no_such_name"}});
  const ep_primitive_desc desc = relu();
  ep_primitive* primitive = nullptr;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_error* error = nullptr;
  EXPECT_EQ(provider.ops.primitive_create(provider.device, &desc, &primitive, &info, &error), EP_STATUS_INTERNAL);
  EXPECT_EQ(primitive, nullptr);
  const std::string sentence = provider.host.sentence();
  EXPECT_NE(sentence.find("map.cl does not compile (CL_BUILD_PROGRAM_FAILURE): "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("no_such_name"), std::string::npos) << sentence;
}

// One read takes 256 slots; no event is recorded between these launches.
TEST(Faults, OfMoreLaunchesThanSlotsAllComeInOrder) {
  constexpr uint64_t launches = 600;
  OpenProvider provider("opencl");
  ep_primitive_desc desc = elementwise(EP_PRIMITIVE_binary, EP_DTYPE_i32, {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B});
  desc.attributes.binary.op = EP_BINARY_div;
  Running running(provider, desc);
  running.upload(1, std::vector<int32_t>(count, 7));
  std::vector<int32_t> divisors(count, 2);
  divisors[count / 2] = 0;
  running.upload(2, divisors);
  for (uint64_t tag = 0; tag < launches; ++tag) running.launch(1000 + tag);
  EXPECT_EQ(provider.ops.stream_synchronize(provider.stream, nullptr), EP_STATUS_OK);
  for (uint64_t tag = 0; tag < launches; ++tag) {
    ep_fault fault{};
    ASSERT_EQ(provider.ops.stream_take_fault(provider.stream, &fault, nullptr), EP_STATUS_OK) << tag;
    ASSERT_EQ(fault.tag, 1000 + tag);
    EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
    EXPECT_EQ(fault.operand, 2);
    EXPECT_EQ(fault.value, 0);
    EXPECT_EQ(fault.flags, 0u);
  }
  ep_fault fault{};
  EXPECT_EQ(provider.ops.stream_take_fault(provider.stream, &fault, nullptr), EP_STATUS_NOT_FOUND);
}

TEST(Programs, ATrimLeavesThoseOfPrimitives) {
  OpenProvider provider("opencl");
  std::vector<float> values(count);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 150.5F;
  Running running(provider, relu());
  { Running dropped(provider, elementwise(EP_PRIMITIVE_copy, EP_DTYPE_f32, {EP_ROLE_DST, EP_ROLE_SRC})); }
  provider.ops.device_trim(provider.device);
  running.upload(1, values);
  running.launch(1);
  const std::vector<float> result = running.result<float>();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], std::max(values[i], 0.0F)) << i;
  Running again(provider, elementwise(EP_PRIMITIVE_copy, EP_DTYPE_f32, {EP_ROLE_DST, EP_ROLE_SRC}));
}

// A wait with a timeout ends at the timeout; with a long enough timeout it sees the event.
TEST(Events, AWaitWithALimitEnds) {
  OpenProvider provider("opencl");
  Running running(provider, relu());
  running.upload(1, std::vector<float>(count, 1.0F));
  ep_event* event = nullptr;
  ASSERT_EQ(provider.ops.event_create(provider.device, &event, nullptr), EP_STATUS_OK);
  for (uint64_t tag = 0; tag < 2000; ++tag) running.launch(tag);
  ASSERT_EQ(provider.ops.event_record(event, provider.stream, nullptr), EP_STATUS_OK);
  const ep_status at_once = provider.ops.event_host_wait(event, 0, nullptr);
  EXPECT_TRUE(at_once == EP_STATUS_TIMEOUT || at_once == EP_STATUS_OK) << at_once;
  EXPECT_EQ(provider.ops.event_host_wait(event, UINT64_C(60'000'000'000), nullptr), EP_STATUS_OK);
  EXPECT_EQ(provider.ops.event_query(event, nullptr), EP_STATUS_OK);
  provider.ops.event_destroy(provider.device, event);
}

}  // namespace
}  // namespace tenon::provider
