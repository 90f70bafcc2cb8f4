#include "sdk/onnx/proto/wire.h"

#include <gtest/gtest.h>

#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx_proto {
namespace {

// Bytes written by hand from the specification of protobuf, not by our writer.
std::string bytes_of(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text.push_back(static_cast<char>(value));
  return text;
}

TEST(Wire, ReadsNumbersStringsAndNegativeIntegers) {
  TensorProto tensor;
  // dims: 300; dims: -1; data_type: 1; name: "ab"
  const std::string bytes = bytes_of({0x08, 0xac, 0x02, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0x01, 0x10, 0x01, 0x42, 0x02, 'a',  'b'});
  EXPECT_EQ(decode(bytes, &tensor), "");
  EXPECT_EQ(tensor.dims, (std::vector<int64_t>{300, -1}));
  EXPECT_EQ(tensor.data_type, 1);
  EXPECT_EQ(tensor.name, "ab");
  EXPECT_TRUE(tensor.has(TensorProto::k_data_type));
  EXPECT_FALSE(tensor.has(TensorProto::k_raw_data));
}

TEST(Wire, TakesPackedAndSingleNumbersAlike) {
  TensorProto packed, single;
  EXPECT_EQ(decode(bytes_of({0x0a, 0x02, 0x05, 0x07}), &packed), "");
  EXPECT_EQ(decode(bytes_of({0x08, 0x05, 0x08, 0x07}), &single), "");
  EXPECT_EQ(packed.dims, single.dims);
  EXPECT_EQ(packed.dims, (std::vector<int64_t>{5, 7}));
}

TEST(Wire, WritesPackedNumbersOfFixedSizeAsItReadsThem) {
  TensorProto tensor, again;
  tensor.float_data = {1.5f, -2.25f, 3e30f};
  tensor.double_data = {0.1, -1e200};
  EXPECT_EQ(decode(encode(tensor), &again), "");
  EXPECT_EQ(again.float_data, tensor.float_data);
  EXPECT_EQ(again.double_data, tensor.double_data);
}

TEST(Wire, SkipsFieldsItDoesNotKnow) {
  TensorProto tensor;
  // field 100 as a number, as eight bytes, as text, as four bytes; then data_type: 3
  const std::string bytes = bytes_of({0xa0, 0x06, 0x01, 0xa1, 0x06, 1,    2, 3, 4, 5, 6,    7,   8,
                                      0xa2, 0x06, 0x01, 'x',  0xa5, 0x06, 1, 2, 3, 4, 0x10, 0x03});
  EXPECT_EQ(decode(bytes, &tensor), "");
  EXPECT_EQ(tensor.data_type, 3);
}

TEST(Wire, LastMemberOfAOneofWins) {
  TensorShapeProto_Dimension dim;
  EXPECT_EQ(decode(bytes_of({0x08, 0x05, 0x12, 0x01, 'n'}), &dim), "");
  EXPECT_FALSE(dim.has(TensorShapeProto_Dimension::k_dim_value));
  EXPECT_TRUE(dim.has(TensorShapeProto_Dimension::k_dim_param));
}

TEST(Wire, RefusesWhatIsCutOffAtEveryByte) {
  onnx::ModelBuilder builder;
  builder.input("x", onnx::kFloat, {"2"});
  builder.output("y", onnx::kFloat, {"2"});
  builder.node("Relu", {"x"}, {"y"}, "only");
  const std::string whole = builder.bytes();
  ModelProto model;
  ASSERT_EQ(decode(whole, &model), "");
  int refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    ModelProto part;
    if (!decode(std::string_view(whole).substr(0, size), &part).empty()) ++refused;
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) - 10);  // all but the lengths that end between two fields
}

TEST(Wire, RefusesALengthBeyondTheBuffer) {
  TensorProto tensor;
  EXPECT_EQ(decode(bytes_of({0x42, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'}), &tensor),
            "At byte 6: a field says it is 4294967295 bytes long, but only 1 bytes are left.");
}

TEST(Wire, RefusesANumberOfMoreThan64Bits) {
  TensorProto tensor;
  EXPECT_NE(decode(bytes_of({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), &tensor), "");
}

TEST(Wire, RefusesDeepNesting) {
  // TypeProto.sequence_type.elem_type, nested many times.
  std::string bytes;
  for (int depth = 0; depth < 200; ++depth) {
    Writer outer, inner;
    inner.tag(1, WireType::bytes);
    inner.bytes(bytes);
    outer.tag(4, WireType::bytes);
    outer.bytes(inner.text());
    bytes = outer.text();
  }
  TypeProto type;
  EXPECT_NE(decode(bytes, &type).find("nested more than 64 deep"), std::string::npos);
}

TEST(Wire, RefusesAFileWhoseMessagesNeedFarMoreMemoryThanItsBytes) {
  std::string bytes;
  for (int i = 0; i < 1000000; ++i) bytes += bytes_of({0x0a, 0x00});  // an empty node, two bytes each
  GraphProto graph;
  EXPECT_NE(decode(bytes, &graph).find("take more memory"), std::string::npos);
}

TEST(Wire, WritesWhatItReads) {
  onnx::ModelBuilder builder;
  builder.input("x", onnx::kFloat, {"batch", "3"});
  builder.output("y", onnx::kFloat, {"batch", "3"});
  builder.integers(builder.node("ReduceSum", {"x", "w"}, {"y"}), "axes", {-1, 7});
  builder.weight<float>("w", onnx::kFloat, {2}, {1.5f, -2.0f});
  const std::string bytes = builder.bytes();
  ModelProto model;
  ASSERT_EQ(decode(bytes, &model), "");
  EXPECT_EQ(encode(model), bytes);
  EXPECT_EQ(model.graph->node[0].attribute[0].ints, (std::vector<int64_t>{-1, 7}));
}

}  // namespace
}  // namespace tenon::onnx_proto
