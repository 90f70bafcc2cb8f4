#include "core/global/signatures.h"

#include <algorithm>

namespace tenon::global {

Signatures::Signatures(const CallFacts& facts) {
  Signature& whole = all_.emplace_back();
  whole.inputs.resize(facts.call.inputs.size());
  whole.outputs.resize(facts.call.outputs.size());
}

void Signatures::add(std::initializer_list<Sbp> inputs, std::initializer_list<Sbp> outputs) {
  Signature signature = blank();
  std::copy_n(inputs.begin(), std::min(inputs.size(), signature.inputs.size()), signature.inputs.begin());
  std::copy_n(outputs.begin(), std::min(outputs.size(), signature.outputs.size()), signature.outputs.begin());
  all_.push_back(std::move(signature));
}

}  // namespace tenon::global
