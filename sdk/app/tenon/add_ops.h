// Ops of your own: what the code is written with that tenon_add_ops makes from your list, and what you write for it.
//
// A composite calls ops, and needs nothing but <tenon/tenon.h>. A function on the host gets
// tenon::library::HostTensor. A rule is a template over tenon::OpCall and tenon::SymCall, which have sizes as numbers
// and as expressions. The `lower_` of a kernel fills a tenon::Lowering with one primitive (<tenon/ep_api/ep_api.h>).
// A gradient written by hand sees a tenon::autograd::OpGradient.
#pragma once

#include "core/autograd/op_gradient.h"
#include "core/ops/argument_list.h"
#include "core/ops/composite.h"
#include "core/ops/libraries.h"
#include "core/ops/library_call.h"
#include "core/ops/op_call.h"
#include "core/ops/record_shape.h"
#include "core/ops/signature.h"
#include "core/ops/sym_call.h"
#include "core/primitive/lowering.h"
#include "sdk/app/tenon/tenon.h"
