#include "core/autograd/pending.h"

#include <algorithm>

#include "core/ops/ops.h"

namespace tenon::autograd {

size_t Pending::home_of(const Node* node) const {
  const auto address = reinterpret_cast<uintptr_t>(node);
  return static_cast<size_t>((address >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table_.size() - 1);
}

void Pending::place(uint32_t turn) {
  size_t at = home_of(turns_[turn].node.get());
  while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
  table_[at] = turn + 1;
}

void Pending::grow() {
  table_.assign(table_.size() * 2, 0);
  for (const Waiting& waiting : heap_) place(waiting.turn);
}

// Fills the hole by moving back later entries that may move there.
void Pending::erase(const Node* node) {
  const size_t mask = table_.size() - 1;
  size_t hole = home_of(node);
  while (turns_[table_[hole] - 1].node.get() != node) hole = (hole + 1) & mask;
  for (size_t at = (hole + 1) & mask; table_[at] != 0; at = (at + 1) & mask) {
    const size_t home = home_of(turns_[table_[at] - 1].node.get());
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = 0;
}

Turn& Pending::turn_of(const NodeRef& node) {
  for (size_t at = home_of(node.get()); table_[at] != 0; at = (at + 1) & (table_.size() - 1)) {
    if (turns_[table_[at] - 1].node.get() == node.get()) return turns_[table_[at] - 1];
  }
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(turns_.size()));
    turns_.emplace_back();
  }
  const uint32_t turn = free_.back();
  free_.pop_back();
  turns_[turn].node = node;
  if (node->result_count() > 1) turns_[turn].many.resize(node->result_count());
  heap_.push_back({node->number(), arrivals_++, turn});
  std::push_heap(heap_.begin(), heap_.end());
  if (heap_.size() * 2 > table_.size()) {
    grow();
  } else {
    place(turn);
  }
  return turns_[turn];
}

void Pending::add(const Edge& edge, Tensor gradient) {
  Tensor& sum = turn_of(edge.node).gradients()[edge.index];
  sum = sum.defined() ? tenon::add(sum, gradient) : std::move(gradient);
}

void Pending::hurry(const Node* node) {
  for (Waiting& waiting : heap_) {
    if (turns_[waiting.turn].node.get() != node) continue;
    waiting.number = UINT64_MAX;
    std::make_heap(heap_.begin(), heap_.end());
    return;
  }
}

Turn Pending::take() {
  std::pop_heap(heap_.begin(), heap_.end());
  const uint32_t turn = heap_.back().turn;
  heap_.pop_back();
  erase(turns_[turn].node.get());
  free_.push_back(turn);
  Turn taken = std::move(turns_[turn]);
  turns_[turn] = Turn();
  return taken;
}

}  // namespace tenon::autograd
