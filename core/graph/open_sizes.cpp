// Sizes of a recording that are expressions: the inputs that introduce them, and reads of them as numbers.
#include <algorithm>

#include "core/graph/functional.h"
#include "core/graph/recorder.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

std::string_view reader_of(SizeRead what) {
  constexpr std::string_view names[] = {"dims()", "dim()", "strides()", "elements()", "contiguous()"};
  return names[static_cast<size_t>(what)];
}

}  // namespace

Tensor Recorder::input(DType dtype, const Dims& hints, std::span<const std::string> symbols, std::string name,
                       Device device) {
  const At program(*this, 0);
  if (name.empty()) name = fmt::format("{}", graph_->inputs().size());
  symbolic::Arena& arena = graph_->arena();
  SymDims dims;
  for (int32_t axis = 0; axis < hints.rank(); ++axis) {
    const std::string& symbol = symbols[static_cast<size_t>(axis)];
    if (symbol.empty()) {
      dims.push_back(hints[axis]);
      continue;
    }
    SymDim& size = symbols_.try_emplace(symbol, 0).first->second;
    if (size.is_number()) {  // the name is new
      arena.context("input");
      (void)arena.input_size(fmt::format("{}, axis {} of input '{}'", symbol, axis, name), hints[axis]);
      size = arena.symbol_at(static_cast<uint32_t>(arena.symbols().size() - 1));
    } else if (const symbolic::Symbol& known = arena.symbols()[arena.node(size).symbol]; *known.hint != hints[axis]) {
      throw Error(Code::invalid_argument, fmt::format("Axis {} of input '{}' is {}, but '{}' is {} elsewhere ({}).",
                                                      axis, name, hints[axis], symbol, *known.hint, known.source));
    }
    dims.push_back(size);
  }
  arena.context({});
  DeviceState* where = device ? device.state() : device_;
  return new_tensor(graph_->add_input(dtype, dims, where), {dtype, hints, contiguous_strides(hints)});
}

Tensor Recorder::input_like(const Tensor& value) {
  const TensorImpl& impl = *value.impl();
  const At program(*this, 0);
  const SymDims dims = sizes_of(*graph_, value_of(value));
  return new_tensor(graph_->add_input(impl.dtype, dims, impl.device),
                    {impl.dtype, impl.dims, contiguous_strides(impl.dims)});
}

void Recorder::keep_sizes() { recording_->at_hints = true; }

SymDims Recorder::sizes_of(const RecordedTensor& value) const {
  return sizes_of(*graphs_.at(value.frame), value.value);
}

SymDims Recorder::sizes_of(const Graph& graph, ValueId value) const {
  SymDims dims = graph[value].dims;
  for (SymDim& dim : dims) {
    if (!dim.is_number()) dim = graph_->arena().resolve(dim);
  }
  return dims;
}

void Recorder::bind_all_sizes(std::string_view reader) {
  symbolic::Arena& arena = graph_->arena();
  for (uint32_t i = 0; i < arena.symbols().size(); ++i) bound(arena.symbol_at(i), reader);
}

// The strides of a row-major tensor depend only on its own sizes, others may depend on more sizes.
void Recorder::read_sizes(const RecordedTensor& value, TensorImpl* tensor, SizeRead what, int64_t axis) {
  if (reading_hints_ > 0) return;
  const std::string_view reader = reader_of(what);
  const SymDims dims = sizes_of(value);
  if ((what == SizeRead::strides || what == SizeRead::contiguous) && !value.row_major) {
    bind_all_sizes(reader);
  } else if (what == SizeRead::dim) {
    bound(dims[axis], reader);
  } else if (what == SizeRead::elements) {
    const symbolic::ArenaScope scope(graph_->arena());
    bound(element_count(dims), reader);
  } else if (what != SizeRead::contiguous) {
    for (const SymDim dim : dims) bound(dim, reader);
  }
  tensor->open = is_open(value);
}

// Strides may depend on sizes that are in no dim.
bool Recorder::is_open(const RecordedTensor& value) const {
  const SymDims dims = sizes_of(value);
  const bool numbers = std::all_of(dims.begin(), dims.end(), [](SymDim dim) { return dim.is_number(); });
  return !numbers || (!value.row_major && !graph_->arena().symbols().empty());
}

void Recorder::check_hints(const OpInfo& op, ValueId value, const TensorMeta& meta) const {
  const SymDims& dims = (*graph_)[value].dims;
  bool same = dims.rank() == meta.dims.rank() && (*graph_)[value].dtype == meta.dtype;
  for (int32_t axis = 0; same && axis < dims.rank(); ++axis) {
    const std::optional<int64_t> hint = graph_->arena().hint(dims[axis]);
    same = !hint || *hint == meta.dims[axis];
  }
  if (same) return;
  throw Error(Subject{op.name}, Code::internal,
              fmt::format("its result is {} {} by its rule for numbers, but {} {} by its rule for expressions.",
                          dtype_name(meta.dtype), meta.dims, dtype_name((*graph_)[value].dtype), dims));
}

void Recorder::require_sizes(const OpInfo& op, const Tensor& tensor, ValueId value) {
  const SymDims have = sizes_of(recorded(tensor));
  const SymDims made = sizes_of(*graph_, value);
  symbolic::Arena& arena = graph_->arena();
  arena.context(op.name);
  for (int32_t axis = 0; axis < have.rank(); ++axis) {
    if (!identical(have[axis], made[axis])) arena.require({Relation::eq, have[axis], made[axis]});
  }
}

void RecordedTensor::read_sizes(TensorImpl& tensor, SizeRead what, int64_t axis) {
  if (recording->finished.load(std::memory_order_relaxed)) {
    if (recording->at_hints) return;
    throw Error(
        Subject{reader_of(what)}, Code::invalid_argument,
        fmt::format("a tensor of {} has no fixed sizes, and the recording has finished. The tensor had shape {} "
                    "when it was recorded.",
                    recording->name, tensor.dims));
  }
  recorder->read_sizes(*this, &tensor, what, axis);
}

SymDims RecordedTensor::sizes(const TensorImpl& tensor) const {
  if (!recording->finished.load(std::memory_order_relaxed)) return recorder->sizes_of(*this);
  if (recording->at_hints) {
    SymDims numbers;
    for (int64_t dim : tensor.dims) numbers.push_back(dim);
    return numbers;
  }
  throw Error(Subject{call_site.called != nullptr ? call_site.called->op : "sizes"}, Code::invalid_argument,
              fmt::format("a tensor of {} has no fixed sizes, and the recording has finished. The tensor had shape {} "
                          "when it was recorded.",
                          recording->name, tensor.dims));
}

void RecordedTensor::note_layout(RecordedValue& made) {
  if (!row_major) base->layout_decided = static_cast<RecordedTensor&>(made).base->layout_decided = true;
}

}  // namespace tenon::graph
