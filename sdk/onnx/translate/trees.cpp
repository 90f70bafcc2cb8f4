// ai.onnx.ml: ensembles of trees, which run on the host.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/ml.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

enum class Mode : uint8_t { le, lt, ge, gt, eq, ne, member, leaf };

struct TreeNode {
  Mode mode = Mode::leaf;
  bool missing_is_true = false;
  int64_t feature = 0;
  double value = 0;
  Doubles members;         // for Mode::member
  size_t yes = 0, no = 0;  // indices of the next nodes
  struct Vote {
    int64_t target = 0;
    double weight = 0;
  };
  std::vector<Vote> votes;  // for a leaf
};

enum class Sum : uint8_t { average, sum, least, greatest };

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;
  int64_t targets = 1;
  Sum how = Sum::sum;
  Doubles base;  // by target; may be empty

  // The scores of one row of features.
  void score(NodeContext& n, std::span<const double> row, double* out) const;
};

bool goes_to_yes(const TreeNode& node, double x) {
  if (std::isnan(x)) return node.missing_is_true || node.mode == Mode::ne;
  switch (node.mode) {
    case Mode::le: return x <= node.value;
    case Mode::lt: return x < node.value;
    case Mode::ge: return x >= node.value;
    case Mode::gt: return x > node.value;
    case Mode::eq: return x == node.value;
    case Mode::ne: return x != node.value;
    case Mode::member: return std::find(node.members.begin(), node.members.end(), x) != node.members.end();
    case Mode::leaf: break;
  }
  return false;
}

void Forest::score(NodeContext& n, std::span<const double> row, double* out) const {
  std::vector<bool> voted(static_cast<size_t>(targets), false);
  std::fill(out, out + targets, 0.0);
  for (size_t at : roots) {
    for (size_t steps = 0; nodes[at].mode != Mode::leaf; ++steps) {
      if (steps > nodes.size()) n.invalid("a tree contains a cycle");
      const TreeNode& node = nodes[at];
      if (node.feature < 0 || static_cast<size_t>(node.feature) >= row.size())
        n.invalid(fmt::format("a node reads feature {}, but a row has {} features", node.feature, row.size()));
      at = goes_to_yes(node, row[static_cast<size_t>(node.feature)]) ? node.yes : node.no;
    }
    for (const TreeNode::Vote& vote : nodes[at].votes) {
      const auto target = static_cast<size_t>(vote.target);
      double& sum = out[target];
      if (how == Sum::sum || how == Sum::average) sum += vote.weight;
      if (how == Sum::least) sum = voted[target] ? std::min(sum, vote.weight) : vote.weight;
      if (how == Sum::greatest) sum = voted[target] ? std::max(sum, vote.weight) : vote.weight;
      voted[target] = true;
    }
  }
  for (int64_t target = 0; target < targets; ++target) {
    if (how == Sum::average) out[target] /= static_cast<double>(roots.size());
    if (!base.empty()) out[target] += base[static_cast<size_t>(target)];
  }
}

Doubles numbers(NodeContext& n, const std::string& name) {
  if (n.find(name + "_as_tensor") != nullptr || (n.find(name) != nullptr && n.find(name)->tensor.defined())) {
    const std::string held = n.find(name + "_as_tensor") != nullptr ? name + "_as_tensor" : name;
    const Tensor& tensor = n.require(held, Attribute::Kind::tensor).tensor;
    if (!tensor.defined()) n.invalid(fmt::format("its {} is not a tensor of numbers", held));
    NodeContext::require_eager();
    return cast(tensor, DType::f64).to_host<double>();
  }
  if (n.find(name) == nullptr) return {};
  const std::vector<float>& floats = n.require(name, Attribute::Kind::numbers).floats;
  return {floats.begin(), floats.end()};
}

Ints ints(NodeContext& n, const std::string& name) { return n.integers(name).value_or(Ints()); }

void check_length(NodeContext& n, const char* name, size_t have, size_t want) {
  if (have != want) n.invalid(fmt::format("its {} have {} elements; {} are needed", name, have, want));
}

// The scores of all rows, as f64 [rows, targets] on the host.
Tensor scores_of(NodeContext& n, const Forest& forest) {
  const Dims& dims = n.dims(0);
  if (dims.rank() < 1 || dims.rank() > 2)
    n.invalid(fmt::format("its input has shape {}; [rows, features] is needed", dims));
  const Doubles x = n.elements<double>(0);
  const int64_t features = dims[dims.rank() - 1], rows = dims.rank() == 2 ? dims[0] : 1;
  const double made = static_cast<double>(rows) * static_cast<double>(forest.targets);
  n.require_host_work(made * sizeof(double), made);
  Doubles scores(static_cast<size_t>(rows * forest.targets));
  for (int64_t row = 0; row < rows; ++row) {
    forest.score(n, {x.data() + row * features, static_cast<size_t>(features)}, scores.data() + row * forest.targets);
  }
  return Tensor::copy_from_host(scores.data(), {rows, forest.targets}, DType::f64, Device::host());
}

// ---- the form of versions 1 to 3: nodes with tree and node numbers ----

class OldForest {
 public:
  // `votes`: "target" or "class", the prefix of the attributes that describe leaves.
  OldForest(NodeContext& n, const std::string& votes) : n_(n) {
    const Ints trees = ints(n, "nodes_treeids"), ids = ints(n, "nodes_nodeids");
    const Ints features = ints(n, "nodes_featureids"), yes = ints(n, "nodes_truenodeids");
    const Ints no = ints(n, "nodes_falsenodeids"), missing = ints(n, "nodes_missing_value_tracks_true");
    const Doubles values = numbers(n, "nodes_values");
    const std::vector<std::string>& modes = n.require("nodes_modes", Attribute::Kind::texts).strings;
    const size_t count = modes.size();
    for (const auto& [name, have] :
         {std::pair("nodes_treeids", trees.size()), std::pair("nodes_nodeids", ids.size()),
          std::pair("nodes_featureids", features.size()), std::pair("nodes_truenodeids", yes.size()),
          std::pair("nodes_falsenodeids", no.size()), std::pair("nodes_values", values.size())})
      check_length(n, name, have, count);
    if (!missing.empty()) check_length(n, "nodes_missing_value_tracks_true", missing.size(), count);
    for (size_t i = 0; i < count; ++i) {
      if (!places_.emplace(std::pair(trees[i], ids[i]), i).second)
        n.invalid(fmt::format("node {} of tree {} occurs twice", ids[i], trees[i]));
      if (i == 0 || trees[i] != trees[i - 1]) forest_.roots.push_back(i);
    }
    for (size_t i = 0; i < count; ++i) {
      TreeNode node;
      node.mode = mode_of(modes[i]);
      node.feature = features[i];
      node.value = values[i];
      node.missing_is_true = !missing.empty() && missing[i] != 0;
      if (node.mode != Mode::leaf) {
        node.yes = place(trees[i], yes[i]);
        node.no = place(trees[i], no[i]);
      }
      forest_.nodes.push_back(node);
    }
    read_votes(votes);
    forest_.base = numbers(n, "base_values");
  }

  Forest& forest() { return forest_; }
  bool all_weights_positive() const { return least_weight_ >= 0; }
  int64_t highest_target() const { return highest_; }
  bool one_target() const { return one_target_; }

 private:
  Mode mode_of(const std::string& name) {
    constexpr std::pair<std::string_view, Mode> kModes[] = {
        {"BRANCH_LEQ", Mode::le}, {"BRANCH_LT", Mode::lt},  {"BRANCH_GTE", Mode::ge}, {"BRANCH_GT", Mode::gt},
        {"BRANCH_EQ", Mode::eq},  {"BRANCH_NEQ", Mode::ne}, {"LEAF", Mode::leaf}};
    for (const auto& [text, mode] : kModes) {
      if (text == name) return mode;
    }
    n_.invalid(fmt::format("a node has the unknown mode '{}'", name));
  }

  size_t place(int64_t tree, int64_t id) {
    const auto found = places_.find({tree, id});
    if (found == places_.end()) n_.invalid(fmt::format("tree {} has no node {}", tree, id));
    return found->second;
  }

  void read_votes(const std::string& prefix) {
    const Ints trees = ints(n_, prefix + "_treeids"), ids = ints(n_, prefix + "_nodeids");
    const Ints targets = ints(n_, prefix + "_ids");
    const Doubles weights = numbers(n_, prefix + "_weights");
    check_length(n_, "node numbers of leaves", ids.size(), trees.size());
    check_length(n_, "targets of leaves", targets.size(), trees.size());
    check_length(n_, "weights of leaves", weights.size(), trees.size());
    for (size_t i = 0; i < trees.size(); ++i) {
      if (targets[i] < 0 || targets[i] >= 1 << 20)
        n_.invalid(fmt::format("a leaf has the target {}; it must be from 0 to 2^20 - 1", targets[i]));
      forest_.nodes[place(trees[i], ids[i])].votes.push_back({targets[i], weights[i]});
      highest_ = std::max(highest_, targets[i]);
      one_target_ = one_target_ && targets[i] == targets[0];
      least_weight_ = std::min(least_weight_, weights[i]);
    }
  }

  NodeContext& n_;
  Forest forest_;
  std::map<std::pair<int64_t, int64_t>, size_t> places_;
  int64_t highest_ = 0;
  bool one_target_ = true;
  double least_weight_ = std::numeric_limits<double>::infinity();
};

Sum sum_of(NodeContext& n, const std::string& name) {
  constexpr std::pair<std::string_view, Sum> kSums[] = {
      {"AVERAGE", Sum::average}, {"SUM", Sum::sum}, {"MIN", Sum::least}, {"MAX", Sum::greatest}};
  for (const auto& [text, sum] : kSums) {
    if (text == name) return sum;
  }
  n.invalid(fmt::format("its aggregate_function is '{}'; it may be AVERAGE, SUM, MIN or MAX", name));
}

ValueList tree_regressor(NodeContext& n) {
  OldForest old(n, "target");
  Forest& forest = old.forest();
  forest.targets = n.integer("n_targets", 1);
  forest.how = sum_of(n, n.text("aggregate_function", "SUM"));
  if (old.highest_target() >= forest.targets)
    n.invalid(fmt::format("a leaf has target {}, but there are {} targets", old.highest_target(), forest.targets));
  if (!forest.base.empty()) check_length(n, "base_values", forest.base.size(), static_cast<size_t>(forest.targets));
  NodeContext::require_eager();
  const Tensor scores = cast(scores_of(n, forest), DType::f32);
  return {post_transformed(n, scores, n.text("post_transform", "NONE")).to(n.device())};
}

// Two classes, but the leaves name only one: its score decides both.
ValueList two_classes(NodeContext& n, const ClassLabels& labels, const Tensor& scores, bool positive) {
  const Tensor second = gt(scores, Scalar(positive ? 0.5 : 0.0));
  Tensor both = positive ? concat({sub(ones_like(scores), scores), scores}, 1) : concat({neg(scores), scores}, 1);
  if (n.text("post_transform", "NONE") == "LOGISTIC") both = concat({sigmoid(neg(scores)), sigmoid(scores)}, 1);
  return {labels.of(n, cast(squeeze(second, 1), DType::i64)), both.to(n.device())};
}

ValueList tree_classifier(NodeContext& n) {
  OldForest old(n, "class");
  Forest& forest = old.forest();
  const ClassLabels labels(n);
  if (old.highest_target() >= labels.count())
    n.invalid(fmt::format("a leaf has class {}, but there are {} classes", old.highest_target(), labels.count()));
  NodeContext::require_eager();
  forest.targets = labels.count();
  const bool one = labels.count() == 2 && old.one_target();
  if (one && forest.base.size() == 1) forest.base.assign(2, forest.base[0]);
  if (!forest.base.empty()) check_length(n, "base_values", forest.base.size(), static_cast<size_t>(forest.targets));
  const Tensor scores = cast(scores_of(n, forest), DType::f32);
  if (one) return two_classes(n, labels, narrow(scores, 1, old.highest_target(), 1), old.all_weights_positive());
  const Tensor places = argmax(scores, 1);
  const Tensor result = post_transformed(n, scores, n.text("post_transform", "NONE"));
  const Value names = labels.of(n, places);
  return {names.is_tensor() ? Value(names.tensor().to(n.device())) : names, result.to(n.device())};
}

// ---- the form of version 5: one list of nodes, one of leaves ----

class NewForest {
 public:
  explicit NewForest(NodeContext& n)
      : n_(n),
        splits_(numbers(n, "nodes_splits")),
        members_(numbers(n, "membership_values")),
        weights_(numbers(n, "leaf_weights")),
        targets_(ints(n, "leaf_targetids")),
        features_(ints(n, "nodes_featureids")),
        missing_(ints(n, "nodes_missing_value_tracks_true")) {
    for (int i = 0; i < 2; ++i) {
      ids_[i] = ints(n, i == 0 ? "nodes_truenodeids" : "nodes_falsenodeids");
      leaf_[i] = ints(n, i == 0 ? "nodes_trueleafs" : "nodes_falseleafs");
    }
    const Doubles modes = numbers(n, "nodes_modes");
    const size_t count = modes.size();
    check_length(n, "nodes_splits", splits_.size(), count);
    check_length(n, "nodes_featureids", features_.size(), count);
    if (!missing_.empty()) check_length(n, "nodes_missing_value_tracks_true", missing_.size(), count);
    for (int i = 0; i < 2; ++i) {
      check_length(n, "node numbers", ids_[i].size(), count);
      check_length(n, "leaf marks", leaf_[i].size(), count);
    }
    check_length(n, "leaf_weights", weights_.size(), targets_.size());
    forest_.targets = n.integer("n_targets", 1);
    forest_.how = static_cast<Sum>(n.integer("aggregate_function", 1));
    read_nodes(modes);
    read_leaves();
    for (int64_t root : ints(n, "tree_roots")) {
      if (root < 0 || static_cast<size_t>(root) >= count)
        n.invalid(fmt::format("a tree begins at node {}, but there are {} nodes", root, count));
      const auto at = static_cast<size_t>(root);
      const bool lone = leaf_[0][at] != 0 && leaf_[1][at] != 0 && ids_[0][at] == ids_[1][at];
      forest_.roots.push_back(lone ? forest_.nodes[at].yes : at);
    }
  }

  const Forest& forest() const { return forest_; }

 private:
  // Nodes come first, then leaves.
  size_t place(int64_t id, bool leaf) {
    const size_t count = leaf ? targets_.size() : splits_.size();
    if (id < 0 || static_cast<size_t>(id) >= count)
      n_.invalid(fmt::format("a node leads to {} {}, but there are only {}", leaf ? "leaf" : "node", id, count));
    return static_cast<size_t>(id) + (leaf ? splits_.size() : 0);
  }

  void read_nodes(const Doubles& modes) {
    size_t member = 0;
    // The sets of members are listed in the order in which ONNX's reference walks the trees.
    for (size_t i = 0; i < modes.size(); ++i) {
      TreeNode node;
      if (!(modes[i] >= 0 && modes[i] <= 6))
        n_.invalid(fmt::format("a node has the mode {}; it must be from 0 to 6", modes[i]));
      node.mode = static_cast<Mode>(static_cast<int>(modes[i]));
      node.feature = features_[i];
      node.value = splits_[i];
      node.missing_is_true = !missing_.empty() && missing_[i] != 0;
      node.yes = place(ids_[0][i], leaf_[0][i] != 0);
      node.no = place(ids_[1][i], leaf_[1][i] != 0);
      while (node.mode == Mode::member && member < members_.size() && !std::isnan(members_[member]))
        node.members.push_back(members_[member++]);
      if (node.mode == Mode::member) ++member;
      forest_.nodes.push_back(node);
    }
  }

  void read_leaves() {
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (targets_[i] < 0 || targets_[i] >= forest_.targets)
        n_.invalid(fmt::format("a leaf has target {}, but there are {} targets", targets_[i], forest_.targets));
      TreeNode leaf;
      leaf.votes.push_back({targets_[i], weights_[i]});
      forest_.nodes.push_back(leaf);
    }
  }

  NodeContext& n_;
  Doubles splits_, members_, weights_;
  Ints targets_, features_, missing_, ids_[2], leaf_[2];
  Forest forest_;
};

ValueList tree_ensemble(NodeContext& n) {
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t transform = n.integer("post_transform", 0);
  if (transform < 0 || transform > 4)
    n.invalid(fmt::format("its post_transform is {}; it must be from 0 to 4", transform));
  const NewForest forest(n);
  NodeContext::require_eager();
  const Tensor scores = cast(scores_of(n, forest.forest()), n.dtype(0));
  return {post_transformed(n, scores, kTransforms[transform]).to(n.device())};
}

constexpr Translator kTreesRows[] = {
    {.domain = kMlDomain, .op_type = "TreeEnsemble", .since = 5, .translate_values = tree_ensemble},
    {.domain = kMlDomain, .op_type = "TreeEnsembleClassifier", .since = 1, .translate_values = tree_classifier},
    {.domain = kMlDomain, .op_type = "TreeEnsembleRegressor", .since = 1, .translate_values = tree_regressor},
};

}  // namespace

std::span<const Translator> tree_translators() { return kTreesRows; }

}  // namespace tenon::onnx
