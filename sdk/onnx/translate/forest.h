// Forest: decision trees in the form in which rows of features are scored. T is float or double, the type of features.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::onnx {

class NodeContext;

// A node of a tree as files describe it.
struct TreeNode {
  enum class Mode : uint8_t { le, lt, ge, gt, eq, ne, member, leaf };
  Mode mode = Mode::leaf;
  bool missing_is_true = false;  // a feature that is NaN leads to `yes`
  int64_t feature = 0;
  double value = 0;
  std::vector<double> members;  // for Mode::member
  size_t yes = 0, no = 0;       // indices of the next nodes
  struct Vote {
    int64_t target = 0;
    double weight = 0;
  };
  std::vector<Vote> votes;  // for a leaf
};

struct TreeList {
  enum class Sum : uint8_t { average, sum, least, greatest };
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;
  int64_t targets = 1;
  Sum how = Sum::sum;
  std::vector<double> base;  // by target; may be empty
};

// All comparisons are made with `<=` on T, so that a step has no branch: nodes of other modes become one or more of
// these. A leaf leads to itself, so that several walks can go on together until the last one has ended.
template <class T>
class Forest {
 public:
  // Errors: invalid, if a tree contains a cycle or reads a feature with a negative number.
  Forest(NodeContext& n, const TreeList& trees);

  // The number of features that a row must have at least.
  int64_t features() const { return features_; }
  // The scores [rows, targets] of row-major features. A score is summed in the order of the trees, whatever the number
  // of rows.
  std::vector<double> scores(std::span<const T> x, int64_t rows, int64_t features) const;

 private:
  struct Branch {
    T value;           // for a leaf: its number
    uint32_t feature;  // place in a row
    uint32_t next[2];  // if the feature is at most `value`; otherwise, and for NaN
  };
  struct Vote {
    uint32_t target;
    T weight;
  };
  struct Totals {
    std::vector<double> sums;  // [rows, targets]
    std::vector<char> voted;   // whether a leaf voted for the target; empty if votes are added
  };
  class Builder;

  // Puts each node right before the one that it leads to first, so that a walk reads few cache lines.
  void arrange();
  // Fills weights_ if every leaf votes once for each target.
  void list_weights();
  void score_rows(const T* rows, int64_t width, int64_t first, int64_t count, Totals* totals) const;
  void score_row(const T* row, int64_t number, Totals* totals) const;
  void vote(uint32_t node, Totals* totals, int64_t row) const;

  std::vector<Branch> nodes_;
  std::vector<uint32_t> roots_;
  std::vector<uint32_t> depths_;       // by root: the most steps to a leaf
  std::vector<uint32_t> first_votes_;  // by leaf, and the number of all votes
  std::vector<Vote> votes_;
  std::vector<double> weights_;  // [leaves, targets], instead of votes_; empty if a leaf has other votes
  int64_t targets_ = 1, features_ = 0;
  bool negated_ = false;  // rows hold each feature and its negative, for nodes that treat NaN as at most `value`
  TreeList::Sum how_ = TreeList::Sum::sum;
  std::vector<double> base_;
};

}  // namespace tenon::onnx
