#include "core/autograd/anomaly.h"

#include "core/device/call_site.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::autograd {

void note_call(Node& node) {
  std::string text;
  if (call_site.called != nullptr && call_site.called->op != node.name()) {
    text += fmt::format(", called by {}", call_site.called->op);
  }
  if (call_site.label != nullptr && !call_site.label->empty()) text += fmt::format(", in {}", *call_site.label);
  if (*call_context.anomaly_notes != nullptr) text += fmt::format(", called at {}", (*call_context.anomaly_notes)());
  if (text.empty()) return;
  NodeExtras& extras = node.need_extras();
  const std::lock_guard lock(extras.mutex);
  extras.called_at = std::move(text);
}

std::string noted_call(const Node& node) {
  NodeExtras* extras = node.extras();
  if (extras == nullptr) return {};
  const std::lock_guard lock(extras->mutex);
  return extras->called_at;
}

void look_for_anomalies(const Node& node, std::span<const Tensor> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& gradient = gradients[i];
    if (!gradient.defined() || gradient.elements() == 0) continue;
    if (gradient.impl()->storage == nullptr) {
      throw Error(Subject{"backward"}, Code::unsupported,
                  "DetectAnomaly reads gradients, which a recording has not computed yet.",
                  "Close its scope, or run this step without recording it.");
    }
    if (!tenon::any(tenon::isnan(gradient.detach())).item<bool>()) continue;
    throw Error(Subject{"backward"}, Code::invalid_argument,
                fmt::format("the gradient of argument {} of {}, of shape {}, holds a NaN{}.", i, node.name(),
                            gradient.dims(), noted_call(node)));
  }
}

}  // namespace tenon::autograd
