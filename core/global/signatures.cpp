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

GridSignatures::GridSignatures(const OpCall& call, std::span<const TensorMeta> outputs, const Dims& grid)
    : call_(call), outputs_(outputs), grid_(grid) {}

const Signatures& GridSignatures::at(int64_t ranks) const {
  for (const auto& [of, signatures] : made_) {
    if (of == ranks) return *signatures;
  }
  const CallFacts facts{call_, outputs_, ranks};
  auto signatures = std::make_unique<Signatures>(facts);
  const SbpRow& row = sbp_row(call_.op->id);
  if (row.rule != nullptr) row.rule(facts, signatures.get());
  return *made_.emplace_back(ranks, std::move(signatures)).second;
}

bool GridSignatures::fits(const Signature& signature, int32_t axis, std::span<const Signature* const> taken) const {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (signature.outputs[i].is_partial() && outputs_[i].dtype == DType::boolean) return false;
  }
  int64_t ranks = grid_[axis];
  for (int32_t before = 0; before < axis; ++before) {
    if (*taken[static_cast<size_t>(before)] == signature) ranks *= grid_[before];
  }
  if (ranks == grid_[axis]) return true;
  const std::span<const Signature> all = at(ranks).all();
  return std::find(all.begin(), all.end(), signature) != all.end();
}

}  // namespace tenon::global
