// layer_norm, batch_norm, rms_norm and group_norm.
#include <algorithm>
#include <cmath>

#include "primitives/reference/call.h"

namespace tenon::reference {

void run_layer_norm(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand scale = call[EP_ROLE_SCALE];
  const Operand shift = call[EP_ROLE_SHIFT];
  const Operand mean_out = call[EP_ROLE_MEAN];
  const Operand inv_std_out = call[EP_ROLE_INV_STD];
  const auto axis = static_cast<size_t>(call.desc.attributes.layer_norm.axis);
  const auto eps = call.parameter<double>(0);
  const auto outer = src.dims().first(axis);
  const auto inner = src.dims().subspan(axis);

  for_each_index(outer, [&](const int64_t* row) {
    int64_t at[EP_MAX_RANK] = {};
    std::copy_n(row, axis, at);
    double count = 0;
    double total = 0;
    double squares = 0;
    for_each_index(inner, [&](const int64_t* index) {
      std::copy_n(index, inner.size(), at + axis);
      total += src.get<double>(at);
      ++count;
    });
    const double mean = total / count;
    for_each_index(inner, [&](const int64_t* index) {
      std::copy_n(index, inner.size(), at + axis);
      const double distance = src.get<double>(at) - mean;
      squares += distance * distance;
    });
    const double inv_std = 1 / std::sqrt(squares / count + eps);
    for_each_index(inner, [&](const int64_t* index) {
      std::copy_n(index, inner.size(), at + axis);
      const double normal = (src.get<double>(at) - mean) * inv_std;
      dst.set(at, normal * (scale ? scale.get<double>(index) : 1) + (shift ? shift.get<double>(index) : 0));
    });
    std::fill_n(at + axis, inner.size(), 0);
    if (mean_out) mean_out.set(at, mean);
    if (inv_std_out) inv_std_out.set(at, inv_std);
  });
}

void run_batch_norm(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand scale = call[EP_ROLE_SCALE];
  const Operand shift = call[EP_ROLE_SHIFT];
  const Operand mean = call[EP_ROLE_MEAN];
  const Operand variance = call[EP_ROLE_VARIANCE];
  const int32_t axis = call.desc.attributes.batch_norm.axis;
  const auto eps = call.parameter<double>(0);
  for_each_index(dst.dims(), [&](const int64_t* index) {
    const int64_t* channel = index + axis;
    const double normal =
        (src.get<double>(index) - mean.get<double>(channel)) / std::sqrt(variance.get<double>(channel) + eps);
    dst.set(index, normal * scale.get<double>(channel) + shift.get<double>(channel));
  });
}

void run_rms_norm(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand scale = call[EP_ROLE_SCALE];
  const Operand inv_std_out = call[EP_ROLE_INV_STD];
  const auto axis = static_cast<size_t>(call.desc.attributes.rms_norm.axis);
  const auto eps = call.parameter<double>(0);
  const auto inner = src.dims().subspan(axis);
  for_each_index(src.dims().first(axis), [&](const int64_t* row) {
    int64_t at[EP_MAX_RANK] = {};
    std::copy_n(row, axis, at);
    double count = 0;
    double squares = 0;
    for_each_index(inner, [&](const int64_t* index) {
      std::copy_n(index, inner.size(), at + axis);
      squares += src.get<double>(at) * src.get<double>(at);
      ++count;
    });
    const double inv_std = 1 / std::sqrt(squares / count + eps);
    for_each_index(inner, [&](const int64_t* index) {
      std::copy_n(index, inner.size(), at + axis);
      dst.set(at, src.get<double>(at) * inv_std * (scale ? scale.get<double>(index) : 1));
    });
    std::fill_n(at + axis, inner.size(), 0);
    if (inv_std_out) inv_std_out.set(at, inv_std);
  });
}

void run_group_norm(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand scale = call[EP_ROLE_SCALE];
  const Operand shift = call[EP_ROLE_SHIFT];
  const Operand mean_out = call[EP_ROLE_MEAN];
  const Operand inv_std_out = call[EP_ROLE_INV_STD];
  const int64_t groups = call.desc.attributes.group_norm.groups;
  const int64_t channels = src.dim(1) / groups;
  const auto eps = call.parameter<double>(0);
  const int64_t outer[] = {src.dim(0), groups};
  for_each_index(outer, [&](const int64_t* group) {
    const auto visit = [&](const auto& each) {
      for_each_index(src.dims(), [&](const int64_t* at) {
        if (at[0] == group[0] && at[1] / channels == group[1]) each(at);
      });
    };
    double count = 0;
    double total = 0;
    double squares = 0;
    visit([&](const int64_t* at) {
      total += src.get<double>(at);
      ++count;
    });
    const double mean = total / count;
    visit([&](const int64_t* at) {
      const double distance = src.get<double>(at) - mean;
      squares += distance * distance;
    });
    const double inv_std = 1 / std::sqrt(squares / count + eps);
    visit([&](const int64_t* at) {
      const double normal = (src.get<double>(at) - mean) * inv_std;
      dst.set(at, normal * (scale ? scale.get<double>(at + 1) : 1) + (shift ? shift.get<double>(at + 1) : 0));
    });
    if (mean_out) mean_out.set(group, mean);
    if (inv_std_out) inv_std_out.set(group, inv_std);
  });
}

}  // namespace tenon::reference
