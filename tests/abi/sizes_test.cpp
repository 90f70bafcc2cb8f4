// Tests both negotiations with struct sizes from 0 to more than the available room: the loader with a plug-in's tables,
// and the provider SDK with a host. Every size is tested, including every frozen one.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loader/negotiate/table_buffer.h"
#include "primitives/text/format.h"
#include "sdk/provider/negotiate.h"

namespace {

using tenon::Code;
using tenon::Result;
using tenon::loader::table_room;
using tenon::loader::TableBuffer;

// {struct name: sizes}
std::map<std::string, std::vector<uint32_t>> frozen_sizes() {
  std::map<std::string, std::vector<uint32_t>> sizes;
#define EP_FROZEN_SIZE(type, minor, bytes) sizes[#type].push_back(bytes);
#include "ep_api/frozen_sizes.def"
#undef EP_FROZEN_SIZE
  return sizes;
}

std::vector<unsigned char> random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<unsigned char>(random() % 255 + 1); });
  return bytes;
}

// A table as a plug-in might fill it: `size` in its header, no zero byte in the struct, and `tail` after the struct.
template <class T>
struct Filled {
  TableBuffer<T> buffer;
  std::vector<unsigned char> content = random_bytes(sizeof(T), 7);

  Filled(uint32_t type, uint32_t size) : buffer(type) {
    const tenon::loader::TableHeader header{size, type, nullptr};
    std::memcpy(content.data(), &header, sizeof header);
    std::memcpy(static_cast<void*>(buffer.get()), content.data(), sizeof(T));
  }
  void set_byte(uint32_t place, unsigned char value) {
    reinterpret_cast<unsigned char*>(static_cast<void*>(buffer.get()))[place] = value;
  }
};

template <class T>
void expect_prefix(const Filled<T>& filled, const T& table, uint32_t size) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &table, sizeof(T));
  const uint32_t taken = std::min<uint32_t>(size, sizeof(T));
  EXPECT_EQ(std::memcmp(bytes, filled.content.data(), taken), 0) << size;
  for (size_t place = taken; place < sizeof(T); ++place) ASSERT_EQ(bytes[place], 0) << size << " at " << place;
}

template <class T>
void try_every_size(uint32_t type, const std::string& name) {
  SCOPED_TRACE(name);
  int accepted = 0;
  for (uint32_t size = 0; size <= table_room + 16; ++size) {
    const Filled<T> filled(type, size);
    const Result<T> result = filled.buffer.accept("the table");
    const bool possible = size >= 16 && size <= table_room && size % 8 == 0;
    ASSERT_EQ(result.ok(), possible) << size;
    if (result.ok()) {
      ++accepted;
      expect_prefix(filled, result.value(), size);
    } else {
      EXPECT_EQ(result.status().code(), Code::invalid_argument);
      EXPECT_NE(result.status().message().find(fmt::format("states a size of {} bytes", size)), std::string::npos);
    }
  }
  EXPECT_EQ(accepted, static_cast<int>((table_room - 16) / 8 + 1));
  const std::map<std::string, std::vector<uint32_t>> frozen = frozen_sizes();
  for (uint32_t size : frozen.at(name)) {
    const Filled<T> filled(type, size);
    EXPECT_TRUE(filled.buffer.accept("the table").ok()) << "frozen at " << size;
  }
}

template <class T>
void try_every_tail(uint32_t type, const std::string& name) {
  SCOPED_TRACE(name);
  for (uint32_t size : {uint32_t{sizeof(T)} + 8, uint32_t{sizeof(T)} + 64, table_room}) {
    for (uint32_t place = sizeof(T); place < table_room; place += size == table_room ? 61 : 1) {
      Filled<T> filled(type, size);
      filled.set_byte(place, 1);
      const Result<T> result = filled.buffer.accept("the table");
      ASSERT_EQ(result.ok(), place >= size) << size << " with byte " << place;
      if (result.ok()) continue;
      EXPECT_EQ(result.status().code(), Code::version);
      EXPECT_NE(result.status().message().find(fmt::format("uses byte {}", place)), std::string::npos);
    }
  }
}

TEST(TableSizes, AnyPossibleSizeIsTakenAndTheRestIsZero) {
  try_every_size<ep_plugin_ops>(EP_STRUCT_PLUGIN_OPS, "ep_plugin_ops");
  try_every_size<ep_device_info>(EP_STRUCT_DEVICE_INFO, "ep_device_info");
  try_every_size<ep_device_ops>(EP_STRUCT_DEVICE_OPS, "ep_device_ops");
}

TEST(TableSizes, AnyUsedByteOfAnUnknownTailIsRefusedByItsNumber) {
  try_every_tail<ep_plugin_ops>(EP_STRUCT_PLUGIN_OPS, "ep_plugin_ops");
  try_every_tail<ep_device_info>(EP_STRUCT_DEVICE_INFO, "ep_device_info");
  try_every_tail<ep_device_ops>(EP_STRUCT_DEVICE_OPS, "ep_device_ops");
}

TEST(TableSizes, SdkFillWritesTheSmallerOfBothAndNotOneByteMore) {
  for (uint32_t room = 0; room <= sizeof(ep_device_ops) + 64; ++room) {
    std::vector<unsigned char> place = random_bytes(sizeof(ep_device_ops) + 128, room);
    const std::vector<unsigned char> before = place;
    if (room < 8) continue;  // too small even for struct_size and struct_type
    const uint32_t header[2] = {room, EP_STRUCT_DEVICE_OPS};
    std::memcpy(place.data(), header, sizeof header);
    ep_device_ops full{};
    full.primitive_pack = [](ep_primitive*, ep_stream*, ep_buffer, ep_buffer, ep_error**) { return EP_STATUS_OK; };
    tenon::provider::fill(reinterpret_cast<ep_device_ops*>(place.data()), full);
    uint32_t written = 0;
    std::memcpy(&written, place.data(), sizeof written);
    EXPECT_EQ(written, std::min<uint32_t>(room, sizeof(ep_device_ops)));
    ASSERT_TRUE(std::equal(place.begin() + written, place.end(), before.begin() + written)) << room;
  }
}

// The status that a provider built with the SDK returns to a host whose table claims `size` bytes. `tail` fills the
// bytes after our struct.
struct HostAnswer {
  ep_status status;
  int errors_made = 0;
};

HostAnswer ask(uint32_t size, unsigned char tail, uint32_t minor = EP_ABI_MINOR) {
  static int made = 0;
  made = 0;
  struct {
    ep_host table;
    unsigned char tail[256];
  } host{};
  std::memset(host.tail, tail, sizeof host.tail);
  host.table.struct_size = size;
  host.table.struct_type = EP_STRUCT_HOST;
  host.table.abi_major = EP_ABI_MAJOR;
  host.table.abi_minor = minor;
  host.table.error_make = [](const ep_host*, ep_status, ep_string, ep_string) -> ep_error* {
    ++made;
    return nullptr;
  };
  ep_plugin_ops ops{};
  ops.struct_size = sizeof ops;
  ops.struct_type = EP_STRUCT_PLUGIN_OPS;
  ep_error* error = nullptr;
  const ep_status status = tenon::provider::negotiate(&host.table, &ops, &error);
  return {status, made};
}

// The host of the second trial minor is the host of the first plus one service. A provider of either minor accepts
// both.
constexpr uint32_t shortest_host = EP_ABI_MINOR == 0x7002 ? sizeof(ep_host) - sizeof(void*) : sizeof(ep_host);

TEST(HostSizes, AShortHostIsRefusedAndItsErrorMakeCalledOnlyWhereItHasOne) {
  for (uint32_t size = 0; size < shortest_host; ++size) {
    const HostAnswer answer = ask(size, 0);
    EXPECT_EQ(answer.status, EP_STATUS_VERSION) << size;
    EXPECT_EQ(answer.errors_made, size >= offsetof(ep_host, error_make) + sizeof(void*) ? 1 : 0) << size;
  }
}

TEST(HostSizes, ALongerHostIsTakenWhateverItAppended) {
  for (uint32_t size = shortest_host; size <= sizeof(ep_host) + 256; size += 8) {
    EXPECT_EQ(ask(size, 0).status, EP_STATUS_OK) << size;
    EXPECT_EQ(ask(size, 0xee).status, EP_STATUS_OK) << size;
  }
}

TEST(HostSizes, EveryFrozenSizeIsTakenExactlyWhereItsMinorAgrees) {
  int tried = 0;
#define EP_FROZEN_SIZE(type, minor, bytes)                                             \
  if (std::string(#type) == "ep_host") {                                               \
    const bool agrees = EP_ABI_MINORS_AGREE(EP_ABI_MINOR, minor);                      \
    EXPECT_EQ(ask(bytes, 0, minor).status, agrees ? EP_STATUS_OK : EP_STATUS_VERSION); \
    ++tried;                                                                           \
  }
#include "ep_api/frozen_sizes.def"
#undef EP_FROZEN_SIZE
  EXPECT_GE(tried, 1);
}

TEST(HostSizes, TrialMinorsAgreeWithOneAnotherAlone) {
  EXPECT_TRUE(EP_ABI_MINORS_AGREE(0x7001, 0x7002));
  EXPECT_TRUE(EP_ABI_MINORS_AGREE(0x7002, 0x7001));
  EXPECT_TRUE(EP_ABI_MINORS_AGREE(1, 1));
  for (uint32_t minor : {0u, 1u, 2u, 0x6fffu}) {
    EXPECT_FALSE(EP_ABI_MINORS_AGREE(minor, 0x7001)) << minor;
    EXPECT_FALSE(EP_ABI_MINORS_AGREE(0x7002, minor)) << minor;
  }
  EXPECT_FALSE(EP_ABI_MINORS_AGREE(1, 2));
}

}  // namespace
