// The descriptors of the fake cuDNN, and its arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "providers/cuda/convolution/cudnn_values.h"

namespace tenon::fakes::cudnn {

using namespace tenon::provider::cuda::cudnn;

struct Body;
using BodyPtr = std::shared_ptr<Body>;

// One attribute's elements: bytes, or descriptors, which the descriptor keeps alive.
struct Values {
  Type type;
  int64_t count;
  std::vector<unsigned char> bytes;
  std::vector<BodyPtr> bodies;

  template <class T>
  T as(size_t index = 0) const {
    T value{};
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
};

// The contents of a descriptor.
struct Body {
  explicit Body(Kind of) : kind(of) {}

  const Kind kind;
  bool finalized = false;
  std::map<Attribute, Values> attributes;
  int engine = -1;  // for ENGINE, ENGINECFG and EXECUTION_PLAN: the number in the ranking

  bool has(Attribute attribute) const { return attributes.count(attribute) != 0; }
  const Values& at(Attribute attribute) const { return attributes.at(attribute); }
  const Body& body(Attribute attribute) const { return *at(attribute).bodies.at(0); }
  std::vector<int64_t> numbers(Attribute attribute) const {
    std::vector<int64_t> result;
    const Values& values = at(attribute);
    for (int64_t i = 0; i < values.count; ++i) result.push_back(values.as<int64_t>(static_cast<size_t>(i)));
    return result;
  }
};

// The attribute names of the operands of the three kinds of convolutions.
struct Names {
  Attribute alpha, beta, window, x, w, y;
};
bool is_convolution(Kind kind);
Names names_of(Kind kind);

// Returns a message if the attributes of `body` are invalid, otherwise an empty string.
std::string complaint_about(const Body& body);
// True if the fake offers engines for the operations of a graph.
bool is_served(const Body& graph);
bool is_gradient_of_filter(const Body& graph);
// The names of the graph's tensors that have memory.
std::vector<int64_t> names_bound(const Body& graph);
// Computes the graph in double on the addresses of `pack`, and rounds once. With tensor cores, factors are rounded to
// TF32 first; this does not change narrower types.
void compute(const Body& graph, const std::map<int64_t, void*>& addresses, bool rounds_to_tf32);

}  // namespace tenon::fakes::cudnn
