// Everything that your own ops need: the code that tenon_add_ops generates from your list, and the code that you write.
//
// A composite calls ops, and needs only <tenon/tenon.h>. A function on the host gets tenon::library::HostTensor. A
// rule is a template over tenon::OpCall (sizes are numbers) and tenon::SymCall (sizes are expressions). The `lower_` of
// a kernel fills a tenon::Lowering with one primitive (<tenon/ep_api/ep_api.h>). A gradient written by hand gets a
// tenon::autograd::OpGradient.
#pragma once

#include "sdk/app/language.h"

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
