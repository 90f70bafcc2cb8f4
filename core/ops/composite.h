// Helpers of the generated code of composites: they write a call into a record and read the call from it. In-place ops
// share the naming of errors.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/export.h"
#include "core/ops/dims_attribute.h"
#include "core/ops/op_call.h"
#include "core/ops/text_attribute.h"
#include "core/tensor/int_list.h"

namespace tenon {
class Generator;
}

namespace tenon::composite {

// Rethrows `error`, which is being handled, as an error of `op`, the op that was called: an error of "add" becomes one
// of "add_".
[[noreturn, gnu::cold]] TENON_API void rethrow_as(std::string_view op, const Error& error);

// Runs the functor of the composite or in-place op `name`. Its errors begin with this name, whichever op they come
// from, now or later on a device. Within another composite they begin with the outer name.
template <class Functor>
decltype(auto) called(const OpName& name, const Functor& functor) {
  const bool outermost = call_site.called == nullptr;
  const CalledScope scope(name);
  try {
    return functor();
  } catch (const Error& error) {
    if (outermost) rethrow_as(name.op, error);
    throw;
  }
}

// True if a record has room for the list or text.
inline bool fits(const IntList& list) { return list.size() <= EP_MAX_RANK; }
inline bool fits(const Generator* generator) { return generator == nullptr; }
inline bool fits(std::string_view text) { return text.size() <= TextAttribute::kMost; }

inline DimsAttribute list(const IntList& list) { return DimsAttribute::of(list); }
inline const Tensor* or_null(const Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }
inline void append(std::vector<const Tensor*>* inputs, const TensorList& tensors) {
  for (const Tensor& tensor : tensors) inputs->push_back(or_null(tensor));
}

// Input `index` of a record; undefined if it is absent.
inline Tensor input(const OpCall& call, size_t index) {
  return index < call.inputs.size() && call.inputs[index] != nullptr ? *call.inputs[index] : Tensor();
}
// `count` inputs starting at index `first`, or all from there on.
inline TensorList inputs_from(const OpCall& call, int64_t first, int64_t count = -1) {
  const auto begin = static_cast<size_t>(first);
  const size_t end = count < 0 ? call.inputs.size() : begin + static_cast<size_t>(count);
  TensorList tensors;
  for (size_t i = begin; i < end; ++i) tensors.push_back(input(call, i));
  return tensors;
}

// Stores the result of a functor in the outputs of the record.
inline void give(const OpCall& call, Tensor result) { call.outputs[0] = std::move(result); }
inline void give(const OpCall& call, TensorList results) {
  for (size_t i = 0; i < call.outputs.size(); ++i) call.outputs[i] = std::move(results[i]);
}
template <class... Tensors>
void give(const OpCall& call, std::tuple<Tensors...> results) {
  std::apply([&](auto&... each) { give(call, TensorList{std::move(each)...}); }, results);
}

// The results of a kept record, one or a tuple, in the form that the API function returns.
template <class Result>
Result take(Tensor* outputs) {
  if constexpr (std::is_same_v<Result, Tensor>) {
    return std::move(outputs[0]);
  } else {
    return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) { return Result{std::move(outputs[kIndex])...}; }
    (std::make_index_sequence<std::tuple_size_v<Result>>());
  }
}

}  // namespace tenon::composite
