// Checkpoints: global tensors as files, which a launch of any number of ranks writes, and one of another number reads.
// Public.
//
//   global::save("step-100", tensors);  // each rank writes its parts
//   global::load("step-100", tensors);  // each rank of another launch reads its parts into the tensors that it has
//
// A checkpoint is a folder that all ranks see. Each rank writes one file of the format safetensors, with the parts that
// it holds; what several ranks hold is written by one of them, a partial sum as parts of the sum. No rank ever has the
// whole tensor. index.safetensors has no tensors, but a text for each: its dtype, its shape, and the parts, each with
// its file and the elements that it has:
//   "tensor first.weight": "f32 [5, 7]: 0 [0:3, 0:7], 1 [3:5, 0:7]"    "file 0": "part-0-5c2f90ab.safetensors"
// The index comes last and at once. So the folder holds the checkpoint of before, or the new one, never something
// between; the parts of the one before are deleted then.
//
// All ranks of the launch call both, with the same names and tensors. An error of one rank is the same error on all of
// them, and they go on together.
#pragma once

#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/tensor/files.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// Writes tensors and texts as the checkpoint `folder`, which is made if it is not there. Of a local tensor, which all
// ranks have alike, the first rank writes the elements. Errors: invalid_argument (ranks that give different names,
// dtypes, shapes or layouts; a folder that cannot be written, or that a rank does not see), unsupported (a dtype that
// safetensors has not), those of Communicator and of reading elements.
TENON_API void save(const std::string& folder, const NamedTensors& tensors, const Metadata& texts = {});

// Fills the tensors, which stay where and spread as they are: each rank reads the elements that it holds and no others.
// `path`: a checkpoint, or one file of the format safetensors. Each text of `texts` becomes that of its name. Gives
// the names of the tensors of the checkpoint that were not asked for.
// Errors: not_found (no such file; a name that the checkpoint has not), invalid_argument (another dtype or shape;
// parts that overlap, leave gaps or lie outside of their tensor; files that are not what the index says). Before all
// of that is known to be well no tensor is written; only of a file that cannot be read then some may be.
TENON_API std::vector<std::string> load(const std::string& path, const NamedTensors& tensors,
                                        Metadata* texts = nullptr);

}  // namespace tenon::global
