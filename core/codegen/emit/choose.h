// The dialect in which kernels for a device are printed.
#pragma once

#include <optional>

#include "core/codegen/emit/emit.h"
#include "core/codegen/tactics/tiles.h"
#include "core/device/export.h"
#include "core/primitive/compiled_module.h"

namespace tenon::codegen {

constexpr int64_t kWidestAccess = 16;  // bytes that a work-item loads or stores at once

// The first of those that the device names which there is a printer for; nothing, with the reason, if there is none.
std::optional<Dialect> dialect_for(DeviceState* device, std::string* why_not);

// A device without limits that compiles `dialect`, with all of its features: to see texts without a device.
TENON_API ep_dialect_info unlimited(int32_t dialect);

// How many bytes of a group's shared memory values of a kernel may take. The rest is for sums, and several groups share
// a multiprocessor's memory.
int64_t shared_for_values(const ep_dialect_info& dialect);

// `kernel`, which has no loops, with loops of `tiles` for `dialect`, as text. Errors: those of the schedule and of the
// printer; unsupported, where the text is beyond a limit of the device, with the limit.
Result<KernelText> print_for(Kernel* kernel, const ep_dialect_info& dialect, const Tiles& tiles = {},
                             IndexBits bits = IndexBits::wide);

// What the device compiles, named `name` in messages.
ModuleText module_of(const std::string& name, const KernelText& text);

// The groups of a launch of `items` items: along x as many as the device takes, the others along y. Errors:
// unsupported, if there are more than it takes.
Result<std::array<uint64_t, 3>> groups_for(uint64_t items, const ep_dialect_info& dialect);

}  // namespace tenon::codegen
