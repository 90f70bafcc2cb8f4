#include "core/graph/signature.h"

#include <map>

#include "core/device/device_state.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

template <class... Parts>
Status wrong(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::invalid_argument, fmt::format(text, parts...));
}

Status check_kind(const Value& wanted, size_t i, const TensorImpl& given) {
  if (given.dtype != wanted.dtype || given.dims.rank() != wanted.dims.rank()) {
    return wrong("Input {} is {} of rank {}, but the program was recorded for {} of rank {}.", i,
                 dtype_name(given.dtype), given.dims.rank(), dtype_name(wanted.dtype), wanted.dims.rank());
  }
  if (given.device == wanted.device) return {};
  return wrong("Input {} is on {}, but the program was recorded for {}.", i, Device(given.device).spelling(),
               Device(wanted.device).spelling());
}

std::string context_of(const symbolic::Constraint& guard) {
  return guard.context.empty() ? std::string() : fmt::format(" ({})", guard.context);
}

}  // namespace

Status bind_sizes(const Graph& graph, std::span<const Tensor> inputs, symbolic::Values* sizes) {
  if (inputs.size() != graph.inputs().size()) {
    return wrong("{} inputs are given, but the program has {}.", inputs.size(), graph.inputs().size());
  }
  const symbolic::Arena& arena = graph.arena();
  std::map<uint32_t, int64_t> seen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& wanted = graph[graph.inputs()[i]];
    const TensorImpl& given = *inputs[i].impl();
    TENON_RETURN_IF_ERROR(check_kind(wanted, i, given));
    for (int32_t axis = 0; axis < given.dims.rank(); ++axis) {
      const SymDim dim = wanted.dims[axis];
      const int64_t size = given.dims[axis];
      if (dim.is_number()) {
        if (dim.number() == size) continue;
        return wrong("Axis {} of input {} is {}, but the program was recorded for {}.", axis, i, size, dim.number());
      }
      const uint32_t symbol = arena.node(dim).symbol;
      const auto [known, is_new] = seen.emplace(symbol, size);
      if (is_new) {
        TENON_RETURN_IF_ERROR(sizes->bind(symbol, size));
      } else if (known->second != size) {
        return wrong("Axis {} of input {} is {}, but it is S{} ({}), which is {}.", axis, i, size, symbol,
                     arena.symbols()[symbol].source, known->second);
      }
    }
  }
  return {};
}

std::string broken_guard(const Graph& graph, symbolic::Values* sizes) {
  const symbolic::Constraint* broken = sizes->broken_guard();
  if (broken == nullptr) return {};
  const symbolic::Arena& arena = graph.arena();
  return fmt::format("{} was made for {}{}, but {}.", arena.name(), arena.text(broken->condition), context_of(*broken),
                     sizes->where(broken->condition.a, broken->condition.b));
}

std::string why_not(const Graph& graph, std::span<const Tensor> inputs, symbolic::Values* sizes) {
  const Status bound = bind_sizes(graph, inputs, sizes);
  return bound.ok() ? broken_guard(graph, sizes) : std::string(bound.message());
}

std::string guards(const Graph& graph) {
  std::string text;
  for (const symbolic::Constraint& guard : graph.arena().constraints()) {
    if (guard.origin != symbolic::Origin::guard) continue;
    text += fmt::format("{}{}\n", graph.arena().text(guard.condition), context_of(guard));
  }
  return text;
}

}  // namespace tenon::graph
