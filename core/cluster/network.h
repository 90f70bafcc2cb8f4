// Network: variables with costs of one and of two of them, and the states of least cost together. By dynamic
// programming over the network: a variable is taken out, and the best of its states is kept for all states of those
// that it shares a cost with, until none is left. That is exact, and dear where many variables hang together. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/export.h"

namespace tenon::cluster {

class TENON_API Network {
 public:
  // A variable whose state i costs costs[i]; at least one. Its number.
  uint32_t add(std::vector<double> costs);
  // Two variables whose states i and j cost costs[i * (states of b) + j] together, in addition. Infinity is a pair that
  // cannot be. a != b.
  void connect(uint32_t a, uint32_t b, std::vector<double> costs);
  // Costs in addition.
  void add_costs(uint32_t variable, const std::vector<double>& costs);

  size_t size() const { return costs_.size(); }
  size_t states(uint32_t variable) const { return costs_[variable].size(); }
  double cost(const std::vector<uint32_t>& states) const;
  const std::vector<uint32_t>& neighbours(uint32_t variable) const { return near_[variable]; }

  // The best states, where allowed[v] lists those that variable v may have; one alone fixes it. Of equals the first
  // ones. False: more than `limit` sums would be needed; `states` are then as they were.
  bool minimise(const std::vector<std::vector<uint32_t>>& allowed, double limit, std::vector<uint32_t>* states) const;

 private:
  struct Edge {
    uint32_t a, b;
    std::vector<double> costs;
  };
  friend class Elimination;
  std::vector<std::vector<double>> costs_;
  std::vector<Edge> edges_;  // one per pair of variables
  std::vector<std::vector<uint32_t>> near_, edges_of_;
};

}  // namespace tenon::cluster
