// Checkpoints: global tensors as files. A launch with any number of ranks can write them, and a launch with another
// number can read them. Public.
//
//   global::save("step-100", tensors);  // each rank writes its parts
//   global::load("step-100", tensors);  // each rank of another launch reads its parts into the tensors that it has
//
// A checkpoint is a folder that all ranks see. Each rank writes one safetensors file with its parts. If several ranks
// hold the same elements, one of them writes them; a partial sum is written as parts of the sum. No rank ever has the
// whole tensor. index.safetensors holds no tensors. It has one text per tensor: dtype, shape, and its parts, each with
// its file and its range of elements:
//   "tensor first.weight": "f32 [5, 7]: 0 [0:3, 0:7], 1 [3:5, 0:7]"    "file 0": "part-0-5c2f90ab.safetensors"
// The index is written last and in one step. So the folder always holds either the old checkpoint or the new one. Then
// the parts of the old one are deleted.
// All ranks of the launch must call both functions, with the same names and tensors. An error on one rank is thrown on
// all of them, and they can continue together.
#pragma once

#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/tensor/files.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// Writes tensors and texts as the checkpoint `folder`, which is created if needed. Local tensors are equal on all
// ranks, so the first rank writes them. Errors: invalid_argument (ranks that pass different names, dtypes, shapes or
// layouts; a folder that cannot be written or that a rank does not see), unsupported (a dtype that safetensors lacks),
// those of Communicator and of reading elements.
TENON_API void save(const std::string& folder, const NamedTensors& tensors, const Metadata& texts = {});

// Fills the tensors, which keep their placement and layout: each rank reads only the elements that it holds. `path` is
// a checkpoint or a single safetensors file. Sets each text in `texts` to the stored text of its name. Returns the
// names of the stored tensors that `tensors` lacks. Errors: not_found (no such file; a name that the checkpoint lacks),
// invalid_argument (another dtype or shape; parts that overlap, leave gaps or lie outside their tensor; files that do
// not match the index). These are checked before any tensor is written. Only if a file then cannot be read may some
// tensors have been written.
TENON_API std::vector<std::string> load(const std::string& path, const NamedTensors& tensors,
                                        Metadata* texts = nullptr);

}  // namespace tenon::global
