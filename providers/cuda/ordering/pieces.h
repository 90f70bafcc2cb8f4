// Pieces: selected elements are counted per piece, then numbered starting from the sum of earlier pieces.
#pragma once

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

// The pieces of `count` elements; addresses are left empty.
PieceArguments pieces_of(int64_t count, int64_t processors);
// The bytes of the counts of pieces.
uint64_t counts_bytes(const PieceArguments& pieces);
// One block per piece.
Geometry geometry_of(const PieceArguments& pieces);

// `bytes` rounded up, so that another array can follow in a workspace.
uint64_t aligned_bytes(int64_t bytes);

}  // namespace tenon::provider::cuda
