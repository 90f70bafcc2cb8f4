#include "core/codegen/emit/choose.h"

#include <algorithm>

#include "core/codegen/emit/dialect.h"
#include "core/codegen/tactics/tactics.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

Status beyond(const Kernel& kernel, std::string_view what, uint64_t needs, uint64_t has) {
  if (needs <= has) return {};
  return {Code::unsupported,
          fmt::format("Kernel {} needs {} {}, and the device has {}.", kernel.name, needs, what, has)};
}

Status within_limits(const Kernel& kernel, const KernelText& text, const ep_dialect_info& dialect) {
  TENON_RETURN_IF_ERROR(beyond(kernel, "buffers", text.buffer_count, dialect.greatest_buffers));
  TENON_RETURN_IF_ERROR(beyond(kernel, "bytes of parameters", text.parameter_bytes, dialect.parameter_bytes));
  if (text.dialect == EP_DIALECT_C) return {};
  TENON_RETURN_IF_ERROR(beyond(kernel, "bytes of shared memory", text.shared_bytes, dialect.shared_bytes));
  uint64_t work_items = 1;
  for (size_t dim = 0; dim < text.group.size(); ++dim) {
    TENON_RETURN_IF_ERROR(beyond(kernel, "work-items along a dim", text.group[dim], dialect.group_dims[dim]));
    work_items *= text.group[dim];
  }
  return beyond(kernel, "work-items of a group", work_items, dialect.group_items);
}

}  // namespace

std::optional<Dialect> dialect_for(DeviceState* device, std::string* why_not) {
  Status refused;
  for (Dialect& dialect : dialects_of(device, &refused)) {
    if (dialect.info.dialect == EP_DIALECT_C || words_of(dialect.info.dialect) != nullptr) return std::move(dialect);
  }
  *why_not = refused.ok() ? "the device compiles none of the dialects in which kernels are printed" : refused.message();
  return std::nullopt;
}

ep_dialect_info unlimited(int32_t dialect) {
  ep_dialect_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DIALECT_INFO;
  info.dialect = dialect;
  info.features = ~UINT64_C(0);
  info.group_items = info.greatest_buffers = UINT32_MAX;
  for (uint32_t& most : info.group_dims) most = UINT32_MAX;
  for (uint64_t& most : info.groups) most = UINT64_MAX;
  info.shared_bytes = info.parameter_bytes = UINT64_MAX;
  return info;
}

int64_t shared_for_values(const ep_dialect_info& dialect) {
  return static_cast<int64_t>(std::min<uint64_t>(dialect.shared_bytes / 3 * 2, 32768));
}

Result<KernelText> print_for(Kernel* kernel, const ep_dialect_info& dialect, const Tiles& tiles, IndexBits bits) {
  Result<KernelText> text = Status(Code::internal, "No text.");
  if (dialect.dialect == EP_DIALECT_C) {
    TENON_RETURN_IF_ERROR(schedule_for_cpu(kernel, tiles));
    text = emit_c(*kernel);
  } else {
    GroupLimits limits;
    limits.work_items = std::min({dialect.group_items, dialect.group_dims[0], dialect.group_dims[1]});
    limits.shared_bytes = shared_for_values(dialect);
    limits.vector_bytes = std::min<int64_t>(dialect.vector_bytes, kWidestAccess);
    TENON_RETURN_IF_ERROR(schedule_for_groups(kernel, limits, tiles));
    text = emit_groups(*kernel, dialect.dialect, dialect.features, bits);
  }
  if (text.ok()) TENON_RETURN_IF_ERROR(within_limits(*kernel, text.value(), dialect));
  return text;
}

ModuleText module_of(const std::string& name, const KernelText& text) {
  ModuleText module;
  module.dialect = text.dialect;
  module.name = name;
  module.text = text.text;
  KernelEntry& entry = module.entries.emplace_back();
  entry.name = text.entry;
  entry.buffer_count = text.buffer_count;
  entry.parameter_bytes = text.parameter_bytes;
  entry.shared_bytes = text.shared_bytes;
  entry.group = text.group;
  entry.flags = text.flags;
  return module;
}

Result<std::array<uint64_t, 3>> groups_for(uint64_t items, const ep_dialect_info& dialect) {
  if (dialect.dialect == EP_DIALECT_C || items <= dialect.groups[0]) return std::array<uint64_t, 3>{items, 1, 1};
  const uint64_t most = std::max<uint64_t>(dialect.groups[0], 1);
  const uint64_t along_y = (items + most - 1) / most;
  const uint64_t along_x = (items + along_y - 1) / along_y;
  if (along_y > dialect.groups[1]) {
    return Status(Code::unsupported, fmt::format("A launch has {} groups; the device accepts at most {} x {}.", items,
                                                 dialect.groups[0], dialect.groups[1]));
  }
  return std::array<uint64_t, 3>{along_x, along_y, 1};
}

}  // namespace tenon::codegen
