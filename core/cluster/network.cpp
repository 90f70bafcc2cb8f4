#include "core/cluster/network.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tenon::cluster {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Costs of several variables together; the states of the last variable are contiguous.
struct Table {
  std::vector<uint32_t> variables;
  std::vector<double> costs;
};

}  // namespace

uint32_t Network::add(std::vector<double> costs) {
  costs_.push_back(std::move(costs));
  near_.emplace_back();
  edges_of_.emplace_back();
  return static_cast<uint32_t>(costs_.size() - 1);
}

void Network::add_costs(uint32_t variable, const std::vector<double>& costs) {
  for (size_t i = 0; i < costs.size(); ++i) costs_[variable][i] += costs[i];
}

void Network::connect(uint32_t a, uint32_t b, std::vector<double> costs) {
  for (const uint32_t number : edges_of_[a]) {
    Edge& edge = edges_[number];
    if (edge.a == a && edge.b == b) {
      for (size_t i = 0; i < costs.size(); ++i) edge.costs[i] += costs[i];
      return;
    }
    if (edge.a != b || edge.b != a) continue;
    for (size_t i = 0; i < states(a); ++i) {
      for (size_t j = 0; j < states(b); ++j) edge.costs[j * states(a) + i] += costs[i * states(b) + j];
    }
    return;
  }
  const auto number = static_cast<uint32_t>(edges_.size());
  edges_.push_back({a, b, std::move(costs)});
  edges_of_[a].push_back(number);
  edges_of_[b].push_back(number);
  near_[a].push_back(b);
  near_[b].push_back(a);
}

double Network::cost(const std::vector<uint32_t>& states) const {
  double sum = 0;
  for (size_t i = 0; i < states.size(); ++i) sum += costs_[i][states[i]];
  for (const Edge& edge : edges_) sum += edge.costs[states[edge.a] * this->states(edge.b) + states[edge.b]];
  return sum;
}

// One run of the dynamic programming.
class Elimination {
 public:
  Elimination(const Network& network, const std::vector<std::vector<uint32_t>>& allowed)
      : network_(network), allowed_(allowed) {}

  // The order of elimination: next is always the variable with the smallest table; false: too expensive.
  bool order(double limit) {
    std::vector<std::set<uint32_t>> near(network_.size());
    std::set<std::pair<double, uint32_t>> next;
    std::vector<double> sizes(network_.size(), 0);
    const auto size_of = [&](uint32_t variable) {
      double size = static_cast<double>(allowed_[variable].size());
      for (const uint32_t other : near[variable]) size *= static_cast<double>(allowed_[other].size());
      return size;
    };
    for (uint32_t variable = 0; variable < network_.size(); ++variable) {
      if (allowed_[variable].size() == 1) continue;
      for (const uint32_t other : network_.neighbours(variable)) {
        if (allowed_[other].size() > 1) near[variable].insert(other);
      }
    }
    for (uint32_t variable = 0; variable < network_.size(); ++variable) {
      if (allowed_[variable].size() == 1) continue;
      next.emplace(sizes[variable] = size_of(variable), variable);
    }
    double sum = 0;
    while (!next.empty()) {
      const auto [size, variable] = *next.begin();
      next.erase(next.begin());
      sum += size;
      if (sum > limit) return false;
      order_.push_back(variable);
      const std::vector<uint32_t> others(near[variable].begin(), near[variable].end());
      for (const uint32_t one : others) {
        near[one].erase(variable);
        for (const uint32_t other : others) {
          if (one != other) near[one].insert(other);
        }
      }
      for (const uint32_t one : others) {
        next.erase({sizes[one], one});
        next.emplace(sizes[one] = size_of(one), one);
      }
    }
    return true;
  }

  void run(std::vector<uint32_t>* states) {
    for (uint32_t variable = 0; variable < network_.size(); ++variable) {
      if (allowed_[variable].size() == 1) (*states)[variable] = allowed_[variable][0];
    }
    place_.assign(network_.size(), kGone);
    for (uint32_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    tables_of_.resize(order_.size());
    best_.resize(order_.size());
    read_costs(*states);
    for (uint32_t i = 0; i < order_.size(); ++i) take_out(i);
    for (size_t i = order_.size(); i-- > 0;) {
      size_t at = 0;
      for (const uint32_t other : best_[i].variables) at = at * count(other) + position_[other];
      position_[order_[i]] = best_[i].states[at];
      (*states)[order_[i]] = allowed_[order_[i]][best_[i].states[at]];
    }
  }

 private:
  static constexpr uint32_t kGone = UINT32_MAX;
  struct Best {
    std::vector<uint32_t> variables;
    std::vector<uint32_t> states;  // the best state of the eliminated variable for each combination of the other states
  };

  size_t count(uint32_t variable) const { return allowed_[variable].size(); }

  // Stores a table at the first of its variables that is eliminated.
  void give(Table table) {
    uint32_t first = kGone;
    for (const uint32_t variable : table.variables) first = std::min(first, place_[variable]);
    if (first != kGone) tables_of_[first].push_back(std::move(table));
  }

  void read_costs(const std::vector<uint32_t>& states) {
    position_.assign(network_.size(), 0);
    for (const uint32_t variable : order_) {
      Table table{{variable}, {}};
      for (const uint32_t state : allowed_[variable]) table.costs.push_back(network_.costs_[variable][state]);
      give(std::move(table));
    }
    for (const Network::Edge& edge : network_.edges_) {
      const bool has_a = place_[edge.a] != kGone, has_b = place_[edge.b] != kGone;
      if (!has_a && !has_b) continue;
      Table table;
      if (has_a) table.variables.push_back(edge.a);
      if (has_b) table.variables.push_back(edge.b);
      const std::vector<uint32_t> one_a{states[edge.a]}, one_b{states[edge.b]};
      for (const uint32_t i : has_a ? allowed_[edge.a] : one_a) {
        for (const uint32_t j : has_b ? allowed_[edge.b] : one_b) {
          table.costs.push_back(edge.costs[i * network_.states(edge.b) + j]);
        }
      }
      give(std::move(table));
    }
  }

  void take_out(uint32_t number) {
    const uint32_t variable = order_[number];
    std::vector<Table> tables = std::move(tables_of_[number]);
    std::set<uint32_t> others;
    for (const Table& table : tables) others.insert(table.variables.begin(), table.variables.end());
    others.erase(variable);
    Table left{{others.begin(), others.end()}, {}};
    Best& best = best_[number];
    best.variables = left.variables;

    // The strides of each other variable, and of the eliminated variable, in each table.
    const size_t n = left.variables.size();
    std::vector<std::vector<size_t>> steps(tables.size(), std::vector<size_t>(n + 1, 0));
    size_t size = 1;
    for (const uint32_t other : left.variables) size *= count(other);
    for (size_t t = 0; t < tables.size(); ++t) {
      size_t step = 1;
      for (size_t i = tables[t].variables.size(); i-- > 0;) {
        const uint32_t each = tables[t].variables[i];
        const size_t at =
            each == variable
                ? n
                : static_cast<size_t>(std::lower_bound(left.variables.begin(), left.variables.end(), each) -
                                      left.variables.begin());
        steps[t][at] = step;
        step *= count(each);
      }
    }
    left.costs.resize(size);
    best.states.resize(size);
    std::vector<size_t> digits(n, 0), at(tables.size(), 0);
    for (size_t entry = 0; entry < size; ++entry) {
      double least = kNever;
      uint32_t chosen = 0;
      for (uint32_t state = 0; state < count(variable); ++state) {
        double sum = 0;
        for (size_t t = 0; t < tables.size(); ++t) sum += tables[t].costs[at[t] + state * steps[t][n]];
        if (sum < least) least = sum, chosen = state;
      }
      left.costs[entry] = least;
      best.states[entry] = chosen;
      for (size_t i = n; i-- > 0;) {
        const bool wraps = ++digits[i] == count(left.variables[i]);
        for (size_t t = 0; t < tables.size(); ++t) {
          at[t] += steps[t][i];
          if (wraps) at[t] -= steps[t][i] * count(left.variables[i]);
        }
        if (!wraps) break;
        digits[i] = 0;
      }
    }
    give(std::move(left));
  }

  const Network& network_;
  const std::vector<std::vector<uint32_t>>& allowed_;
  std::vector<uint32_t> order_, place_, position_;
  std::vector<std::vector<Table>> tables_of_;  // by the position of the variable that they are eliminated with
  std::vector<Best> best_;
};

bool Network::minimise(const std::vector<std::vector<uint32_t>>& allowed, double limit,
                       std::vector<uint32_t>* states) const {
  Elimination elimination(*this, allowed);
  if (!elimination.order(limit)) return false;
  elimination.run(states);
  return true;
}

}  // namespace tenon::cluster
