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

// The bytes of a tensor argument, row-major over `dims`. `order` describes the view that is the argument: its axis i is
// axis order[i] of the tensor.
struct Input {
  std::vector<int64_t> dims;
  std::vector<int64_t> order;
  std::string dtype;
  const void* data = nullptr;
};

// The tensors of a case and one call with them. A case is a line of benchmarks/sweep/cases.py.
class TorchOp {
 public:
  // Makes the tensors, with random numbers. Errors: std::runtime_error if libtorch has no overload for the arguments.
  explicit TorchOp(const nlohmann::json& spec);
  ~TorchOp();

  // The tensors that both sides compute on. They live as long as this object.
  const std::vector<Input>& inputs() const;
  // Why libtorch cannot make the call; empty if it can.
  const std::string& why_not() const;
  // True if the call has a form that writes into a given tensor.
  bool has_out() const;

  // Makes the call `n` times on `threads` threads; with `out`, into the same tensor each time.
  void run(int64_t n, int threads, bool out);
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
