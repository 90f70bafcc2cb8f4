// Constraints: what the shapes of the inputs and the attributes of a node demand of each other. The rows are in
// constraints.def, which says how they are written.
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

// One place in a shape.
struct SizeTerm {
  std::string_view text;                  // as it is written
  bool list = false;                      // any number of sizes
  int64_t factor = 1;                     // of a product: its number
  std::vector<std::string_view> letters;  // of a product, or the one letter of a list; empty and `any`: no demand
  bool any = false;
};

struct ShapeRule {
  enum class Form : uint8_t { any, exact, broadcasts, one_element };
  Form form = Form::any;
  std::string_view flag;  // the attribute that chooses between `terms` and `otherwise`; empty: `terms`
  std::vector<SizeTerm> terms, otherwise;
};

struct NumberRule {
  enum class Form : uint8_t { free, gives, equals, word, sizes, count };
  Form form = Form::free;
  std::string_view attribute;
  std::string_view letter;        // of gives, equals, word; of count: the list, or empty
  std::string_view word;          // of word
  std::optional<int64_t> absent;  // of gives: the letter without the attribute
  std::vector<SizeTerm> terms;    // of sizes
  int64_t times = 1;              // of count
  std::optional<int64_t> least;   // of each number
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

// The limit of an attribute's numbers that the node breaks, as a sentence without its end. Empty if it breaks none.
std::string broken_limits(const Node& node);

// The constraint that the node breaks with inputs of these shapes (none: not known, or the input is absent). What it
// asks of open sizes becomes a guard of the recording.
std::string broken_constraints(const Node& node, std::span<const std::optional<SymDims>> shapes);

}  // namespace tenon::onnx
