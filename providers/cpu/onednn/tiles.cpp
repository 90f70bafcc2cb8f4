#include "providers/cpu/onednn/tiles.h"

#include <algorithm>
#include <map>
#include <memory>
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

class TiledPrimitive : public ep_primitive {
 public:
  TiledPrimitive(std::vector<OwnedPrimitive> primitives, std::vector<Tile> tiles, Tail tail, int64_t nanoseconds)
      : primitives_(std::move(primitives)),
        tiles_(std::move(tiles)),
        tail_(std::move(tail)),
        nanoseconds_(nanoseconds) {
    for (const OwnedPrimitive& each : primitives_) workspace_ = std::max(workspace_, each->workspace(nullptr));
  }

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override {
    std::array<ep_buffer, EP_MAX_OPERANDS> operands;
    ep_launch part = launch;
    part.operands = operands.data();
    for (const Tile& tile : tiles_) {
      stop_if_wanted();
      for (uint32_t i = 0; i < launch.operand_count; ++i) {
        operands[i] = launch.operands[i];
        operands[i].offset += tile.offsets[i];
      }
      const ep_status status = tile.primitive->launch(part, out_fault, error);
      if (status != EP_STATUS_OK) return status;
    }
    if (tail_.empty()) return EP_STATUS_OK;
    const WideLease lease(device->threads, nanoseconds_);
    tail_.run(launch, lease.width());
    return EP_STATUS_OK;
  }
  uint64_t workspace(const ep_shape*) const override { return workspace_; }
  bool has_workspace() const override { return workspace_ != 0; }

 private:
  std::vector<OwnedPrimitive> primitives_;  // one for each size of a tile
  std::vector<Tile> tiles_;
  Tail tail_;  // runs over the whole result, since a tile may have gaps
  int64_t nanoseconds_;
  uint64_t workspace_ = 0;
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

}  // namespace

bool Tiling::cuts(const ep_primitive_desc& desc) const {
  for (int32_t axis = 0; axis < desc.operands[0].rank; ++axis) {
    if (lengths[static_cast<size_t>(axis)] < desc.operands[0].dims[axis]) return true;
  }
  return false;
}

Refusal make_tiles(ep_device& device, const ep_primitive_desc& desc, const Tiling& tiling,
                   Refusal (*make)(ep_device&, const ep_primitive_desc&, ep_primitive**, ep_primitive_info&),
                   ep_primitive** out, ep_primitive_info& info) {
  std::vector<OwnedPrimitive> primitives;
  std::vector<Tile> tiles;
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
      primitives.emplace_back(primitive);
      info.host_bytes += own.host_bytes;
    }
    tile.primitive = primitive;
    tiles.push_back(tile);
  } while (next_tile(desc, tiling, &begin));
  info.host_bytes += tiles.size() * sizeof(Tile);
  *out = make_primitive<TiledPrimitive>(device, std::move(primitives), std::move(tiles),
                                        Tail(device, desc, post_op_count(desc)), tiled_from);
  return {};
}

}  // namespace tenon::provider::cpu
