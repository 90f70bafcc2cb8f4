// Tenon for applications: tensors, devices, and the ops on them, as free functions in namespace tenon.
//
//   #include <tenon/tenon.h>
//   auto x = tenon::Tensor::from<float>(values, {2, 3}, tenon::Device("cpu"));
//   auto y = tenon::softmax(2 * x + 1, -1);
//   std::cout << y << std::endl;
//
// Errors: every function throws tenon::Error, whose text gives the value and the limit. Models: <tenon/onnx.h>.
#pragma once

#include "sdk/app/language.h"

#include "core/autograd/autograd.h"
#include "core/background/cancellation.h"
#include "core/compile/compile.h"
#include "core/device/deterministic.h"
#include "core/graph/regions/control_flow.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/call.h"
#include "core/ops/index.h"
#include "core/ops/libraries.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/ops/precision.h"
#include "core/tensor/device.h"
#include "core/tensor/dlpack.h"
#include "core/tensor/files.h"
#include "core/tensor/generator.h"
#include "core/tensor/native.h"
#include "core/tensor/print.h"
#include "core/tensor/scalar.h"
#include "core/tensor/stream.h"
#include "core/tensor/tensor.h"
#include "core/tensor/version.h"
#include "loader/loader.h"
#include "loader/log/log.h"
