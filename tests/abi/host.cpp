// A host of one minor version in one file. It loads a plug-in with the loader's own note reader and negotiation,
// computes relu on its device, and prints results as lines `key value`. minors_test.py needs one such host per minor.
//
// Usage: abi_host FOLDER/libtenon_<name>.so
// Exit status: 0 it worked; 3 the plug-in was refused (the line `refused` says why); 1 any other failure.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "loader/host/host.h"
#include "loader/negotiate/negotiate.h"
#include "loader/note/note.h"
#include "primitives/text/format.h"

#if EP_ABI_TARGET_MINOR > EP_ABI_TRIAL_MINOR + 1
#define HAS_SECOND_TRIAL_MINOR 1
#endif

namespace {

using namespace tenon;

[[noreturn]] void refused(const Status& status) {
  std::printf("refused %s\n", status.message().c_str());
  std::exit(3);
}

[[noreturn]] void wrong(const std::string& what) {
  std::printf("wrong %s\n", what.c_str());
  std::exit(1);
}

void check(ep_status status, const char* what) {
  if (status != EP_STATUS_OK) wrong(fmt::format("{} answered {}", what, status));
}

void print(const char* key, uint64_t value) { std::printf("%s %llu\n", key, static_cast<unsigned long long>(value)); }

// A struct that the plug-in fills, and bytes after it that the plug-in must not write.
template <class T>
struct Guarded {
  T value{};
  unsigned char guard[256];

  explicit Guarded(uint32_t type) {
    value.struct_size = sizeof(T);
    value.struct_type = type;
    std::memset(guard, 0xa5, sizeof guard);
  }
  void check_guard(const char* what) const {
    for (unsigned char byte : guard) {
      if (byte != 0xa5) wrong(std::string(what) + " was written past its struct_size");
    }
  }
};

ep_plugin_query_fn load(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (descriptor < 0 || fstat(descriptor, &about) != 0) wrong("cannot open " + path);
  const Result<loader::PluginNote> note = loader::read_note(descriptor, static_cast<uint64_t>(about.st_size));
  if (!note.ok()) refused(note.status());
  print("plugin_minor", note->abi_minor);
  const Status checked = loader::check_note(note.value(), stem.substr(std::strlen("libtenon_")));
  if (!checked.ok()) refused(checked);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) wrong(dlerror());
  return reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
}

ep_primitive_desc relu_of(int64_t count) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.operand_count = 2;
  desc.attributes.unary.op = EP_UNARY_relu;
  for (int32_t i = 0; i < 2; ++i) {
    desc.operands[i].role = i == 0 ? EP_ROLE_DST : EP_ROLE_SRC;
    desc.operands[i].dtype = EP_DTYPE_f32;
    desc.operands[i].rank = 1;
    desc.operands[i].dims[0] = count;
    desc.operands[i].strides[0] = 1;
  }
  return desc;
}

// Computes relu of four numbers, using every table of the device.
void compute(const loader::OpenDevice& device) {
  const ep_device_ops& ops = device.ops;
  const ep_primitive_desc desc = relu_of(4);
  Guarded<ep_support_info> terms(EP_STRUCT_SUPPORT_INFO);
  Guarded<ep_primitive_info> info(EP_STRUCT_PRIMITIVE_INFO);
  const ep_stream_desc desc_of_stream{sizeof desc_of_stream, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};
  ep_stream* stream = nullptr;
  ep_primitive* primitive = nullptr;
  ep_memory* memory = nullptr;
  check(ops.stream_create(device.handle, &desc_of_stream, &stream, nullptr), "stream_create");
  check(ops.primitive_support(device.handle, &desc, &terms.value, nullptr), "primitive_support");
  check(ops.primitive_create(device.handle, &desc, &primitive, &info.value, nullptr), "primitive_create");
  check(ops.memory_allocate(device.handle, 0, 64, &memory, nullptr), "memory_allocate");
  const float values[4] = {-1.5f, 2.5f, -0.25f, 8};
  float result[4] = {-7, -7, -7, -7};
  check(ops.upload(stream, {memory, 0}, values, sizeof values, nullptr), "upload");
  const ep_buffer operands[2] = {{memory, 32}, {memory, 0}};
  ep_launch launch{};
  launch.operands = operands;
  launch.operand_count = 2;
  check(ops.primitive_launch(primitive, stream, &launch, nullptr, nullptr), "primitive_launch");
  check(ops.download(stream, result, {memory, 32}, sizeof result, nullptr), "download");
  const float expected[4] = {0, 2.5f, 0, 8};
  if (std::memcmp(result, expected, sizeof result) != 0) wrong("relu computed something else");
  terms.check_guard("ep_support_info");
  info.check_guard("ep_primitive_info");
  print("support_size", terms.value.struct_size);
  print("primitive_size", info.value.struct_size);
#ifdef HAS_SECOND_TRIAL_MINOR
  print("trial_cost", terms.value.trial_cost);
  print("trial_bytes", info.value.trial_bytes);
  int64_t echoed = 0;
  if (ops.trial_echo) check(ops.trial_echo(device.handle, 21, &echoed, nullptr), "trial_echo");
  print("trial_echo", static_cast<uint64_t>(echoed));
#endif
  ops.memory_free(device.handle, memory);
  ops.primitive_destroy(device.handle, primitive);
  ops.stream_destroy(device.handle, stream);
}

void describe(const ep_plugin_ops& plugin) {
  Guarded<ep_device_info> info(EP_STRUCT_DEVICE_INFO);
  check(plugin.device_info(plugin.plugin, 0, &info.value, nullptr), "device_info");
  info.check_guard("ep_device_info");
  print("info_size", info.value.struct_size);
#ifdef HAS_SECOND_TRIAL_MINOR
  print("trial_units", info.value.trial_units);
  print("trial_greet", static_cast<uint64_t>(plugin.trial_greet ? plugin.trial_greet(plugin.plugin, 41) : 0));
#endif
}

void run(const std::string& path) {
  print("host_minor", EP_ABI_MINOR);
  const ep_plugin_query_fn query = load(path);
  loader::HostServices services("sample", path, {});
#ifdef HAS_SECOND_TRIAL_MINOR
  const_cast<ep_host*>(services.table())->trial_double = [](const ep_host*, int64_t value) { return 2 * value; };
#endif
  const Result<ep_plugin_ops> plugin = loader::negotiate_plugin(services, query);
  if (!plugin.ok()) refused(plugin.status());
  describe(plugin.value());
  const Result<loader::DeviceInfo> info = loader::query_device_info("sample", plugin.value(), 0);
  if (!info.ok()) refused(info.status());
  loader::OpenDevice device;
  device.spelling = "sample:0";
  device.info = info.value();
  const Status opened = loader::open_device_table("sample", plugin.value(), nullptr, device);
  if (!opened.ok()) refused(opened);
  compute(device);
  device.ops.device_close(device.handle);
  plugin->shutdown(plugin->plugin);
  if (services.memory().blocks != 0) wrong(fmt::format("the plug-in leaked {} blocks", services.memory().blocks));
  std::printf("worked\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  run(argv[1]);
  return 0;
}
