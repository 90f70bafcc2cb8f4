// Tenon for applications: loads and runs ONNX models. Link tenon::onnx.
//
//   #include <tenon/onnx.h>
//   tenon::onnx::Model model = tenon::onnx::load("model.onnx");
#pragma once

#include "sdk/app/language.h"

#include "sdk/onnx/onnx.h"
