#include "tests/fakes/masking/masking.h"

#include <fmt/core.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace tenon::fakes {
namespace {

// The tables of the wrapped devices, by device handle, and by the handles of a device's objects.
struct Masks {
  mutable std::mutex mutex;
  std::set<int32_t> kinds;
  ep_plugin_query_fn query = nullptr;
  std::string path;
  std::map<const ep_device*, ep_device_ops> by_device;
  std::map<const ep_stream*, const ep_device_ops*> by_stream;
  std::map<const ep_primitive*, const ep_device_ops*> by_primitive;
};

Masks& masks() {
  static Masks all;
  return all;
}

template <class Handle>
const ep_device_ops& inner(const std::map<const Handle*, const ep_device_ops*>& by, const Handle* handle) {
  std::lock_guard lock(masks().mutex);
  return *by.at(handle);
}

const ep_device_ops& inner(const ep_device* device) {
  std::lock_guard lock(masks().mutex);
  return masks().by_device.at(device);
}

void count_copy(uint64_t bytes) {
  masking_control().copies.fetch_add(1);
  masking_control().bytes_copied.fetch_add(bytes);
}

struct Plugin {
  const ep_host* host;
  ep_plugin_ops inner;
};

const ep_host*& host_of_masks() {
  static const ep_host* host = nullptr;
  return host;
}

bool is_strided(const ep_operand_desc& operand) {
  int64_t expected = 1;
  for (int32_t axis = operand.rank - 1; axis >= 0; --axis) {
    if (operand.dims[axis] != 1 && operand.strides[axis] != expected) return true;
    expected *= operand.dims[axis];
  }
  return false;
}

// The part of `desc` that is refused; empty if none is.
std::string refused_part(const ep_primitive_desc& desc) {
  const MaskingControl& control = masking_control();
  if (control.refuses(desc.kind)) return fmt::format("kind {}", desc.kind);
  if (desc.kind == EP_PRIMITIVE_copy) return {};
  for (uint32_t i = 0; control.refuses_strides && i < desc.operand_count; ++i) {
    if (is_strided(desc.operands[i])) return fmt::format("the strides of operand {}", i);
  }
  if (control.refuses_epilogues && desc.epilogue_count != 0) return "epilogues";
  return {};
}

ep_status refusal(const std::string& part, ep_error** error) {
  masking_control().refused.fetch_add(1);
  const std::string sentence = fmt::format("the masking fake refuses {}.", part);
  const ep_host* host = host_of_masks();
  if (error != nullptr) {
    *error = host->error_make(host, EP_STATUS_UNSUPPORTED, {sentence.data(), sentence.size()}, {nullptr, 0});
  }
  return EP_STATUS_UNSUPPORTED;
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out, ep_error** error) {
  const std::string part = refused_part(*desc);
  if (!part.empty()) return refusal(part, error);
  const ep_status status = inner(device).primitive_support(device, desc, out, error);
  const bool aligned = desc->kind != EP_PRIMITIVE_copy || masking_control().aligns_copy;
  if (status == EP_STATUS_OK && aligned) {
    std::fill_n(out->alignment, desc->operand_count, masking_control().alignment.load());
  }
  return status;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out,
                           ep_primitive_info* info, ep_error** error) {
  if (masking_control().refuses(desc->kind)) return refusal(fmt::format("kind {}", desc->kind), error);
  masking_control().creates.fetch_add(1);
  if (masking_control().create_fails.fetch_sub(1) > 0) {
    const std::string_view sentence = "the masking fake cannot make the primitive.";
    const ep_host* host = host_of_masks();
    const ep_status answer = masking_control().create_answer;
    if (error != nullptr) *error = host->error_make(host, answer, {sentence.data(), sentence.size()}, {nullptr, 0});
    return answer;
  }
  const ep_device_ops& ops = inner(device);
  const ep_status status = ops.primitive_create(device, desc, out, info, error);
  if (status != EP_STATUS_OK) return status;
  std::lock_guard lock(masks().mutex);
  masks().by_primitive[*out] = &ops;
  return status;
}

void device_trim(ep_device* device) {
  masking_control().trims.fetch_add(1);
  if (inner(device).device_trim != nullptr) inner(device).device_trim(device);
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  masking_control().launches.fetch_add(1);
  return inner(masks().by_primitive, primitive).primitive_launch(primitive, stream, launch, out_fault, error);
}

ep_status stream_create(ep_device* device, ep_stream** out, ep_error** error) {
  const ep_device_ops& ops = inner(device);
  const ep_status status = ops.stream_create(device, out, error);
  if (status != EP_STATUS_OK) return status;
  std::lock_guard lock(masks().mutex);
  masks().by_stream[*out] = &ops;
  return status;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  count_copy(size);
  return inner(masks().by_stream, stream).copy(stream, dst, src, size, error);
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  count_copy(size);
  return inner(masks().by_stream, stream).upload(stream, dst, src, size, error);
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  count_copy(size);
  return inner(masks().by_stream, stream).download(stream, dst, src, size, error);
}

Plugin* plugin_of(ep_plugin* plugin) { return reinterpret_cast<Plugin*>(plugin); }

void shutdown(ep_plugin* plugin) {
  plugin_of(plugin)->inner.shutdown(plugin_of(plugin)->inner.plugin);
  delete plugin_of(plugin);
}

ep_status device_count(ep_plugin* plugin, uint32_t* out, ep_error** error) {
  return plugin_of(plugin)->inner.device_count(plugin_of(plugin)->inner.plugin, out, error);
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error** error) {
  return plugin_of(plugin)->inner.device_info(plugin_of(plugin)->inner.plugin, index, out, error);
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out, ep_error** error) {
  const ep_plugin_ops& ops = plugin_of(plugin)->inner;
  const ep_status status = ops.device_open(ops.plugin, index, out_device, out, error);
  if (status != EP_STATUS_OK) return status;
  {
    std::lock_guard lock(masks().mutex);
    masks().by_device[*out_device] = *out;
  }
  out->primitive_support = primitive_support;
  if (out->primitive_create != nullptr) {
    out->primitive_create = primitive_create;
    out->primitive_launch = primitive_launch;
  }
  out->device_trim = device_trim;
  out->stream_create = stream_create;
  out->copy = copy;
  out->upload = upload;
  out->download = download;
  return status;
}

std::string setting(const ep_host* host, const char* key) {
  ep_string value{nullptr, 0};
  if (host->config_get(host, {key, std::strlen(key)}, &value) != EP_STATUS_OK) return {};
  return std::string(value.data, value.size);
}

int32_t kind_named(const std::string& name) {
#define EP_PRIMITIVE(row, id, attributes, alias) \
  if (name == #row) return id;
#include "ep_api/primitives.def"
#undef EP_PRIMITIVE
  return 0;
}

void configure(const ep_host* host) {
  Masks& all = masks();
  if (all.query == nullptr && all.path.empty()) all.path = setting(host, "path");
  const std::string refuse = setting(host, "refuse");
  for (size_t begin = 0; begin < refuse.size();) {
    const size_t end = std::min(refuse.find(',', begin), refuse.size());
    if (const int32_t kind = kind_named(refuse.substr(begin, end - begin)); kind != 0) all.kinds.insert(kind);
    begin = end + 1;
  }
}

ep_status fail(const ep_host* host, ep_error** error, const std::string& sentence) {
  if (error != nullptr) {
    *error = host->error_make(host, EP_STATUS_NOT_FOUND, {sentence.data(), sentence.size()}, {nullptr, 0});
  }
  return EP_STATUS_NOT_FOUND;
}

}  // namespace

void MaskingControl::refuse(std::set<int32_t> kinds) {
  std::lock_guard lock(masks().mutex);
  masks().kinds = std::move(kinds);
}

bool MaskingControl::refuses(int32_t kind) const {
  std::lock_guard lock(masks().mutex);
  return masks().kinds.contains(kind);
}

void MaskingControl::reset() {
  launches = copies = bytes_copied = refused = creates = trims = 0;
  create_fails = 0;
  create_answer = EP_STATUS_OUT_OF_DEVICE_MEMORY;
  refuses_strides = refuses_epilogues = aligns_copy = false;
  alignment = 0;
  refuse({});
}

MaskingControl& masking_control() {
  static auto* control = new MaskingControl;
  return *control;
}

void masking_wrap(ep_plugin_query_fn query) {
  masks().query = query;
  masks().path.clear();
}

void masking_wrap(const std::string& path) {
  masks().query = nullptr;
  masks().path = path;
}

ep_status masking_query(const ep_host* host, ep_plugin_ops* out, ep_error** error) {
  Masks& all = masks();
  {
    std::lock_guard lock(all.mutex);
    host_of_masks() = host;
    configure(host);
  }
  if (all.query == nullptr) {
    if (all.path.empty()) return fail(host, error, "the masking fake was not told which provider to wrap.");
    void* library = dlopen(all.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fail(host, error, std::string("the provider to wrap does not load: ") + dlerror());
    all.query = reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
    if (all.query == nullptr) return fail(host, error, "the provider to wrap has no query.");
  }
  auto* plugin = new Plugin{host, {}};
  plugin->inner.struct_size = sizeof plugin->inner;
  plugin->inner.struct_type = EP_STRUCT_PLUGIN_OPS;
  if (const ep_status status = all.query(host, &plugin->inner, error); status != EP_STATUS_OK) {
    delete plugin;
    return status;
  }
  out->abi_major = plugin->inner.abi_major;
  out->abi_minor = plugin->inner.abi_minor;
  out->plugin = reinterpret_cast<ep_plugin*>(plugin);
  out->shutdown = shutdown;
  out->device_count = device_count;
  out->device_info = device_info;
  out->device_open = device_open;
  return EP_STATUS_OK;
}

}  // namespace tenon::fakes
