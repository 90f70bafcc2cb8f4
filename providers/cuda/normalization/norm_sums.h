// NormSums: two numbers per parameter of a norm, over all elements that share it, in two launches: first per part, then
// in total. They are sums of gradients, or a mean and a variance.
#pragma once

#include "providers/cuda/reduction/reduction.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cuda {

// Axes `from` to `to` - 1 except `without`, in row-major order, with the strides of two operands, which may be absent.
// An operand of lower rank begins at axis `from`.
struct AxisRange {
  int32_t from;
  int32_t to;
  int32_t without = -1;
};
AxisSet axes_between(const OperandShape& dims, const AxisRange& range, const OperandShape& src,
                     const OperandShape& dst);

// Refuses an operand of `dtype` for a source of dtype `src`: whole tensors must have the source's dtype, statistics the
// dtype of its class, and weights a dtype of that class.
Refusal check_dtype(int32_t dtype, int32_t src, bool whole, bool statistic);

class NormSums {
 public:
  // Finds the kernels for elements of `dtype`. The device's context is current. Throws DriverError.
  static Refusal make(ep_device& device, int32_t dtype, bool moments, NormSums* out);

  // Sets the number of parts of `sums`, whose axis sets must be filled.
  void cut(NormSumsArguments* sums) const;
  // Bytes of one pair per part and parameter, and of one pair per parameter.
  uint64_t sums_bytes(const NormSumsArguments& sums) const;
  uint64_t totals_bytes(const NormSumsArguments& sums) const;
  ep_status run(ep_stream* stream, const NormSumsArguments& sums, ep_error** error) const;

 private:
  Team team_of(const NormSumsArguments& sums) const;

  int64_t processors_ = 1;
  int64_t size_ = 4;  // bytes of a number
  CUfunction solo_ = nullptr;
  CUfunction block_ = nullptr;
  CUfunction totals_ = nullptr;
};

}  // namespace tenon::provider::cuda
