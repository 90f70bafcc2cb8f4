// Rows of many ops, without peers: `torch_rows.py` runs PyTorch's op of the same name and prints the ratios.
#pragma once

#include "benchmarks/report/report.h"
#include "core/tensor/tensor.h"

namespace tenon::bench {

// A row is called "<op> <dtype> <rows>x<columns>"; for products the sizes are rows, columns and length. Each family of
// rows keeps its tensors only while it runs.
void run_ops(const Device& device, Report* report);

}  // namespace tenon::bench
