// Tactics: which loops and storage a kernel gets on a class of device.
#pragma once

#include "core/codegen/loop/ir.h"
#include "core/codegen/tactics/tiles.h"
#include "primitives/status/status.h"

namespace tenon::codegen {

// Loops for a CPU with vectors, of a kernel without loops. Axes that are one in memory become one. The items are
// positions of an axis that all stages share: rows, blocks of a flat loop, or blocks of columns. In an item each stage
// runs in as few loops as its readers allow, the innermost a vector loop over the axis along which most memory is
// contiguous. What is cheap is computed again in each loop that reads it, what is not stays in a row.
//
// The loops depend on the kernel and the tiles alone, and the order in which a reduction adds on the kernel alone.
// Errors: what verify() refuses.
Status schedule_for_cpu(Kernel* kernel, const Tiles& tiles = {});

// What a group of a device may have.
struct GroupLimits {
  uint32_t work_items = 256;
  int64_t shared_bytes = 16384;
  int64_t vector_bytes = 0;  // of an access of one work-item that suits the device; 0: no more than an element
};

// How many positions along `axis` are one access of `vector_bytes` of the largest element that lies side by side along
// it: a power of two up to 8; 1 where none does.
int64_t pack_along(const Kernel& kernel, Id axis, int64_t vector_bytes);

// Loops for a device of groups of work-items, of a kernel without loops. Work-items along dim 0 take the axis along
// which most memory is contiguous. An item is a block of a flat loop, a row or, where rows are short, several along
// dim 1, or some columns, whose rows work-items along dim 1 take. A reduction is added up by all that take its axis:
// number w adds w, w + 256 and so on, and then the sums are added up pairwise; so its order depends on the kernel alone
// on all devices that have groups of 256 and the same vector_bytes. What is not cheap and read again stays in shared
// memory.
//
// Where a device has vector_bytes, a work-item takes packs of positions side by side, not single ones, along the axis
// that is contiguous: in sums whatever their length is, elsewhere where the length is known to be whole packs.
//
// Errors: what verify() refuses; unsupported where shared memory is too short for a reduction that several loops read.
Status schedule_for_groups(Kernel* kernel, const GroupLimits& limits = {}, const Tiles& tiles = {});

}  // namespace tenon::codegen
