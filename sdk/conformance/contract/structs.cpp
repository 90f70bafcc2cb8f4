// A function that fills a struct writes at most struct_size bytes.
#include <algorithm>
#include <cstddef>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"

namespace tenon::conformance {
namespace {

constexpr uint8_t canary = 0xa5;
constexpr size_t room = 4096;

// A struct whose struct_size is `size`. The first `size` bytes are zero, the rest are canaries.
template <class T>
class Sized {
 public:
  Sized(uint32_t type, uint32_t size) : size_(size) {
    static_assert(sizeof(T) + 512 < room);
    std::fill(std::begin(bytes_), std::end(bytes_), canary);
    std::fill_n(bytes_, std::max<uint32_t>(size, 8), uint8_t{0});
    get()->struct_size = size;
    get()->struct_type = type;
  }
  T* get() { return reinterpret_cast<T*>(bytes_); }

  Status check(const char* function) {
    for (size_t at = std::max<uint32_t>(size_, 8); at < room; ++at) {
      if (bytes_[at] == canary) continue;
      return broken("T01", "{} was given a struct of {} bytes and wrote byte {} of it", function, size_, at);
    }
    if (get()->struct_size > size_) {
      return broken("T01", "{} was given a struct of {} bytes and says it filled {}", function, size_,
                    get()->struct_size);
    }
    for (size_t at = sizeof(T); at < size_; ++at) {
      if (bytes_[at] != 0)
        return broken("T02", "{} wrote byte {} of a struct of which it knows {}", function, at, sizeof(T));
    }
    return {};
  }

 private:
  alignas(16) uint8_t bytes_[room];
  uint32_t size_;
};

template <class Size>
Status fill_infos(Subject& s, const cases::Case& sample, const Size& sizes) {
  for (uint32_t size : sizes(sizeof(ep_support_info))) {
    Sized<ep_support_info> info(EP_STRUCT_SUPPORT_INFO, size);
    const Status ignored = s.call("primitive_support", s.ops.primitive_support, s.device, &sample.desc, info.get());
    TENON_RETURN_IF_ERROR(info.check("primitive_support"));
  }
  if (s.ops.primitive_create == nullptr) return {};
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(s, sample));
  for (uint32_t size : sizes(sizeof(ep_primitive_info))) {
    Sized<ep_primitive_info> info(EP_STRUCT_PRIMITIVE_INFO, size);
    ep_primitive* made = nullptr;
    const Status created = s.call("primitive_create", s.ops.primitive_create, s.device, &desc, &made, info.get());
    const Primitive owned(&s, created.ok() ? made : nullptr);
    TENON_RETURN_IF_ERROR(info.check("primitive_create"));
  }
  return {};
}

// Calls every function that fills a struct, with a struct of `size(full)` bytes.
template <class Size>
Status fill_all(Subject& subject, const Size& sizes) {
  Subject& s = subject;
  for (uint32_t size : sizes(sizeof(ep_device_info))) {
    Sized<ep_device_info> info(EP_STRUCT_DEVICE_INFO, size);
    const Status ignored = s.call("device_info", s.plugin.device_info, s.plugin.plugin, s.target.device, info.get());
    TENON_RETURN_IF_ERROR(info.check("device_info"));
  }
  for (const cases::Case& sample : find_samples(subject)) {
    TENON_RETURN_IF_ERROR(fill_infos(subject, sample, sizes).with_context(fmt::format("  for {}", sample.name)));
  }
  return {};
}

Status fill_tables(Subject& subject, const std::vector<uint32_t>& plugin_sizes,
                   const std::vector<uint32_t>& device_sizes) {
  Subject& s = subject;
  for (uint32_t size : plugin_sizes) {
    Sized<ep_plugin_ops> ops(EP_STRUCT_PLUGIN_OPS, size);
    const Status made = s.call(EP_PLUGIN_QUERY_SYMBOL, s.query, s.host.table(), ops.get());
    TENON_RETURN_IF_ERROR(ops.check(EP_PLUGIN_QUERY_SYMBOL));
    if (made.ok() && size >= offsetof(ep_plugin_ops, shutdown)) s.plugin.shutdown(ops.get()->plugin);
  }
  for (uint32_t size : device_sizes) {
    Sized<ep_device_ops> ops(EP_STRUCT_DEVICE_OPS, size);
    ep_device* device = nullptr;
    s.ops.device_close(std::exchange(s.device, nullptr));
    const Status made =
        s.call("device_open", s.plugin.device_open, s.plugin.plugin, s.target.device, &device, ops.get());
    if (made.ok()) s.ops.device_close(device);
    TENON_RETURN_IF_ERROR(ops.check("device_open"));
    TENON_RETURN_IF_ERROR(s.open());
  }
  return {};
}

}  // namespace

Status structs_short(Subject& subject) {
  TENON_RETURN_IF_ERROR(fill_all(subject, [](uint32_t full) {
    std::vector<uint32_t> sizes = {0};
    for (uint32_t size = 16; size<full; size += full> 128 ? 56 : 8) sizes.push_back(size);
    return sizes;
  }));
  return fill_tables(subject, {0, 16, offsetof(ep_plugin_ops, shutdown), offsetof(ep_plugin_ops, device_open)},
                     {0, 16, offsetof(ep_device_ops, stream_create), offsetof(ep_device_ops, primitive_pack)});
}

Status structs_long(Subject& subject) {
  TENON_RETURN_IF_ERROR(fill_all(subject, [](uint32_t full) {
    return std::vector<uint32_t>{full, full + 8, full + 256};
  }));
  return fill_tables(subject, {sizeof(ep_plugin_ops) + 8, sizeof(ep_plugin_ops) + 256},
                     {sizeof(ep_device_ops) + 8, sizeof(ep_device_ops) + 256});
}

}  // namespace tenon::conformance
