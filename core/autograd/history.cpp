#include "core/autograd/history.h"

#include "core/autograd/views.h"
#include "core/tensor/factory.h"
#include "core/tensor/recording.h"

namespace tenon::autograd {

History& need_history(const Tensor& tensor) {
  TensorImpl* impl = tensor.impl();
  if (impl->gradient == nullptr) impl->gradient = new History;
  return *static_cast<History*>(impl->gradient);
}

const Edge& edge_of(const Tensor& tensor) {
  static const Edge none;
  History* history = history_of(tensor);
  if (history == nullptr) return none;
  if (history->view != nullptr) follow_base(history);
  return history->edge;
}

void move_edge(History* history, Edge edge) {
  if (history->retains) {
    const auto is_ours = [&](const auto& kept) { return kept.second == history->slot; };
    if (NodeExtras* extras = history->edge.node ? history->edge.node->extras() : nullptr; extras != nullptr) {
      const std::lock_guard lock(extras->mutex);
      std::erase_if(extras->kept, is_ours);
    }
    if (edge.node) {
      NodeExtras& extras = edge.node->need_extras();
      const std::lock_guard lock(extras.mutex);
      extras.kept.emplace_back(edge.index, history->slot);
    }
  }
  history->edge = std::move(edge);
}

Tensor without_history(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  Tensor copy = begin_view(impl);
  TensorImpl* made = copy.impl();
  made->dtype = impl.dtype;
  made->contiguous = impl.contiguous;
  made->offset = impl.offset;
  made->elements = impl.elements;
  made->dims = impl.dims;
  made->strides = impl.strides;
  made->open = impl.open;
  if (impl.stand_in != nullptr) made->stand_in = impl.stand_in->alias().release();
  return copy;
}

Tensor with_edge(const Tensor& tensor, const Edge& edge) {
  Tensor copy = without_history(tensor);
  if (edge.node) {
    History& history = need_history(copy);
    history.edge = edge;
    history.leaf = edge.node->accumulates();
  }
  return copy;
}

}  // namespace tenon::autograd
