#include "sdk/onnx/translate/forest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {
namespace {

using Mode = TreeNode::Mode;
using Sum = TreeList::Sum;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kTogether = 8;           // walks at a time
constexpr uint32_t kMostNodes = 1u << 30;  // nodes, leaves or votes
constexpr int64_t kTileBytes = 64 * 1024;  // rows that all trees score before the next ones; they stay in the cache

// The greatest number below `value`: x < value means x <= below(value). NaN, which no x reaches, if there is none.
double below(double value) { return value == -kInfinity ? kNan : std::nextafter(value, -kInfinity); }

// The greatest T that is at most `value`.
template <class T>
T rounded_down(double value) {
  const T near = static_cast<T>(value);
  return static_cast<double>(near) > value ? std::nextafter(near, -std::numeric_limits<T>::infinity()) : near;
}

// The number of a leaf as a T. Numbers of f32 begin where no leaf number is a denormal, which are slow to compare.
template <class T>
T leaf_value(uint32_t leaf) {
  if constexpr (sizeof(T) == 4) return std::bit_cast<float>(leaf | kMostNodes);
  return static_cast<T>(leaf);
}
template <class T>
uint32_t leaf_of(T value) {
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(static_cast<float>(value)) & (kMostNodes - 1);
  return static_cast<uint32_t>(value);
}

}  // namespace

// Adds the nodes that the roots reach. Children come before their parent.
template <class T>
class Forest<T>::Builder {
 public:
  Builder(NodeContext& n, const TreeList& trees, Forest* made)
      : n_(n), trees_(trees), made_(made), states_(trees.nodes.size()), places_(trees.nodes.size()) {}

  uint32_t add_tree(size_t root) {
    std::vector<size_t> open{root};
    while (!open.empty()) {
      const size_t at = open.back();
      const TreeNode& node = trees_.nodes[at];
      if (states_[at] == State::fresh && node.mode != Mode::leaf) {
        states_[at] = State::open;
        for (const size_t child : {node.no, node.yes}) {
          if (states_[child] == State::open) n_.invalid("a tree contains a cycle");
          if (states_[child] == State::fresh) open.push_back(child);
        }
        continue;
      }
      if (states_[at] != State::done) places_[at] = node.mode == Mode::leaf ? leaf(node) : branch(node);
      states_[at] = State::done;
      open.pop_back();
    }
    return places_[root];
  }

 private:
  enum class State : uint8_t { fresh, open, done };

  uint32_t leaf(const TreeNode& node) {
    const auto place = static_cast<uint32_t>(made_->nodes_.size());
    made_->nodes_.push_back({leaf_value<T>(count(made_->first_votes_.size())), 0, {place, place}});
    made_->first_votes_.push_back(count(made_->votes_.size()));
    for (const TreeNode::Vote& vote : node.votes)
      made_->votes_.push_back({static_cast<uint32_t>(vote.target), static_cast<T>(vote.weight)});
    return place;
  }

  uint32_t branch(const TreeNode& node) {
    if (node.feature < 0) n_.invalid(fmt::format("a node reads feature {}", node.feature));
    feature_ = node.feature;
    made_->features_ = std::max(made_->features_, feature_ + 1);
    const uint32_t yes = places_[node.yes], no = places_[node.no];
    const bool nan = node.missing_is_true;
    if (node.mode == Mode::member) return any_of(sorted(node.members), yes, no, nan);
    if (node.mode == Mode::eq) return any_of({node.value}, yes, no, nan);
    if (node.mode == Mode::ne) return any_of({node.value}, no, yes, false);  // NaN leads to `yes`
    const bool strict = node.mode == Mode::lt || node.mode == Mode::ge;
    const double value = strict ? below(node.value) : node.value;
    const bool least = node.mode == Mode::ge || node.mode == Mode::gt;
    // x > value is not x <= value, unless `value` is NaN: then no x leads to `yes`.
    return least && !std::isnan(node.value) ? at_most(value, no, yes, !nan) : at_most(value, yes, no, nan);
  }

  static std::vector<double> sorted(std::vector<double> members) {
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    return members;
  }

  // Leads to `yes` if the feature is one of the sorted `members`; `nan`: also if it is NaN.
  uint32_t any_of(std::span<const double> members, uint32_t yes, uint32_t no, bool nan) {
    if (members.empty()) return no;
    const size_t middle = members.size() / 2;
    const double value = members[middle];
    const uint32_t lower = any_of(members.first(middle), yes, no, false);
    const uint32_t higher = any_of(members.subspan(middle + 1), yes, no, false);
    return at_most(value, at_most(below(value), lower, yes, !nan), higher, nan);
  }
  uint32_t any_of(std::initializer_list<double> members, uint32_t yes, uint32_t no, bool nan) {
    return any_of(std::span(members.begin(), members.size()), yes, no, nan);
  }

  // Leads to `first` if the feature is at most `value`, otherwise to `second`; NaN leads to `first` if `nan`.
  uint32_t at_most(double value, uint32_t first, uint32_t second, bool nan) {
    if (nan) {  // the negative feature is below -value: to `second`
      made_->negated_ = true;
      value = std::isnan(value) ? kInfinity : below(-value);
      std::swap(first, second);
    }
    const int64_t place = 2 * feature_ + (nan ? 1 : 0);
    made_->nodes_.push_back({rounded_down<T>(value), count(static_cast<size_t>(place)), {first, second}});
    return count(made_->nodes_.size()) - 1;
  }

  uint32_t count(size_t number) const {
    if (number >= kMostNodes) n_.unsupported(fmt::format("it has more than {} nodes", kMostNodes));
    return static_cast<uint32_t>(number);
  }

  NodeContext& n_;
  const TreeList& trees_;
  Forest* made_;
  std::vector<State> states_;
  std::vector<uint32_t> places_;
  int64_t feature_ = 0;
};

template <class T>
Forest<T>::Forest(NodeContext& n, const TreeList& trees) : targets_(trees.targets), how_(trees.how), base_(trees.base) {
  Builder builder(n, trees, this);
  for (const size_t root : trees.roots) roots_.push_back(builder.add_tree(root));
  first_votes_.push_back(static_cast<uint32_t>(votes_.size()));
  arrange();
  list_weights();
  if (negated_) return;
  for (Branch& node : nodes_) node.feature /= 2;
}

template <class T>
void Forest<T>::arrange() {
  constexpr uint32_t none = ~uint32_t{0};
  std::vector<uint32_t> places(nodes_.size(), none), open(roots_.rbegin(), roots_.rend());
  std::vector<uint32_t> depths;  // children come before their parent
  for (const Branch& node : nodes_) {
    const bool is_leaf = node.next[0] == depths.size();
    depths.push_back(is_leaf ? 0 : 1 + std::max(depths[node.next[0]], depths[node.next[1]]));
  }
  for (const uint32_t root : roots_) depths_.push_back(depths[root]);
  std::vector<Branch> arranged;
  arranged.reserve(nodes_.size());
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (places[at] != none) continue;
    places[at] = static_cast<uint32_t>(arranged.size());
    arranged.push_back(nodes_[at]);
    open.insert(open.end(), {nodes_[at].next[1], nodes_[at].next[0]});
  }
  for (Branch& node : arranged) {
    for (uint32_t& next : node.next) next = places[next];
  }
  for (uint32_t& root : roots_) root = places[root];
  nodes_ = std::move(arranged);
}

template <class T>
void Forest<T>::list_weights() {
  if (how_ == Sum::least || how_ == Sum::greatest) return;
  const auto targets = static_cast<size_t>(targets_);
  for (size_t leaf = 0; leaf + 1 < first_votes_.size(); ++leaf) {
    if (first_votes_[leaf + 1] - first_votes_[leaf] != targets) return;
  }
  for (size_t i = 0; i < votes_.size(); ++i) {
    if (votes_[i].target != i % targets) return;
  }
  for (const Vote& each : votes_) weights_.push_back(static_cast<double>(each.weight));
  votes_.clear();
}

namespace {

template <class Branch, class T>
uint32_t step(const Branch* nodes, const T* row, uint32_t at) {
  const Branch& node = nodes[at];
  return node.next[row[node.feature] <= node.value ? 0 : 1];
}

// Follows the walks from the nodes `at`, each through its row, until all are at a leaf, for about `depth` steps at
// most. The numbers i are constants, so that the places of all walks stay in registers.
template <class Branch, class T, size_t... i>
void walk(const Branch* nodes, const std::array<const T*, kTogether>& rows, std::array<uint32_t, kTogether>* at,
          uint32_t depth, std::index_sequence<i...>) {
  std::array<uint32_t, kTogether> now = *at;
  uint32_t moved = 1;
  for (uint32_t steps = 0; steps < depth && moved != 0; steps += 2) {
    const std::array<uint32_t, kTogether> next{step(nodes, rows[i], now[i])...};
    now = {step(nodes, rows[i], next[i])...};
    moved = ((now[i] ^ next[i]) | ...);
  }
  *at = now;
}
constexpr auto kWalks = std::make_index_sequence<static_cast<size_t>(kTogether)>();

}  // namespace

template <class T>
void Forest<T>::vote(uint32_t node, Totals* totals, int64_t row) const {
  const uint32_t leaf = leaf_of<T>(nodes_[node].value);
  double* const sums = totals->sums.data() + row * targets_;
  if (!weights_.empty()) {
    const double* const weights = weights_.data() + leaf * targets_;
    for (int64_t target = 0; target < targets_; ++target) sums[target] += weights[target];
    return;
  }
  char* const voted = totals->voted.data() + (totals->voted.empty() ? 0 : row * targets_);
  for (uint32_t i = first_votes_[leaf]; i < first_votes_[leaf + 1]; ++i) {
    const auto [target, each] = votes_[i];
    const auto weight = static_cast<double>(each);
    double& sum = sums[target];
    if (totals->voted.empty()) {
      sum += weight;
    } else {
      if (voted[target] == 0 || (how_ == Sum::least ? weight < sum : weight > sum)) sum = weight;
      voted[target] = 1;
    }
  }
}

// One tree after the other, several rows at a time; `count` is a multiple of kTogether.
template <class T>
void Forest<T>::score_rows(const T* rows, int64_t width, int64_t first, int64_t count, Totals* totals) const {
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    for (int64_t row = 0; row < count; row += kTogether) {
      std::array<const T*, kTogether> each;
      std::array<uint32_t, kTogether> at;
      at.fill(roots_[tree]);
      for (size_t i = 0; i < kTogether; ++i) each[i] = rows + (row + static_cast<int64_t>(i)) * width;
      walk(nodes_.data(), each, &at, depths_[tree], kWalks);
      for (size_t i = 0; i < kTogether; ++i) vote(at[i], totals, first + row + static_cast<int64_t>(i));
    }
  }
}

// Several trees at a time.
template <class T>
void Forest<T>::score_row(const T* row, int64_t number, Totals* totals) const {
  std::array<const T*, kTogether> each;
  each.fill(row);
  for (size_t tree = 0; tree < roots_.size(); tree += kTogether) {
    const size_t count = std::min<size_t>(kTogether, roots_.size() - tree);
    std::array<uint32_t, kTogether> at;
    uint32_t depth = 0;
    for (size_t i = 0; i < kTogether; ++i) {
      at[i] = roots_[tree + std::min(i, count - 1)];
      depth = std::max(depth, depths_[tree + std::min(i, count - 1)]);
    }
    walk(nodes_.data(), each, &at, depth, kWalks);
    for (size_t i = 0; i < count; ++i) vote(at[i], totals, number);
  }
}

template <class T>
std::vector<double> Forest<T>::scores(std::span<const T> x, int64_t rows, int64_t features) const {
  Totals totals;
  totals.sums.assign(static_cast<size_t>(rows * targets_), 0.0);
  if (how_ == Sum::least || how_ == Sum::greatest) totals.voted.assign(totals.sums.size(), 0);
  const int64_t width = negated_ ? 2 * features : std::max<int64_t>(features, 1);
  const int64_t tile = std::max<int64_t>(kTogether, kTileBytes / (width * static_cast<int64_t>(sizeof(T))));
  std::vector<T> copies;  // with negatives; or one number for leaves to read, if there are no features
  if (negated_ || features == 0) copies.resize(static_cast<size_t>(std::min(tile, rows) * width));
  for (int64_t first = 0; first < rows; first += tile) {
    const int64_t count = std::min(tile, rows - first);
    const T* const given = x.data() + first * features;
    for (int64_t i = 0; negated_ && i < count * features; ++i) {
      copies[static_cast<size_t>(2 * i)] = given[i];
      copies[static_cast<size_t>(2 * i + 1)] = -given[i];
    }
    const T* const from = copies.empty() ? given : copies.data();
    const int64_t whole = count / kTogether * kTogether;
    score_rows(from, width, first, whole, &totals);
    for (int64_t row = whole; row < count; ++row) score_row(from + row * width, first + row, &totals);
  }
  for (size_t i = 0; i < totals.sums.size(); ++i) {
    if (how_ == Sum::average) totals.sums[i] /= static_cast<double>(roots_.size());
    if (!base_.empty()) totals.sums[i] += base_[i % static_cast<size_t>(targets_)];
  }
  return std::move(totals.sums);
}

template class Forest<float>;
template class Forest<double>;

}  // namespace tenon::onnx
