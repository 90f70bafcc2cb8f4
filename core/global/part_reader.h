// Reads the elements that a rank wants out of the elements that a file holds. Internal to checkpoint.cpp.
#pragma once

#include <cstdint>

#include "core/global/layout.h"
#include "core/tensor/file_access.h"
#include "primitives/dtype/dtype.h"

namespace tenon::global {

// `file` holds the elements `stored` of a tensor, row-major, from the byte `begin` on. Those that are also in `wanted`
// are written to `memory`, which has room for all wanted elements, row-major. Reads few other bytes, and few bytes at a
// time. Errors: those of FileReader::read.
void read_part(const files::FileReader& file, uint64_t begin, const Box& stored, DType dtype, const Box& wanted,
               void* memory);

}  // namespace tenon::global
