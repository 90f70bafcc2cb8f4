#include "core/graph/execute/cut.h"

#include <algorithm>
#include <map>

namespace tenon::graph {
namespace {

// The program with the islands found so far contracted: a group is an island, or a node outside of all islands.
class Cutter {
 public:
  Cutter(std::span<const std::vector<uint32_t>> preds, std::span<const uint32_t> claims)
      : preds_(preds), claims_(claims), groups_(preds.size()) {
    for (uint32_t node = 0; node < groups_.size(); ++node) groups_[node] = node;
  }

  std::vector<std::vector<uint32_t>> run() {
    std::map<uint32_t, std::vector<uint32_t>> claimed;
    for (uint32_t node = 0; node < claims_.size(); ++node) {
      if (claims_[node] != 0) claimed[claims_[node]].push_back(node);
    }
    std::vector<std::vector<uint32_t>> parts;
    for (const auto& [claim, nodes] : claimed) {
      for (std::vector<uint32_t>& part : cut(claim, nodes)) parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  // The level of a node is the largest number of times that a path to it has left the claim and entered it again.
  // Levels never decrease along a path, so nodes of one level can run as one, after those of lower levels.
  std::vector<std::vector<uint32_t>> cut(uint32_t claim, const std::vector<uint32_t>& nodes) {
    if (nodes.size() == 1) return {nodes};
    const std::vector<uint32_t> levels = levels_of(claim);
    std::map<uint32_t, std::vector<uint32_t>> parts;
    for (uint32_t node : nodes) parts[levels[node]].push_back(node);
    std::vector<std::vector<uint32_t>> all;
    for (auto& [level, part] : parts) {
      for (uint32_t node : part) groups_[node] = part[0];
      all.push_back(std::move(part));
    }
    return all;
  }

  bool in(uint32_t claim, uint32_t group) const { return claims_[group] == claim; }

  // By group, also for groups outside of the claim: the level that a claimed node after it has at least.
  std::vector<uint32_t> levels_of(uint32_t claim) const {
    const auto size = static_cast<uint32_t>(preds_.size());
    std::vector<std::vector<uint32_t>> followers(size);
    std::vector<uint32_t> missing(size, 0), levels(size, 0), ready;
    for (uint32_t node = 0; node < size; ++node) {
      for (uint32_t pred : preds_[node]) {
        if (groups_[pred] == groups_[node]) continue;
        followers[groups_[pred]].push_back(groups_[node]);
        ++missing[groups_[node]];
      }
    }
    for (uint32_t group = 0; group < size; ++group) {
      if (groups_[group] == group && missing[group] == 0) ready.push_back(group);
    }
    while (!ready.empty()) {
      const uint32_t group = ready.back();
      ready.pop_back();
      for (uint32_t next : followers[group]) {
        const bool leaves = in(claim, group) && !in(claim, next);
        levels[next] = std::max(levels[next], levels[group] + (leaves ? 1 : 0));
        if (--missing[next] == 0) ready.push_back(next);
      }
    }
    return levels;
  }

  std::span<const std::vector<uint32_t>> preds_;
  std::span<const uint32_t> claims_;
  std::vector<uint32_t> groups_;  // by node: the smallest node of its group
};

}  // namespace

std::vector<std::vector<uint32_t>> cut_islands(std::span<const std::vector<uint32_t>> preds,
                                               std::span<const uint32_t> claims) {
  return Cutter(preds, claims).run();
}

}  // namespace tenon::graph
