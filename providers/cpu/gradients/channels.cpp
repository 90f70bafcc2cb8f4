#include "providers/cpu/gradients/channels.h"

namespace tenon::provider::cpu {

int32_t Channels::add(const OperandShape& shape, char* base) {
  shapes_[tensors_] = shape;
  bases_[tensors_] = base;
  return tensors_++;
}

void Channels::begin(int32_t axis) {
  const OperandShape& first = shapes_[0];
  channels_ = first.dims[axis];
  positions_ = 1;
  rank_ = 0;
  for (int32_t t = 0; t < tensors_; ++t) channel_strides_[t] = shapes_[t].strides[axis];
  for (int32_t k = 0; k < first.rank; ++k) {
    if (k == axis || first.dims[k] == 1) continue;
    positions_ *= first.dims[k];
    bool merges = rank_ > 0;
    for (int32_t t = 0; t < tensors_ && merges; ++t) {
      merges = strides_[t][rank_ - 1] == first.dims[k] * shapes_[t].strides[k];
    }
    if (!merges) dims_[rank_++] = 1;
    dims_[rank_ - 1] *= first.dims[k];
    for (int32_t t = 0; t < tensors_; ++t) strides_[t][rank_ - 1] = shapes_[t].strides[k];
  }
  by_channel_ = channels_ > 1;
  for (int32_t t = 0; t < tensors_; ++t) {
    by_channel_ = by_channel_ && channel_strides_[t] == 1 && (rank_ == 0 || strides_[t][rank_ - 1] != 1);
  }
}

char* Channels::at(const RowFormat& format, int32_t t, int64_t b, int64_t run, int64_t start) const {
  int64_t offset = first(b) * channel_strides_[t] + start * stride_of(t);
  for (int32_t k = rank_ - 2; k >= 0; --k) {
    offset += run % dims_[k] * strides_[t][k];
    run /= dims_[k];
  }
  return bases_[t] + offset * format.size;
}

}  // namespace tenon::provider::cpu
