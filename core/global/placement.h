// Placement: the grid of ranks that hold a tensor, and the device of each rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/tensor/device.h"
#include "primitives/shape/shape.h"

namespace tenon::global {

class Communicator;

// A cheap handle. Two placements are equal if they have the same device, grid and ranks.
class TENON_API Placement {
 public:
  Placement() = default;  // without ranks
  // `ranks` fill a grid of `grid` dims, row-major: Placement("cpu", {2, 2}, {0, 1, 2, 3}). `device` is "cpu" or
  // "cuda:1"; without a number it is the device with the rank's number on its machine, or the only device. Every rank
  // of the launch must make the placement, also ranks outside it. Errors, the same on every rank: invalid_argument
  // (unknown or repeated ranks, a grid of another size, ranks that make different placements), not_found (names the
  // rank that lacks the device), those of Communicator.
  Placement(std::string_view device, const Dims& grid, std::span<const int32_t> ranks);
  Placement(std::string_view device, const Dims& grid, const std::vector<int32_t>& ranks)
      : Placement(device, grid, std::span<const int32_t>(ranks)) {}
  // A list of ranks: a grid with one axis.
  Placement(std::string_view device, const std::vector<int32_t>& ranks);
  // All ranks of the launch, as a list.
  static Placement all(std::string_view device);

  bool defined() const { return state_ != nullptr; }
  const std::string& device_type() const;
  const Dims& grid() const;
  std::span<const int32_t> ranks() const;
  int32_t size() const;

  // True if this rank belongs to the placement; its position in ranks(), -1 if outside; its device, or the device it
  // would have if outside.
  bool here() const { return position() >= 0; }
  int32_t position() const;
  Device device() const;
  // The coordinates in the grid of the rank at `position`.
  Dims coordinates(int32_t position) const;
  // The communicator of the ranks that differ from this one only along `axis` of the grid, in order. Null outside the
  // placement, and if the grid has one rank along the axis.
  Communicator* line(int32_t axis) const;

  // "cpu [[0, 1], [2, 3]]"
  std::string to_string() const;

  friend TENON_API bool operator==(const Placement& a, const Placement& b);

 private:
  struct State;
  static std::shared_ptr<const State> make(std::string_view device, const Dims& grid, std::span<const int32_t> ranks);
  const State& state() const;

  std::shared_ptr<const State> state_;
};

}  // namespace tenon::global
