// Operators that select elements by index, on the current device: their results and their refusals.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::onnx {
namespace {

std::vector<float> random_floats(size_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// A node with x and indices, and one integer attribute.
struct IndexOp {
  const char* op;
  const char* attribute;
  int64_t value;
};

std::vector<std::string> free_dims(const std::string& prefix, int32_t rank) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < rank; ++i) names.push_back(fmt::format("{}{}", prefix, i));
  return names;
}

std::string index_model(const IndexOp& op, int32_t x_rank, int32_t index_rank, int32_t result_rank) {
  ModelBuilder builder(13);
  builder.input("x", kFloat, free_dims("x", x_rank));
  builder.input("i", kInt64, free_dims("i", index_rank));
  builder.output("y", kFloat, free_dims("y", result_rank));
  builder.integer(builder.node(op.op, {"x", "i"}, {"y"}), op.attribute, op.value);
  return builder.bytes();
}

IndexOp gather_nd(int64_t batch) { return {"GatherND", "batch_dims", batch}; }

int32_t result_rank(const IndexOp& op, const Dims& x, const Dims& indices) {
  if (op.op == std::string("GatherElements")) return x.rank();
  if (op.op == std::string("Gather")) return x.rank() + indices.rank() - 1;
  return indices.rank() - 1 + x.rank() - static_cast<int32_t>(op.value) - static_cast<int32_t>(indices.back());
}

Options options(bool eager) {
  Options made;
  made.eager = eager;
  return made;
}

std::vector<float> run(const IndexOp& op, bool eager, const std::vector<float>& x, const Dims& x_dims,
                       const std::vector<int64_t>& indices, const Dims& index_dims) {
  const Inputs inputs{{"x", Tensor::from<float>(x, x_dims)}, {"i", Tensor::from<int64_t>(indices, index_dims)}};
  const std::string model = index_model(op, x_dims.rank(), index_dims.rank(), result_rank(op, x_dims, index_dims));
  return load_bytes(model, options(eager)).run(inputs)[0].to_host<float>();
}

void expect_fault(const IndexOp& op, bool eager, const Dims& x_dims, const std::vector<int64_t>& indices,
                  const Dims& index_dims, int64_t wrong, int64_t length) {
  const std::string wanted = fmt::format("index {} is out of range for an axis of length {}", wrong, length);
  try {
    run(op, eager, random_floats(static_cast<size_t>(element_count(x_dims))), x_dims, indices, index_dims);
    ADD_FAILURE() << "no error, but: " << wanted;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos) << error.what();
  }
}

struct Places {
  Dims x;
  int64_t batch;
  Dims leading;  // the leading dims of the indices, batch axes included
  int64_t k;
};

const Places kPlaces[] = {{{5, 3}, 0, {4}, 1},    {{5, 3}, 0, {2, 3}, 2},       {{4, 3, 2}, 0, {7}, 2},
                          {{2, 3, 4}, 0, {6}, 3}, {{2, 5, 3, 2}, 1, {2, 3}, 1}, {{2, 3, 4, 2}, 1, {2, 5}, 2}};

// The offset of the first element that one row of indices names, in batch `outer`.
int64_t place_of(const Places& p, int64_t outer, const int64_t* row) {
  int64_t place = outer;
  for (int64_t i = 0; i < p.k; ++i) {
    const int64_t length = p.x[static_cast<int32_t>(p.batch + i)];
    place = place * length + (row[i] < 0 ? row[i] + length : row[i]);
  }
  return place;
}

TEST(GatherNd, PicksWhatALoopPicks) {
  std::mt19937 random(3);
  for (const Places& p : kPlaces) {
    const std::vector<float> x = random_floats(static_cast<size_t>(element_count(p.x)));
    int64_t outer = 1, inner = 1;
    for (int32_t i = 0; i < p.batch; ++i) outer *= p.x[i];
    for (auto i = static_cast<int32_t>(p.batch + p.k); i < p.x.rank(); ++i) inner *= p.x[i];
    const int64_t rows = element_count(p.leading);
    std::vector<int64_t> indices;
    std::vector<float> wanted;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < p.k; ++i) {
        const int64_t length = p.x[static_cast<int32_t>(p.batch + i)];
        indices.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(2 * length)) - length);
      }
      const int64_t place = place_of(p, row / (rows / outer), &indices[static_cast<size_t>(row * p.k)]);
      for (int64_t i = 0; i < inner; ++i) wanted.push_back(x[static_cast<size_t>(place * inner + i)]);
    }
    Dims index_dims = p.leading;
    index_dims.push_back(p.k);
    for (const bool eager : {false, true}) {
      EXPECT_EQ(run(gather_nd(p.batch), eager, x, p.x, indices, index_dims), wanted);
    }
  }
}

TEST(GatherNd, RefusesAnIndexOneStepBeyondItsOwnAxis) {
  for (const Places& p : kPlaces) {
    Dims index_dims = p.leading;
    index_dims.push_back(p.k);
    const auto count = static_cast<size_t>(element_count(index_dims));
    for (int64_t i = 0; i < p.k; ++i) {
      const int64_t length = p.x[static_cast<int32_t>(p.batch + i)];
      for (const int64_t wrong : {length, -length - 1}) {
        std::vector<int64_t> indices(count, 0);
        indices[static_cast<size_t>(p.k + i)] =
            wrong;  // an index of the second row may still be inside the flattened tensor
        for (const bool eager : {false, true}) {
          expect_fault(gather_nd(p.batch), eager, p.x, indices, index_dims, wrong, length);
        }
      }
    }
  }
}

TEST(Gather, RefusesAnIndexOneStepBeyondItsOwnAxis) {
  for (const char* op : {"Gather", "GatherElements"}) {
    for (const int64_t wrong : {5, -6}) {
      expect_fault(IndexOp{op, "axis", 1}, false, {3, 5, 2}, {0, wrong, 4, -5, 1, 2}, {1, 3, 2}, wrong, 5);
    }
  }
}

}  // namespace
}  // namespace tenon::onnx
