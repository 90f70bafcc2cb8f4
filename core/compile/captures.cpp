#include "core/compile/captures.h"

#include <algorithm>
#include <cstring>

#include "core/autograd/history.h"
#include "core/compile/strided.h"
#include "core/global/value.h"
#include "core/ops/attributes.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

const void* storage_of(const Tensor& tensor) { return tensor.impl()->storage.at_hand(); }

uint64_t writes_of(const Root& root) { return root.recorded.impl()->stand_in->version(); }

std::vector<int64_t> key_of(const Tensor& tensor) {
  std::vector<int64_t> key = geometry_of(tensor);
  key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(storage_of(tensor))));
  return key;
}

bool fills_storage(const Tensor& tensor) {
  return tensor.contiguous() && static_cast<uint64_t>(tensor.bytes()) == tensor.impl()->storage.bytes();
}

// `tensor` if it fills its storage, else the whole storage, if its size fits this dtype.
Tensor root_of(const Tensor& tensor) {
  const Tensor whole = fills_storage(tensor) ? Tensor() : whole_storage(tensor);
  return whole.defined() ? whole : tensor;
}

}  // namespace

std::vector<int64_t> geometry_of(const Tensor& tensor) {
  std::vector<int64_t> words{static_cast<int64_t>(tensor.dtype()), tensor.impl()->offset, tensor.rank()};
  words.insert(words.end(), tensor.dims().begin(), tensor.dims().end());
  for (int32_t i = 0; i < tensor.rank(); ++i) words.push_back(tensor.dims()[i] == 1 ? 0 : tensor.strides()[i]);
  return words;
}

Tensor whole_storage(const Tensor& tensor) {
  const int64_t size = dtype_size(tensor.dtype());
  const auto bytes = static_cast<int64_t>(tensor.impl()->storage.bytes());
  if (size == 0 || bytes == 0 || bytes % size != 0) return {};
  return make_view(tensor, tensor.dtype(), {bytes / size}, {1}, 0);
}

bool overlap(const Tensor& a, const Tensor& b) {
  if (storage_of(a) != storage_of(b) || a.elements() == 0 || b.elements() == 0) return false;
  const auto from = [](const Tensor& t) { return dtype_bytes(t.dtype(), t.impl()->offset); };
  const auto to = [&](const Tensor& t) { return from(t) + dtype_bytes(t.dtype(), span_elements(t)); };
  return from(a) < to(b) && from(b) < to(a);
}

void Captures::add_root(Root root) {
  const Tensor& tensor = root.tensor;
  if (root.of == RootOf::input && !root.whole && !root.part) {
    std::vector<std::string> symbols;
    for (int32_t axis = 0; axis < tensor.rank(); ++axis) symbols.push_back(fmt::format("{}.{}", root.input, axis));
    root.recorded = recorder_.input(tensor.dtype(), tensor.dims(), symbols, fmt::format("argument {}", root.input),
                                    tensor.device());
  } else if (root.of != RootOf::made) {
    root.recorded = recorder_.input(tensor.dtype(), tensor.dims(), tensor.device());
  }
  by_storage_.emplace(storage_of(root.tensor), roots_.size());
  known_.emplace(key_of(root.tensor), root.recorded);
  roots_.push_back(std::move(root));
}

TensorList Captures::add_inputs(const TensorList& inputs) {
  TensorList values(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = global::held(inputs[i]);
    if (!input.defined()) continue;
    const auto shares = [&](const Tensor& given) {
      const Tensor& other = global::held(given);
      return other.defined() && storage_of(other) == storage_of(input) && geometry_of(other) != geometry_of(input);
    };
    const bool shared = std::any_of(inputs.begin(), inputs.end(), shares);
    const Tensor root = shared ? root_of(input) : input;
    const bool whole = root.impl() != input.impl();
    const bool part = global::value_of(inputs[i]) != nullptr;
    if (known_.count(key_of(root)) == 0) add_root({RootOf::input, i, whole, part, root});
    values[i] = find(input);
  }
  return values;
}

void Captures::add_made(const Tensor& tensor, bool filled) {
  Root root{RootOf::made, 0, false, false, root_of(tensor)};
  {
    const InterpreterScope scope(eager_interpreter());
    root.recorded = recorder_.variable(filled ? clone(root.tensor) : zeros_like(root.tensor));
  }
  add_root(std::move(root));
}

Tensor Captures::add_random(const OpCall& call, uint64_t offset) {
  const auto& attributes = call.attributes_as<RandomAttributes>();
  Root root{RootOf::random};
  root.draw = {call.op, std::vector<uint64_t>((sizeof attributes + 7) / 8), call.device, offset};
  std::memcpy(root.draw.attributes.data(), &attributes, sizeof attributes);
  const Device device = call.device == nullptr ? Device::current() : Device(call.device);
  root.draw.device = device.state();
  root.recorded = recorder_.input(attributes.dtype, attributes.dims.dims(), device);
  roots_.push_back(std::move(root));
  return roots_.back().recorded;
}

Tensor Draw::numbers(RandomRange begin) const {
  const Scalar scalars[] = {Scalar(static_cast<int64_t>(begin.seed)),
                            Scalar(static_cast<int64_t>(begin.offset + offset))};
  Tensor result;
  OpCall call;
  call.op = op;
  call.scalars = scalars;
  call.attributes = attributes.data();
  call.device = device;
  call.outputs = {&result, 1};
  eager_interpreter().apply(call);
  return result;
}

void Captures::note_wanting(const Tensor& tensor) {
  const autograd::Edge& edge = autograd::edge_of(tensor);
  if (!edge.node) return;
  const auto same = [&](const WantingCapture& other) {
    return other.edge.node.get() == edge.node.get() && other.edge.index == edge.index;
  };
  if (std::none_of(wanting_.begin(), wanting_.end(), same)) wanting_.push_back({tensor, edge});
}

bool Captures::outside(const autograd::Node& node) const {
  return !node.accumulates() && std::any_of(wanting_.begin(), wanting_.end(), [&](const WantingCapture& capture) {
    return capture.edge.node.get() == &node;
  });
}

Tensor Captures::find(const Tensor& tensor) {
  const Geometry key = key_of(tensor);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const auto [first, last] = by_storage_.equal_range(storage_of(tensor));
  auto at = first;
  while (at != last && !is_view_of(roots_[at->second].tensor, tensor)) ++at;
  size_t number = roots_.size();
  if (at != last) {
    number = at->second;
  } else {
    const Tensor whole = first == last ? root_of(tensor) : tensor;
    add_root({RootOf::capture, 0, false, false, is_view_of(whole, tensor) ? whole : tensor});
  }
  const Root& root = roots_[number];
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const InterpreterScope scope(recorder_);
  return known_[key] = view_as(root.recorded, root.tensor, tensor);
}

void Captures::note_handle(const Tensor& tensor) {
  if (!gradients_) return;
  if (is_floating(tensor.dtype()) && met_.insert(tensor.impl()).second) handles_.push_back(tensor);
  if (tensor.impl()->gradient != nullptr) note_wanting(tensor);
}

Tensor Captures::stand_in(const Tensor& tensor) {
  note_handle(tensor);
  const Tensor value = find(tensor);
  const Root& root = roots_[by_storage_.find(storage_of(tensor))->second];
  if (root.of == RootOf::input && met_.insert(value.impl()).second) views_of_inputs_.emplace_back(root.input, tensor);
  return value;
}

void Captures::note_writes(const OpInfo& op) {
  for (Root& root : roots_) {
    const uint64_t writes = writes_of(root);
    if (writes != root.writes && root.tensor.defined()) root.tensor.impl()->storage.note_write(op.name);
    root.writes = writes;
  }
}

void Captures::check_overlaps() const {
  for (const Root& root : roots_) {
    if (!root.written() || !root.outlives()) continue;
    for (const Root& other : roots_) {
      if (&other == &root || !other.outlives() || !overlap(root.tensor, other.tensor)) continue;
      throw Error(Code::invalid_argument,
                  fmt::format("a tensor of shape {} from outside is written, and a tensor of shape {} from outside "
                              "shares its memory, but is not a slice, transpose or reshape of it.",
                              root.tensor.dims(), other.tensor.dims()),
                  "Make both from one tensor inside the function.");
    }
  }
}

}  // namespace tenon::compilation
