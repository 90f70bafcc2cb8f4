// Ahead: reduces gradients while backward still runs. Internal.
//
// The gradient of a leaf stays a partial sum until it is needed in another layout, by an optimiser for instance. The
// next step is expected to need what the last step needed. Once as many additions have been made as in the last step,
// the boxing begins and runs in the background during backward. A later request for that layout gets this result, with
// the same bits that boxing at that point would give. If the gradient has been written since, or another layout is
// needed, it is boxed like any other tensor, and the background result is dropped. Expectations follow from the calls
// of the program, so all ranks have the same ones.
// Consecutive small sums are sent together in a bucket. It is sent when it is full, or when one of its sums is needed.
// The computed sum of a partial sum is kept until the tensor is written or dropped: an optimiser reads gradients twice,
// and backward reads tensors that forward has read. An op that overwrites the tensor, such as gradient clipping, stores
// the new sum.
#pragma once

#include <memory>

#include "core/global/exchange.h"
#include "core/global/value.h"

namespace tenon::global {

// Called when a gradient has been added to `gradient`, the gradient of a leaf. `of_leaf` is state that the leaf keeps.
void note_accumulation(const Tensor& gradient, std::shared_ptr<void>* of_leaf);

// Like box() of a global tensor, but uses a result that was begun ahead or is known. A known sum and the result may
// share memory.
Tensor boxed(const Tensor& tensor, const Layout& to, Needed needed = Needed::now);

// The layout in which the sum is known or being computed; null if there is none.
const Layout* known_layout(const GlobalValue& value);
// Called after the caller has overwritten `tensor`. `part` holds its new elements in the layout `at`.
void note_overwritten(const Tensor& tensor, const Layout& at, const Tensor& part);
// Called when `part` is returned to the user: drops a known sum that shares its memory.
void forget_shared(GlobalValue* value, const Tensor& part);

}  // namespace tenon::global
