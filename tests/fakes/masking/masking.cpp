#include "tests/fakes/masking/masking.h"

#include <fmt/core.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace tenon::fakes {
namespace {

// A wrapped device: its function table, and its statements about its memory.
struct Mask {
  ep_device_ops ops{};
  bool exclusive = false;
  uint64_t granularity = 1;
};

struct Made {
  const Mask* mask;
  bool open;  // the descriptor holds EP_ANY
};

// The wrapped devices by handle, and by the handles of a device's objects.
struct Masks {
  mutable std::mutex mutex;
  std::set<int32_t> kinds;
  std::set<int32_t> kept;  // kinds whose demands of precision it says it keeps
  ep_plugin_query_fn query = nullptr;
  std::string path;
  std::map<const ep_device*, Mask> by_device;
  std::map<const ep_stream*, const Mask*> by_stream;
  std::map<const ep_primitive*, Made> by_primitive;
};

Masks& masks() {
  static Masks all;
  return all;
}

const Mask& mask_of(const ep_device* device) {
  std::lock_guard lock(masks().mutex);
  return masks().by_device.at(device);
}

const Mask& mask_of(const ep_stream* stream) {
  std::lock_guard lock(masks().mutex);
  return *masks().by_stream.at(stream);
}

Made made_of(const ep_primitive* primitive) {
  std::lock_guard lock(masks().mutex);
  return masks().by_primitive.at(primitive);
}

const ep_device_ops& inner(const ep_device* device) { return mask_of(device).ops; }
const ep_device_ops& inner(const ep_stream* stream) { return mask_of(stream).ops; }

void check_multiples(const Mask& mask, std::initializer_list<uint64_t> numbers) {
  for (const uint64_t number : numbers) {
    if (number % mask.granularity == 0) continue;
    masking_control().violate(
        fmt::format("a transfer at or of {} bytes on a device that moves multiples of {}", number, mask.granularity));
  }
}

// The outputs of a launch come first.
void check_exclusive(const Mask& mask, const ep_launch& launch, uint32_t outputs) {
  for (uint32_t i = 0; mask.exclusive && i < outputs; ++i) {
    for (uint32_t j = 0; j < launch.operand_count; ++j) {
      const ep_buffer& a = launch.operands[i];
      const ep_buffer& b = launch.operands[j];
      if (i == j || a.memory == nullptr || a.memory != b.memory || a.offset == b.offset) continue;
      masking_control().violate(fmt::format("operand {} lies in the block of output {}", j, i));
    }
  }
}

void count_copy(uint64_t bytes) {
  masking_control().copies.fetch_add(1);
  masking_control().bytes_copied.fetch_add(bytes);
}

struct Plugin {
  const ep_host* host;
  ep_host told;  // as the wrapped provider sees it: with the path of its own plug-in
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

bool is_open(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (std::count(operand.dims, operand.dims + operand.rank, EP_ANY) != 0) return true;
    if (std::count(operand.strides, operand.strides + operand.rank, EP_ANY) != 0) return true;
  }
  return false;
}

// Returns the part of `desc` that is refused; empty: none.
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
  const bool demanding = desc->precision >= EP_PRECISION_PORTABLE;
  masking_control().demands.fetch_add(demanding ? 1 : 0);
  masking_control().relaxed_demands.fetch_add(desc->precision == EP_PRECISION_RELAXED ? 1 : 0);
  const std::string part = refused_part(*desc);
  if (!part.empty()) return refusal(part, error);
  const ep_status status = inner(device).primitive_support(device, desc, out, error);
  if (status == EP_STATUS_OK && desc->precision != EP_PRECISION_DEFAULT && masking_control().keeps(desc->kind))
    out->flags |= demanding ? EP_SUPPORT_FLAG_PRECISION : EP_SUPPORT_FLAG_RELAXED;
  const bool aligned = desc->kind != EP_PRIMITIVE_copy || masking_control().aligns_copy;
  if (status == EP_STATUS_OK && aligned) {
    std::fill_n(out->alignment, desc->operand_count, masking_control().alignment.load());
  }
  if (status == EP_STATUS_OK) {
    out->greatest_dim = masking_control().greatest_dim;
    out->greatest_elements = masking_control().greatest_elements;
    out->greatest_bytes = masking_control().greatest_bytes;
  }
  return status;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out,
                           ep_primitive_info* info, ep_error** error) {
  if (masking_control().refuses(desc->kind)) return refusal(fmt::format("kind {}", desc->kind), error);
  masking_control().creates.fetch_add(1);
  masking_control().relaxed_creates.fetch_add(desc->precision == EP_PRECISION_RELAXED ? 1 : 0);
  if (masking_control().create_fails.fetch_sub(1) > 0) {
    const std::string_view sentence = "the masking fake cannot make the primitive.";
    const ep_host* host = host_of_masks();
    const ep_status answer = masking_control().create_answer;
    if (error != nullptr) *error = host->error_make(host, answer, {sentence.data(), sentence.size()}, {nullptr, 0});
    return answer;
  }
  const Mask& mask = mask_of(device);
  const ep_status status = mask.ops.primitive_create(device, desc, out, info, error);
  if (status != EP_STATUS_OK) return status;
  if (masking_control().workspace_limit != 0) info->flags &= ~EP_PRIMITIVE_INFO_FLAG_NO_WORKSPACE;
  std::lock_guard lock(masks().mutex);
  masks().by_primitive[*out] = {&mask, is_open(*desc)};
  return status;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out, ep_module_info* info,
                        ep_error** error) {
  masking_control().modules.fetch_add(1);
  return inner(device).module_create(device, desc, out, info, error);
}

void device_trim(ep_device* device) {
  masking_control().trims.fetch_add(1);
  if (inner(device).device_trim != nullptr) inner(device).device_trim(device);
}

bool is_beyond(const ep_shape* shapes, int64_t limit) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < shapes[0].rank; ++axis) elements *= shapes[0].dims[axis];
  return limit != 0 && elements > limit;
}

ep_status beyond(ep_error** error) {
  masking_control().beyond.fetch_add(1);
  return refusal("shapes of this size", error);
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  const Made made = made_of(primitive);
  if (made.open && is_beyond(launch->shapes, masking_control().launch_limit)) return beyond(error);
  masking_control().launches.fetch_add(1);
  masking_control().open_launches.fetch_add(made.open ? 1 : 0);
  check_exclusive(*made.mask, *launch, 1);
  return made.mask->ops.primitive_launch(primitive, stream, launch, out_fault, error);
}

ep_status primitive_workspace(ep_primitive* primitive, const ep_shape* shapes, uint32_t count, uint64_t* out_bytes,
                              ep_error** error) {
  const Made made = made_of(primitive);
  if (made.open && is_beyond(shapes, masking_control().workspace_limit)) return beyond(error);
  if (made.mask->ops.primitive_workspace == nullptr) return *out_bytes = 0, EP_STATUS_OK;
  return made.mask->ops.primitive_workspace(primitive, shapes, count, out_bytes, error);
}

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out, ep_error** error) {
  const Mask& mask = mask_of(device);
  const ep_status status = mask.ops.stream_create(device, desc, out, error);
  if (status != EP_STATUS_OK) return status;
  std::lock_guard lock(masks().mutex);
  masks().by_stream[*out] = &mask;
  return status;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  count_copy(size);
  check_multiples(mask_of(stream), {dst.offset, src.offset, size});
  if (mask_of(stream).exclusive && dst.memory == src.memory) masking_control().violate("a copy within a block");
  return inner(stream).copy(stream, dst, src, size, error);
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  count_copy(size);
  check_multiples(mask_of(stream), {dst.offset, size});
  return inner(stream).upload(stream, dst, src, size, error);
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  count_copy(size);
  check_multiples(mask_of(stream), {src.offset, size});
  return inner(stream).download(stream, dst, src, size, error);
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
  const ep_status status = plugin_of(plugin)->inner.device_info(plugin_of(plugin)->inner.plugin, index, out, error);
  if (status != EP_STATUS_OK) return status;
  const MaskingControl& control = masking_control();
  if (control.exclusive) out->pools[0].flags |= EP_POOL_FLAG_EXCLUSIVE;
  if (control.unmapped) out->pools[0].flags &= ~(EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT);
  out->pools[0].copy_granularity = control.granularity;
  out->portable_dtypes = control.portable;
  out->flushed_dtypes = control.flushed;
  return status;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out, ep_error** error) {
  const ep_plugin_ops& ops = plugin_of(plugin)->inner;
  const ep_status status = ops.device_open(ops.plugin, index, out_device, out, error);
  if (status != EP_STATUS_OK) return status;
  {
    std::lock_guard lock(masks().mutex);
    masks().by_device[*out_device] = {*out, masking_control().exclusive, masking_control().granularity};
  }
  out->primitive_support = primitive_support;
  if (out->primitive_create != nullptr) {
    out->primitive_create = primitive_create;
    out->primitive_launch = primitive_launch;
    out->primitive_workspace = primitive_workspace;
  }
  if (out->module_create != nullptr) out->module_create = module_create;
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
  if (setting(host, "unmapped") == "yes") masking_control().unmapped = true;
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

void MaskingControl::keep(std::set<int32_t> kinds) {
  std::lock_guard lock(masks().mutex);
  masks().kept = std::move(kinds);
}

bool MaskingControl::keeps(int32_t kind) const {
  std::lock_guard lock(masks().mutex);
  return masks().kept.contains(kind);
}

void MaskingControl::reset() {
  launches = copies = bytes_copied = refused = creates = trims = modules = 0;
  create_fails = 0;
  create_answer = EP_STATUS_OUT_OF_DEVICE_MEMORY;
  refuses_strides = refuses_epilogues = aligns_copy = false;
  alignment = 0;
  exclusive = unmapped = false;
  granularity = 1;
  portable = flushed = demands = relaxed_demands = relaxed_creates = 0;
  greatest_dim = greatest_elements = greatest_bytes = beyond = open_launches = 0;
  launch_limit = workspace_limit = 0;
  std::lock_guard lock(masks().mutex);
  violation_.clear();
  masks().kinds.clear();
  masks().kept.clear();
}

std::string MaskingControl::violation() {
  std::lock_guard lock(masks().mutex);
  return violation_;
}

void MaskingControl::violate(const std::string& text) {
  std::lock_guard lock(masks().mutex);
  if (violation_.empty()) violation_ = text;
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
  auto* plugin = new Plugin{host, *host, {}};
  plugin->told.plugin_path = [](const ep_host*) { return ep_string{masks().path.data(), masks().path.size()}; };
  plugin->inner.struct_size = sizeof plugin->inner;
  plugin->inner.struct_type = EP_STRUCT_PLUGIN_OPS;
  if (const ep_status status = all.query(&plugin->told, &plugin->inner, error); status != EP_STATUS_OK) {
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
