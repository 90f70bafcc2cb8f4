// Kernel modules of the cpu provider, over the raw ABI: compilation, launches, refusals, stored blobs, and the end of a
// compiler that hangs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "primitives/text/format.h"
#include "tests/unit/providers/module_fixture.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::provider {
namespace {

namespace fs = std::filesystem;

// Launches `kernel` on bytes of the test.
struct Launch {
  OpenProvider& provider;
  ep_kernel* kernel;
  std::vector<void*> buffers;
  std::vector<char> parameters = {};
  uint64_t items = 1;
  void* workspace = nullptr;
  void* scratch = nullptr;
  ep_fault fault{};

  ep_status run() {
    std::vector<ep_memory*> memories;
    const auto import = [&](void* pointer) -> ep_buffer {
      if (pointer == nullptr) return {nullptr, 0};
      ep_memory* memory = nullptr;
      ep_error* error = nullptr;
      EXPECT_EQ(provider.ops.memory_import_host(provider.device, pointer, 1, &memory, &error), EP_STATUS_OK);
      memories.push_back(memory);
      return {memory, 0};
    };
    std::vector<ep_buffer> operands;
    for (void* buffer : buffers) operands.push_back(import(buffer));
    ep_kernel_launch launch{};
    launch.buffers = operands.data();
    launch.parameters = parameters.data();
    launch.groups[0] = items;
    launch.groups[1] = launch.groups[2] = 1;
    launch.buffer_count = static_cast<uint32_t>(operands.size());
    launch.parameter_bytes = static_cast<uint32_t>(parameters.size());
    launch.workspace = import(workspace);
    launch.scratch = import(scratch);
    launch.tag = 77;
    ep_error* error = nullptr;
    const ep_status status = provider.ops.kernel_launch(kernel, provider.stream, &launch, &fault, &error);
    for (ep_memory* memory : memories) provider.ops.memory_free(provider.device, memory);
    return status;
  }
};

std::vector<float> random_floats(size_t count) {
  std::mt19937 generator(static_cast<uint32_t>(count));
  std::uniform_real_distribution<float> number(0.5f, 2.0f);
  std::vector<float> all(count);
  for (float& one : all) one = number(generator);
  return all;
}

const char* const square_text = R"(
struct Parameters { int64_t n; float factor; };
void square(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
  const struct Parameters* p = parameters;
  const float* x = buffers[0];
  float* y = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < p->n; ++j) y[i * p->n + j] = x[i * p->n + j] * x[i * p->n + j] * p->factor;
}
)";

struct SquareParameters {
  int64_t n;
  float factor;
};

void expect_squares(OpenProvider& provider, Module& module, int64_t items, int64_t n) {
  const std::vector<float> x = random_floats(static_cast<size_t>(items * n));
  std::vector<float> y(x.size() + 1, NAN);
  y.back() = 42;
  Launch launch{provider,
                module.kernel("square"),
                {const_cast<float*>(x.data()), y.data()},
                bytes_of(SquareParameters{n, 3.0f}),
                static_cast<uint64_t>(items)};
  ASSERT_EQ(launch.run(), EP_STATUS_OK);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * x[i] * 3.0f) << i << " of " << items << " x " << n;
  EXPECT_EQ(y.back(), 42);
}

// The compiler. The system's compiler is always there if Tenon can be built.
class Modules : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ep_dialect_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_DIALECT_INFO;
    ep_error* error = nullptr;
    if (provider.ops.dialect_info(provider.device, 0, &info, &error) == EP_STATUS_OK) return;
    GTEST_SKIP() << "no compiler '" << GetParam() << "': " << provider.host.sentence();
  }
  OpenProvider provider{"cpu", {{"compiler", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(By, Modules, ::testing::Values("cc", "clang"));

TEST_P(Modules, SayWhatTheyCompile) {
  ep_dialect_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DIALECT_INFO;
  ep_error* error = nullptr;
  ASSERT_EQ(provider.ops.dialect_info(provider.device, 0, &info, &error), EP_STATUS_OK);
  EXPECT_EQ(info.dialect, EP_DIALECT_C);
  EXPECT_GT(info.compiler.size, 3u);
  EXPECT_GE(info.vector_bytes, 16u);
  EXPECT_GE(info.greatest_buffers, 16u);
  EXPECT_GE(info.parameter_bytes, 1024u);
  EXPECT_EQ(provider.ops.dialect_info(provider.device, 1, &info, &error), EP_STATUS_NOT_FOUND);
}

TEST_P(Modules, ComputeAllItemsWhateverTheirNumber) {
  Module module(provider);
  module.add_entry("square", 2, sizeof(SquareParameters));
  ASSERT_EQ(module.create(square_text), EP_STATUS_OK) << provider.host.sentence();
  EXPECT_GT(module.host_bytes, 0u);
  for (int64_t items : {1, 2, 3, 255, 256, 257, 1000}) expect_squares(provider, module, items, 17);
  expect_squares(provider, module, 3000, 1000);  // long enough for several threads
}

TEST_P(Modules, HaveSeveralEntriesWithTheirOwnConstants) {
  Module module(provider);
  module.add_entry("first", 1, 0);
  module.add_entry("second", 1, 0);
  ep_module_constant constants[] = {{{"HALF", 4}, {EP_DTYPE_f32, 0, {}}},  {{"LEAST", 5}, {EP_DTYPE_i64, 0, {}}},
                                    {{"MOST", 4}, {EP_DTYPE_u64, 0, {}}},  {{"THIRD", 5}, {EP_DTYPE_f64, 0, {}}},
                                    {{"NEVER", 5}, {EP_DTYPE_f64, 0, {}}}, {{"MINUS_INF", 9}, {EP_DTYPE_f32, 0, {}}}};
  constants[0].value.value.f64 = 0.5;
  constants[1].value.value.i64 = INT64_MIN;
  constants[2].value.value.u64 = UINT64_MAX;
  constants[3].value.value.f64 = 1.0 / 3;
  constants[4].value.value.f64 = NAN;
  constants[5].value.value.f64 = -INFINITY;
  const char* text = R"(
    void first(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
      double* y = buffers[0];
      y[0] = HALF; y[1] = THIRD; y[2] = NEVER; y[3] = MINUS_INF; y[4] = sizeof(HALF);
    }
    void second(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
      uint64_t* y = buffers[0];
      y[0] = (uint64_t)LEAST; y[1] = MOST;
    })";
  ASSERT_EQ(module.create(text, {std::begin(constants), std::end(constants)}), EP_STATUS_OK)
      << provider.host.sentence();
  double reals[5] = {};
  uint64_t integers[2] = {};
  EXPECT_EQ((Launch{provider, module.kernel("first"), {reals}}.run()), EP_STATUS_OK);
  EXPECT_EQ((Launch{provider, module.kernel("second"), {integers}}.run()), EP_STATUS_OK);
  EXPECT_EQ(reals[0], 0.5);
  EXPECT_EQ(reals[1], 1.0 / 3);
  EXPECT_TRUE(std::isnan(reals[2]));
  EXPECT_EQ(reals[3], -INFINITY);
  EXPECT_EQ(reals[4], 4) << "an f32 is a float";
  EXPECT_EQ(integers[0], uint64_t{1} << 63);
  EXPECT_EQ(integers[1], UINT64_MAX);
}

TEST_P(Modules, ComputeFloatsAsWrittenAndWrapIntegers) {
  Module module(provider);
  module.add_entry("numbers", 2, 0);
  const char* text = R"(
    void numbers(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
      const float* x = buffers[0];
      float* y = buffers[1];
      y[0] = x[0] * x[1] + x[2];
      y[1] = (x[0] + x[3]) - x[3];
      y[2] = x[4] == x[4];
      int32_t most; __builtin_memcpy(&most, &x[5], 4);
      most += 1;
      __builtin_memcpy(&y[3], &most, 4);
    })";
  ASSERT_EQ(module.create(text), EP_STATUS_OK) << provider.host.sentence();
  float x[6] = {1 + 0x1p-12f, 1 + 0x1p-12f, -1 - 0x1p-11f, 1e10f, NAN, 0};
  const int32_t most = INT32_MAX;
  std::memcpy(&x[5], &most, 4);
  float y[4] = {NAN, NAN, NAN, NAN};
  ASSERT_EQ((Launch{provider, module.kernel("numbers"), {x, y}}.run()), EP_STATUS_OK);
  EXPECT_EQ(y[0], 0.0f) << "a product that is rounded, not one that is contracted (0x1p-24)";
  EXPECT_EQ(y[1], 0.0f) << "sums keep their order";
  EXPECT_EQ(y[2], 0.0f) << "NaN is expected";
  int32_t wrapped = 0;
  std::memcpy(&wrapped, &y[3], 4);
  EXPECT_EQ(wrapped, INT32_MIN);
}

TEST_P(Modules, TakeParametersWorkspaceScratchAndLocalMemory) {
  struct Big {
    int64_t numbers[256];
  };
  Module module(provider);
  module.add_entry("all", 1, sizeof(Big), EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH, 1000);
  const char* text = R"(
    struct Big { int64_t numbers[256]; };
    void all(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local) {
      const struct Big* p = parameters;
      int64_t* y = buffers[0];
      int64_t* workspace = buffers[1];
      int64_t* scratch = buffers[2];
      int64_t* mine = local;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < 125; ++j) mine[j] = p->numbers[(i + j) % 256];
        int64_t sum = scratch[0] + ((intptr_t)local % 64);
        for (int64_t j = 0; j < 125; ++j) sum += mine[j];
        workspace[i] = sum;
        y[i] = workspace[i];
      }
    })";
  ASSERT_EQ(module.create(text), EP_STATUS_OK) << provider.host.sentence();
  constexpr size_t items = 200000;
  Big big;
  for (int64_t i = 0; i < 256; ++i) big.numbers[i] = i * i + 1;
  std::vector<int64_t> y(items, -1), workspace(items, -1);
  alignas(256) int64_t scratch[32] = {};
  Launch launch{provider, module.kernel("all"), {y.data()}, bytes_of(big), items, workspace.data(), scratch};
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(launch.run(), EP_STATUS_OK);
    for (size_t i = 0; i < items; i += 997) {
      int64_t sum = 0;
      for (size_t j = 0; j < 125; ++j) sum += big.numbers[(i + j) % 256];
      ASSERT_EQ(y[i], sum) << i;
    }
    std::fill(y.begin(), y.end(), -1);
  }
}

TEST_P(Modules, RaiseFaultsWithTheTagOfTheLaunch) {
  Module module(provider);
  module.add_entry("look", 2, 0, EP_ENTRY_FLAG_FAULTS);
  const std::string text = fmt::format(R"(
    void look(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local, EP_FAULT_PARAMETER) {{
      const int64_t* x = buffers[0];
      int64_t* y = buffers[1];
      for (int64_t i = begin; i < end; ++i) {{
        if (x[i] >= 100) ep_raise({}, 0, x[i], 100);
        y[i] = x[i] + 1;
      }}
    }})",
                                       EP_FAULT_INDEX_OUT_OF_RANGE);
  ASSERT_EQ(module.create(text), EP_STATUS_OK) << provider.host.sentence();
  std::vector<int64_t> x(5000, 7), y(5000, -1);
  Launch launch{provider, module.kernel("look"), {x.data(), y.data()}, {}, 5000};
  EXPECT_EQ(launch.run(), EP_STATUS_OK);
  x[4321] = 123456;
  ASSERT_EQ(launch.run(), EP_STATUS_FAULT);
  EXPECT_EQ(launch.fault.tag, 77u);
  EXPECT_EQ(launch.fault.code, EP_FAULT_INDEX_OUT_OF_RANGE);
  EXPECT_EQ(launch.fault.operand, 0);
  EXPECT_EQ(launch.fault.value, 123456);
  EXPECT_EQ(launch.fault.limit, 100);
  EXPECT_EQ(y[4322], 8) << "the item goes on, and so do the others";
}

TEST_P(Modules, AnswerWithTheFirstErrorAndItsLine) {
  Module module(provider);
  module.add_entry("f", 0, 0);
  const char* text = "// one\n// two\nvoid f(void) { return missing; }\nint g(void) { return also_missing; }\n";
  EXPECT_EQ(module.create(text), EP_STATUS_INVALID_ARGUMENT);
  const std::string sentence = provider.host.sentence();
  EXPECT_NE(sentence.find("line 3:"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("missing"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("'test'"), std::string::npos) << sentence;
  ASSERT_EQ(module.said.size(), 1u);
  EXPECT_NE(module.said[0].find("also_missing"), std::string::npos) << "every message of the compiler";
}

TEST_P(Modules, RefuseWhatIsNoModuleOfTheirs) {
  const auto refused = [&](ep_status status, const std::string& word, const auto& change) {
    Module module(provider);
    module.add_entry("square", 2, sizeof(SquareParameters));
    change(module);
    EXPECT_EQ(module.create(square_text), status) << word;
    EXPECT_NE(provider.host.sentence().find(word), std::string::npos) << provider.host.sentence();
  };
  refused(EP_STATUS_UNSUPPORTED, "dialect 4", [](Module& module) { module.dialect = EP_DIALECT_GLSL; });
  refused(EP_STATUS_UNSUPPORTED, "flags 0x80", [](Module& module) { module.entries[0].flags = 0x80; });
  refused(EP_STATUS_UNSUPPORTED, "groups of 8", [](Module& module) { module.entries[0].group[0] = 8; });
  refused(EP_STATUS_UNSUPPORTED, "9999 buffers", [](Module& module) { module.entries[0].buffer_count = 9999; });
  refused(EP_STATUS_INVALID_ARGUMENT, "no entry", [](Module& module) { module.entries.clear(); });
  refused(EP_STATUS_INVALID_ARGUMENT, "C identifier", [](Module& module) { module.entries[0].name = {"a b", 3}; });
  refused(EP_STATUS_INVALID_ARGUMENT, "entry cosine", [](Module& module) { module.entries[0].name = {"cosine", 6}; });
  refused(EP_STATUS_INVALID_ARGUMENT, "entry fmodf", [](Module& module) { module.entries[0].name = {"fmodf", 5}; });
  Module module(provider);
  module.add_entry("square", 2, sizeof(SquareParameters));
  EXPECT_EQ(module.create(square_text, {{{"x y", 3}, {EP_DTYPE_i64, 0, {}}}}), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(module.create(square_text, {{{"x", 1}, {99, 0, {}}}}), EP_STATUS_UNSUPPORTED);
}

// The processes whose parent is this one.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string number, name, state;
    pid_t parent = 0;
    if (file >> number >> name >> state >> parent && parent == getpid()) all.push_back(std::stoi(number));
  }
  return all;
}

TEST_P(Modules, AreKeptByTheHostAndCompiledAnewWhereWhatWasKeptIsDamaged) {
  const auto compiled = [&](OpenProvider& where) {
    Module module(where);
    module.add_entry("square", 2, sizeof(SquareParameters));
    // A text with a warning: a compiled module has the message, a stored one does not.
    EXPECT_EQ(module.create(fmt::format("#warning hello\n{}", square_text)), EP_STATUS_OK) << where.host.sentence();
    expect_squares(where, module, 5, 3);
    return !module.said.empty();
  };
  EXPECT_TRUE(compiled(provider));
  EXPECT_FALSE(compiled(provider));
  auto blobs = provider.host.blobs();
  ASSERT_EQ(blobs.size(), std::string(GetParam()) == "cc" ? 2u : 1u);  // plus a blob that says which compiler there is
  const auto code = std::max_element(blobs.begin(), blobs.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::string whole = code->second;
  const size_t helpers = children().size();
  OpenProvider second("cpu", {{"compiler", GetParam()}});
  second.host.put_blobs(blobs);
  EXPECT_FALSE(compiled(second)) << "a second process compiles nothing";
  EXPECT_EQ(children().size(), helpers) << "and starts no helper";
  std::mt19937 generator(5);
  for (int round = 0; round < 4; ++round) {
    std::string& blob = code->second;
    blob = whole;
    if (round == 0) {
      blob.resize(generator() % whole.size());
    } else {
      blob[generator() % whole.size()] ^= static_cast<char>(1 << round);
    }
    second.host.put_blobs(blobs);
    EXPECT_TRUE(compiled(second)) << "damage " << round;
  }
}

TEST_P(Modules, AreCompiledOnSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Module module(provider);
      module.add_entry("square", 2, sizeof(SquareParameters));
      ASSERT_EQ(module.create(fmt::format("// {}\n{}", thread, square_text)), EP_STATUS_OK);
      expect_squares(provider, module, 100, 10 + thread);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A program that plays a compiler.
std::string script(const ScratchFolder& folder, const std::string& name, const std::string& lines) {
  const std::string path = folder.write(name, fmt::format("#!/bin/sh\n{}", lines));
  chmod(path.c_str(), 0755);
  return path;
}

// The answer that every such program gives first.
const char* const version = "if [ \"$1\" = --version ]; then echo mine 1.0; exit 0; fi\n";

// The result of module_create with `compiler`.
std::string refusal(const std::string& compiler, ep_status status, const std::string& seconds = "30") {
  OpenProvider provider("cpu", {{"compiler", compiler}, {"compile_seconds", seconds}});
  Module module(provider);
  module.add_entry("square", 2, sizeof(SquareParameters));
  EXPECT_EQ(module.create(square_text), status) << provider.host.sentence();
  return provider.host.sentence();
}

TEST(ModuleCompilers, ThatHangAreKilledAtTheirDeadline) {
  const ScratchFolder folder;
  const std::string mark = fmt::format("{}/pid", folder.path());
  const std::string hangs =
      script(folder, "hangs", fmt::format("{}echo $$ > {}\nwhile true; do sleep 1; done\n", version, mark));
  const std::string said = refusal(hangs, EP_STATUS_UNSUPPORTED, "1");
  EXPECT_NE(said.find("did not end within 1 s and was killed"), std::string::npos) << said;
  pid_t process = 0;
  std::ifstream(mark) >> process;
  ASSERT_GT(process, 0);
  for (int look = 0; look < 500 && kill(process, 0) == 0; ++look) usleep(10'000);
  EXPECT_NE(kill(process, 0), 0) << "the compiler itself, not only the helper";
}

TEST(ModuleCompilers, AreStoppedWhereTheHostWantsToStop) {
  const ScratchFolder folder;
  const std::string hangs = script(folder, "hangs", fmt::format("{}sleep 60\n", version));
  OpenProvider provider("cpu", {{"compiler", hangs}});
  Module module(provider);
  module.add_entry("square", 2, sizeof(SquareParameters));
  std::thread stopper([&] {
    usleep(200'000);
    provider.host.cancel(true);
  });
  EXPECT_EQ(module.create(square_text), EP_STATUS_CANCELLED);
  stopper.join();
}

TEST(ModuleCompilers, ThatFailAreNoFaultOfTheText) {
  const ScratchFolder folder;
  std::string said =
      refusal(script(folder, "full", fmt::format("{}echo 'as: No space left on device' >&2\nexit 1\n", version)),
              EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("No space left on device"), std::string::npos) << said;
  said = refusal(script(folder, "dies", fmt::format("{}kill -SEGV $$\n", version)), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("signal 11"), std::string::npos) << said;
  said = refusal(script(folder, "kills", fmt::format("{}kill -KILL $PPID\n", version)), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("helper ended while it compiled"), std::string::npos) << said;
  said = refusal(script(folder, "nothing", version), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("did not write the library"), std::string::npos) << said;
  const std::string junk = fmt::format("{}while [ \"$1\" != -o ]; do shift; done\necho junk > $2\n", version);
  said = refusal(script(folder, "junk", junk), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("not a shared object"), std::string::npos) << said;
  said = refusal(fmt::format("{}/absent", folder.path()), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("cannot be run"), std::string::npos) << said;
  said = refusal("gcc", EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("'gcc'"), std::string::npos) << "a name is not a path: " << said;
  said = refusal("none", EP_STATUS_UNSUPPORTED);
  EXPECT_NE(said.find("'none'"), std::string::npos) << said;
  said = refusal("cc", EP_STATUS_UNSUPPORTED, "0");
  EXPECT_NE(said.find("compile_seconds"), std::string::npos) << said;
}

TEST(ModuleCompilers, AreFoundInAbsoluteFoldersOfThePathAlone) {
  const ScratchFolder folder;
  const std::string mine = script(folder, "cc", "echo mine 1.0\n");
  const std::string before = std::getenv("PATH");
  const fs::path here = fs::current_path();
  fs::current_path(folder.path());
  setenv("PATH", fmt::format(":.::{}", fs::path(mine).parent_path().filename().string()).c_str(), 1);
  const std::string said = refusal("cc", EP_STATUS_UNSUPPORTED);
  setenv("PATH", before.c_str(), 1);
  fs::current_path(here);
  EXPECT_NE(said.find("no C compiler"), std::string::npos) << said;
}

// The stored answer to the question which compiler there is holds until a compiler is replaced, or another one is found
// first.
TEST(ModuleCompilers, AreAskedForTheirVersionsOnce) {
  const ScratchFolder folder;
  const std::string mine = script(folder, "first/cc", "echo mine 1.0\n");
  const std::string before = std::getenv("PATH");
  setenv("PATH", fmt::format("{0}/zero:{0}/first:{1}", folder.path(), before).c_str(), 1);
  std::map<std::string, std::string> blobs;
  const auto name = [&] {
    OpenProvider provider("cpu", {{"compiler", "cc"}});
    provider.host.put_blobs(blobs);
    ep_dialect_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_DIALECT_INFO;
    ep_error* error = nullptr;
    EXPECT_EQ(provider.ops.dialect_info(provider.device, 0, &info, &error), EP_STATUS_OK);
    blobs = provider.host.blobs();
    const size_t helpers = children().size();
    return fmt::format("{} {}", std::string(info.compiler.data, info.compiler.size), helpers);
  };
  const size_t others = children().size();
  EXPECT_EQ(name(), fmt::format("mine 1.0 {}", others + 1));
  EXPECT_EQ(name(), fmt::format("mine 1.0 {}", others));
  script(folder, "first/cc", "echo mine 2.0 of April\n");
  EXPECT_EQ(name(), fmt::format("mine 2.0 of April {}", others + 1));
  script(folder, "zero/clang", "echo other 3\n");
  EXPECT_EQ(name(), fmt::format("mine 2.0 of April {}", others + 1));
  script(folder, "zero/cc", "echo another 4\n");
  EXPECT_EQ(name(), fmt::format("another 4 {}", others + 1));
  EXPECT_EQ(name(), fmt::format("another 4 {}", others));
  setenv("PATH", before.c_str(), 1);
}

TEST(ModuleCompilers, ThatMayMakeNoFolderSaySo) {
  const char* before = std::getenv("TMPDIR");
  setenv("TMPDIR", "/proc", 1);
  const std::string said = refusal("cc", EP_STATUS_UNSUPPORTED);
  before != nullptr ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR");
  EXPECT_NE(said.find("No folder could be made"), std::string::npos) << said;
}

TEST_P(Modules, AreUnsupportedWhereTheDiskIsFullAndCompileLater) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {500, before.rlim_max};
  const auto create = [](OpenProvider& where) {
    Module module(where);
    module.add_entry("square", 2, sizeof(SquareParameters));
    return module.create(square_text);
  };
  OpenProvider mine("cpu", {{"compiler", GetParam()}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const ep_status full = create(mine);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(full, EP_STATUS_UNSUPPORTED) << mine.host.sentence();
  OpenProvider later("cpu", {{"compiler", GetParam()}});
  EXPECT_EQ(create(later), EP_STATUS_OK) << later.host.sentence();
}

TEST_P(Modules, OutliveAHelperThatWasKilled) {
  const auto compiles = [&](const std::string& comment) {
    Module module(provider);
    module.add_entry("square", 2, sizeof(SquareParameters));
    return module.create(fmt::format("// {}{}", comment, square_text));
  };
  ASSERT_EQ(compiles("first"), EP_STATUS_OK);
  const std::vector<pid_t> helpers = children();
  ASSERT_FALSE(helpers.empty());
  for (pid_t helper : helpers) kill(helper, SIGKILL);
  EXPECT_EQ(compiles("second"), EP_STATUS_OK) << provider.host.sentence();
}

TEST_P(Modules, LeaveNothingBehind) {
  // Other programs compile in the usual folder at the same time.
  const ScratchFolder folder;
  const char* before = std::getenv("TMPDIR");
  setenv("TMPDIR", folder.path().c_str(), 1);
  int64_t held = 0;
  {
    OpenProvider mine("cpu", {{"compiler", GetParam()}});
    held = mine.host.held();
    {
      Module module(mine);
      module.add_entry("square", 2, sizeof(SquareParameters));
      ASSERT_EQ(module.create(square_text), EP_STATUS_OK);
    }
    EXPECT_EQ(mine.host.held(), held);
  }
  before != nullptr ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace tenon::provider
