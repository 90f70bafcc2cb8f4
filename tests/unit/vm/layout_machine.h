// LayoutMachine: the machine of the asynchronous fake with its own layouts. Between the instructions of a program the
// contents of buffers move into layouts, and some mixes read whole buffers in layouts.
#pragma once

#include "tests/unit/vm/async_machine.h"

namespace tenon::testing {

class LayoutMachine : public AsyncMachine {
 public:
  // Registered and opened at the first call.
  static LayoutMachine& get();
  // Sets the switches of the fake that it needs. AsyncControl::reset clears them.
  static void prepare();

  using AsyncMachine::mix;
  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
             bool whole) override;
  Status stir(StorageHandle& buffer, size_t index) override;

  uint64_t stirred() const { return stirred_; }
  uint64_t read_in_layouts() const { return read_in_layouts_; }

 private:
  LayoutMachine() : AsyncMachine("layouts") {}
  Result<View> in_layout(View view, int64_t words, uint64_t draw, ep_operand_desc* operand,
                         std::vector<StorageHandle>* kept);

  std::atomic<uint64_t> stirred_{0}, read_in_layouts_{0}, draws_{0};
};

}  // namespace tenon::testing
