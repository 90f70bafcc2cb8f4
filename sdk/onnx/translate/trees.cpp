// ai.onnx.ml: ensembles of trees, which run on the host.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <variant>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/forest.h"
#include "sdk/onnx/translate/ml.h"

namespace tenon::onnx {
namespace {

using Doubles = std::vector<double>;

using Mode = TreeNode::Mode;
using Sum = TreeList::Sum;

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

std::span<const int64_t> ints(NodeContext& n, const std::string& name) { return n.integer_list(name); }

void check_length(NodeContext& n, const char* name, size_t have, size_t want) {
  if (have != want) n.invalid(fmt::format("its {} have {} elements; {} are needed", name, have, want));
}

bool has_f32_features(NodeContext& n) {
  const DType dtype = n.dtype(0);
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// The kept trees of a node, for features of one type.
struct Ensemble {
  std::variant<Forest<float>, Forest<double>> forest;
  int64_t targets = 1;
  int64_t highest_target = 0;  // highest target of all leaves
  bool one_target = true;      // all leaves have it
  bool all_positive = true;    // no weight is negative

  Ensemble(NodeContext& n, const TreeList& trees)
      : forest(has_f32_features(n) ? decltype(forest)(Forest<float>(n, trees)) : Forest<double>(n, trees)),
        targets(trees.targets) {}
};

// The ensemble of the node: what `make()` returned for the first input of this type.
template <class Make>
const Ensemble& ensemble(NodeContext& n, Make make) {
  return n.kept<Ensemble>(has_f32_features(n) ? "trees of f32" : "trees of f64", make);
}

// The scores of all rows, [rows, targets].
Doubles scores_of(NodeContext& n, const Ensemble& ensemble) {
  NodeContext::require_eager();
  const Dims& dims = n.dims(0);
  if (dims.rank() < 1 || dims.rank() > 2)
    n.invalid(fmt::format("its input has shape {}; [rows, features] is needed", dims));
  const int64_t features = dims[dims.rank() - 1], rows = dims.rank() == 2 ? dims[0] : 1;
  const auto made = static_cast<double>(rows) * static_cast<double>(ensemble.targets);
  n.require_host_work(made * sizeof(double), made);
  const auto scores = [&]<class T>(const Forest<T>& forest) {
    if (forest.features() > features)
      n.invalid(fmt::format("a node reads feature {}, but a row has {} features", forest.features() - 1, features));
    return forest.scores(n.elements<T>(0), rows, features);
  };
  return std::visit(scores, ensemble.forest);
}

// The scores as a tensor on the host.
Tensor score_tensor(const Ensemble& ensemble, const std::vector<float>& scores) {
  const Dims shape{static_cast<int64_t>(scores.size()) / ensemble.targets, ensemble.targets};
  return Tensor::copy_from_host(scores.data(), shape, DType::f32, Device::host());
}
Tensor score_tensor(const Ensemble& ensemble, const Doubles& scores, DType dtype) {
  if (dtype == DType::f32) return score_tensor(ensemble, {scores.begin(), scores.end()});
  const Dims shape{static_cast<int64_t>(scores.size()) / ensemble.targets, ensemble.targets};
  return cast(Tensor::copy_from_host(scores.data(), shape, DType::f64, Device::host()), dtype);
}

// The position of the greatest score of each row, the first one of equals; NaN counts as greatest.
std::vector<int64_t> greatest_of(const std::vector<float>& scores, int64_t targets) {
  std::vector<int64_t> places;
  for (auto row = scores.begin(); row != scores.end(); row += targets) {
    const auto less = [](float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
    places.push_back(std::max_element(row, row + targets, less) - row);
  }
  return places;
}

// ---- the form of versions 1 to 3: nodes with tree and node numbers ----

class OldForest {
 public:
  // `votes`: "target" or "class", the prefix of the attributes that describe leaves.
  OldForest(NodeContext& n, const std::string& votes) : n_(n) {
    const auto trees = ints(n, "nodes_treeids"), ids = ints(n, "nodes_nodeids");
    const auto features = ints(n, "nodes_featureids"), yes = ints(n, "nodes_truenodeids");
    const auto no = ints(n, "nodes_falsenodeids"), missing = ints(n, "nodes_missing_value_tracks_true");
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
      if (i == 0 || trees[i] != trees[i - 1]) trees_.roots.push_back(i);
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
      trees_.nodes.push_back(node);
    }
    read_votes(votes);
    trees_.base = numbers(n, "base_values");
  }

  TreeList& trees() { return trees_; }
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
    const auto trees = ints(n_, prefix + "_treeids"), ids = ints(n_, prefix + "_nodeids");
    const auto targets = ints(n_, prefix + "_ids");
    const Doubles weights = numbers(n_, prefix + "_weights");
    check_length(n_, "node numbers of leaves", ids.size(), trees.size());
    check_length(n_, "targets of leaves", targets.size(), trees.size());
    check_length(n_, "weights of leaves", weights.size(), trees.size());
    for (size_t i = 0; i < trees.size(); ++i) {
      if (targets[i] < 0 || targets[i] >= 1 << 20)
        n_.invalid(fmt::format("a leaf has the target {}; it must be from 0 to 2^20 - 1", targets[i]));
      trees_.nodes[place(trees[i], ids[i])].votes.push_back({targets[i], weights[i]});
      highest_ = std::max(highest_, targets[i]);
      one_target_ = one_target_ && targets[i] == targets[0];
      least_weight_ = std::min(least_weight_, weights[i]);
    }
  }

  NodeContext& n_;
  TreeList trees_;
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
  const Ensemble& kept = ensemble(n, [&] {
    OldForest old(n, "target");
    TreeList& trees = old.trees();
    trees.targets = n.integer("n_targets", 1);
    trees.how = sum_of(n, n.text("aggregate_function", "SUM"));
    if (old.highest_target() >= trees.targets)
      n.invalid(fmt::format("a leaf has target {}, but there are {} targets", old.highest_target(), trees.targets));
    if (!trees.base.empty()) check_length(n, "base_values", trees.base.size(), static_cast<size_t>(trees.targets));
    return Ensemble(n, trees);
  });
  const Tensor scores = score_tensor(kept, scores_of(n, kept), DType::f32);
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
  const ClassLabels labels(n);
  const Ensemble& kept = ensemble(n, [&] {
    OldForest old(n, "class");
    TreeList& trees = old.trees();
    if (old.highest_target() >= labels.count())
      n.invalid(fmt::format("a leaf has class {}, but there are {} classes", old.highest_target(), labels.count()));
    trees.targets = labels.count();
    const bool one = labels.count() == 2 && old.one_target();
    if (one && trees.base.size() == 1) trees.base.assign(2, trees.base[0]);
    if (!trees.base.empty()) check_length(n, "base_values", trees.base.size(), static_cast<size_t>(trees.targets));
    Ensemble made(n, trees);
    made.highest_target = old.highest_target();
    made.one_target = old.one_target();
    made.all_positive = old.all_weights_positive();
    return made;
  });
  const Doubles exact = scores_of(n, kept);
  const std::vector<float> scores(exact.begin(), exact.end());
  const Tensor tensor = score_tensor(kept, scores);
  if (labels.count() == 2 && kept.one_target)
    return two_classes(n, labels, narrow(tensor, 1, kept.highest_target, 1), kept.all_positive);
  const Tensor result = post_transformed(n, tensor, n.text("post_transform", "NONE"));
  return {labels.of(n, greatest_of(scores, kept.targets)), result.to(n.device())};
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
    trees_.targets = n.integer("n_targets", 1);
    trees_.how = static_cast<Sum>(n.integer("aggregate_function", 1));
    read_nodes(modes);
    read_leaves();
    for (int64_t root : ints(n, "tree_roots")) {
      if (root < 0 || static_cast<size_t>(root) >= count)
        n.invalid(fmt::format("a tree begins at node {}, but there are {} nodes", root, count));
      const auto at = static_cast<size_t>(root);
      const bool lone = leaf_[0][at] != 0 && leaf_[1][at] != 0 && ids_[0][at] == ids_[1][at];
      trees_.roots.push_back(lone ? trees_.nodes[at].yes : at);
    }
  }

  const TreeList& trees() const { return trees_; }

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
      trees_.nodes.push_back(node);
    }
  }

  void read_leaves() {
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (targets_[i] < 0 || targets_[i] >= trees_.targets)
        n_.invalid(fmt::format("a leaf has target {}, but there are {} targets", targets_[i], trees_.targets));
      TreeNode leaf;
      leaf.votes.push_back({targets_[i], weights_[i]});
      trees_.nodes.push_back(leaf);
    }
  }

  NodeContext& n_;
  Doubles splits_, members_, weights_;
  std::span<const int64_t> targets_, features_, missing_, ids_[2], leaf_[2];
  TreeList trees_;
};

ValueList tree_ensemble(NodeContext& n) {
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t transform = n.integer("post_transform", 0);
  if (transform < 0 || transform > 4)
    n.invalid(fmt::format("its post_transform is {}; it must be from 0 to 4", transform));
  const Ensemble& kept = ensemble(n, [&] { return Ensemble(n, NewForest(n).trees()); });
  const Tensor scores = score_tensor(kept, scores_of(n, kept), n.dtype(0));
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
