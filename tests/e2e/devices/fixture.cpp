#include "tests/e2e/devices/fixture.h"

#include <algorithm>
#include <set>

#include "loader/loader.h"
#include "tests/fakes/async/control.h"

namespace tenon::testing {
namespace {

std::vector<Device> open_all() {
  fakes::async_control().memory = uint64_t{96} << 20;
  loader::register_provider("async", fakes::async_query);
  loader::register_provider("peers", fakes::async_query);
  std::vector<Device> devices;
  std::set<std::string> providers;
  for (const char* spelling : {"cpu", "null", "mirror", "async:0", "async:1", "peers:0", "peers:1"}) {
    fakes::async_control().peers = spelling == std::string("peers:0");
    devices.emplace_back(spelling);
    providers.insert(devices.back().spelling().substr(0, devices.back().spelling().find(':')));
  }
  for (const loader::ListedDevice& listed : loader::list_devices()) {
    if (listed.info.usable() && providers.insert(listed.provider).second) devices.emplace_back(listed.spelling);
  }
  return devices;
}

}  // namespace

const std::vector<Device>& all_devices() {
  static const auto* devices = new std::vector<Device>(open_all());
  return *devices;
}

Device device(const std::string& spelling) {
  all_devices();
  return Device(spelling);
}

std::string violation() { return fakes::async_control().violation(); }

void settle_all() {
  for (Device one : all_devices()) {
    for (bool again = true; again;) {
      try {
        one.synchronize();
        again = false;
      } catch (const Error&) {
      }
    }
  }
}

std::vector<uint8_t> random_bytes(std::mt19937_64& random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 255 + 1);
  return bytes;
}

void poison_free_memory(Device device, int64_t bytes) {
  if (bytes > (1 << 20)) return;
  const std::vector<uint8_t> poison(static_cast<size_t>(bytes), 0xa5);
  std::vector<Tensor> held;
  for (int i = 0; i < 3; ++i) held.push_back(Tensor::copy_from_host(poison.data(), Dims{bytes}, DType::u8, device));
}

}  // namespace tenon::testing
