// Constraints: how the shapes of a node's inputs and its attributes must fit together. The rows are in constraints.def,
// whose head explains their form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/symbolic/sym_dim.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// One term of a shape.
struct SizeTerm {
  std::string_view text;                  // as it is written in the row
  bool list = false;                      // a list of any number of sizes
  int64_t factor = 1;                     // the number in a product
  std::vector<std::string_view> letters;  // the letters of a product, or the one letter of a list; if empty and `any`,
                                          // any size fits
  bool any = false;
};

struct ShapeRule {
  enum class Form : uint8_t { any, exact, broadcasts, one_element };
  Form form = Form::any;
  std::string_view flag;  // the attribute that chooses between `terms` and `otherwise`; empty: always `terms`
  std::vector<SizeTerm> terms, otherwise;
};

struct NumberRule {
  enum class Form : uint8_t { free, gives, equals, word, sizes, count };
  Form form = Form::free;
  std::string_view attribute;
  std::string_view letter;  // the letter of a `gives`, `equals` or `word` rule; the list of a `count` rule, or empty
  std::string_view word;    // for word
  std::optional<int64_t> absent;  // for gives: the letter's value if the attribute is absent
  std::vector<SizeTerm> terms;    // for sizes
  int64_t times = 1;              // for count
  std::optional<int64_t> least;   // limit of each number
  int64_t most = INT32_MAX;
};

struct Constraints {
  std::string_view domain, op_type;
  int64_t since = 0, until = 0;
  std::vector<ShapeRule> inputs;
  std::vector<NumberRule> attributes;
};

// All rows.
const std::vector<Constraints>& all_constraints();
// The row of the node's operator and version; NULL if there is none.
const Constraints* find_constraints(const Node& node);

// A sentence, without its full stop, about an attribute whose numbers exceed their limits. Empty if there is none.
std::string broken_limits(const Node& node);

// A sentence about the constraint that the node breaks with inputs of these shapes (none: not known, or the input is
// absent); empty if it breaks none. A demand on open sizes becomes a guard of the recording.
std::string broken_constraints(const Node& node, std::span<const std::optional<SymDims>> shapes);

}  // namespace tenon::onnx
