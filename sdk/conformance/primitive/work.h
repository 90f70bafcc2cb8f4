// Work: one launch through the raw ABI, in steps, so that a test can act between the steps.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/conformance/subject.h"
#include "tests/cases/image.h"

namespace tenon::conformance {

class Work {
 public:
  // Creates `desc` unchanged, EP_ANY included. `fixed` is `desc` with static dims; `image` holds the operands.
  Work(Subject& subject, const ep_primitive_desc& desc, const ep_primitive_desc& fixed, std::vector<ep_scalar> scalars,
       cases::Image image);

  // Creates the primitive and its memory. Errors: Code::unsupported if the provider refuses.
  Status create();
  // Uses the primitive of `maker`, which outlives this object, and allocates its own memory.
  Status share(const Work& maker);
  // Submits upload, launch and download, without waiting unless `waits`. Stores the fault of a synchronous device.
  Status submit(const Stream& stream);
  // Uploads the operands, packs the constant operand, and fills the workspace with `dirt` and the scratch with zeros.
  Status upload(const Stream& stream);
  Status launch(const Stream& stream);
  Status download(const Stream& stream);
  // Call after the stream has finished. Takes the faults of an asynchronous device and checks the scratch.
  Status settle(const Stream& stream);

  // The operands. After the stream has finished, they have the values that the launch left.
  const cases::Image& image() {
    merge();
    return image_;
  }
  // Sets other operands of the same layout for the next upload. No work is in flight.
  void put(const cases::Image& image) { image_ = image; }
  const std::vector<ep_fault>& faults() const { return faults_; }
  const ep_primitive_info& info() const { return info_; }
  uint64_t tag = 1;
  bool spoils = true;   // overwrite borrowed arguments after each call
  bool waits = false;   // wait between upload, launch and download
  uint8_t dirt = 0x5b;  // fill byte of the workspace

 private:
  Status allocate();
  Status pack(const Stream& stream);
  Status allocate_blocks();
  void merge();
  ep_buffer operand(uint32_t index) const { return {blocks_[block_of_[index]].get(), image_.offsets[index]}; }

  Subject& subject_;
  const ep_primitive_desc desc_, fixed_;
  // Arguments that the provider borrows for one call each. They live on, so that a provider that reads them later finds
  // overwritten bytes.
  ep_primitive_desc lent_desc_;
  std::vector<ep_buffer> lent_buffers_;
  std::vector<ep_shape> lent_shapes_;
  std::vector<ep_scalar> lent_scalars_;
  std::vector<ep_scalar> scalars_;
  cases::Image image_;
  bool dynamic_;
  Primitive primitive_;               // empty if shared from another Work
  ep_primitive* launched_ = nullptr;  // not owned
  ep_primitive_info info_{};
  uint64_t workspace_bytes_ = 0;
  // One block with the whole image. In an exclusive pool, one for each operand that does not alias another.
  std::vector<Memory> blocks_;
  std::vector<size_t> block_of_;               // for each operand
  std::vector<std::vector<uint8_t>> fetched_;  // downloaded from each block after the first
  std::vector<uint8_t> uploaded_;              // the image before the launch, if there are several blocks
  Memory workspace_, scratch_, packed_;
  std::vector<uint8_t> dirty_, scratch_bytes_;
  std::vector<ep_fault> faults_;
};

// Takes the faults of the stream, in order.
Status take_faults(Subject& subject, const Stream& stream, std::vector<ep_fault>* faults);

}  // namespace tenon::conformance
