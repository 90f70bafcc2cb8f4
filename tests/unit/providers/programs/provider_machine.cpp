#include "tests/unit/providers/programs/provider_machine.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>

#include "loader/loader.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::testing {
namespace {

// An instruction `mix` (dst = 31*a + b + tag) consists of three launches on i32. A mix that must fail divides integers
// by 0.
class ProviderMachine final : public Machine {
 public:
  explicit ProviderMachine(const std::string& name) : Machine(name + "_a:0", name + "_b:0") {}

  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
             bool whole) override {
    const auto run = [&](int32_t op, View to, bool covers, View x, View y, int64_t scalar) {
      return binary(device, stream, op, words, to, covers, x, y, scalar);
    };
    const View none = {nullptr, 0};
    if (how != fakes::kMixRuns) return run(EP_BINARY_div, dst, whole, a, none, 0);
    TENON_ASSIGN_OR_RETURN(const StorageHandle between, allocate(device, static_cast<uint64_t>(words)));
    const View part = {between.get(), 0};
    // In TENON_VM=sync each launch returns the poison that it reads. The last launch gives the result of the
    // instruction.
    (void)run(EP_BINARY_mul, part, true, a, none, 31);
    (void)run(EP_BINARY_add, part, false, part, none, tag);
    return run(EP_BINARY_add, dst, whole, b, part, 0);
  }

 private:
  // dst = op(a, b), where b is `scalar` if it has no storage.
  Status binary(int device, int stream, int32_t op, int64_t words, View dst, bool whole, View a, View b,
                int64_t scalar) {
    TENON_ASSIGN_OR_RETURN(Primitive * primitive, this->primitive(device, op, words, b.storage == nullptr));
    Launch one{primitive, stream, dst, a, b, whole, {{EP_DTYPE_i32, 0, {}}, {EP_DTYPE_i32, 0, {}}}};
    one.scalars[1].value.i64 = scalar;
    return launch(one);
  }

  Result<Primitive*> primitive(int device, int32_t op, int64_t words, bool scalar) {
    std::lock_guard lock(mutex_);
    Primitive*& primitive = primitives_[{device, op, words, scalar}];
    if (primitive != nullptr) return primitive;
    ep_primitive_desc desc =
        provider::descriptor(EP_PRIMITIVE_binary, {provider::dense(EP_ROLE_DST, EP_DTYPE_i32, {words}),
                                                   provider::dense(EP_ROLE_SRC, EP_DTYPE_i32, {words}),
                                                   scalar ? provider::scalar_operand(EP_ROLE_SRC_B, EP_DTYPE_i32)
                                                          : provider::dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {words})});
    desc.attributes.binary.op = op;
    TENON_ASSIGN_OR_RETURN(primitive, make_primitive(this->device(device), desc));
    return primitive;
  }

  std::mutex mutex_;
  std::map<std::tuple<int, int32_t, int64_t, bool>, Primitive*> primitives_;
};

Machine* open_machine() {
  const char* path = std::getenv("PROGRAMS_PROVIDER");
  const std::string prefix = "libtenon_";
  const std::string file = path == nullptr ? "" : std::filesystem::path(path).stem().string();
  if (!file.starts_with(prefix)) throw std::runtime_error("PROGRAMS_PROVIDER names no libtenon_x.so.");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto query = reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
  const std::string name = file.substr(prefix.size());
  loader::register_provider(name + "_a", query);
  loader::register_provider(name + "_b", query);
  auto* machine = new ProviderMachine(name);
  if (const Status status = machine->open(); !status.ok()) throw std::runtime_error(status.message());
  return machine;
}

}  // namespace

Machine& provider_machine() {
  static auto* machine = open_machine();
  return *machine;
}

}  // namespace tenon::testing
