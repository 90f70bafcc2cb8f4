// Pieces: selected elements are counted in pieces, and then numbered from where earlier pieces end.
#pragma once

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

// The pieces of `count` elements; addresses are left empty.
PieceArguments pieces_of(int64_t count, int64_t processors);
// The bytes of their counts.
uint64_t counts_bytes(const PieceArguments& pieces);
// A block for each piece.
Geometry geometry_of(const PieceArguments& pieces);

// `bytes` rounded up, so that another array of a workspace can follow.
uint64_t aligned_bytes(int64_t bytes);

}  // namespace tenon::provider::cuda
