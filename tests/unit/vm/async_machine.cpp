#include "tests/unit/vm/async_machine.h"

#include <stdexcept>

#include "loader/loader.h"

namespace tenon::testing {

ep_primitive_desc AsyncMachine::mix_desc(int64_t words) {
  ep_primitive_desc desc{};
  desc.kind = fakes::kMix;
  desc.operand_count = 3;
  for (int i = 0; i < 3; ++i) {
    desc.operands[i].role = i == 0 ? EP_ROLE_DST : i == 1 ? EP_ROLE_SRC : EP_ROLE_SRC_B;
    desc.operands[i].dtype = EP_DTYPE_i32;
    desc.operands[i].rank = 1;
    desc.operands[i].dims[0] = words;
    desc.operands[i].strides[0] = 1;
  }
  return desc;
}

AsyncMachine& AsyncMachine::get() {
  static AsyncMachine* machine = open_new("async");
  return *machine;
}

AsyncMachine& AsyncMachine::peers() {
  static AsyncMachine* machine = [] {
    fakes::async_control().peers = true;
    AsyncMachine* made = open_new("peers");
    fakes::async_control().peers = false;
    return made;
  }();
  return *machine;
}

AsyncMachine& AsyncMachine::modules() {
  static AsyncMachine* machine = [] {
    fakes::async_control().takes_modules = true;
    AsyncMachine* made = open_new("modules");
    fakes::async_control().takes_modules = false;
    return made;
  }();
  return *machine;
}

AsyncMachine& AsyncMachine::mapped() {
  static AsyncMachine* machine = [] {
    fakes::async_control().mapped = fakes::async_control().pinned = true;
    AsyncMachine* made = open_new("mapped");
    fakes::async_control().mapped = fakes::async_control().pinned = false;
    return made;
  }();
  return *machine;
}

AsyncMachine* AsyncMachine::open_new(const std::string& provider) {
  loader::register_provider(provider, fakes::async_query);
  auto* made = new AsyncMachine(provider);
  const Status status = made->open();
  if (!status.ok()) throw std::runtime_error(status.message());
  return made;
}

Result<Primitive*> AsyncMachine::primitive(int device, int64_t words, uint64_t scratch) {
  std::lock_guard lock(mutex_);
  const auto found = primitives_.find({device, words, scratch});
  if (found != primitives_.end()) return found->second;
  TENON_ASSIGN_OR_RETURN(Primitive * primitive, make_primitive(this->device(device), mix_desc(words)));
  primitive->scratch_bytes = scratch;
  primitives_[{device, words, scratch}] = primitive;
  return primitive;
}

void AsyncMachine::drop_primitives() {
  std::lock_guard lock(mutex_);
  for (const auto& [key, primitive] : primitives_) primitive->release();
  primitives_.clear();
}

Status AsyncMachine::mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                         bool whole) {
  return mix(device, stream, dst, a, b, words, tag, how, whole, {});
}

Status AsyncMachine::mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                         bool whole, Extra extra) {
  TENON_ASSIGN_OR_RETURN(Primitive * primitive, this->primitive(device, words, extra.scratch));
  Launch one{primitive, stream, dst, a, b, whole, {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}}, extra.workspace};
  one.scalars[0].value.i64 = tag;
  one.scalars[1].value.i64 = how;
  return launch(one);
}

}  // namespace tenon::testing
