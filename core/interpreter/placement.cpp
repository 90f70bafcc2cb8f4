#include "core/interpreter/placement.h"

#include <utility>

#include "core/vm/vm.h"

namespace tenon {
namespace {

thread_local PlacementScope* innermost = nullptr;
std::atomic<int32_t> open_scopes{0};

}  // namespace

std::string_view rung_name(Rung rung) {
  constexpr std::string_view names[] = {"native", "decomposed", "compiled", "host"};
  return names[static_cast<size_t>(rung)];
}

PlacementScope::PlacementScope() : previous_(std::exchange(innermost, this)) {
  if (open_scopes.fetch_add(1) == 0) vm::attention.fetch_or(vm::kPlacement);
}

PlacementScope::~PlacementScope() {
  innermost = previous_;
  if (open_scopes.fetch_sub(1) == 1) vm::attention.fetch_and(~static_cast<uint32_t>(vm::kPlacement));
}

std::vector<PlacementEntry> PlacementScope::take() { return std::exchange(entries_, {}); }

void record_placement(PlacementEntry entry) {
  if (innermost != nullptr) innermost->entries_.push_back(std::move(entry));
}

}  // namespace tenon
