// Views and writes: a write through a view replaces the history of its base, and a view follows its base. Internal.
#pragma once

#include "core/autograd/history.h"
#include "core/ops/op_call.h"

namespace tenon::autograd {

// Notes that the result of `call`, a view op, is a view of its input, which has a history.
void note_view(const OpCall& call, History* result);

// Recomputes the edge of a view if a write has changed its base since.
void follow_base(History* view);

// After a write into `view`, whose new elements came from `written`: gives the base the history "the old base with the
// view's region replaced".
void rebase(History* view, const Edge& written);

}  // namespace tenon::autograd
