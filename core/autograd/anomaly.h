// Anomaly mode: notes where ops of forward were called and finds gradients that hold a NaN. Internal.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/autograd/node.h"

namespace tenon::autograd {

// The function of the calling thread's DetectAnomaly that says where an op is called; it may be empty. Null: there is
// no such scope.
inline thread_local constinit const std::function<std::string()>* anomaly_notes = nullptr;

// Notes where the op of `node`, which was just made, is called.
void note_call(Node& node);
// ", called by cross_entropy at ..."; empty if nothing was noted.
std::string noted_call(const Node& node);
// Throws invalid_argument if a gradient that `node` returned holds a NaN; unsupported if one has no elements yet.
void look_for_anomalies(const Node& node, std::span<const Tensor> gradients);

}  // namespace tenon::autograd
