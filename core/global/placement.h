// Placement: the ranks that hold a tensor, as a grid, and the device of each.
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

// A cheap handle. Two placements are equal if device, grid and ranks are.
class TENON_API Placement {
 public:
  Placement() = default;  // of no ranks
  // `ranks` fill a grid of `grid` dims, row-major: Placement("cpu", {2, 2}, {0, 1, 2, 3}). On each rank `device` is
  // "cpu", "cuda:1" or, without a number, the device that has the number of the rank on its machine, or else the only
  // one. Every rank of the launch makes the placement, those outside of it too.
  // Errors, the same on every rank: invalid_argument (ranks that are not there or occur twice, a grid of another size,
  // ranks that make different placements), not_found (the rank that lacks the device), those of Communicator.
  Placement(std::string_view device, const Dims& grid, std::span<const int32_t> ranks);
  Placement(std::string_view device, const Dims& grid, const std::vector<int32_t>& ranks)
      : Placement(device, grid, std::span<const int32_t>(ranks)) {}
  // A list of ranks: a grid of rank 1.
  Placement(std::string_view device, const std::vector<int32_t>& ranks);
  // All ranks of the launch, as a list.
  static Placement all(std::string_view device);

  bool defined() const { return state_ != nullptr; }
  const std::string& device_type() const;
  const Dims& grid() const;
  std::span<const int32_t> ranks() const;
  int32_t size() const;

  // Whether this rank is in it; its position in ranks(), -1: outside. The device of this rank, and outside the one that
  // it would have.
  bool here() const { return position() >= 0; }
  int32_t position() const;
  Device device() const;
  // The coordinates in the grid of the rank at `position`.
  Dims coordinates(int32_t position) const;
  // The ranks that differ from this one along `axis` of the grid alone, in their order. Null outside of the placement,
  // and where the grid has one rank along the axis.
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
