// Names of values in the graphs and functions of a file, and the calls that functions are expanded for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "onnx_messages.h"

namespace tenon::onnx {

// The version of the operators of each domain.
using Opsets = std::map<std::string, int64_t, std::less<>>;
using AttributesOfCall = std::map<std::string_view, const onnx_proto::AttributeProto*>;

// The domain as ParsedModel has it: empty for ai.onnx.
std::string domain_of(std::string_view name);

// The key under which a function of a model is found.
std::string key_of(std::string_view domain, std::string_view name, std::string_view overload);

// A call of a function that is being expanded.
struct Call {
  const onnx_proto::FunctionProto* function = nullptr;
  Opsets opsets;
  AttributesOfCall attributes;  // attributes of the calling node, and the function's own defaults
  const Call* caller = nullptr;
  std::string prefix;  // "node 4 (Loop)/", the prefix of value names
};

// Names of values in one graph or function. A function sees no names of its caller.
struct Scope {
  const Scope* outer = nullptr;
  const Call* call = nullptr;  // null outside functions
  std::string inside;          // "the body of node 4 (Loop)"
  int depth = 0;
  std::map<std::string, int32_t, std::less<>> values;  // -1: an input of a function that the call leaves out

  // Errors: invalid_argument if the name is taken. `by`: the part of the file that makes the value, for the error.
  void bind(std::string_view name, int32_t id, const std::string& by);
  // The value with this name, here or in an outer graph; null if there is none.
  const int32_t* find(std::string_view name) const;
};

}  // namespace tenon::onnx
