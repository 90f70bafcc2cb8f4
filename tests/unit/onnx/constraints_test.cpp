// Tests the rows of sdk/onnx/schema/constraints.def: a valid model of each row, and models that break each shape and
// each attribute in turn. load() names the broken constraint.
#include "sdk/onnx/schema/constraints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/schema/schema.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Form = ShapeRule::Form;

// The shapes and attributes of one node.
struct Given {
  std::vector<std::optional<Ints>> shapes;  // none: the input is left out
  std::map<std::string, Ints> numbers;      // one number: an int attribute, if the schema says so
};

bool has_attribute(const Schema& schema, std::string_view name) {
  return std::any_of(schema.attributes.begin(), schema.attributes.end(),
                     [&](const AttributeRule& attribute) { return attribute.name == name; });
}

// The newest version that the row applies to. Domains other than ONNX's have at most five versions.
int64_t version_of(const Constraints& row) {
  return std::min<int64_t>(row.until, row.domain.empty() ? kNewestOpset : 5);
}

class Walk {
 public:
  Walk(const Constraints& row, bool flags) : row_(row), flags_(flags) {
    version_ = version_of(row);
    schema_ = find_schema(row.domain, row.op_type, version_);
  }

  bool has_schema() const { return schema_ != nullptr; }
  std::string name() const { return fmt::format("{}{}", row_.op_type, flags_ ? " with its flags" : ""); }

  // Sizes of an instance of the row, chosen so that no sum or product of others equals one by accident.
  Given kept() {
    Given given;
    for (const NumberRule& rule : row_.attributes) set_number(rule, &given);
    for (const ShapeRule& rule : row_.inputs) {
      if (!rule.flag.empty() && flags_) given.numbers[std::string(rule.flag)] = {1};
      given.shapes.push_back(rule.form == Form::any ? std::nullopt : std::optional(sizes_of(terms_of(rule))));
      if (rule.form == Form::one_element && rule.terms.empty()) given.shapes.back() = Ints();
    }
    given.shapes.resize(std::min(given.shapes.size(), schema_->inputs.size()));
    return given;
  }

  // Each breaks one part of kept(), which the text names.
  std::vector<std::pair<std::string, Given>> broken() {
    std::vector<std::pair<std::string, Given>> list;
    const Given right = kept();
    for (size_t i = 0; i < right.shapes.size(); ++i) {
      for (const Ints& shape : broken_shapes(i)) {
        Given wrong = right;
        wrong.shapes[i] = shape;
        list.emplace_back("has the shape", std::move(wrong));
      }
    }
    for (const NumberRule& rule : row_.attributes) {
      if (!has_attribute(*schema_, rule.attribute)) continue;  // another version of the operator has it
      for (const Ints& numbers : broken_numbers(rule, right)) {
        Given wrong = right;
        wrong.numbers[std::string(rule.attribute)] = numbers;
        list.emplace_back(fmt::format("its attribute '{}' is ", rule.attribute), std::move(wrong));
      }
    }
    return list;
  }

  // Returns an empty string if the model loads.
  std::string refusal_of(const Given& given) {
    ModelBuilder model(row_.domain.empty() ? version_ : 20);
    std::vector<std::string> inputs;
    for (size_t i = 0; i < schema_->inputs.size(); ++i) add_input(i, given, &model, &inputs);
    std::vector<std::string> outputs;
    for (size_t i = 0; i < schema_->outputs.size() && (i == 0 || !schema_->outputs[i].optional); ++i)
      outputs.push_back(fmt::format("y{}", i));
    proto::NodeProto& node = model.node(std::string(row_.op_type), inputs, outputs, "walked");
    if (!row_.domain.empty()) import_domain(&model, &node);
    for (const AttributeRule& rule : schema_->attributes) add_attribute(rule, given, &model, &node);
    model.output("y0", kFloat, {});
    model.graph().output[0].type.reset();
    model.graph().output[0].present &= ~(1u << proto::ValueInfoProto::k_type);
    try {
      load_bytes(model.bytes());
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

 private:
  const std::vector<SizeTerm>& terms_of(const ShapeRule& rule) const {
    return rule.flag.empty() || flags_ ? rule.terms : rule.otherwise;
  }

  int64_t size_of(std::string_view letter) {
    static constexpr int64_t kSizes[] = {3, 5, 7, 11, 13, 17, 19, 23, 29};
    const auto known = letters_.find(letter);
    if (known != letters_.end()) return known->second;
    return letters_[letter] = kSizes[letters_.size()];
  }

  static Ints list() { return {31, 37}; }

  int64_t size_of(const SizeTerm& term) {
    int64_t size = term.any ? 2 : term.factor;
    for (std::string_view letter : term.letters) size *= size_of(letter);
    return size;
  }

  Ints sizes_of(const std::vector<SizeTerm>& terms) {
    Ints sizes;
    for (const SizeTerm& term : terms) {
      const Ints more = term.list ? list() : Ints{size_of(term)};
      sizes.insert(sizes.end(), more.begin(), more.end());
    }
    return sizes;
  }

  void set_number(const NumberRule& rule, Given* given) {
    const std::string name(rule.attribute);
    switch (rule.form) {
      case NumberRule::Form::gives: given->numbers[name] = {letters_[rule.letter] = 2}; break;
      case NumberRule::Form::equals: given->numbers[name] = {size_of(rule.letter)}; break;
      case NumberRule::Form::word: letters_[rule.letter] = 1; break;
      case NumberRule::Form::sizes: given->numbers[name] = sizes_of(rule.terms); break;
      case NumberRule::Form::count:
        given->numbers[name] =
            Ints(static_cast<size_t>(rule.times) * (rule.letter.empty() ? 1 : list().size()), rule.least.value_or(1));
        break;
      case NumberRule::Form::free: break;
    }
  }

  // How often the row uses a letter outside of input `i`. Of a list, attributes hold only the number of its sizes.
  size_t elsewhere(std::string_view letter, bool list, size_t i) const {
    size_t count = 0;
    for (size_t j = 0; j < row_.inputs.size(); ++j) {
      for (const SizeTerm& term : terms_of(row_.inputs[j]))
        count += j == i ? 0 : static_cast<size_t>(std::count(term.letters.begin(), term.letters.end(), letter));
    }
    for (const NumberRule& rule : row_.attributes) count += rule.letter == letter && !list ? 1 : 0;
    return count;
  }

  // True if the rest of the row determines the term.
  bool is_decided(const SizeTerm& term, size_t i) const {
    return !term.any && std::all_of(term.letters.begin(), term.letters.end(),
                                    [&](std::string_view letter) { return elsewhere(letter, term.list, i) != 0; });
  }

  std::vector<Ints> broken_shapes(size_t i) {
    const ShapeRule& rule = row_.inputs[i];
    const std::vector<SizeTerm>& terms = terms_of(rule);
    if (rule.form == Form::any) return {};
    if (rule.form == Form::one_element && terms.empty()) return {{2}, {1, 1}};
    const Ints right = sizes_of(terms);
    const auto lists = std::count_if(terms.begin(), terms.end(), [](const SizeTerm& term) { return term.list; });
    std::vector<Ints> wrong;
    if (lists == 0 || rule.form == Form::broadcasts) {
      wrong.push_back(right);
      wrong.back().insert(wrong.back().begin(), 2);
    } else if (terms.size() > 1) {
      wrong.push_back(Ints(terms.size() - 2, 2));
    }
    size_t at = 0;
    for (const SizeTerm& term : terms) {
      if (is_decided(term, i) && rule.form != Form::one_element) {
        wrong.push_back(right);
        ++wrong.back()[at];
      }
      at += term.list ? list().size() : 1;
    }
    return wrong;
  }

  std::vector<Ints> broken_numbers(const NumberRule& rule, const Given& right) {
    const auto known = right.numbers.find(std::string(rule.attribute));
    const Ints numbers = known == right.numbers.end() ? Ints{rule.least.value_or(0)} : known->second;
    std::vector<Ints> wrong;
    if (rule.least) {
      for (const int64_t outside : {*rule.least - 1, rule.most + 1, INT64_MIN, INT64_MAX}) {
        wrong.push_back(numbers);
        wrong.back().back() = outside;
      }
    }
    if (rule.form == NumberRule::Form::equals || rule.form == NumberRule::Form::sizes) {
      wrong.push_back(numbers);
      ++wrong.back().back();
    } else if (rule.form == NumberRule::Form::count) {
      wrong.push_back(numbers);
      wrong.back().push_back(rule.least.value_or(1));
    }
    return wrong;
  }

  // Inputs of one letter share a type; float is the first choice.
  int32_t type_of(size_t i) const {
    for (const int32_t type : {kFloat, kInt64, kInt32, kUint8, kBool}) {
      const DType dtype = dtype_of_onnx(type);
      if ((schema_->inputs[i].types >> type_id(dtype) & 1) != 0) return type;
    }
    return kFloat;
  }

  void add_input(size_t i, const Given& given, ModelBuilder* model, std::vector<std::string>* inputs) {
    const bool known = i < given.shapes.size() && given.shapes[i];
    if (!known && schema_->inputs[i].optional) return inputs->push_back("");
    std::vector<std::string> dims;
    for (const int64_t dim : known ? *given.shapes[i] : Ints{2}) dims.push_back(fmt::format("{}", dim));
    inputs->push_back(fmt::format("x{}", i));
    model->input(inputs->back(), type_of(i), dims);
  }

  void import_domain(ModelBuilder* model, proto::NodeProto* node) const {
    node->domain = row_.domain;
    ModelBuilder::mark(*node, proto::NodeProto::k_domain);
    proto::OperatorSetIdProto& import = model->model().opset_import.emplace_back();
    import.domain = row_.domain;
    import.version = version_;
    ModelBuilder::mark(import, proto::OperatorSetIdProto::k_domain);
    ModelBuilder::mark(import, proto::OperatorSetIdProto::k_version);
  }

  // For everything that the row does not constrain, only what a node must have.
  static void add_attribute(const AttributeRule& rule, const Given& given, ModelBuilder* model,
                            proto::NodeProto* node) {
    const std::string name(rule.name);
    const auto known = given.numbers.find(name);
    if (known == given.numbers.end() && !rule.required) return;
    if (rule.kind == Attribute::Kind::integer) {
      model->integer(*node, name, known == given.numbers.end() ? 1 : known->second.back());
    } else if (rule.kind == Attribute::Kind::integers) {
      model->integers(*node, name, known == given.numbers.end() ? Ints{1} : known->second);
    } else if (rule.kind == Attribute::Kind::tensor) {
      proto::AttributeProto& tensor = model->attribute(*node, name, proto::AttributeProto::AttributeType_TENSOR);
      tensor.t = std::make_unique<proto::TensorProto>();
      tensor.t->data_type = kFloat;
      tensor.t->dims = {0};
      ModelBuilder::mark(*tensor.t, proto::TensorProto::k_data_type);
      ModelBuilder::mark(tensor, proto::AttributeProto::k_t);
    } else if (rule.kind == Attribute::Kind::number) {
      model->attribute(*node, name, proto::AttributeProto::AttributeType_FLOAT);  // 0
    } else {
      model->text(*node, name, rule.values.empty() ? "standard" : std::string(rule.values[0]));
    }
  }

  const Constraints& row_;
  const Schema* schema_ = nullptr;
  bool flags_;
  int64_t version_ = 0;
  std::map<std::string_view, int64_t> letters_;
};

bool has_flags(const Constraints& row) {
  return std::any_of(row.inputs.begin(), row.inputs.end(), [](const ShapeRule& rule) { return !rule.flag.empty(); });
}

bool says_expected(const std::string& text) {
  return text.find(" expected") != std::string::npos || text.find("have the shapes for") != std::string::npos;
}

TEST(Constraints, ARowThatIsBrokenIsNamed) {
  for (const Constraints& row : all_constraints()) {
    for (const bool flags : {false, true}) {
      if (flags && !has_flags(row)) continue;
      Walk walk(row, flags);
      ASSERT_TRUE(walk.has_schema()) << row.op_type;
      const std::string kept = walk.refusal_of(walk.kept());
      EXPECT_FALSE(says_expected(kept)) << walk.name() << ": " << kept;
      const auto broken = walk.broken();
      EXPECT_FALSE(broken.empty()) << walk.name();
      for (const auto& [says, given] : broken) {
        const std::string text = walk.refusal_of(given);
        EXPECT_TRUE(says_expected(text)) << walk.name() << " should say " << says << ": " << text;
        EXPECT_NE(text.find(says), std::string::npos) << walk.name() << " should say " << says << ": " << text;
        EXPECT_NE(text.find(std::string(row.op_type)), std::string::npos) << text;
        EXPECT_NE(text.find("node 0 (walked)"), std::string::npos) << text;
      }
    }
  }
}

TEST(Constraints, ANumberOfHeadsIsThatOfTheShape) {
  const auto refusal_of = [](const std::string& op, const std::vector<std::string>& inputs, const char* attribute,
                             int64_t heads) {
    ModelBuilder model(24);
    for (size_t i = 0; i < inputs.size(); ++i)
      model.input(inputs[i], kFloat,
                  op == "Attention" || i == 0 ? std::vector<std::string>{"2", "4", "3", "8"}
                                              : std::vector<std::string>{"2", "3", "4"});
    model.integer(model.node(op, inputs, {"y"}), attribute, heads);
    model.output("y", kFloat, {"2", "4", "3", "8"});
    try {
      load_bytes(model.bytes());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* attribute : {"q_num_heads", "kv_num_heads"}) {
    EXPECT_EQ(refusal_of("Attention", {"q", "k", "v"}, attribute, 4), "");
    const std::string text = refusal_of("Attention", {"q", "k", "v"}, attribute, 2);
    EXPECT_NE(text.find(fmt::format("its attribute '{}' is 2", attribute)), std::string::npos) << text;
    EXPECT_NE(text.find("has the shape [2, 4, 3, 8]"), std::string::npos) << text;
  }
  EXPECT_EQ(refusal_of("RotaryEmbedding", {"x", "c", "s"}, "num_heads", 4), "");
  EXPECT_NE(refusal_of("RotaryEmbedding", {"x", "c", "s"}, "num_heads", 3).find("its attribute 'num_heads' is 3"),
            std::string::npos);
}

// A node whose input number `number` holds lengths that must be from 0 to 4, the length of an axis.
struct Lengths {
  const char* op;
  std::vector<std::vector<std::string>> shapes;  // the shapes of the earlier inputs
  size_t number;
  int32_t type;
};

std::string error_of_lengths(const Lengths& of, const std::vector<int64_t>& lengths, bool eager) {
  ModelBuilder model(24);
  Inputs inputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < of.number; ++i) {
    names.push_back(i < of.shapes.size() ? fmt::format("x{}", i) : "");
    if (i >= of.shapes.size()) continue;
    model.input(names.back(), kFloat, of.shapes[i]);
    Dims dims;
    for (const std::string& dim : of.shapes[i]) dims.push_back(std::stoll(dim));
    inputs[names.back()] = full(dims, Scalar(0.5), DType::f32);
  }
  names.push_back("lengths");
  model.input("lengths", of.type, {"2"});
  inputs["lengths"] = cast(Tensor::from<int64_t>(lengths, {2}), dtype_of_onnx(of.type));
  model.node(of.op, names, {"y"}, "measured");
  model.output("y", kFloat, {});
  model.graph().output[0].type->tensor_type->shape.reset();
  model.graph().output[0].type->tensor_type->present &= ~(1u << proto::TypeProto_Tensor::k_shape);
  Options options;
  options.eager = eager;
  const Model loaded = load_bytes(model.bytes(), options);
  try {
    loaded.run(inputs)[0].wait();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Constraints, LengthsAreWithinTheirAxis) {
  const Lengths nodes[] = {{"Attention", {{"2", "3", "5", "8"}, {"2", "3", "4", "8"}, {"2", "3", "4", "8"}}, 6, kInt64},
                           {"LSTM", {{"4", "2", "3"}, {"1", "8", "3"}, {"1", "8", "2"}}, 4, kInt32},
                           {"GRU", {{"4", "2", "3"}, {"1", "6", "3"}, {"1", "6", "2"}}, 4, kInt32},
                           {"RNN", {{"4", "2", "3"}, {"1", "2", "3"}, {"1", "2", "2"}}, 4, kInt32},
                           {"TensorScatter", {{"2", "6", "3"}, {"2", "2", "3"}}, 2, kInt64},
                           {"ReverseSequence", {{"4", "2"}}, 1, kInt64}};
  for (const Lengths& node : nodes) {
    for (const bool eager : {false, true}) {
      EXPECT_EQ(error_of_lengths(node, {0, 4}, eager), "") << node.op;
      for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{1, -1}, {5, 2}, {INT32_MIN, 0}, {0, INT32_MAX}}) {
        const std::string text = error_of_lengths(node, wrong, eager);
        EXPECT_NE(text.find("node 0 (measured)"), std::string::npos) << node.op << ": " << text;
        EXPECT_NE(text.find(eager ? "0 to 4 is expected" : "out of range"), std::string::npos)
            << node.op << ": " << text;
      }
    }
  }
}

TEST(Constraints, EveryRowIsOfAnOperatorAndItsAttributes) {
  for (const Constraints& row : all_constraints()) {
    const Schema* schema = find_schema(row.domain, row.op_type, version_of(row));
    ASSERT_NE(schema, nullptr) << row.op_type;
    for (const NumberRule& rule : row.attributes) {
      const Schema* first = find_schema(row.domain, row.op_type, row.since);
      EXPECT_TRUE(has_attribute(*schema, rule.attribute) || (first != nullptr && has_attribute(*first, rule.attribute)))
          << row.op_type << " " << rule.attribute;
      // A letter is used in sizes, which have 63 bits.
      const bool sizes = rule.form == NumberRule::Form::gives || rule.form == NumberRule::Form::equals;
      EXPECT_TRUE(rule.least || !sizes) << row.op_type << " " << rule.attribute;
    }
  }
}

}  // namespace
}  // namespace tenon::onnx
