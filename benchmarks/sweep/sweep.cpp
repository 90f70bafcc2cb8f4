// Measures calls of Tenon against the same calls of libtorch, in one process, each on as many threads as the argument
// says (as many processors as the process may use should be as many). Reads a case of cases.py per line and
// answers each with a line:
//
//   {"case": NAME, "mode": "fresh", "ours_ns", "peer_ns", "ratio", "equal": true}      one for each mode: fresh, out
//   {"case": NAME, "mode": "fresh", "ours_ns", "why_not": SENTENCE}                    if libtorch does not do the call
//   {"case": NAME, "error": SENTENCE}                                                  if Tenon does not
//
// Both sides make the call by its name, with the same numbers in their tensors. Their batches alternate; a batch begins
// with runs that are not timed, until the threads of the other side sleep. A time is that of the fastest batch, since
// other programs only make a batch slower.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "benchmarks/peers/torch_op.h"
#include "benchmarks/report/keep.h"
#include "core/ops/call.h"
#include "primitives/text/format.h"

namespace {

using nlohmann::json;
using tenon::Keyword;
using tenon::Tensor;
using tenon::TensorList;
using tenon::Value;
using tenon::bench::Input;
using tenon::bench::TorchOp;
using tenon::bench::Values;

constexpr double kBatch = 1.5e6;   // nanoseconds
constexpr double kSettle = 1.0e6;  // of runs before each batch
constexpr int kBatches = 7;

// On one thread a time is that of the process, which other programs on the processors hardly lengthen.
bool counts_own_time = false;

double now() {
  timespec own;
  if (counts_own_time && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0) {
    return 1e9 * static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec);
  }
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

Tensor tensor_of(const Input& input, tenon::Device device) {
  const Tensor tensor = Tensor::copy_from_host(input.data, tenon::Dims(std::span<const int64_t>(input.dims)),
                                               *tenon::dtype_from_name(input.dtype), device);
  if (input.order.empty()) return tensor;
  return tenon::call("permute", {tensor, input.order}).at(0);
}

// Tenon's side of a case.
class TenonOp {
 public:
  TenonOp(const json& spec, const std::vector<Input>& inputs)
      : op_(&tenon::find_op(spec["op"].get<std::string>())), device_(spec.value("device", "cpu")) {
    for (const Input& input : inputs) tensors_.push_back(tensor_of(input, device_));
    for (const json& each : spec["args"]) arguments_.push_back(value_of(each));
    const json named = spec.value("kwargs", json::object());
    for (const auto& [name, value] : named.items()) names_.push_back(name);
    for (const std::string& name : names_) keywords_.push_back({name, value_of(named[name])});
  }

  TensorList call() const { return tenon::call(*op_, arguments_, keywords_); }

  // Makes a tensor that later calls write into. False if the op takes none.
  bool want_out() {
    try {
      keywords_.push_back({"out", Value(call().at(0))});
      call();
      return true;
    } catch (const tenon::Error&) {
      if (!keywords_.empty() && keywords_.back().name == "out") keywords_.pop_back();
      return false;
    }
  }

  void run(int64_t n) const {
    TensorList last;  // lives until the next call, as in a loop over a variable
    for (int64_t i = 0; i < n; ++i) last = call();
    if (!last.empty()) tenon::bench::keep(last[0]);
  }

 private:
  Value value_of(const json& j) const {
    if (j.is_null()) return {};
    if (j.is_boolean()) return j.get<bool>();
    if (j.is_number_integer()) return j.get<int64_t>();
    if (j.is_number()) return j.get<double>();
    if (j.is_string()) return j.get<std::string>();
    if (j.is_array()) return j.get<Value::Ints>();
    if (j.contains("t")) return tensors_.at(j["t"]);
    if (j.contains("dtype")) return *tenon::dtype_from_name(j["dtype"].get<std::string>());
    if (j.contains("device")) return device_;
    TensorList list;
    for (const json& number : j["ts"]) list.push_back(tensors_.at(number));
    return list;
  }

  const tenon::DynamicOp* op_;
  tenon::Device device_;
  std::vector<Tensor> tensors_;
  std::vector<Value> arguments_;
  std::vector<std::string> names_;
  std::vector<Keyword> keywords_;
};

// Nanoseconds per run of each side. The number of runs follows from the side's own time.
template <class... Run>
std::vector<double> measure(const Run&... run) {
  const std::vector<std::function<void(int64_t)>> sides = {run...};
  std::vector<int64_t> runs;
  for (const auto& side : sides) {
    double best = 1e18;
    int64_t n = 1;
    for (int attempt = 0; attempt < 6; ++attempt) {
      const double start = now();
      side(n);
      const double each = (now() - start) / static_cast<double>(n);
      best = std::min(best, each);
      if (each * static_cast<double>(n) < kBatch / 4) n *= 4;
    }
    runs.push_back(std::max<int64_t>(1, static_cast<int64_t>(kBatch / best)));
  }
  std::vector<double> times(sides.size(), 1e18);
  for (int batch = 0; batch < kBatches; ++batch) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const double settle = now() + kSettle;
      do {
        sides[i](std::max<int64_t>(1, runs[i] / 8));
      } while (now() < settle);
      const double start = now();
      sides[i](runs[i]);
      times[i] = std::min(times[i], (now() - start) / static_cast<double>(runs[i]));
    }
  }
  return times;
}

// Empty if equal within `tolerance` of the greatest magnitude; else what differs.
std::string difference(const std::vector<Values>& want, const TensorList& got, double tolerance) {
  if (want.size() != got.size()) return fmt::format("{} results, not {}", got.size(), want.size());
  for (size_t r = 0; r < want.size(); ++r) {
    const std::vector<int64_t> dims(got[r].dims().begin(), got[r].dims().end());
    if (dims != want[r].dims) return fmt::format("result {} has {} axes, not {}", r, dims.size(), want[r].dims.size());
    std::vector<char> bytes(static_cast<size_t>(got[r].bytes()));
    got[r].copy_to_host(bytes.data());
    const std::vector<double> values =
        TorchOp::widen(bytes.data(), got[r].elements(), std::string(tenon::dtype_name(got[r].dtype())));
    double most = 0;
    for (const double value : want[r].values) most = std::isfinite(value) ? std::max(most, std::abs(value)) : most;
    for (size_t i = 0; i < values.size(); ++i) {
      const double a = values[i], b = want[r].values[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (!(std::abs(a - b) <= tolerance * (std::abs(b) + 0.01 * most))) {
        return fmt::format("element {} of result {} is {}, not {}", i, r, a, b);
      }
    }
  }
  return "";
}

void answer(const json& spec, int threads) {
  TorchOp peer(spec);
  TenonOp ours(spec, peer.inputs());
  const TensorList results = ours.call();
  json row = {{"case", spec["case"]}, {"mode", "fresh"}};
  const auto print = [&row] { std::cout << row.dump() << std::endl; };
  if (!peer.why_not().empty()) {
    row["ours_ns"] = measure([&](int64_t n) { ours.run(n); })[0];
    row["why_not"] = peer.why_not();
    return print();
  }
  row["equal"] = true;
  if (spec.value("compare", true)) {
    const std::string wrong = difference(peer.results(), results, spec["tolerance"]);
    if (!wrong.empty()) row["equal"] = wrong;
  }
  const auto compare = [&](bool out) {
    const std::vector<double> times =
        measure([&](int64_t n) { ours.run(n); }, [&](int64_t n) { peer.run(n, threads, out); });
    row["ours_ns"] = times[0];
    row["peer_ns"] = times[1];
    row["ratio"] = times[0] / times[1];
    print();
  };
  compare(false);
  if (!peer.has_out() || !ours.want_out()) return;
  row["mode"] = "out";
  compare(true);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  counts_own_time = threads == 1;
  std::cout << json{{"peer", "PyTorch " + TorchOp::version()}, {"threads", threads}}.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const json spec = json::parse(line);
    try {
      answer(spec, threads);
    } catch (const std::exception& error) {
      std::cout << json{{"case", spec["case"]}, {"mode", "fresh"}, {"error", error.what()}}.dump() << std::endl;
    }
    std::cout << json{{"done", spec["case"]}}.dump() << std::endl;
  }
  return 0;
}
