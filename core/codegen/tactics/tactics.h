// Tactics: choose the loops and the storage of a kernel for a class of devices.
#pragma once

#include "core/codegen/loop/ir.h"
#include "core/codegen/tactics/tiles.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// Schedules a kernel without loops for a CPU with vectors. Axes that are contiguous in memory are merged. The items are
// positions of an axis that all stages share: rows, blocks of a flat loop, or blocks of columns. In an item each stage
// runs in as few loops as its readers allow; the innermost is a vector loop over the axis along which most memory is
// contiguous. Each reader computes cheap values again; other values are kept in a row.
//
// The loops depend on the kernel and the tiles alone; the order in which a reduction adds depends on the kernel alone.
// Errors: those of verify().
Status schedule_for_cpu(Kernel* kernel, const Tiles& tiles = {});

// The limits of a group on a device.
struct GroupLimits {
  uint32_t work_items = 256;
  int64_t shared_bytes = 16384;
  int64_t vector_bytes = 0;  // bytes of an access of one work-item that suit the device; 0: one element
};

// The number of positions along `axis` that one access of `vector_bytes` can hold, for the largest element that is
// contiguous along it: a power of two up to 8; 1 if none is contiguous.
int64_t pack_along(const Kernel& kernel, Id axis, int64_t vector_bytes);

// Schedules a kernel without loops for a device of groups of work-items. Work-items along dim 0 take the axis along
// which most memory is contiguous. An item is a block of a flat loop, a row, several short rows along dim 1, or some
// columns whose rows are taken by work-items along dim 1. A reduction is added up by all work-items that take its axis:
// number w adds w, w + 256 and so on, and then the sums are added pairwise. So its order depends on the kernel alone on
// all devices that have groups of 256 and the same vector_bytes. Expensive values that are read again are kept in
// shared memory.
//
// If a device has vector_bytes, a work-item takes packs of adjacent positions along the contiguous axis: in sums for
// any length, elsewhere only if the length is known to be a multiple of the pack.
//
// Errors: those of verify(); unsupported if shared memory is too small for a reduction that several loops read.
Status schedule_for_groups(Kernel* kernel, const GroupLimits& limits = {}, const Tiles& tiles = {});

}  // namespace tenon::codegen
