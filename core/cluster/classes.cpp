#include "core/cluster/classes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::cluster {
namespace {

// FNV-1a over words.
class Digest {
 public:
  Digest& add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15U;
    state_ ^= state_ >> 29;
    return *this;
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325U;
};

void add_shape(Digest* digest, const Program& program, ValueId id) {
  digest->add(id == 0 ? 0 : 1);
  if (id == 0) return;
  const Program::Value& value = program.values()[id];
  digest->add(static_cast<uint64_t>(value.dtype)).add(static_cast<uint64_t>(value.dims.rank()));
  for (const int64_t dim : value.dims) digest->add(static_cast<uint64_t>(dim));
}

uint64_t begin_of(const Program& program, ValueId id, const std::map<ValueId, NdSbp>& given) {
  const Program::Value& value = program.values()[id];
  Digest digest;
  add_shape(&digest, program, id);
  digest.add(value.is_input).add(value.is_result).add(program.is_constant(id)).add(value.is_parameter);
  if (const auto found = given.find(id); found != given.end()) {
    for (const global::Sbp sbp : found->second) digest.add(static_cast<uint64_t>(sbp.axis() + 8));
  }
  return digest.value();
}

// Maps each hash to a class, numbered by first appearance.
template <class Visit>
std::vector<uint32_t> numbered(const std::vector<uint64_t>& hashes, const Visit& first) {
  std::map<uint64_t, uint32_t> numbers;
  std::vector<uint32_t> classes(hashes.size());
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto [found, is_new] = numbers.emplace(hashes[i], static_cast<uint32_t>(numbers.size()));
    classes[i] = found->second;
    if (is_new) first(i);
  }
  return classes;
}

}  // namespace

std::vector<uint64_t> records_of(const Program& program) {
  std::vector<uint64_t> records;
  for (const Program::Call& call : program.calls()) {
    const graph::Node& node = *call.node;
    Digest digest;
    digest.add(node.op->id).add(call.inputs.size()).add(call.outputs.size());
    for (const ValueId id : call.inputs) add_shape(&digest, program, id);
    for (const ValueId id : call.outputs) add_shape(&digest, program, id);
    for (const Scalar& scalar : node.scalars) digest.add(std::bit_cast<uint64_t>(scalar.to_double()));
    for (const uint64_t word : node.attributes) digest.add(word);
    records.push_back(digest.value());
  }
  return records;
}

Classes classes_of(const Program& program, const std::map<ValueId, NdSbp>& given, int32_t depth) {
  const auto& values = program.values();
  const auto& calls = program.calls();
  std::vector<uint64_t> of_value(values.size()), of_call = records_of(program);
  for (ValueId id = 1; id < values.size(); ++id) of_value[id] = begin_of(program, id, given);
  for (int32_t round = 0; round < depth; ++round) {
    std::vector<std::vector<uint64_t>> around(values.size());
    std::vector<uint64_t> next = of_call;
    for (size_t i = 0; i < calls.size(); ++i) {
      Digest digest;
      digest.add(of_call[i]);
      for (const ValueId id : calls[i].inputs) digest.add(of_value[id]);
      for (const ValueId id : calls[i].outputs) digest.add(of_value[id]);
      next[i] = digest.value();
      for (size_t k = 0; k < calls[i].inputs.size(); ++k) {
        around[calls[i].inputs[k]].push_back(Digest().add(of_call[i]).add(2 * k).value());
      }
      for (size_t k = 0; k < calls[i].outputs.size(); ++k) {
        around[calls[i].outputs[k]].push_back(Digest().add(of_call[i]).add(2 * k + 1).value());
      }
    }
    of_call = std::move(next);
    for (ValueId id = 1; id < values.size(); ++id) {
      std::sort(around[id].begin(), around[id].end());
      Digest digest;
      digest.add(of_value[id]);
      for (const uint64_t each : around[id]) digest.add(each);
      of_value[id] = digest.value();
    }
  }
  if (depth < 0) {
    for (ValueId id = 1; id < values.size(); ++id) of_value[id] = id;
    for (size_t i = 0; i < calls.size(); ++i) of_call[i] = i;
  }
  for (ValueId id = 1; id < values.size(); ++id) of_value[id] = of_value[values[id].home];
  Classes made;
  made.values = numbered(of_value, [&](size_t id) { made.value_of.push_back(static_cast<ValueId>(id)); });
  made.calls = numbered(of_call, [&](size_t call) { made.call_of.push_back(call); });
  return made;
}

}  // namespace tenon::cluster
