// The tiles of byte products for processors without avx512_vnni: on AVX-VNNI, or exactly on AVX2. Only on x86-64.
#pragma once

#include "providers/cpu/quantised/depth_tile.h"

namespace tenon::provider::cpu {

bool has_avx_vnni();

// The kernels for AVX-VNNI if `multiplies_bytes`, else for AVX2.
DotKernel avx2_dot_kernel(bool multiplies_bytes);
DepthKernel avx2_depth_kernel(bool multiplies_bytes);

}  // namespace tenon::provider::cpu
