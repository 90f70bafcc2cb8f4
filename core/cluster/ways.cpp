#include "core/cluster/ways.h"

#include <algorithm>

#include "core/global/signatures.h"
#include "core/graph/effort.h"

namespace tenon::cluster {
namespace {

using global::GridSignatures;
using global::Signature;

// Adds the ways that begin with the signatures `taken`, one per axis.
void add_ways(const GridSignatures& signatures, const Dims& grid, std::vector<const Signature*>* taken,
              std::vector<Way>* ways) {
  const auto axis = static_cast<int32_t>(taken->size());
  if (axis == grid.rank()) {
    Way way;
    const auto transposed = [&](const global::SbpList Signature::*side, std::vector<NdSbp>* all) {
      all->resize((taken->front()->*side).size());
      for (const Signature* each : *taken) {
        for (size_t i = 0; i < all->size(); ++i) (*all)[i].push_back((each->*side)[i]);
      }
    };
    transposed(&Signature::inputs, &way.inputs);
    transposed(&Signature::outputs, &way.outputs);
    const auto same = [&](const Way& other) { return other.inputs == way.inputs && other.outputs == way.outputs; };
    if (std::none_of(ways->begin(), ways->end(), same)) ways->push_back(std::move(way));
    return;
  }
  for (const Signature& each : signatures.along(axis)) {
    if (!signatures.fits(each, axis, *taken)) continue;
    taken->push_back(&each);
    add_ways(signatures, grid, taken, ways);
    taken->pop_back();
  }
}

}  // namespace

double seconds_of(const Program& program, const Program::Call& call, const Way& way, const Dims& grid,
                  const Dims& coordinates, const Topology& topology) {
  const OpInfo& op = *call.node->op;
  if (op.form == OpForm::view) return 0;
  double bytes = 0;
  std::vector<Dims> inputs;
  Dims made;
  const auto part = [&](ValueId id, const NdSbp& sbp) {
    const Program::Value& value = program.values()[id];
    const Dims dims = global::box_of(value.dims, sbp, grid, coordinates).dims;
    bytes += static_cast<double>(dtype_bytes(value.dtype, element_count(dims)));
    return dims;
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(call.inputs[i] == 0 ? Dims() : part(call.inputs[i], way.inputs[i]));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Dims dims = part(call.outputs[i], way.outputs[i]);
    if (i == 0) made = dims;
  }
  const auto pace = topology.paces.find(op.name);
  return topology.start +
         (pace == topology.paces.end() ? 1 : pace->second) *
             std::max(graph::flops_of(op, inputs, made) / topology.compute, bytes / topology.bandwidth);
}

std::vector<Way> ways_of(const Program& program, const Program::Call& call, const Dims& grid,
                         const Topology& topology) {
  const MetaCall meta(program, call);
  const GridSignatures signatures(meta.call(), meta.outputs(), grid);
  std::vector<Way> ways;
  std::vector<const Signature*> taken;
  add_ways(signatures, grid, &taken, &ways);
  const Dims first = Dims::filled(grid.rank(), 0);
  for (Way& way : ways) way.seconds = seconds_of(program, call, way, grid, first, topology);
  return ways;
}

}  // namespace tenon::cluster
