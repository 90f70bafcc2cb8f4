// Tenon for applications: ONNX models, loaded and run. Link tenon::onnx.
//
//   #include <tenon/onnx.h>
//   tenon::onnx::Model model = tenon::onnx::load("model.onnx");
#pragma once

#include "sdk/onnx/onnx.h"
