// Reads the elements that a rank wants of those that a file has. Internal to checkpoint.cpp.
#pragma once

#include <cstdint>

#include "core/global/layout.h"
#include "core/tensor/file_access.h"
#include "primitives/dtype/dtype.h"

namespace tenon::global {

// `file` has the elements `stored` of a tensor, row-major, from the byte `begin` on. Those that are `wanted` too come
// into `memory`, which has room for all that is wanted, row-major. Reads little else, and few bytes at once.
// Errors: those of FileReader::read.
void read_part(const files::FileReader& file, uint64_t begin, const Box& stored, DType dtype, const Box& wanted,
               void* memory);

}  // namespace tenon::global
