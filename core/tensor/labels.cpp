#include "core/tensor/labels.h"

#include "core/device/call_site.h"
#include "core/vm/inline.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"

namespace tenon {

Labels::~Labels() {
  if (!texts_.empty()) vm::keep_until_done(std::move(texts_));
}

LabelScope::LabelScope(const std::string& label) : previous_(call_site.label) {
  if (!label.empty()) call_site.label = &label;
}

LabelScope::~LabelScope() { call_site.label = previous_; }

Status with_label(const Status& status, std::string_view label, std::string_view device) {
  return vm::with_label(status, label, device);
}

}  // namespace tenon
