// Network: variables with costs of single states and of pairs of states; finds the states with the least total cost. It
// uses dynamic programming: it eliminates one variable after another and keeps its best state for all states of its
// neighbours. The result is exact, but expensive if many variables are connected. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/export.h"

namespace tenon::cluster {

class TENON_API Network {
 public:
  // Adds a variable whose state i costs costs[i]; it has at least one state. Returns its number.
  uint32_t add(std::vector<double> costs);
  // Adds the cost costs[i * (states of b) + j] for state i of `a` together with state j of `b`. Infinity forbids the
  // pair. a != b.
  void connect(uint32_t a, uint32_t b, std::vector<double> costs);
  // Adds `costs` to the costs of a variable.
  void add_costs(uint32_t variable, const std::vector<double>& costs);

  size_t size() const { return costs_.size(); }
  size_t states(uint32_t variable) const { return costs_[variable].size(); }
  double cost(const std::vector<uint32_t>& states) const;
  const std::vector<uint32_t>& neighbours(uint32_t variable) const { return near_[variable]; }

  // Finds the best states. allowed[v] lists the states that variable v may take; a single one fixes it. Of equal ones
  // the first wins. False if more than `limit` sums would be needed; `states` are then unchanged.
  bool minimise(const std::vector<std::vector<uint32_t>>& allowed, double limit, std::vector<uint32_t>* states) const;

 private:
  struct Edge {
    uint32_t a, b;
    std::vector<double> costs;
  };
  friend class Elimination;
  std::vector<std::vector<double>> costs_;
  std::vector<Edge> edges_;  // at most one per pair of variables
  std::vector<std::vector<uint32_t>> near_, edges_of_;
};

}  // namespace tenon::cluster
