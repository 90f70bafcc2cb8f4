// Matmuls and convolutions in tiles of the result. Tiles of long work are computed one after the other, so that a
// launch can stop between two of them. Tiles beside each other are computed by one thread each, so that no bit of the
// result depends on the number of threads that a launch gets.
#pragma once

#include <array>

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// How a result is cut: for each axis of DST the length of a tile. The last tile of an axis may be shorter.
struct Tiling {
  std::array<int64_t, EP_MAX_RANK> lengths{};
  // The axis of `operand` that goes with an axis of DST; -1: there is none, every tile reads all of the operand.
  int32_t (*axis_of)(const ep_primitive_desc& desc, const ep_operand_desc& operand, int32_t axis) = nullptr;

  // True if `desc` is more than one tile.
  bool cuts(const ep_primitive_desc& desc) const;
};

// Work is cut into tiles if it takes longer than `tiled_from`; a tile takes about `tile_work`. Both are nanoseconds on
// one thread.
constexpr int64_t tiled_from = 300'000'000;
constexpr int64_t tile_work = 100'000'000;

using MakeTile = Refusal (*)(ep_device&, const ep_primitive_desc&, ep_primitive**, ep_primitive_info&);

// A primitive of `tiling`'s tiles of `desc`, each of them made by `make`. It packs no operand.
Refusal make_tiles(ep_device& device, const ep_primitive_desc& desc, const Tiling& tiling, MakeTile make,
                   ep_primitive** out, ep_primitive_info& info);

// A primitive whose tiles are computed beside each other, in about `nanoseconds` on one thread. `make` gets a
// deterministic descriptor.
Refusal make_tiles_beside(ep_device& device, const ep_primitive_desc& desc, const Tiling& tiling, int64_t nanoseconds,
                          MakeTile make, ep_primitive** out, ep_primitive_info& info);

}  // namespace tenon::provider::cpu
