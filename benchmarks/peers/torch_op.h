// An op of libtorch, called by its name through the dispatcher, behind a class without libtorch's types.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tenon::bench {

// Dims and values of one result. Values are doubles, row-major.
struct Values {
  std::vector<int64_t> dims;
  std::vector<double> values;
};

// The bytes of a tensor argument, row-major over `dims`.
struct Input {
  std::vector<int64_t> dims;
  std::string dtype;
  const void* data = nullptr;
};

// The tensors of a case and one call with them. A case is an object with these members:
//   case, op   its name, and the name of Tenon's op
//   tensors    [{"dims", "dtype", "low", "high", "fill": "" or "sorted"}]
//   args       a list of JSON values, {"t": number of a tensor}, {"ts": [...]} or {"dtype": name}
//   torch      {"op": PyTorch's name, "args"}
class TorchOp {
 public:
  // Makes the tensors, with random numbers. Errors: std::runtime_error if libtorch has no overload for the arguments.
  explicit TorchOp(const nlohmann::json& spec);
  ~TorchOp();

  // The tensors that both sides compute on. They live as long as this object.
  const std::vector<Input>& inputs() const;
  // Why libtorch cannot make the call; empty if it can.
  const std::string& why_not() const;

  // Makes the call `n` times on `threads` threads.
  void run(int64_t n, int threads);
  // The results of the call.
  std::vector<Values> results();
  // Bytes of a result of dtype `dtype` as doubles.
  static std::vector<double> widen(const void* data, int64_t count, const std::string& dtype);
  static std::string version();

 private:
  struct Call;
  std::unique_ptr<Call> call_;
};

}  // namespace tenon::bench
