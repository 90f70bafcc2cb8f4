// Chooses the dialect in which kernels for a device are printed.
#pragma once

#include <optional>

#include "core/codegen/emit/emit.h"
#include "core/codegen/tactics/tiles.h"
#include "core/device/export.h"
#include "core/primitive/compiled_module.h"

namespace tenon::codegen {

constexpr int64_t kWidestAccess = 16;  // most bytes that a work-item loads or stores at once

// The first of the device's dialects that has a printer. Returns nothing, with the reason, if none has.
std::optional<Dialect> dialect_for(DeviceState* device, std::string* why_not);

// A device without limits that compiles `dialect` with all its features, to see texts without a device.
TENON_API ep_dialect_info unlimited(int32_t dialect);

// Bytes of a group's shared memory that a kernel's values may use. The rest is for sums, and so that several groups fit
// on one multiprocessor.
int64_t shared_for_values(const ep_dialect_info& dialect);

// Schedules `kernel`, which has no loops, with `tiles` for `dialect`, and prints it. Errors: those of the schedule and
// of the printer; unsupported if the text exceeds a limit of the device, with the limit.
Result<KernelText> print_for(Kernel* kernel, const ep_dialect_info& dialect, const Tiles& tiles = {},
                             IndexBits bits = IndexBits::wide);

// The text as the device compiles it. Messages call it `name`.
ModuleText module_of(const std::string& name, const KernelText& text);

// The grid of a launch with `items` items: as many groups along x as the device allows, the rest along y. Errors:
// unsupported if there are too many.
Result<std::array<uint64_t, 3>> groups_for(uint64_t items, const ep_dialect_info& dialect);

}  // namespace tenon::codegen
