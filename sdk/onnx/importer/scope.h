// Names of values in the graphs and functions of a file, and the functions that calls are expanded by.
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

// The domain as ParsedModel has it: that of ai.onnx is empty.
std::string domain_of(std::string_view name);

// What names a function of a model.
std::string key_of(std::string_view domain, std::string_view name, std::string_view overload);

// The call that a function is expanded for.
struct Call {
  const onnx_proto::FunctionProto* function = nullptr;
  Opsets opsets;
  AttributesOfCall attributes;  // of the calling node, and the function's own defaults
  const Call* caller = nullptr;
  std::string prefix;  // "node 4 (Loop)/", before the names of values
};

// Names of values in one graph or function. A function sees no names of its caller.
struct Scope {
  const Scope* outer = nullptr;
  const Call* call = nullptr;  // null: in no function
  std::string inside;          // "the body of node 4 (Loop)"
  int depth = 0;
  std::map<std::string, int32_t, std::less<>> values;  // -1: an input of a function that the call leaves out

  // Errors: invalid_argument, for a name that is there. `by`: what makes the value.
  void bind(std::string_view name, int32_t id, const std::string& by);
  // The value with this name, here or in the graphs around; null: there is none.
  const int32_t* find(std::string_view name) const;
};

}  // namespace tenon::onnx
