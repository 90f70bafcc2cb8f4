// Sbp: how a tensor is spread along one axis of a grid of ranks. NdSbp: along all axes of the grid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "primitives/shape/shape.h"

namespace tenon::global {

// One of: split(axis), each rank holds a part of the tensor along that axis; broadcast, each rank holds all of it;
// partial, the tensor is the sum of the ranks' tensors.
class Sbp {
 public:
  constexpr Sbp() = default;  // broadcast
  static constexpr Sbp split(int64_t axis) { return Sbp(static_cast<int8_t>(axis)); }
  static constexpr Sbp broadcast() { return Sbp(kBroadcast); }
  static constexpr Sbp partial() { return Sbp(kPartial); }

  constexpr bool is_split() const { return code_ >= 0; }
  constexpr bool is_split(int64_t axis) const { return code_ == axis && axis >= 0; }
  constexpr bool is_broadcast() const { return code_ == kBroadcast; }
  constexpr bool is_partial() const { return code_ == kPartial; }
  constexpr int32_t axis() const { return code_; }  // the axis of a split; no other Sbp has one

  friend constexpr bool operator==(Sbp, Sbp) = default;

 private:
  static constexpr int8_t kBroadcast = -1, kPartial = -2;
  explicit constexpr Sbp(int8_t code) : code_(code) {}
  int8_t code_ = kBroadcast;
};

using NdSbp = BasicDims<Sbp>;

// "S(0)", "B", "P"; for a list "[S(0), B]".
TENON_API std::string to_string(Sbp sbp);
TENON_API std::string to_string(const NdSbp& sbp);
// Parses the text of to_string. Errors: invalid_argument.
TENON_API Sbp sbp_from(std::string_view text);

}  // namespace tenon::global
