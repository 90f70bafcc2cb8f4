// Ahead: gradients that are reduced while backward goes on. Internal.
//
// The gradient of a leaf stays a partial sum until somebody needs it in another layout, an optimiser, say. What one
// step needed is expected of the next: once as much has been added up as then, the boxing begins and goes on beside
// backward. Who needs the gradient then gets what was begun, with the bits that it would have got; if the gradient was
// written since, or another layout is needed, it is boxed as any other tensor, and what was begun is forgotten.
// Expectations follow from the calls of the program, so all ranks have the same.
//
// Small sums in a row travel together, in a bucket: it goes when it is full, and when somebody needs a part of it.
//
// The sum that somebody needed of a tensor, a gradient or another one, is kept beside it until the tensor is written or
// gone: an optimiser reads gradients twice, and backward what forward has read. An op that overwrites the tensor, as
// the clipping of gradients does, leaves the new sum.
#pragma once

#include <memory>

#include "core/global/exchange.h"
#include "core/global/value.h"

namespace tenon::global {

// Called when a gradient has been added to `gradient`, that of a leaf. `of_leaf`: what the leaf remembers.
void note_accumulation(const Tensor& gradient, std::shared_ptr<void>* of_leaf);

// box() of a global tensor, or what was begun ahead, or is known. What is known and the result may share memory.
Tensor boxed(const Tensor& tensor, const Layout& to, Needed needed = Needed::now);

// In which layout the sum is known, or on the way; null: in none.
const Layout* known_layout(const GlobalValue& value);
// The caller has overwritten `tensor`, and has what it is now, in the layout `at`, as `part`.
void note_overwritten(const Tensor& tensor, const Layout& at, const Tensor& part);
// `part` is given away, so what shares its memory is known no more.
void forget_shared(GlobalValue* value, const Tensor& part);

}  // namespace tenon::global
