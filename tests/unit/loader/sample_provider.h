// Providers inside the test program, registered by function. Each test sets their behaviour.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::loader {

struct SampleDevice {
  std::string name = "a sample device";
  int32_t device_class = EP_DEVICE_CLASS_CPU;
  std::string unusable_reason;
  uint8_t uuid = 0;      // every byte of its UUID
  int64_t pci_bus = -1;  // -1: no PCI address
  std::string remedy;
};

// The description of one such provider, and the calls that it received.
struct Sample {
  std::vector<SampleDevice> devices{SampleDevice{}};
  std::function<void(ep_plugin_ops*)> change_plugin_ops;
  std::function<void(ep_device_info*)> change_info;
  std::function<void(ep_device_ops*)> change_device_ops;
  std::function<ep_status(const ep_host*, ep_error**)> on_query, on_open;
  const ep_host* host = nullptr;
  int queries = 0, counts = 0, opens = 0, closes = 0, shutdowns = 0;
};

// `number` is 0 to 3. Each provider has its own query function.
Sample& sample(int number);
ep_plugin_query_fn sample_query(int number);
// Resets all four.
void reset_samples();

ep_string borrowed(const std::string& text);

}  // namespace tenon::loader
