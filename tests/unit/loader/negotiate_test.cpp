#include "loader/negotiate/negotiate.h"

#include <cstring>

#include "fixture.h"
#include "primitives/text/format.h"
#include "sample_provider.h"

namespace tenon::loader {
namespace {

class Negotiate : public LoaderTest {
 protected:
  Result<ep_plugin_ops> negotiate() { return negotiate_plugin(host_, sample_query(0)); }
  std::string sentence() {
    const Result<ep_plugin_ops> ops = negotiate();
    return ops.ok() ? "accepted" : ops.status().message();
  }
  Status open() {
    const Result<ep_plugin_ops> ops = negotiate();
    if (!ops.ok()) return ops.status();
    OpenDevice device;
    device.spelling = "sample:0";
    device.info.flags = flags_;
    device.info.pools = pools_;
    return open_device_table("sample", ops.value(), nullptr, device);
  }

  HostServices host_{"sample", "", {}};
  uint64_t flags_ = EP_DEVICE_FLAG_SYNCHRONOUS;
  std::vector<MemoryPool> pools_;
};

TEST_F(Negotiate, OffersAZeroedTableOfKnownSizeAndType) {
  ep_plugin_ops seen;
  std::memset(&seen, 0xee, sizeof seen);
  static ep_plugin_ops* target;
  target = &seen;
  const ep_plugin_query_fn query = [](const ep_host*, ep_plugin_ops* ops, ep_error**) {
    *target = *ops;
    return EP_STATUS_INTERNAL;
  };
  EXPECT_FALSE(negotiate_plugin(host_, query).ok());
  EXPECT_EQ(seen.struct_size, sizeof(ep_plugin_ops));
  EXPECT_EQ(seen.struct_type, uint32_t{EP_STRUCT_PLUGIN_OPS});
  EXPECT_EQ(seen.next, nullptr);
  EXPECT_EQ(seen.abi_minor, 0u);
  EXPECT_EQ(seen.device_open, nullptr);
}

TEST_F(Negotiate, GivesTheHostWithEveryService) {
  ASSERT_TRUE(negotiate().ok());
  const ep_host* host = sample(0).host;
  EXPECT_EQ(host->struct_size, sizeof(ep_host));
  EXPECT_EQ(host->abi_major, uint32_t{EP_ABI_MAJOR});
  EXPECT_EQ(host->abi_minor, uint32_t{EP_ABI_MINOR});
  for (size_t offset = offsetof(ep_host, error_make); offset < sizeof(ep_host); offset += sizeof(void*)) {
    const void* slot = nullptr;
    std::memcpy(&slot, reinterpret_cast<const char*>(host) + offset, sizeof slot);
    EXPECT_NE(slot, nullptr) << offset;
  }
}

TEST_F(Negotiate, RefusesOtherVersions) {
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->abi_minor = EP_ABI_MINOR + 1; };
  EXPECT_EQ(sentence(), "the table of the provider 'sample' is of ABI 0.3, this host speaks 0.2 (rule N02).");
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->abi_minor = 0; };
  EXPECT_EQ(negotiate().status().code(), Code::version);
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->abi_major = 1; };
  EXPECT_EQ(negotiate().status().code(), Code::version);
}

TEST_F(Negotiate, RefusesMissingSlotsByNameAndShutsDown) {
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->device_count = nullptr; };
  EXPECT_EQ(sentence(), "the table of the provider 'sample' lacks the required function 'device_count' (rule T03).");
  EXPECT_EQ(sample(0).shutdowns, 1);
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->shutdown = nullptr; };
  EXPECT_EQ(sentence(), "the table of the provider 'sample' lacks the required function 'shutdown' (rule T03).");
}

TEST_F(Negotiate, RefusesAnotherStructType) {
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->struct_type = EP_STRUCT_DEVICE_OPS; };
  EXPECT_EQ(sentence(), "the table of the provider 'sample' is of struct type 4, but 2 was requested (rule T01).");
}

TEST_F(Negotiate, RefusesImpossibleSizes) {
  for (uint32_t size : {0u, 8u, 20u, 5000u, UINT32_MAX}) {
    sample(0).change_plugin_ops = [size](ep_plugin_ops* ops) { ops->struct_size = size; };
    EXPECT_EQ(sentence().find(fmt::format("the table of the provider 'sample' states a size of {} bytes", size)), 0u)
        << sentence();
  }
}

TEST_F(Negotiate, TakesALongerStructWhoseTailIsZero) {
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->struct_size = sizeof(ep_plugin_ops) + 64; };
  EXPECT_EQ(sentence(), "accepted");
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) {
    ops->struct_size = sizeof(ep_plugin_ops) + 64;
    reinterpret_cast<unsigned char*>(ops)[sizeof(ep_plugin_ops) + 9] = 1;
  };
  EXPECT_EQ(negotiate().status().code(), Code::version);
  EXPECT_EQ(
      sentence(),
      fmt::format("the table of the provider 'sample' has {} bytes and uses byte {}, this host knows {} (rule T02).",
                  sizeof(ep_plugin_ops) + 64, sizeof(ep_plugin_ops) + 9, sizeof(ep_plugin_ops)));
}

TEST_F(Negotiate, AShortStructHasNullSlotsWhateverLiesBehindIt) {
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->primitive_create = [](ep_device*, const ep_primitive_desc*, ep_primitive**, ep_primitive_info*, ep_error**) {
      return EP_STATUS_INTERNAL;
    };
    ops->struct_size = offsetof(ep_device_ops, primitive_create);
  };
  const Result<ep_plugin_ops> plugin = negotiate();
  OpenDevice device;
  device.spelling = "sample:0";
  device.info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  ASSERT_TRUE(open_device_table("sample", plugin.value(), nullptr, device).ok());
  EXPECT_EQ(device.ops.primitive_create, nullptr) << "it lies past what the plug-in says it filled";
  EXPECT_NE(device.ops.primitive_support, nullptr);
  EXPECT_EQ(device.ops.primitive_pack, nullptr);
}

TEST_F(Negotiate, ExtensionsThatMustBeUnderstoodAreRefused) {
  static ep_plugin_ops extension;
  extension = {};
  extension.struct_type = 0x10001;
  sample(0).change_plugin_ops = [](ep_plugin_ops* ops) { ops->next = &extension; };
  EXPECT_EQ(sentence(), "accepted");
  extension.struct_type |= UINT32_C(1) << 31;
  EXPECT_EQ(sentence(),
            "the table of the provider 'sample' has the extension 65537, which is required but unknown to this host "
            "(rule T02).");
  extension.struct_type = 0x10001;
  extension.next = &extension;
  EXPECT_EQ(sentence(), "the table of the provider 'sample' has a chain of extensions without end (rule T02).");
}

TEST_F(Negotiate, ExceptionsStopAtTheBorder) {
  sample(0).on_query = [](const ep_host*, ep_error**) -> ep_status { throw 42; };
  EXPECT_EQ(sentence(),
            "the provider 'sample' threw a C++ exception out of ep_plugin_query_v0: of an unknown type (rule Q02).");
}

TEST_F(Negotiate, AFailureWithoutAReasonGetsOne) {
  sample(0).on_query = [](const ep_host*, ep_error**) -> ep_status { return EP_STATUS_BUSY; };
  EXPECT_EQ(sentence(),
            "the provider gave no reason for its answer 'busy'.\n"
            "  while calling ep_plugin_query_v0 of the provider 'sample'");
  sample(0).on_query = [](const ep_host*, ep_error**) -> ep_status { return 99; };
  EXPECT_EQ(negotiate().status().code(), Code::internal);
  EXPECT_NE(sentence().find("Its status 99 is not one of the known ones."), std::string::npos);
}

TEST_F(Negotiate, AsynchronousDevicesNeedEvents) {
  EXPECT_TRUE(open().ok());
  flags_ = 0;
  EXPECT_EQ(open().message(),
            "the table of the device sample:0 lacks the required function 'event_create' (rule T03).");
  EXPECT_EQ(sample(0).closes, 1) << "what was opened is closed again";
}

TEST_F(Negotiate, HostVisiblePoolsNeedMapAndFlush) {
  pools_ = {{EP_POOL_FLAG_HOST_VISIBLE, 0, 64, 0, 0, 0}};
  EXPECT_EQ(open().message(), "the table of the device sample:0 lacks the required function 'memory_map' (rule T03).");
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->memory_map = [](ep_device*, ep_memory*, void**, ep_error**) { return EP_STATUS_OK; };
  };
  EXPECT_EQ(open().message(),
            "the table of the device sample:0 lacks the required function 'memory_flush' (rule T03).");
  pools_[0].flags |= EP_POOL_FLAG_COHERENT;
  EXPECT_TRUE(open().ok());
}

TEST_F(Negotiate, PrimitivesComeAsAGroup) {
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->primitive_create = [](ep_device*, const ep_primitive_desc*, ep_primitive**, ep_primitive_info*, ep_error**) {
      return EP_STATUS_OK;
    };
  };
  EXPECT_EQ(open().message(),
            "the table of the device sample:0 lacks the required function 'primitive_destroy' (rule T03).");
}

TEST_F(Negotiate, PeerCopiesComeAsAPair) {
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->peer_open = [](ep_device*, ep_device*, ep_error**) { return EP_STATUS_OK; };
  };
  EXPECT_EQ(open().message(), "the table of the device sample:0 lacks the required function 'peer_copy' (rule T03).");
}

TEST_F(Negotiate, APoolOfImagesNeedsTheFunctionsThatMakeThem) {
  pools_ = {{0, 0, 64, 0, 0, 0}, {EP_POOL_FLAG_IMAGE, 0, 64, 0, 0, 0}};
  EXPECT_EQ(open().message(), "the table of the device sample:0 lacks the required function 'layout_info' (rule T03).");
}

TEST_F(Negotiate, TheSlotsOfWholeGraphsComeTogether) {
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->graph_capability = [](ep_device*, const ep_graph_desc*, ep_graph_answer*, ep_error**) { return EP_STATUS_OK; };
  };
  EXPECT_EQ(open().message(),
            "the table of the device sample:0 lacks the required function 'graph_compile' (rule T03).");
}

TEST_F(Negotiate, TheSlotsOfCommandListsComeTogether) {
  sample(0).change_device_ops = [](ep_device_ops* ops) {
    ops->command_list_begin = [](ep_stream*, const ep_command_list_desc*, ep_error**) { return EP_STATUS_OK; };
  };
  EXPECT_EQ(open().message(),
            "the table of the device sample:0 lacks the required function 'command_list_end' (rule T03).");
}

TEST_F(Negotiate, DescriptionsAreChecked) {
  const auto sentence_of_info = [&](std::function<void(ep_device_info*)> change) {
    sample(0).change_info = std::move(change);
    const Result<ep_plugin_ops> ops = negotiate();
    const Result<DeviceInfo> info = query_device_info("sample", ops.value(), 0);
    return info.ok() ? std::string("accepted") : info.status().message();
  };
  const std::string begin = "the description of device 0 of the provider 'sample' ";
  EXPECT_EQ(sentence_of_info({}), "accepted");
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->pool_count = 0; }),
            begin + "claims 0 memory pools; 1 to 8 are possible (rule D05).");
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->pool_count = 9; }),
            begin + "claims 9 memory pools; 1 to 8 are possible (rule D05).");
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->pools[0].flags = EP_POOL_FLAG_IMAGE; }),
            begin + "says that pool 0 holds images, though operands live there (rule D05).");
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->pools[0].minimum_alignment = 48; }),
            begin + "gives pool 0 the minimum alignment 48, which is not a power of two (rule D05).");
  for (const uint64_t granularity : {3, 128}) {
    EXPECT_EQ(
        sentence_of_info([=](ep_device_info* info) { info->pools[0].copy_granularity = granularity; }),
        begin + fmt::format("gives pool 0 the copy granularity {}; a power of two up to 64 is possible (rule D05).",
                            granularity));
  }
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->device_class = EP_DEVICE_CLASS_ACCELERATOR; }),
            "accepted");
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->device_class = 9; }),
            begin + "gives it the class 9, which is not one of the known ones (rule D05).");
  EXPECT_EQ(sentence_of_info([](ep_device_info* info) { info->name = {nullptr, 400}; }), "accepted");
}

TEST_F(Negotiate, AShortDescriptionHasTheRestZero) {
  sample(0).change_info = [](ep_device_info* info) { info->struct_size = offsetof(ep_device_info, uuid); };
  sample(0).devices[0].uuid = 9;
  const Result<ep_plugin_ops> ops = negotiate();
  sample(0).devices[0].unusable_reason = "it is asleep.";
  const Result<DeviceInfo> info = query_device_info("sample", ops.value(), 0);
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_EQ(info->uuid[0], 0);
  EXPECT_EQ(info->pci[0], -1) << "a PCI address of zeros means no address";
}

}  // namespace
}  // namespace tenon::loader
