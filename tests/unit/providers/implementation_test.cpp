// provider::create over a list of implementations: which one creates the primitive, and the effect of a failure.
#include "sdk/provider/implementation.h"

#include <gtest/gtest.h>

#include <string>

#include "sdk/provider/primitive.h"

struct ep_device {
  const ep_host* host = nullptr;
  tenon::provider::Refusal answers[2];  // by implementation: what its make returns
  int asked[2] = {};
};
struct ep_primitive : tenon::provider::PrimitiveBase {};
struct ep_error {
  ep_status status;
  std::string sentence;
};

namespace tenon::provider {
namespace {

Refusal takes_all(const ep_device&, const ep_primitive_desc&, ep_support_info&) { return {}; }

template <int number>
Refusal make(ep_device& device, const ep_primitive_desc&, ep_primitive** out, ep_primitive_info&) {
  ++device.asked[number];
  if (!device.answers[number]) *out = make_primitive<ep_primitive>(device);
  return device.answers[number];
}

constexpr Implementation implementations[] = {{"fast", takes_all, make<0>}, {"plain", takes_all, make<1>}};
constexpr ImplementationList lists[] = {{EP_PRIMITIVE_unary, implementations}};

class Implementations : public ::testing::Test {
 protected:
  Implementations() {
    host.allocate = [](const ep_host*, uint64_t size, uint64_t) { return ::operator new(size); };
    host.release = [](const ep_host*, void* memory, uint64_t) { ::operator delete(memory); };
    host.log_enabled = [](const ep_host*, int32_t, ep_string) -> int32_t { return 0; };
    host.error_make = [](const ep_host*, ep_status status, ep_string sentence, ep_string) {
      return new ep_error{status, std::string(to_view(sentence))};
    };
    device.host = &host;
  }

  // The status of create, followed by the error's sentence.
  ep_status create_one(std::string* sentence) {
    ep_primitive_desc desc{};
    desc.kind = EP_PRIMITIVE_unary;
    ep_primitive* primitive = nullptr;
    ep_primitive_info info{};
    info.struct_size = sizeof info;
    ep_error* error = nullptr;
    const ep_status status = create(device, "test", lists, desc, &primitive, &info, &error);
    EXPECT_EQ(primitive != nullptr, status == EP_STATUS_OK);
    destroy_primitive(primitive);
    if (error != nullptr) {
      EXPECT_EQ(error->status, status);
      *sentence = error->sentence;
      delete error;
    }
    return status;
  }

  ep_host host{};
  ep_device device{};
};

TEST_F(Implementations, ARefusalHandsOnToTheNextOne) {
  std::string sentence;
  device.answers[0] = Refusal::because("it wants %d lanes", 8);
  EXPECT_EQ(create_one(&sentence), EP_STATUS_OK);
  EXPECT_EQ(device.asked[1], 1);
  device.answers[1] = Refusal::because("it is tired");
  EXPECT_EQ(create_one(&sentence), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(sentence, "fast: it wants 8 lanes; plain: it is tired.");
}

TEST_F(Implementations, AFailureIsTheAnswerOfCreateAndNoOtherOneIsAsked) {
  for (const ep_status status : {EP_STATUS_OUT_OF_DEVICE_MEMORY, EP_STATUS_INTERNAL, EP_STATUS_DEVICE_LOST}) {
    std::string sentence;
    device.answers[0] = Refusal::failure(status, "the compiler says %d", 7);
    EXPECT_EQ(create_one(&sentence), status);
    EXPECT_EQ(sentence, "fast: the compiler says 7.");
    EXPECT_EQ(device.asked[1], 0);
  }
}

}  // namespace
}  // namespace tenon::provider
