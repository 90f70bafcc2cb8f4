#include "tests/unit/vm/layout_machine.h"

#include <stdexcept>

#include "core/primitive/primitive_cache.h"
#include "core/vm/opaque.h"
#include "loader/loader.h"

namespace tenon::testing {
namespace {

Layout layout_of(uint64_t words, uint64_t draw) {
  return {DType::i32, Dims{static_cast<int64_t>(words)}, static_cast<int64_t>(1 + draw % 4)};
}

uint64_t mixed(uint64_t value) {
  value *= 0x9e3779b97f4a7c15u;
  return value ^ value >> 31;
}

}  // namespace

void LayoutMachine::prepare() {
  fakes::async_control().layout_seed = 3;
  fakes::async_control().images = true;
  // A value and its bytes may both be stored, and an image has a block of its own.
  fakes::async_control().memory = uint64_t{4} << 20;
}

LayoutMachine& LayoutMachine::get() {
  static LayoutMachine* machine = [] {
    prepare();
    loader::register_provider("layouts", fakes::async_query);
    auto* made = new LayoutMachine;
    if (const Status status = made->open(); !status.ok()) throw std::runtime_error(status.message());
    return made;
  }();
  return *machine;
}

// One buffer in three gets a value in addition to its bytes, and one in three a value instead of them.
Status LayoutMachine::stir(StorageHandle& buffer, size_t index) {
  const uint64_t draw = mixed(index * 8 + buffer->bytes);
  if (draw % 3 == 0) return Status();
  ++stirred_;
  const Layout layout = layout_of(buffer->bytes / 4, draw >> 8);
  uint64_t converted = 0;
  TENON_ASSIGN_OR_RETURN(StorageOwner value, vm::value_in(buffer.get(), layout, &converted));
  if (draw % 3 == 1) return Status();
  buffer.reset(vm::storage_of(buffer->device, buffer->bytes, layout, std::move(value)));
  return Status();
}

// Returns `view` in a layout if it is a whole buffer and the draw decides so; otherwise `view`.
Result<Machine::View> LayoutMachine::in_layout(View view, int64_t words, uint64_t draw, ep_operand_desc* operand,
                                               std::vector<StorageHandle>* kept) {
  if (static_cast<uint64_t>(words) * 4 != view.storage->bytes || draw % 2 == 0) return view;
  const Layout layout = layout_of(static_cast<uint64_t>(words), draw >> 8);
  uint64_t converted = 0;
  TENON_ASSIGN_OR_RETURN(StorageOwner value, vm::value_in(view.storage, layout, &converted));
  const int32_t role = operand->role;
  *operand = layout.operand();
  operand->role = role;
  ++read_in_layouts_;
  kept->emplace_back(value.release());
  return View{kept->back().get(), 0};
}

Status LayoutMachine::mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                          bool whole) {
  ep_primitive_desc desc = mix_desc(words);
  const uint64_t draw = mixed(++draws_);
  std::vector<StorageHandle> kept;
  TENON_ASSIGN_OR_RETURN(const View first, in_layout(a, words, draw, &desc.operands[1], &kept));
  TENON_ASSIGN_OR_RETURN(const View second, in_layout(b, words, draw >> 16, &desc.operands[2], &kept));
  const Result<Resolved> resolved = resolve_primitive(this->device(device), desc, nullptr, 0);
  if (!resolved.ok()) {  // the fake refuses this mixture
    return AsyncMachine::mix(device, stream, dst, a, b, words, tag, how, whole);
  }
  Launch one{resolved->primitive, stream, dst, first, second, whole, {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}}};
  one.scalars[0].value.i64 = tag;
  one.scalars[1].value.i64 = how;
  const Status status = launch(one);
  resolved->primitive->release();
  return status;
}

}  // namespace tenon::testing
