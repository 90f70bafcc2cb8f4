// Scans, sorts, scatters, attention, recurrent networks, convolutions and norms against the newest PyTorch, with one
// thread per processor. Both sides call the op of the same name, on the same numbers.
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/peers/tenon_op.h"
#include "benchmarks/peers/torch_op.h"
#include "benchmarks/report/report.h"
#include "primitives/text/format.h"

namespace {

using nlohmann::json;
using tenon::bench::Row;
using tenon::bench::Side;
using tenon::bench::TenonOp;
using tenon::bench::TorchOp;

constexpr int64_t kMillion = int64_t{1} << 20;

// Both sides of one row. Only the row that was used last holds its tensors.
struct Sides {
  explicit Sides(const json& spec) : peer(spec), ours(spec, peer.inputs()) {}
  TorchOp peer;
  TenonOp ours;
};
Sides& sides_of(const json& spec) {
  static std::unique_ptr<Sides> held;
  static std::string name;
  if (name != spec["case"]) {
    held.reset();
    held = std::make_unique<Sides>(spec);
    name = spec["case"];
  }
  return *held;
}

json tensor(std::vector<int64_t> dims, const char* dtype = "f32", double low = -1, double high = 1,
            const char* fill = "") {
  return {{"dims", dims}, {"dtype", dtype}, {"low", low}, {"high", high}, {"fill", fill}};
}
json at(int number) { return {{"t", number}}; }

// A call. PyTorch makes the same call unless `torch` has another name or arguments.
struct Call {
  std::string name;
  double bar;
  std::string op;
  json tensors;
  json args;
  json torch = json::object();
  bool compares = true;  // false: equal elements may come in any order
};

Row row_of(const Call& call) {
  json torch = {{"op", call.op}, {"args", call.args}};
  torch.update(call.torch);
  const json spec = {
      {"case", call.name}, {"op", call.op}, {"tensors", call.tensors}, {"args", call.args}, {"torch", torch}};
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  Row row{call.name, {"tenon on cpu", [spec](int64_t n) { sides_of(spec).ours.run(n); }}, {}, call.bar};
  for (int width = 1; width <= threads; width *= 2) {
    row.peers.push_back({fmt::format("PyTorch {}, {} threads", TorchOp::version(), width),
                         [spec, width](int64_t n) { sides_of(spec).peer.run(n, width); }});
  }
  row.check = [spec, compares = call.compares]() -> std::string {
    Sides& sides = sides_of(spec);
    if (!sides.peer.why_not().empty()) return sides.peer.why_not();
    return compares ? tenon::bench::difference(sides.peer.results(), sides.ours.call(), 2e-4) : "";
  };
  return row;
}

struct Keys {
  const char* name;
  double low, high;
  const char* fill;
};
constexpr Keys kKeys[] = {{"random", -1, 1, ""}, {"sorted", -1, 1, "sorted"}, {"equal", 1, 1, ""}};
struct Lines {
  const char* name;
  std::vector<int64_t> dims;
};
const std::vector<Lines> kLines = {{"1 M", {kMillion}}, {"1,000 x 1,000", {1000, 1000}}};

void add_order(std::vector<Call>* calls) {
  for (const Lines& lines : kLines) {
    for (const char* op : {"cumsum", "logcumsumexp"})
      calls->push_back({fmt::format("{}, {}", op, lines.name), 0.7, op, {tensor(lines.dims)}, {at(0), -1}});
    calls->push_back({fmt::format("cumprod, {}", lines.name),
                      0.7,
                      "cumprod",
                      {tensor(lines.dims, "f32", 0.999, 1.001)},
                      {at(0), -1}});
    for (const Keys& keys : kKeys) {
      const json x = tensor(lines.dims, "f32", keys.low, keys.high, keys.fill);
      const auto named = [&](const char* op) { return fmt::format("{}, {}, {}", op, lines.name, keys.name); };
      for (const char* op : {"cummax", "cummin"}) calls->push_back({named(op), 0.7, op, {x}, {at(0), -1}});
      for (const char* op : {"sort", "argsort"})
        calls->push_back({named(op), 0.7, op, {x}, {at(0), -1, false}, json::object(), false});
      calls->push_back({named("topk of 64"), 0.7, "topk", {x}, {at(0), 64, -1}, json::object(), false});
    }
  }
  for (const Keys& keys : kKeys) {
    const json x = tensor({kMillion}, "f32", keys.low, keys.high, keys.fill);
    calls->push_back({fmt::format("unique, 1 M, {}", keys.name),
                      0.7,
                      "unique",
                      {x},
                      {at(0), true, true, true},
                      {{"op", "_unique2"}},
                      false});
  }
  calls->push_back({"cumsum along columns, 1,000 x 1,000", 0.7, "cumsum", {tensor({1000, 1000})}, {at(0), 0}});
  calls->push_back({"nonzero, 1 M", 0.7, "nonzero", {tensor({kMillion}, "bool")}, {at(0)}});
  calls->push_back(
      {"masked_select, 1 M", 0.7, "masked_select", {tensor({kMillion}), tensor({kMillion}, "bool")}, {at(0), at(1)}});
}

void add_scatters(std::vector<Call>* calls) {
  const Keys places[] = {
      {"random", 0, double(kMillion), ""}, {"sorted", 0, double(kMillion), "sorted"}, {"equal", 0, 1, ""}};
  for (const Keys& keys : places) {
    const json index = tensor({kMillion}, "i64", keys.low, keys.high, keys.fill);
    for (const char* op : {"scatter", "scatter_add", "index_add"}) {
      const bool adds = std::string(op) != "scatter";
      calls->push_back({fmt::format("{}, 1 M, {}", op, keys.name),
                        0.7,
                        op,
                        {tensor({kMillion}, "f32", 0.5, 1), index, tensor({kMillion}, "f32", 0.5, 1)},
                        {at(0), 0, at(1), at(2)},
                        json::object(),
                        adds});
    }
  }
  calls->push_back({"bincount, 1 M in 1,000", 0.7, "bincount", {tensor({kMillion}, "i64", 0, 1000)}, {at(0)}});
}

void add_networks(std::vector<Call>* calls) {
  for (const auto& [length, bar] : {std::pair{128, 0.7}, {512, 0.85}, {2048, 0.9}, {4096, 0.9}}) {
    const json x = tensor({1, 12, length, 64});
    calls->push_back({fmt::format("attention, 12 x {} x 64", length),
                      bar,
                      "scaled_dot_product_attention",
                      {x, x, x},
                      {at(0), at(1), at(2)}});
  }
  for (const int64_t gates : {4, 3}) {
    const char* const op = gates == 4 ? "lstm" : "gru";
    const json state = tensor({1, 1, 256}), weight = tensor({gates * 256, 256}, "f32", -0.06, 0.06),
               bias = tensor({gates * 256}, "f32", -0.06, 0.06);
    const json params = {{"ts", {3, 4, 5, 6}}}, states = {{"ts", {1, 2}}};
    json args = {at(0), at(1), params, true, 1, 0.0, false, false, false}, torch = json::object();
    if (gates == 4) {
      torch = {{"args", {at(0), states, params, true, 1, 0.0, false, false, false}}};
      args.insert(args.begin() + 2, at(2));
    }
    calls->push_back({fmt::format("{}, 128 x 256", op),
                      1,
                      op,
                      {tensor({128, 1, 256}), state, state, weight, weight, bias, bias},
                      args,
                      torch});
  }
  calls->push_back({"embedding, 512 of 30,000 x 768",
                    1,
                    "embedding",
                    {tensor({30000, 768}), tensor({512}, "i64", 0, 30000)},
                    {at(0), at(1)}});
}

void add_convolutions(std::vector<Call>* calls) {
  const auto add = [&](const char* name, std::vector<int64_t> x, std::vector<int64_t> w, int64_t stride, int64_t pad,
                       int64_t groups) {
    const size_t rank = x.size() - 2;
    const auto each = [&](int64_t value) { return std::vector<int64_t>(rank, value); };
    calls->push_back({name,
                      1,
                      fmt::format("conv{}d", rank),
                      {tensor(x), tensor(w)},
                      {at(0), at(1), nullptr, each(stride), each(pad), each(1), groups}});
  };
  add("conv1d, 64 x 1024, kernel 3", {1, 64, 1024}, {64, 64, 3}, 1, 1, 1);
  add("conv1d, 256 x 1000, kernel 5", {1, 256, 1000}, {256, 256, 5}, 1, 2, 1);
  add("conv1d, 256 x 1000, depthwise", {1, 256, 1000}, {256, 1, 3}, 1, 1, 256);
  add("conv2d, 3 x 224^2, 7 x 7 stride 2", {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1);
  add("conv2d, 64 x 56^2, 3 x 3", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1);
  add("conv2d, 256 x 14^2, 3 x 3 stride 2", {1, 256, 14, 14}, {512, 256, 3, 3}, 2, 1, 1);
  add("conv2d, 64 x 56^2, 1 x 1", {1, 64, 56, 56}, {256, 64, 1, 1}, 1, 0, 1);
  add("conv2d, 256 x 28^2, 8 groups", {1, 256, 28, 28}, {256, 32, 3, 3}, 1, 1, 8);
  add("conv2d, 32 x 112^2, depthwise", {1, 32, 112, 112}, {32, 1, 3, 3}, 1, 1, 32);
  add("conv2d, 96 x 112^2, depthwise stride 2", {1, 96, 112, 112}, {96, 1, 3, 3}, 2, 1, 96);
  add("conv3d, 16 x 16 x 32^2, 3 x 3 x 3", {1, 16, 16, 32, 32}, {32, 16, 3, 3, 3}, 1, 1, 1);
  for (const auto& [kernel, pad] : {std::pair{3, 1}, {2, 0}}) {
    calls->push_back({fmt::format("avg_pool, 64 x 112^2, {0} x {0} stride 2", kernel),
                      1,
                      "avg_pool2d",
                      {tensor({1, 64, 112, 112})},
                      {at(0), {kernel, kernel}, {2, 2}, {pad, pad}}});
  }
  calls->push_back({"group_norm, 8 x 64 x 56^2",
                    1,
                    "group_norm",
                    {tensor({8, 64, 56, 56}), tensor({64}), tensor({64})},
                    {at(0), 8, at(1), at(2)}});
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Call> calls;
  add_order(&calls);
  add_scatters(&calls);
  add_networks(&calls);
  add_convolutions(&calls);
  std::vector<Row> rows;
  for (const Call& call : calls) rows.push_back(row_of(call));
  return tenon::bench::run(rows, argc, argv);
}
