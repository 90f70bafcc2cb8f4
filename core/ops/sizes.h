// Sizes of tensors for code that must stay general while a program is recorded. Reading `x.dims()` of a recorded tensor
// with open sizes binds the program to these numbers; sizes(x) returns expressions instead. For all other tensors both
// return the same numbers.
//
//   const SymDims s = sizes(x);                    // [S0, S1, 64]
//   reshape(x, SizeList{s[0] * s[1], s[2]});       // holds for every S0 and S1
#pragma once

#include <cstdint>
#include <string_view>

#include "core/symbolic/sym_dim.h"
#include "core/tensor/tensor.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// True if some of the sizes of `tensor` are expressions.
inline bool is_open(const Tensor& tensor) { return tensor.impl()->open; }

SymDims sizes(const Tensor& tensor);
// The size of `axis`, which is in [0, rank).
SymDim size_at(const Tensor& tensor, int64_t axis);
// Notes that a functor used the strides of `from` at the hints to decide how to make `made`:
// RecordedValue::note_layout.
void note_layout(const Tensor& from, const Tensor& made);
// True if `tensor` has no elements; for an open tensor this asks the program.
bool is_empty(const Tensor& tensor);
// True if two tensors have the same shape; for open ones this asks the program. Different ranks return false.
bool same_sizes(const SymDims& a, const SymDims& b);

// `size` as a number. An expression is bound to its hint: `S0 == 7` becomes a guard, with `reader` as its context.
// Errors: symbolic::Undecided, for a size without a hint.
int64_t bound(SymDim size, std::string_view reader);
// The number of `size` at the hints. Use it only in metadata. Errors as above.
int64_t hint_of(SymDim size);

}  // namespace tenon
#pragma GCC visibility pop
