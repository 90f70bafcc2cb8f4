#include "providers/cpu/onednn/tiles.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/onednn/epilogue.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/threads/stop.h"

namespace tenon::provider::cpu {
namespace {

using Lengths = std::array<int64_t, EP_MAX_RANK>;

struct Tile {
  ep_primitive* primitive;
  std::array<uint64_t, EP_MAX_OPERANDS> offsets;  // bytes, by operand
};

struct Tiles {
  std::vector<OwnedPrimitive> primitives;  // one for each size of a tile
  std::vector<Tile> all;

  uint64_t workspace() const {
    uint64_t bytes = 0;
    for (const OwnedPrimitive& each : primitives) bytes = std::max(bytes, each->workspace(nullptr));
    return bytes;
  }
};

ep_status launch_tile(const Tile& tile, const ep_launch& launch, uint64_t workspace, ep_fault* out_fault,
                      ep_error** error) {
  std::array<ep_buffer, EP_MAX_OPERANDS> operands;
  for (uint32_t i = 0; i < launch.operand_count; ++i) {
    operands[i] = launch.operands[i];
    operands[i].offset += tile.offsets[i];
  }
  ep_launch part = launch;
  part.operands = operands.data();
  part.workspace.offset += workspace;
  return tile.primitive->launch(part, out_fault, error);
}

class TiledPrimitive : public ep_primitive {
 public:
  TiledPrimitive(Tiles tiles, bool beside, Tail tail, int64_t nanoseconds)
      : tiles_(std::move(tiles)),
        beside_(beside),
        tail_(std::move(tail)),
        nanoseconds_(nanoseconds),
        workspace_((tiles_.workspace() + 255) / 256 * 256) {}

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override {
    const ep_status status =
        beside_ ? launch_beside(launch, error) : launch_one_after_the_other(launch, out_fault, error);
    if (status != EP_STATUS_OK || tail_.empty()) return status;
    const WideLease lease(device->threads, nanoseconds_);
    tail_.run(launch, lease.width());
    return EP_STATUS_OK;
  }
  uint64_t workspace(const ep_shape*) const override {
    return beside_ ? workspace_ * static_cast<uint64_t>(device->threads) : workspace_;
  }
  bool has_workspace() const override { return workspace_ != 0; }

 private:
  ep_status launch_one_after_the_other(const ep_launch& launch, ep_fault* out_fault, ep_error** error) {
    for (const Tile& tile : tiles_.all) {
      stop_if_wanted();
      const ep_status status = launch_tile(tile, launch, 0, out_fault, error);
      if (status != EP_STATUS_OK) return status;
    }
    return EP_STATUS_OK;
  }

  // Catches exceptions, since no thread of the region may leave it before the others.
  ep_status launch_alone(int64_t i, int32_t part, const ep_launch& launch) {
    ep_fault fault{};
    try {
      const uint64_t room = workspace_ * static_cast<uint64_t>(part);
      return launch_tile(tiles_.all[static_cast<size_t>(i)], launch, room, &fault, nullptr);
    } catch (const std::bad_alloc&) {
      return EP_STATUS_OUT_OF_HOST_MEMORY;
    } catch (...) {
      return EP_STATUS_INTERNAL;
    }
  }

  ep_status launch_beside(const ep_launch& launch, ep_error** error) {
    std::atomic<ep_status> failed{EP_STATUS_OK};
    const auto count = static_cast<int64_t>(tiles_.all.size());
    stop_if_wanted();
    together(device->threads, nanoseconds_, [&](int32_t part, int32_t parts) {
      for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
        const ep_status status = launch_alone(i, part, launch);
        if (status != EP_STATUS_OK) failed.store(status, std::memory_order_relaxed);
      }
    });
    const ep_status status = failed.load(std::memory_order_relaxed);
    if (status == EP_STATUS_OK) return status;
    return fail(host, error, status, "oneDNN failed to compute a tile of the result.");
  }

  Tiles tiles_;
  bool beside_;
  Tail tail_;  // runs over the whole result, since a tile may have gaps
  int64_t nanoseconds_;
  uint64_t workspace_;  // bytes for one tile, a multiple of 256
};

// The descriptor of the tile that begins at `begin` and is `lengths` long, without the epilogues of a Tail, and where
// its operands begin.
ep_primitive_desc tile_of(const ep_primitive_desc& desc, const Tiling& tiling, const Lengths& begin,
                          const Lengths& lengths, Tile* tile) {
  ep_primitive_desc part = desc;
  part.epilogue_count = post_op_count(desc);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    ep_operand_desc& operand = part.operands[i];
    tile->offsets[i] = 0;
    for (int32_t axis = 0; axis < desc.operands[0].rank; ++axis) {
      const int32_t own = tiling.axis_of(desc, desc.operands[i], axis);
      if (own < 0 || desc.operands[i].dims[own] != desc.operands[0].dims[axis]) continue;  // 1: read by every tile
      operand.dims[own] = lengths[static_cast<size_t>(axis)];
      const int64_t elements = begin[static_cast<size_t>(axis)] * operand.strides[own];
      tile->offsets[i] += static_cast<uint64_t>(elements * dtype_size(operand.dtype));
    }
    operand.alignment = std::min(operand.alignment, dtype_size(operand.dtype));
    operand.flags &= ~EP_OPERAND_FLAG_CONSTANT;  // a packed operand cannot be cut
  }
  return part;
}

// Moves `begin` to the next tile. False after the last one.
bool next_tile(const ep_primitive_desc& desc, const Tiling& tiling, Lengths* begin) {
  for (int32_t axis = desc.operands[0].rank; axis-- > 0;) {
    const auto at = static_cast<size_t>(axis);
    (*begin)[at] += tiling.lengths[at];
    if ((*begin)[at] < desc.operands[0].dims[axis]) return true;
    (*begin)[at] = 0;
  }
  return false;
}

Refusal tiles_of(ep_device& device, const ep_primitive_desc& desc, const Tiling& tiling, MakeTile make, Tiles* tiles,
                 ep_primitive_info& info) {
  std::map<Lengths, ep_primitive*> by_size;
  Lengths begin{};
  do {
    Lengths lengths{};
    for (int32_t axis = 0; axis < desc.operands[0].rank; ++axis) {
      const auto at = static_cast<size_t>(axis);
      lengths[at] = std::min(tiling.lengths[at], desc.operands[0].dims[axis] - begin[at]);
    }
    Tile tile{};
    const ep_primitive_desc part = tile_of(desc, tiling, begin, lengths, &tile);
    ep_primitive*& primitive = by_size[lengths];
    if (primitive == nullptr) {
      ep_primitive_info own{};
      if (Refusal refusal = make(device, part, &primitive, own)) return refusal;
      tiles->primitives.emplace_back(primitive);
      info.host_bytes += own.host_bytes;
    }
    tile.primitive = primitive;
    tiles->all.push_back(tile);
  } while (next_tile(desc, tiling, &begin));
  info.host_bytes += tiles->all.size() * sizeof(Tile);
  return {};
}

}  // namespace

bool Tiling::cuts(const ep_primitive_desc& desc) const {
  for (int32_t axis = 0; axis < desc.operands[0].rank; ++axis) {
    if (lengths[static_cast<size_t>(axis)] < desc.operands[0].dims[axis]) return true;
  }
  return false;
}

Refusal make_tiles(ep_device& device, const ep_primitive_desc& desc, const Tiling& tiling, MakeTile make,
                   ep_primitive** out, ep_primitive_info& info) {
  Tiles tiles;
  if (Refusal refusal = tiles_of(device, desc, tiling, make, &tiles, info)) return refusal;
  *out = make_primitive<TiledPrimitive>(device, std::move(tiles), false, Tail(device, desc, post_op_count(desc)),
                                        tiled_from);
  return {};
}

Refusal make_tiles_beside(ep_device& device, const ep_primitive_desc& desc, const Tiling& tiling, int64_t nanoseconds,
                          MakeTile make, ep_primitive** out, ep_primitive_info& info) {
  ep_primitive_desc alone = desc;
  alone.flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
  Tiles tiles;
  if (Refusal refusal = tiles_of(device, alone, tiling, make, &tiles, info)) return refusal;
  *out = make_primitive<TiledPrimitive>(device, std::move(tiles), true, Tail(device, desc, post_op_count(desc)),
                                        nanoseconds);
  return {};
}

}  // namespace tenon::provider::cpu
