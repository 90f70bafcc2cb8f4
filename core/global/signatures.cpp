#include "core/global/signatures.h"

#include <algorithm>

namespace tenon::global {

Signatures::Signatures(const CallFacts& facts) {
  all_.push_back({std::vector<Sbp>(facts.call.inputs.size()), std::vector<Sbp>(facts.call.outputs.size())});
}

void Signatures::add(std::initializer_list<Sbp> inputs, std::initializer_list<Sbp> outputs) {
  Signature signature = blank();
  std::copy_n(inputs.begin(), std::min(inputs.size(), signature.inputs.size()), signature.inputs.begin());
  std::copy_n(outputs.begin(), std::min(outputs.size(), signature.outputs.size()), signature.outputs.begin());
  all_.push_back(std::move(signature));
}

}  // namespace tenon::global
