// Turns gathers of one position, or of consecutive positions, into views: exporters write them to split one tensor into
// query, key and value.
#include <cstring>
#include <vector>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"
#include "core/ops/ops.h"

namespace tenon::graph {
namespace {

constexpr int64_t kMostPlaces = 4096;

// The positions that `index` contains; nothing if they are unknown or too many.
std::vector<int64_t> places_of(const Value& index) {
  const Tensor& places = index.constant;
  if (!places.defined() || places.rank() > 1 || places.elements() > kMostPlaces) return {};
  if (places.dtype() == DType::i64) return contiguous(places).to_host<int64_t>();
  const std::vector<int32_t> narrow = contiguous(places).to_host<int32_t>();
  return {narrow.begin(), narrow.end()};
}

template <class Attributes>
Node view_of(OpId op, const Node& gather, const Attributes& attributes) {
  Node view;
  view.op = &op_row(op);
  view.inputs = {gather.inputs[0]};
  view.attributes.resize((sizeof attributes + 7) / 8);
  std::memcpy(view.attributes.data(), &attributes, sizeof attributes);
  view.precision = gather.precision;
  view.label = gather.label;
  return view;
}

void find_slice(Graph* graph, NodeId id) {
  const Node& gather = graph->node(id);
  const Value &from = (*graph)[gather.inputs[0]], &index = (*graph)[gather.inputs[1]];
  const int32_t axis = gather.attributes_as<AxisAttributes>().axis;
  const int64_t at = axis < 0 ? axis + from.dims.rank() : axis;
  if (from.constant.defined() || !from.dims[static_cast<int32_t>(at)].is_number()) return;
  const std::vector<int64_t> places = places_of(index);
  const auto count = static_cast<int64_t>(places.size());
  if (count == 0 || places[0] < 0 || places[0] + count > from.dims[static_cast<int32_t>(at)].number()) return;
  for (int64_t i = 0; i < count; ++i) {
    if (places[static_cast<size_t>(i)] != places[0] + i) return;
  }
  Node view;
  if (index.constant.rank() == 0) {
    SelectAttributes select{};
    select.axis = at;
    select.index = places[0];
    view = view_of(OpId::select, gather, select);
  } else {
    SliceAttributes slice{};
    slice.axis = static_cast<int32_t>(at);
    slice.start = places[0];
    slice.end = places[0] + count;
    slice.step = 1;
    view = view_of(OpId::slice, gather, slice);
  }
  const NodeId made = graph->insert(id, std::move(view));
  graph->replace(result(*graph, id), result(*graph, made));
}

}  // namespace

void find_slices(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::gather_slices)) find_slice(graph, id);
  }
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
