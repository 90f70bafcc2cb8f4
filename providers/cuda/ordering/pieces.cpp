#include "providers/cuda/ordering/pieces.h"

#include <algorithm>

namespace tenon::provider::cuda {
namespace {

constexpr int64_t tile = int64_t{select_items} * row_block;
constexpr int64_t blocks_per_processor = 8;

}  // namespace

PieceArguments pieces_of(int64_t count, int64_t processors) {
  PieceArguments pieces{};
  const int64_t tiles = (count + tile - 1) / tile;
  const int64_t wanted = std::max<int64_t>(processors * blocks_per_processor, 1);
  pieces.count = count;
  pieces.length = (tiles + wanted - 1) / wanted * tile;
  pieces.number = (count + pieces.length - 1) / pieces.length;
  return pieces;
}

uint64_t counts_bytes(const PieceArguments& pieces) { return aligned_bytes((pieces.number + 1) * 8); }

Geometry geometry_of(const PieceArguments& pieces) { return {std::min(pieces.number, most_blocks), row_block}; }

uint64_t aligned_bytes(int64_t bytes) {
  return (static_cast<uint64_t>(bytes) + block_alignment - 1) / block_alignment * block_alignment;
}

}  // namespace tenon::provider::cuda
