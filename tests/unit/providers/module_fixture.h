// Kernel modules over the raw ABI.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {

inline ep_string text_of(const std::string& text) { return {text.data(), text.size()}; }

// A module of one text, destroyed with this object.
class Module {
 public:
  explicit Module(OpenProvider& provider) : provider_(provider) {}
  ~Module() {
    if (handle_ != nullptr) provider_.ops.module_destroy(provider_.device, handle_);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  void add_entry(std::string name, uint32_t buffers, uint32_t parameter_bytes, uint64_t flags = 0, uint32_t shared = 0,
                 uint32_t group = 1) {
    names_.push_back(std::make_unique<std::string>(std::move(name)));
    entries.push_back({text_of(*names_.back()), flags, buffers, parameter_bytes, {group, 1, 1}, shared});
  }
  ep_status create(const std::string& text, std::vector<ep_module_constant> constants = {}) {
    ep_module_desc desc{};
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_MODULE_DESC;
    desc.dialect = dialect;
    desc.entry_count = static_cast<uint32_t>(entries.size());
    desc.entries = entries.data();
    desc.constants = constants.empty() ? nullptr : constants.data();
    desc.constant_count = static_cast<uint32_t>(constants.size());
    desc.name = {"test", 4};
    desc.text = text_of(text);
    desc.diagnose = [](void* context, ep_string output) {
      auto* said = static_cast<std::vector<std::string>*>(context);
      said->emplace_back(output.data, output.size);
    };
    desc.context = &said;
    ep_module_info info{sizeof info, EP_STRUCT_MODULE_INFO, nullptr, 0, 0};
    ep_error* error = nullptr;
    const ep_status status = provider_.ops.module_create(provider_.device, &desc, &handle_, &info, &error);
    host_bytes = info.host_bytes;
    return status;
  }
  ep_kernel* kernel(const std::string& name) {
    ep_kernel* kernel = nullptr;
    info = {sizeof info, EP_STRUCT_KERNEL_INFO, nullptr, 0, 0, 0, 0};
    ep_error* error = nullptr;
    EXPECT_EQ(provider_.ops.kernel_get(handle_, text_of(name), &kernel, &info, &error), EP_STATUS_OK);
    return kernel;
  }

  std::vector<ep_module_entry> entries;
  std::vector<std::string> said;
  int32_t dialect = EP_DIALECT_C;
  uint64_t host_bytes = 0;
  ep_kernel_info info{};  // the info of the last kernel

 private:
  OpenProvider& provider_;
  ep_module* handle_ = nullptr;
  std::vector<std::unique_ptr<std::string>> names_;
};

template <class T>
std::vector<char> bytes_of(const T& value) {
  std::vector<char> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace tenon::provider
