// Work: one launch through the raw ABI, in steps, so that a test decides what happens between them.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/conformance/subject.h"
#include "tests/cases/image.h"

namespace tenon::conformance {

class Work {
 public:
  // `desc` is created as it is, EP_ANY included; `fixed` is the same with static dims; `image` holds the operands.
  Work(Subject& subject, const ep_primitive_desc& desc, const ep_primitive_desc& fixed, std::vector<ep_scalar> scalars,
       cases::Image image);

  // Creates the primitive and its memory. Code::unsupported where the provider refuses.
  Status create();
  // upload, launch, download; waits for nothing. A fault of a synchronous device is kept, not returned.
  Status submit(const Stream& stream);
  // The operands, a dirty workspace and a scratch of zeros.
  Status upload(const Stream& stream);
  Status launch(const Stream& stream);
  Status download(const Stream& stream);
  // After the stream has finished: takes the faults of an asynchronous device, checks the scratch.
  Status settle(const Stream& stream);

  const cases::Image& image() const { return image_; }
  // Other operands of the same layout, for the next upload; nothing may be in flight.
  void put(const cases::Image& image) { image_ = image; }
  const std::vector<ep_fault>& faults() const { return faults_; }
  const ep_primitive_info& info() const { return info_; }
  ep_primitive* primitive() const { return primitive_.get(); }
  uint64_t tag = 1;
  bool spoils = true;   // overwrites what a call has borrowed
  uint8_t dirt = 0x5b;  // what the workspace is filled with

 private:
  Status allocate();

  Subject& subject_;
  const ep_primitive_desc desc_, fixed_;
  // What the provider is lent, for one call each: kept, so that one that goes on reading it meets what spoils has left.
  ep_primitive_desc lent_desc_;
  std::vector<ep_buffer> lent_buffers_;
  std::vector<ep_shape> lent_shapes_;
  std::vector<ep_scalar> lent_scalars_;
  std::vector<ep_scalar> scalars_;
  cases::Image image_;
  bool dynamic_;
  Primitive primitive_;
  ep_primitive_info info_{};
  uint64_t workspace_bytes_ = 0;
  Memory operands_, workspace_, scratch_, packed_;
  std::vector<uint8_t> dirty_, scratch_bytes_;
  std::vector<ep_fault> faults_;
};

// Takes what faults the stream has, in order.
Status take_faults(Subject& subject, const Stream& stream, std::vector<ep_fault>* faults);

}  // namespace tenon::conformance
