#include "tests/unit/providers/vulkan/fixture.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace tenon::testing {
namespace {

void* library_of(const char* variable) {
  void* library = dlopen(std::getenv(variable), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

}  // namespace

ShimControl& fresh_shim() {
  static auto* control = reinterpret_cast<ShimControl* (*)()>(dlsym(library_of("VULKAN_SHIM"), "shim_control"));
  ShimControl& shim = *control();
  const uint64_t live = shim.live_memory;
  shim = {};
  shim.submissions_until_lost = -1;
  shim.allocations_until_full = -1;
  shim.live_memory = live;
  return shim;
}

Plugin::Plugin(Settings settings)
    : host([&] {
        settings.emplace("library", std::getenv("VULKAN_SHIM"));
        return settings;
      }()) {
  const auto query = reinterpret_cast<ep_plugin_query_fn>(dlsym(library_of("VULKAN_PROVIDER"), EP_PLUGIN_QUERY_SYMBOL));
  ops.struct_size = sizeof ops;
  ops.struct_type = EP_STRUCT_PLUGIN_OPS;
  ep_error* error = nullptr;
  if (query(host.table(), &ops, &error) != EP_STATUS_OK) throw std::runtime_error(host.sentence());
}

Plugin::~Plugin() {
  if (ops.shutdown != nullptr) ops.shutdown(ops.plugin);
}

Device::Device(Settings settings) : plugin(std::move(settings)) {
  ops.struct_size = sizeof ops;
  ops.struct_type = EP_STRUCT_DEVICE_OPS;
  ep_error* error = nullptr;
  if (plugin.ops.device_open(plugin.ops.plugin, 0, &handle, &ops, &error) != EP_STATUS_OK ||
      ops.stream_create(handle, &kComputeStream, &stream, &error) != EP_STATUS_OK) {
    throw std::runtime_error(plugin.host.sentence());
  }
}

Device::~Device() {
  ep_error* error = nullptr;
  (void)ops.stream_synchronize(stream, &error);
  for (ep_primitive* primitive : primitives_) ops.primitive_destroy(handle, primitive);
  ops.stream_destroy(handle, stream);
  for (ep_memory* block : blocks_) ops.memory_free(handle, block);
  ops.device_close(handle);
}

ep_memory* Device::allocate(uint64_t bytes) {
  ep_memory* memory = nullptr;
  ep_error* error = nullptr;
  if (ops.memory_allocate(handle, 0, bytes, &memory, &error) != EP_STATUS_OK) {
    throw std::runtime_error(plugin.host.sentence());
  }
  blocks_.push_back(memory);
  return memory;
}

ep_status Device::upload(ep_buffer dst, const std::vector<int32_t>& words, ep_stream* on) {
  ep_error* error = nullptr;
  return ops.upload(on == nullptr ? stream : on, dst, words.data(), words.size() * 4, &error);
}

std::vector<int32_t> Device::download(ep_buffer src, size_t words) {
  std::vector<int32_t> result(words, -1);
  ep_error* error = nullptr;
  if (ops.download(stream, result.data(), src, words * 4, &error) != EP_STATUS_OK ||
      ops.stream_synchronize(stream, &error) != EP_STATUS_OK) {
    throw std::runtime_error(plugin.host.sentence());
  }
  return result;
}

ep_primitive* Device::binary(int32_t op, int64_t words, bool scalar) {
  const ep_operand_desc x = provider::dense(EP_ROLE_SRC, EP_DTYPE_i32, {words});
  const ep_operand_desc y = scalar ? provider::scalar_operand(EP_ROLE_SRC_B, EP_DTYPE_i32)
                                   : provider::dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {words});
  ep_primitive_desc desc =
      provider::descriptor(EP_PRIMITIVE_binary, {provider::dense(EP_ROLE_DST, EP_DTYPE_i32, {words}), x, y});
  desc.attributes.binary.op = op;
  return create(desc);
}

ep_primitive* Device::create(const ep_primitive_desc& desc) {
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_primitive* primitive = nullptr;
  ep_error* error = nullptr;
  if (ops.primitive_create(handle, &desc, &primitive, &info, &error) != EP_STATUS_OK) {
    throw std::runtime_error(plugin.host.sentence());
  }
  primitives_.push_back(primitive);
  return primitive;
}

ep_status Device::run(ep_primitive* primitive, ep_buffer dst, ep_buffer x, ep_buffer y, int32_t scalar, uint64_t tag,
                      ep_stream* on) {
  ep_scalar scalars[2] = {{EP_DTYPE_i32, 0, {}}, {EP_DTYPE_i32, 0, {}}};
  scalars[1].value.i64 = scalar;
  return launch(primitive, {dst, x, y}, {scalars[0], scalars[1]}, tag, on);
}

ep_status Device::launch(ep_primitive* primitive, const std::vector<ep_buffer>& operands,
                         const std::vector<ep_scalar>& scalars, uint64_t tag, ep_stream* on) {
  ep_launch launch{};
  launch.operands = operands.data();
  launch.operand_count = static_cast<uint32_t>(operands.size());
  launch.scalars = scalars.data();
  launch.scalar_count = static_cast<uint32_t>(scalars.size());
  launch.tag = tag;
  ep_error* error = nullptr;
  return ops.primitive_launch(primitive, on == nullptr ? stream : on, &launch, nullptr, &error);
}

}  // namespace tenon::testing
