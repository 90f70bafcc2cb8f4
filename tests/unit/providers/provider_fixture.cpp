#include "tests/unit/providers/provider_fixture.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "primitives/text/format.h"

namespace tenon::provider {

namespace {

std::string text_of(ep_string text) { return {text.data, static_cast<size_t>(text.size)}; }

}  // namespace

TestHost::TestHost(Settings settings, int32_t threads) : settings_(std::move(settings)), threads_(threads) {
  table_.struct_size = sizeof table_;
  table_.struct_type = EP_STRUCT_HOST;
  table_.abi_major = EP_ABI_MAJOR;
  table_.abi_minor = EP_ABI_MINOR;
  table_.context = this;
  table_.error_make = error_make;
  table_.log_enabled = [](const ep_host*, int32_t level, ep_string) -> int32_t { return level <= EP_LOG_ERROR; };
  table_.log = log;
  table_.allocate = allocate;
  table_.release = release;
  table_.config_get = config_get;
  table_.thread_limit = [](const ep_host* host) -> int32_t { return self(host).threads_; };
  table_.plugin_path = [](const ep_host* host) { return ep_string{self(host).path.data(), self(host).path.size()}; };
  table_.device_memory_report = [](const ep_host* host, ep_device*, int64_t delta) {
    const std::lock_guard lock(self(host).mutex_);
    self(host).reported_ += delta;
  };
  table_.blob_get = blob_get;
  table_.blob_put = blob_put;
  table_.cancel_requested = [](const ep_host* host) -> int32_t { return self(host).cancelled_ ? 1 : 0; };
}

int64_t TestHost::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

int64_t TestHost::reported_device_memory() const {
  const std::lock_guard lock(mutex_);
  return reported_;
}

std::string TestHost::sentence() const {
  const std::lock_guard lock(mutex_);
  return sentence_;
}

std::string TestHost::remedy() const {
  const std::lock_guard lock(mutex_);
  return remedy_;
}

std::vector<std::string> TestHost::errors_logged() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

// The plug-in does not read an error.
ep_error* TestHost::error_make(const ep_host* host, ep_status, ep_string sentence, ep_string remedy) {
  TestHost& me = self(host);
  const std::lock_guard lock(me.mutex_);
  me.sentence_ = text_of(sentence);
  me.remedy_ = text_of(remedy);
  return reinterpret_cast<ep_error*>(&me);
}

void TestHost::log(const ep_host* host, int32_t level, ep_string, ep_string message) {
  if (level > EP_LOG_ERROR) return;
  const std::lock_guard lock(self(host).mutex_);
  self(host).errors_.push_back(text_of(message));
}

void* TestHost::allocate(const ep_host* host, uint64_t size, uint64_t alignment) {
  {
    const std::lock_guard lock(self(host).mutex_);
    self(host).held_ += static_cast<int64_t>(size);
  }
  const uint64_t unit = std::max<uint64_t>(alignment, sizeof(void*));
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}

void TestHost::release(const ep_host* host, void* pointer, uint64_t size) {
  if (pointer == nullptr) return;
  std::free(pointer);
  const std::lock_guard lock(self(host).mutex_);
  self(host).held_ -= static_cast<int64_t>(size);
}

ep_status TestHost::config_get(const ep_host* host, ep_string key, ep_string* out_value) {
  const Settings& settings = self(host).settings_;
  const auto found = settings.find(text_of(key));
  if (found == settings.end()) return EP_STATUS_NOT_FOUND;
  *out_value = {found->second.data(), found->second.size()};
  return EP_STATUS_OK;
}

ep_status TestHost::blob_get(const ep_host* host, ep_string key, void (*take)(void*, const void*, uint64_t),
                             void* context) {
  std::string blob;
  {
    const std::lock_guard lock(self(host).mutex_);
    const auto found = self(host).blobs_.find(text_of(key));
    if (found == self(host).blobs_.end()) return EP_STATUS_NOT_FOUND;
    blob = found->second;
  }
  take(context, blob.data(), blob.size());
  return EP_STATUS_OK;
}

void TestHost::blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size) {
  const std::lock_guard lock(self(host).mutex_);
  self(host).blobs_[text_of(key)].assign(static_cast<const char*>(data), size);
}

std::map<std::string, std::string> TestHost::blobs() const {
  const std::lock_guard lock(mutex_);
  return blobs_;
}

void TestHost::put_blobs(std::map<std::string, std::string> blobs) {
  const std::lock_guard lock(mutex_);
  blobs_ = std::move(blobs);
}

OpenProvider::OpenProvider(const std::string& name, Settings settings, int32_t threads)
    : host(std::move(settings), threads) {
  const char* folder = std::getenv("PROVIDERS_FOLDER");
  const std::string path = fmt::format("{}/libtenon_{}.so", folder == nullptr ? "." : folder, name);
  host.path = path;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  auto query = reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
  if (query == nullptr) throw std::runtime_error(path + " has no " EP_PLUGIN_QUERY_SYMBOL);
  ep_error* error = nullptr;
  plugin.struct_size = sizeof plugin;
  plugin.struct_type = EP_STRUCT_PLUGIN_OPS;
  if (query(host.table(), &plugin, &error) != EP_STATUS_OK) throw std::runtime_error(host.sentence());
  ops.struct_size = sizeof ops;
  ops.struct_type = EP_STRUCT_DEVICE_OPS;
  if (plugin.device_open(plugin.plugin, 0, &device, &ops, &error) != EP_STATUS_OK ||
      ops.stream_create(device, &kComputeStream, &stream, &error) != EP_STATUS_OK) {
    plugin.shutdown(plugin.plugin);
    throw std::runtime_error(host.sentence());
  }
}

OpenProvider::~OpenProvider() {
  ops.stream_destroy(device, stream);
  ops.device_close(device);
  plugin.shutdown(plugin.plugin);
}

std::unique_ptr<OpenProvider> open_on_target(const std::string& simd) {
  try {
    return std::make_unique<OpenProvider>("cpu", Settings{{"simd", simd}}, 1);
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    if (text.find("this processor has up to") != std::string::npos) return nullptr;
    if (text.find("this build has nothing below") != std::string::npos) return nullptr;
    throw;
  }
}

ep_operand_desc strided(int32_t role, int32_t dtype, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& strides) {
  ep_operand_desc operand{};
  operand.role = role;
  operand.dtype = dtype;
  operand.rank = static_cast<int32_t>(dims.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    operand.dims[axis] = dims[axis];
    operand.strides[axis] = strides[axis];
  }
  return operand;
}

ep_operand_desc dense(int32_t role, int32_t dtype, const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t axis = dims.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * dims[axis + 1];
  return strided(role, dtype, dims, strides);
}

ep_operand_desc scalar_operand(int32_t role, int32_t dtype) {
  ep_operand_desc operand{};
  operand.role = role;
  operand.dtype = dtype;
  operand.flags = EP_OPERAND_FLAG_SCALAR;
  return operand;
}

void then_relu(ep_primitive_desc* desc) {
  desc->epilogue_count = 1;
  desc->epilogues[0] = {1, EP_UNARY_relu, 0, 4};
}

void then_add_residual(ep_primitive_desc* desc) {
  desc->operands[desc->operand_count] = desc->operands[0];
  desc->operands[desc->operand_count++].role = EP_ROLE_EPILOGUE_0;
  desc->epilogues[desc->epilogue_count++] = {2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0};
}

std::vector<float> random_floats(int64_t count, std::mt19937* generator) {
  std::uniform_real_distribution<float> range(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = range(*generator);
  return values;
}

ep_primitive_desc descriptor(int32_t kind, const std::vector<ep_operand_desc>& operands) {
  ep_primitive_desc desc{};
  desc.kind = kind;
  desc.operand_count = static_cast<uint32_t>(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) desc.operands[i] = operands[i];
  return desc;
}

int64_t extent(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return last + 1;
}

namespace {

ep_primitive_desc with_dims_at_launch(ep_primitive_desc desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    for (int32_t axis = 0; axis < desc.operands[i].rank; ++axis) {
      desc.operands[i].dims[axis] = EP_ANY;
      if (desc.operands[i].strides[axis] > 1) desc.operands[i].strides[axis] = EP_ANY;
    }
  }
  return desc;
}

struct HostBlock {
  ~HostBlock() { std::free(place); }
  void* place = nullptr;
};

}  // namespace

LaunchResult run_once(OpenProvider& provider, const ep_primitive_desc& desc, const std::vector<void*>& operands,
                      const std::vector<ep_scalar>& scalars, bool dynamic) {
  LaunchResult result;
  const ep_device_ops& ops = provider.ops;
  ep_error* error = nullptr;
  const ep_primitive_desc created = dynamic ? with_dims_at_launch(desc) : desc;
  ep_primitive* primitive = nullptr;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  result.status = ops.primitive_create(provider.device, &created, &primitive, &info, &error);
  if (result.status != EP_STATUS_OK) return result;
  result.implementation.assign(info.implementation.data, info.implementation.size);

  std::vector<ep_buffer> buffers(desc.operand_count, ep_buffer{});
  std::vector<ep_shape> shapes(desc.operand_count);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    shapes[i] = {desc.operands[i].dims, desc.operands[i].strides, desc.operands[i].rank, 0};
    if (operands[i] == nullptr) continue;
    ops.memory_import_host(provider.device, operands[i], UINT64_C(1) << 40, &buffers[i].memory, &error);
  }
  HostBlock packed;
  if (info.pack_operand != 0) {
    packed.place = std::aligned_alloc(256, (info.pack_bytes + 255) / 256 * 256);
    ep_buffer& weight = buffers[info.pack_operand - 1];
    const ep_buffer plain = weight;
    ops.memory_import_host(provider.device, packed.place, info.pack_bytes, &weight.memory, &error);
    result.status = ops.primitive_pack(primitive, provider.stream, weight, plain, &error);
    ops.memory_free(provider.device, plain.memory);
  }
  uint64_t workspace_bytes = info.workspace_bytes;
  if (dynamic && ops.primitive_workspace != nullptr) {
    ops.primitive_workspace(primitive, shapes.data(), desc.operand_count, &workspace_bytes, &error);
  }
  HostBlock workspace;
  ep_launch launch{};
  launch.operands = buffers.data();
  launch.operand_count = desc.operand_count;
  if (dynamic) launch.shapes = shapes.data();
  launch.scalars = scalars.data();
  launch.scalar_count = static_cast<uint32_t>(scalars.size());
  launch.tag = 77;
  if (workspace_bytes != 0) {
    workspace.place = std::aligned_alloc(256, (workspace_bytes + 255) / 256 * 256);
    std::memset(workspace.place, 0xff, workspace_bytes);
    ops.memory_import_host(provider.device, workspace.place, workspace_bytes, &launch.workspace.memory, &error);
  }
  if (result.status == EP_STATUS_OK)
    result.status = ops.primitive_launch(primitive, provider.stream, &launch, &result.fault, &error);
  for (const ep_buffer& buffer : buffers) ops.memory_free(provider.device, buffer.memory);
  ops.memory_free(provider.device, launch.workspace.memory);
  ops.primitive_destroy(provider.device, primitive);
  return result;
}

}  // namespace tenon::provider
