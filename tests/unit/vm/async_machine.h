// AsyncMachine: the machine of the asynchronous fake, bare or wrapped by another fake.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "primitives/text/format.h"
#include "tests/unit/vm/machine.h"

namespace tenon::testing {

class AsyncMachine : public Machine {
 public:
  // The bare fake, registered and opened at the first call.
  static AsyncMachine& get();
  // A fake whose devices copy from each other directly.
  static AsyncMachine& peers();
  // A fake that takes kernel modules.
  static AsyncMachine& modules();
  // A fake whose memory the host can address, with a pool for transfers.
  static AsyncMachine& mapped();
  // The fake that is registered as `provider`. It is not open.
  explicit AsyncMachine(const std::string& provider)
      : Machine(fmt::format("{}:0", provider), fmt::format("{}:1", provider)) {}

  // The cached primitive that computes dst = 31*a + b + tag over `words` words, with `scratch` bytes of persistent
  // scratch.
  Result<Primitive*> primitive(int device, int64_t words, uint64_t scratch = 0);

  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
             bool whole) override;
  // A primitive with this many bytes of workspace and scratch.
  struct Extra {
    uint64_t workspace = 0;
    uint64_t scratch = 0;
  };
  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how, bool whole,
             Extra extra);

  std::string violation() const override { return fakes::async_control().violation(); }

 protected:
  void drop_primitives();
  // The descriptor of dst = 31*a + b + tag.
  static ep_primitive_desc mix_desc(int64_t words);

 private:
  static AsyncMachine* open_new(const std::string& provider);

  std::mutex mutex_;
  std::map<std::tuple<int, int64_t, uint64_t>, Primitive*> primitives_;
};

}  // namespace tenon::testing
