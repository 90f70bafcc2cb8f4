// Random graphs, fused. The executor gives the same results bit by bit, and the same text each time. Each group,
// lowered to a kernel and run by the interpreter of the loop IR, computes the same as its nodes one by one.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <thread>

#include "core/codegen/emit/emit.h"
#include "core/codegen/fuse/fuse.h"
#include "core/codegen/loop/interpret.h"
#include "core/codegen/lower/lower.h"
#include "core/codegen/tactics/tactics.h"
#include "core/codegen/tune/candidates.h"
#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/regions/regions.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "ep_api/ep_api.h"
#include "tests/unit/fusion/random_graph.h"

namespace tenon::codegen {
namespace {

using graph::Graph;

// FUZZ_FIRST, FUZZ_COUNT and FUZZ_KERNELS choose other seeds.
uint32_t number_of(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

// Every fourth graph is also tested in texts and at other sizes; if seeds were chosen, every graph is.
bool in_depth(uint32_t seed) { return seed % 4 == 0 || std::getenv("FUZZ_COUNT") != nullptr; }

// Integers are indices: the first and the last one.
Tensor random_tensor(const Dims& dims, DType dtype, uint32_t seed) {
  std::mt19937 random(seed);
  if (dtype == DType::i64) {
    std::vector<int64_t> positions(static_cast<size_t>(element_count(dims)));
    for (int64_t& position : positions) position = -static_cast<int64_t>(random() % 2);
    return Tensor::from<int64_t>(positions, dims);
  }
  std::uniform_real_distribution<float> magnitudes(0.25f, 1.5f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = random() % 2 == 0 ? magnitudes(random) : -magnitudes(random);
  return cast(Tensor::from<float>(data, dims), dtype);
}

// A number for each symbol of an arena.
using Numbers = std::vector<int64_t>;

Numbers hints_of(const Graph& graph) {
  Numbers numbers;
  for (const symbolic::Symbol& symbol : graph.arena().symbols()) numbers.push_back(*symbol.hint);
  return numbers;
}

symbolic::Values bound_to(const Graph& graph, const Numbers& numbers) {
  symbolic::Values sizes(graph.arena());
  for (uint32_t i = 0; i < numbers.size(); ++i) throw_if_error(sizes.bind(i, numbers[i]));
  return sizes;
}

TensorList inputs_of(const Graph& graph, symbolic::Values* sizes, uint32_t seed) {
  TensorList inputs;
  for (const graph::ValueId id : graph.inputs()) {
    inputs.push_back(random_tensor(value_or_throw(sizes->of("input", graph[id].dims)), graph[id].dtype, ++seed));
  }
  return inputs;
}

// Programs that launch no kernels.
const graph::PrepareOptions kOneByOne{.scheduled = false};

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

std::vector<double> numbers_of(const Tensor& tensor) { return cast(tensor, DType::f64).to_host<double>(); }

std::optional<std::string> difference(const TensorList& got, const TensorList& expected, double bound) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double> a = numbers_of(got[i]), b = numbers_of(expected[i]);
    for (size_t k = 0; k < b.size(); ++k) {
      const bool near =
          std::fabs(a[k] - b[k]) <= bound * (1 + std::fabs(b[k])) || (std::isnan(a[k]) && std::isnan(b[k]));
      if (!near) return fmt::format("output {}[{}] is {}, not {}", i, k, a[k], b[k]);
    }
  }
  return std::nullopt;
}

// The error of kernels compared with ops that round each result: 16-bit numbers on two sides of a rounding boundary
// differ by a whole unit, and values computed from them by more. Sums of f32 here have some hundred addends.
double bound_of(const Graph& graph) {
  for (graph::ValueId id = 1; id < graph.value_count(); ++id) {
    if (graph[id].dtype == DType::f16 || graph[id].dtype == DType::bf16) return 2e-2;
  }
  return 1e-4;
}

TensorList interpreted(const Kernel& kernel, const Graph& region, const TensorList& inputs, symbolic::Values* sizes) {
  std::vector<int64_t> parameters;
  for (const Parameter& parameter : kernel.parameters)
    parameters.push_back(value_or_throw(sizes->of(parameter.symbol)));
  std::vector<std::string> memory;
  for (const Tensor& input : inputs) memory.push_back(bytes_of(input));
  std::vector<Dims> dims;
  for (const graph::ValueId id : region.outputs()) {
    dims.push_back(value_or_throw(sizes->of("output", region[id].dims)));
    memory.emplace_back(static_cast<size_t>(dtype_bytes(region[id].dtype, element_count(dims.back()))), '\x5a');
  }
  std::vector<void*> buffers;
  for (std::string& bytes : memory) buffers.push_back(bytes.data());
  throw_if_error(interpret(kernel, parameters, buffers));
  TensorList outputs;
  for (size_t i = 0; i < dims.size(); ++i) {
    const DType dtype = region[region.outputs()[i]].dtype;
    outputs.push_back(Tensor::copy_from_host(memory[inputs.size() + i].data(), dims[i], dtype, Device::current()));
  }
  return outputs;
}

// Other numbers for the open sizes: edges of vectors, of rows of registers and of buckets. None if the guards of the
// graph allow no others, or if there would be too many elements.
std::optional<Numbers> other_sizes(const Graph& graph, uint32_t seed) {
  constexpr int64_t kEdges[] = {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257};
  std::mt19937 random(seed);
  for (int attempt = 0; attempt < 4; ++attempt) {
    symbolic::Values sizes(graph.arena());
    Numbers numbers;
    bool taken = !graph.arena().symbols().empty();
    for (uint32_t i = 0; i < graph.arena().symbols().size(); ++i) {
      numbers.push_back(kEdges[random() % std::size(kEdges)]);
      taken = taken && sizes.bind(i, numbers.back()).ok();
    }
    if (!taken || sizes.broken_guard() != nullptr || !sizes.check().ok()) continue;
    double elements = 0;
    for (graph::ValueId id = 1; id < graph.value_count(); ++id) {
      const Result<Dims> dims = sizes.of("value", graph[id].dims);
      elements += dims.ok() ? static_cast<double>(element_count(dims.value())) : 1e9;
    }
    if (elements < 1 << 17) return numbers;
  }
  return std::nullopt;
}

// Returns what is wrong with the texts of a kernel: they must be the same each time, and contain no name of the model.
std::optional<std::string> wrong_text(const Graph& region) {
  std::string first;
  for (int i = 0; i < 2; ++i) {
    Graph copy = region.copy();
    Kernel kernel = lower(&copy, "fused"), grouped = kernel;
    throw_if_error(schedule_for_cpu(&kernel));
    std::string text = to_string(kernel) + value_or_throw(emit_c(kernel)).text;
    if (schedule_for_groups(&grouped).ok()) {
      text += to_string(grouped) + value_or_throw(emit_groups(grouped, EP_DIALECT_OPENCL_C, ~uint64_t{0})).text;
    }
    if (text.find("hostile") != std::string::npos) return "a name of the model is in the text:\n" + text;
    if (i != 0 && text != first) return "it has another text the second time:\n" + first + text;
    first = text;
  }
  return std::nullopt;
}

// Returns what is wrong with a schedule of a kernel: for any tiles it must compute the same as without them. The seed
// chooses the tiles.
std::optional<std::string> wrong_schedule(const Kernel& kernel, const Graph& region, const TensorList& inputs,
                                          const TensorList& expected, symbolic::Values* sizes, uint32_t seed) {
  constexpr GroupLimits kLimits[] = {{}, {16, 16384}, {64, 512}};
  const uint32_t choice = seed / 4 % 4;
  Kernel scheduled = kernel;
  const Status status =
      choice == 0 ? schedule_for_cpu(&scheduled) : schedule_for_groups(&scheduled, kLimits[choice - 1]);
  if (status.code() == Code::unsupported) return std::nullopt;  // shared memory is too short
  if (!status.ok()) return status.message();
  const TensorList outputs = interpreted(scheduled, region, inputs, sizes);
  if (const auto found = difference(outputs, expected, bound_of(region))) {
    return fmt::format("{} as scheduled:\n{}", *found, to_string(scheduled));
  }
  // Other tiles must give the same bits.
  const std::vector<Tiles> all = candidates(scheduled);
  if (all.empty()) return std::nullopt;
  const Tiles& tiles = all[seed / 16 % all.size()];
  Kernel tiled = kernel;
  const Status again =
      choice == 0 ? schedule_for_cpu(&tiled, tiles) : schedule_for_groups(&tiled, kLimits[choice - 1], tiles);
  if (again.code() == Code::unsupported) return std::nullopt;
  if (!again.ok()) return again.message();
  if (sums_text(tiled) != sums_text(scheduled)) return std::nullopt;
  const TensorList others = interpreted(tiled, region, inputs, sizes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (bytes_of(others[i]) == bytes_of(outputs[i])) continue;
    return fmt::format("output {} has other bits with {}:\n{}", i, tiles_text(tiles), to_string(tiled));
  }
  return std::nullopt;
}

// Returns what is wrong with the kernel of a fused node, or nothing.
std::optional<std::string> wrong_with(const Graph& region, symbolic::Values* sizes, uint32_t seed) {
  const TensorList inputs = inputs_of(region, sizes, seed);
  const TensorList expected = graph::run(graph::prepare(region, sizes, kOneByOne), inputs);
  Graph copy = region.copy();
  std::string text;
  try {
    const Kernel kernel = lower(&copy, "fused");
    text = to_string(kernel);
    throw_if_error(verify(kernel));
    std::optional<std::string> found =
        difference(interpreted(kernel, region, inputs, sizes), expected, bound_of(region));
    if (!found && in_depth(seed)) found = wrong_schedule(kernel, region, inputs, expected, sizes, seed);
    if (!found && in_depth(seed)) found = wrong_text(region);
    if (!found) return std::nullopt;
    return fmt::format("{}:\n{}{}", *found, graph::print(region), text);
  } catch (const Error& error) {
    return fmt::format("{}:\n{}{}", error.what(), graph::print(region), text);
  }
}

std::optional<std::string> wrong_in(Graph plain, uint32_t seed);
std::optional<std::string> wrong_at(const Graph& plain, const Graph& fused, const Numbers& numbers, uint32_t seed);

std::optional<std::string> wrong_with(RandomGraph program, uint32_t seed) {
  Graph plain = program.record();
  const std::string text = graph::print(plain);
  try {
    return wrong_in(std::move(plain), seed);
  } catch (const Error& error) {
    return fmt::format("{}\n{}", error.what(), text);
  }
}

std::optional<std::string> wrong_in(Graph plain, uint32_t seed) {
  graph::remove_dead_code(&plain);
  Graph fused = plain.copy();
  graph::find_pass("fuse").run(&fused, {});
  if (const Status status = graph::verify(fused); !status.ok()) return status.message() + "\n" + graph::print(fused);
  Graph again = plain.copy();
  graph::find_pass("fuse").run(&again, {});
  const std::string text = graph::print(fused);
  if (graph::print(again) != text) return "fusing again gives another text:\n" + text;
  graph::find_pass("fuse").run(&again, {});
  if (graph::print(again) != text) return "the pass is not idempotent:\n" + text + graph::print(again);
  const std::string parsed = graph::print(graph::parse(text));  // renumbers the values
  if (graph::print(graph::parse(parsed)) != parsed) return "the text does not parse back:\n" + text;
  Graph counted = plain.copy();
  const Fusion groups = find_groups(counted);
  if (kernel_count(counted, groups) > kernel_count(counted, {})) return "fusion makes more kernels:\n" + groups.log;
  if (auto wrong = wrong_at(plain, fused, hints_of(plain), seed)) return wrong;
  if (!in_depth(seed)) return std::nullopt;
  const std::optional<Numbers> others = other_sizes(plain, seed);
  return others ? wrong_at(plain, fused, *others, seed) : std::nullopt;
}

// At these sizes: compares both graphs op by op, bit by bit, and each kernel.
std::optional<std::string> wrong_at(const Graph& plain, const Graph& fused, const Numbers& numbers, uint32_t seed) {
  symbolic::Values sizes = bound_to(plain, numbers), same = bound_to(fused, numbers);
  const TensorList inputs = inputs_of(plain, &sizes, seed);
  const TensorList a = graph::run(graph::prepare(plain, &sizes, kOneByOne), inputs);
  const TensorList b = graph::run(graph::prepare(fused, &same, kOneByOne), inputs);
  for (size_t i = 0; i < a.size(); ++i) {
    if (bytes_of(a[i]) != bytes_of(b[i])) return fmt::format("output {} has other bits:\n{}", i, graph::print(fused));
  }
  for (graph::NodeId id = fused.first(); id != graph::kNoNode; id = fused.next(id)) {
    if (!graph::is_fused(fused.node(id))) continue;
    if (auto wrong = wrong_with(*fused.node(id).regions[0], &same, seed)) return wrong;
  }
  return std::nullopt;
}

// Returns what is wrong with the graph of `seed`, shrunk as long as it stays wrong.
std::optional<std::string> smallest_wrong(uint32_t seed) {
  RandomGraph program(seed);
  std::optional<std::string> wrong = wrong_with(program, seed);
  for (bool smaller = wrong.has_value(); smaller;) {
    smaller = false;
    for (size_t at = 0; at < program.size() && !smaller; ++at) {
      if (auto still = wrong_with(program.without(at), seed)) {
        program = program.without(at);
        wrong = std::move(still);
        smaller = true;
      }
    }
  }
  return wrong;
}

// A graph with kernels that the device has compiled, and with single ops.
std::optional<std::string> wrong_on_device(uint32_t seed) try {
  Graph plain = RandomGraph(seed).record();
  graph::remove_dead_code(&plain);
  Graph fused = plain.copy();
  graph::find_pass("fuse").run(&fused, {});
  symbolic::Values sizes = bound_to(plain, hints_of(plain)), same = bound_to(fused, hints_of(fused));
  const TensorList inputs = inputs_of(plain, &sizes, seed);
  const TensorList expected = graph::run(graph::prepare(plain, &sizes, kOneByOne), inputs);
  TensorList poisoned;
  for (const Tensor& one : expected) {
    const std::string poison(static_cast<size_t>(one.bytes()), '\x5a');
    poisoned.push_back(Tensor::copy_from_host(poison.data(), one.dims(), one.dtype(), one.device()));
  }
  const TensorList got = graph::run(graph::prepare(fused, &same), inputs, poisoned);
  const std::optional<std::string> found = difference(got, expected, bound_of(plain));
  if (!found) return std::nullopt;
  return fmt::format("{}:\n{}", *found, graph::print(fused));
} catch (const Error& error) {
  return error.what();
}

// In a sanitizer build the compiler is the system's, which is slower, and its output is not checked.
constexpr bool kSanitized = EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_NONE;
constexpr uint32_t kOnDevice = kSanitized ? 24 : 200;
constexpr uint32_t kOnReference = kSanitized ? 400 : 2000;

TEST(RandomGraphs, ComputeTheSameAsKernels) {
  const uint32_t first = number_of("FUZZ_FIRST", 1), count = number_of("FUZZ_KERNELS", kOnDevice);
  std::vector<std::optional<std::string>> wrong(count);
  std::atomic<uint32_t> next{0};
  std::vector<std::thread> threads;  // each uses the device's compiler
  for (uint32_t i = 0; i < std::clamp(std::thread::hardware_concurrency(), 2U, 8U); ++i) {
    threads.emplace_back([&] {
      for (uint32_t at = next++; at < count; at = next++) wrong[at] = wrong_on_device(first + at);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t at = 0; at < count; ++at) {
    ASSERT_FALSE(wrong[at].has_value()) << "FUZZ_FIRST=" << first + at << " FUZZ_KERNELS=1: " << *wrong[at];
  }
}

TEST(RandomGraphs, ComputeTheSameFused) {
  const uint32_t first = number_of("FUZZ_FIRST", 1), count = number_of("FUZZ_COUNT", kOnReference);
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const std::optional<std::string> wrong = smallest_wrong(seed);
    ASSERT_FALSE(wrong.has_value()) << "FUZZ_FIRST=" << seed << " FUZZ_COUNT=1: " << *wrong;
  }
}

}  // namespace
}  // namespace tenon::codegen
