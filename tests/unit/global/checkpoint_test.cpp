// Checkpoints: a tensor saved in one layout loads into any other, on other ranks too. A defect is the same error on
// every rank.
#include "core/global/checkpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/global/communicator.h"
#include "core/ops/operators.h"
#include "core/optim/optim.h"
#include "core/tensor/files.h"
#include "core/tensor/print.h"
#include "primitives/text/format.h"
#include "tests/unit/global/shared_folder.h"
#include "tests/unit/global/spread.h"

namespace tenon::global {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> parts_of(const fs::path& checkpoint) {
  std::vector<std::string> all;
  for (const auto& each : fs::directory_iterator(checkpoint)) {
    const std::string file = each.path().filename();
    if (file != "index.safetensors") all.push_back(each.path());
  }
  return all;
}

// One rank runs it, and the others wait.
template <class Call>
void on_one(const Call& call) {
  if (rank() == 0) call();
  throw_if_error(value_or_throw(Communicator::world())->barrier());
}

// A tensor without elements yet, for a load to fill.
Tensor poisoned(const Dims& dims, const Placement& placement, const NdSbp& sbp, DType dtype) {
  return full(dims, dtype == DType::boolean ? 0 : 77, placement, sbp, dtype);
}

Tensor some_of(const Dims& dims, uint64_t seed, DType dtype) {
  return dtype == DType::boolean ? some(dims, seed) > 0 : some(dims, seed, dtype);
}

std::vector<double> numbers(const Tensor& tensor) { return elements_of(tensor.to(DType::f64)); }

TEST(Checkpoint, EveryLayoutIsReadIntoEveryOther) {
  const Placement all = Placement::all(devices()), one(devices(), {ranks() - 1});
  const SharedFolder folder;
  int number = 0;
  for (const DType dtype : {DType::f32, DType::i64, DType::bf16, DType::boolean}) {
    for (const Dims& dims : {Dims{5, 7}, Dims{1, 2, 3}, Dims{11}, Dims{}, Dims{0, 3}}) {
      const Tensor whole = some_of(dims, static_cast<uint64_t>(++number), dtype);
      std::vector<Sbp> ways{B};
      if (dtype != DType::boolean) ways.push_back(P);
      for (int32_t axis = 0; axis < dims.rank(); ++axis) ways.push_back(Sbp::split(axis));
      NamedTensors saved{{"local", whole}, {"on one", spread(whole, one, {B})}};
      for (const Sbp way : ways) saved[to_string(way)] = spread(whole, all, {way});
      const std::string path = folder / fmt::format("{}", number);
      save(path, saved);
      for (const auto& [name, tensor] : saved) {
        for (const Sbp way : ways) {
          const std::string what = fmt::format("{} {} from {} to {}", dtype_name(dtype), dims, name, to_string(way));
          const Tensor target = poisoned(dims, all, {way}, dtype);
          const std::vector<std::string> unread = load(path, {{name, target}});
          EXPECT_EQ(unread.size(), saved.size() - 1) << what;
          EXPECT_EQ(layout_of(target), (Layout{all, {way}})) << what;
          EXPECT_EQ(numbers(target), numbers(whole)) << what;
        }
        const Tensor here = zeros_like(whole), there = poisoned(dims, one, {B}, dtype);
        load(path, {{name, here}});
        load(path, {{name, there}});
        EXPECT_EQ(numbers(here), numbers(whole)) << name;
        EXPECT_EQ(numbers(to_global(there, all, {B})), numbers(whole)) << name;
      }
    }
  }
}

// A grid of ranks, and ranks in another order.
TEST(Checkpoint, Grids) {
  if (ranks() != 4) return;
  const Placement grid(devices(), {2, 2}, {3, 1, 0, 2}), list = Placement::all(devices());
  const SharedFolder folder;
  const Tensor whole = some({5, 7}, 3);
  for (const NdSbp& sbp : {NdSbp{S0, S1}, NdSbp{S0, S0}, NdSbp{P, S0}, NdSbp{B, S1}, NdSbp{P, P}, NdSbp{S1, P}}) {
    save(folder / "x", {{"x", spread(whole, grid, sbp)}});
    const Tensor target = poisoned({5, 7}, list, {S1}, DType::f32), back = poisoned({5, 7}, grid, sbp, DType::f32);
    load(folder / "x", {{"x", target}});
    expect_same(target, whole, to_string(sbp));
    load(folder / "x", {{"x", back}});
    expect_same(back, whole, to_string(sbp));
  }
}

// Parts that are not contiguous in their file, with long rows and short ones.
TEST(Checkpoint, PartsOfLargeTensors) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  for (const Dims& dims : {Dims{3, 20'001}, Dims{2'500, 501}, Dims{17, 300, 301}}) {
    const Tensor whole = some(dims, 5);
    save(folder / "x", {{"x", spread(whole, all, {S0})}});
    for (const Sbp way : {S1, B, Sbp::split(dims.rank() - 1)}) {
      const Tensor target = poisoned(dims, all, {way}, DType::f32);
      load(folder / "x", {{"x", target}});
      expect_same(target, whole, to_string(way));
    }
  }
}

TEST(Checkpoint, EachElementIsWrittenOnce) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  NamedTensors tensors;
  int64_t bytes = 0;
  for (int i = 0; i < 12; ++i) {
    const Sbp way = i % 4 == 0 ? S0 : i % 4 == 1 ? P : B;
    tensors[fmt::format("{}", i)] = spread(some({50, 3}, static_cast<uint64_t>(i)), all, {way});
    bytes += 600;
  }
  save(folder / "x", tensors);
  int64_t written = 0, least = bytes, most = 0;
  const std::vector<std::string> parts = parts_of(folder / "x");
  EXPECT_EQ(parts.size(), static_cast<size_t>(ranks()));
  for (const std::string& part : parts) {
    int64_t own = 0;
    for (const auto& [name, tensor] : load_safetensors(part, Device::host())) own += tensor.bytes();
    written += own;
    least = std::min(least, own);
    most = std::max(most, own);
  }
  EXPECT_EQ(written, bytes);
  EXPECT_LE(most - least, 600);
}

// A folder holds one complete checkpoint, the new one or the one before.
TEST(Checkpoint, TheNewOneReplacesTheOneBefore) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  const auto state = [&](uint64_t seed) { return NamedTensors{{"x", spread(some({9, 2}, seed), all, {S0})}}; };
  save(folder / "x", state(1), {{"step", "1"}});
  save(folder / "x", state(2), {{"step", "2"}});
  on_one([] {});
  EXPECT_EQ(parts_of(folder / "x").size(), static_cast<size_t>(ranks()));
  const Tensor target = poisoned({9, 2}, all, {S1}, DType::f32);
  Metadata texts{{"step", ""}};
  EXPECT_TRUE(load(folder / "x", {{"x", target}}, &texts).empty());
  EXPECT_EQ(texts["step"], "2");
  expect_same(target, some({9, 2}, 2), "the second one");

  // An index that cannot be written.
  on_one([&] { fs::create_directories(folder / "y/index.safetensors"); });
  EXPECT_NE(error_of([&] { save(folder / "y", state(3)); }).find("cannot be written"), std::string::npos);
  on_one([] {});
  EXPECT_TRUE(parts_of(folder / "y").empty());
}

TEST(Checkpoint, AFileOfOneProcess) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  const Tensor whole = some({7, 5}, 8);
  on_one([&] { save_safetensors(folder / "net.safetensors", {{"w", whole}, {"other", whole}}, {{"epoch", "3"}}); });
  for (const Sbp way : {S0, S1, B, P}) {
    const Tensor target = poisoned({7, 5}, all, {way}, DType::f32);
    Metadata texts{{"epoch", ""}};
    EXPECT_EQ(load(folder / "net.safetensors", {{"w", target}}, &texts), std::vector<std::string>{"other"});
    EXPECT_EQ(texts["epoch"], "3");
    expect_same(target, whole, to_string(way));
  }
}

// Views that are copies, parameters that require gradients, and one tensor under two names.
TEST(Checkpoint, TargetsOfAllKinds) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  const Tensor whole = some({6, 4}, 9);
  save(folder / "x", {{"x", spread(whole, all, {S0})}, {"row", spread(whole[3], all, {B})}});
  const Tensor leaf = poisoned({6, 4}, all, {B}, DType::f32).requires_grad_();
  load(folder / "x", {{"x", leaf}});
  expect_same(leaf.detach(), whole, "a leaf");
  EXPECT_TRUE(leaf.is_leaf());
  const Tensor base = poisoned({6, 4}, all, {S0}, DType::f32);
  load(folder / "x", {{"row", base[3]}});
  expect_same(base[3], whole[3], "a view");
  expect_same(base[2], tenon::full({4}, 77.0, DType::f32, own_device()), "beside it");
}

// Another launch's optimiser continues as this one would.
TEST(Checkpoint, Optimisers) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  struct Run {
    TensorList parameters;
    optim::AdamW optimizer;
    explicit Run(TensorList made) : parameters(std::move(made)), optimizer(parameters, {.lr = 0.1}) {}
    void steps(int from, int to) {
      for (int i = from; i < to; ++i) {
        optimizer.zero_grad();
        sum(square(parameters[0]) * (i + 1) + parameters[1]).backward();
        if (i == 2) parameters[1].set_grad({});
        optimizer.step();
      }
    }
    NamedTensors state() const {
      NamedTensors state = optimizer.state();
      state["first"] = parameters[0], state["second"] = parameters[1];
      return state;
    }
  };
  const auto made = [&](Sbp first) {
    return TensorList{spread(some({5, 4}, 1), all, {first}).detach().requires_grad_(),
                      spread(some({5, 4}, 2), all, {S1}).detach().requires_grad_()};
  };
  Run before(made(S0)), after(made(B)), local({some({5, 4}, 3).requires_grad_(), some({5, 4}, 4).requires_grad_()});
  before.steps(0, 3);
  save(folder / "x", before.state());
  before.steps(3, 5);
  for (Run* run : {&after, &local}) {
    const NamedTensors state = run->state();
    EXPECT_TRUE(load(folder / "x", state).empty());
    NamedTensors of_optimizer = state;
    of_optimizer.erase("first"), of_optimizer.erase("second");
    run->optimizer.load_state(of_optimizer);
    run->steps(3, 5);
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<double> got = elements_of(run->parameters[i].detach());
      const std::vector<double> wanted = elements_of(before.parameters[i].detach());
      for (size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(got[k], wanted[k], 1e-6) << i << " " << k;
    }
  }
}

// --- defects

void expect_error(const std::vector<std::string>& parts, const std::function<void()>& call) {
  const std::string message = error_of(call);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  throw_if_error(value_or_throw(Communicator::world())->barrier());  // no rank has lost the others
}

TEST(Checkpoint, WhatDoesNotFitIsNamed) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  save(folder / "x", {{"w", spread(some({5, 3}, 1), all, {S0})}}, {{"epoch", "1"}});
  const auto target = [&](const Dims& dims, DType dtype) { return poisoned(dims, all, {B}, dtype); };
  const auto expect = [&](const std::vector<std::string>& parts, const NamedTensors& tensors) {
    expect_error(parts, [&] { load(folder / "x", tensors); });
  };
  expect({"tensor 'w' is f32 [5, 3] in", "index.safetensors, but the tensor to fill is f32 [3, 5]"},
         {{"w", target({3, 5}, DType::f32)}});
  expect({"tensor 'w' is f32 [5, 3]", "but the tensor to fill is f64 [5, 3]"}, {{"w", target({5, 3}, DType::f64)}});
  expect({"the tensor 'v' was requested, but", "has nothing of that name"}, {{"v", target({5, 3}, DType::f32)}});
  expect({"the tensor 'epoch' was requested", "has a text of that name"}, {{"epoch", target({5, 3}, DType::f32)}});
  expect({"tensor 'w' is undefined"}, {{"w", Tensor()}});
  Metadata texts{{"w", ""}};
  expect_error({"the text 'w' was requested", "has a tensor of"}, [&] { load(folder / "x", {}, &texts); });
  expect_error({"There is no file", "nothing"}, [&] { load(folder / "nothing", {}); });
  on_one([&] { fs::create_directories(folder / "empty"); });
  expect_error({"There is no file", "empty/index.safetensors"}, [&] { load(folder / "empty", {}); });
}

TEST(Checkpoint, ADifferenceBetweenRanksIsTheErrorOfAll) {
  if (ranks() == 1) return;
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  const Tensor x = spread(some({5, 3}, 1), all, {S0}), y = spread(some({5, 3}, 1), all, {B});
  const bool odd = rank() == 1;
  expect_error({"rank 1: saves tensor 'b', f32 [5, 3] on", ", and rank 0 tensor 'a', f32 [5, 3] on"}, [&] {
    save(folder / "x", {{odd ? "b" : "a", x}});
  });
  expect_error({"rank 1: saves tensor 'a'", ", B, and rank 0 tensor 'a'", ", S(0)."}, [&] {
    save(folder / "x", {{"a", odd ? y : x}});
  });
  expect_error({"rank 1: saves nothing more, and rank 0 tensor 'c'"}, [&] {
    save(folder / "x", odd ? NamedTensors{{"a", x}} : NamedTensors{{"a", x}, {"c", y}});
  });
  expect_error({"rank 1: save: tensor 'a' is undefined"}, [&] { save(folder / "x", {{"a", odd ? Tensor() : x}}); });
  save(folder / "x", {{"a", x}});
  expect_error({"rank 1: load: the tensor 'b' was requested"}, [&] { load(folder / "x", {{odd ? "b" : "a", x}}); });
  const Tensor wrong = odd ? zeros({4, 4}, DType::f32) : zeros({5, 3}, DType::f32);
  expect_error({"rank 1: load: tensor 'a' is f32 [5, 3] in"}, [&] { load(folder / "x", {{"a", wrong}}); });
}

TEST(Checkpoint, AnIndexThatLiesIsFoundOut) {
  const Placement all = Placement::all(devices());
  const SharedFolder folder;
  const Tensor whole = some({5, 3}, 1);
  on_one([&] {
    fs::create_directories(folder / "x");
    save_safetensors(folder / "x/a", {{"w", whole.slice(0, 0, 3)}});
    save_safetensors(folder / "x/b", {{"w", whole.slice(0, 3, 5)}});
    save_safetensors(folder / "x/c", {{"w", whole.slice(0, 3, 5).to(DType::f64)}, {"v", whole}});
    save_safetensors(folder / "x/d", {{"v", whole}});
    std::ofstream(folder / "x/e") << "nonsense";
  });
  const auto with = [&](const std::string& key, const std::string& text) {
    Metadata texts{{"tenon checkpoint", "1"}, {"tensor w", "f32 [5, 3]: 0 [0:3, 0:3], 1 [3:5, 0:3]"}};
    const char* files = "abcde";
    for (int i = 0; i < 5; ++i) texts[fmt::format("file {}", i)] = std::string(1, files[i]);
    texts[key] = text;
    on_one([&] { save_safetensors(folder / "x/index.safetensors", {}, texts); });
  };
  const Tensor target = poisoned({5, 3}, all, {S0}, DType::f32), local = zeros_like(whole);
  with("text", "");
  load(folder / "x", {{"w", target}});
  expect_same(target, whole, "an index that does not lie");
  // If only some ranks read a defect, every rank gets the error.
  const struct {
    const char* text;
    std::vector<std::string> error;
  } cases[] = {
      {"f32 [5, 3]: 0 [0:3, 0:3]", {"the parts of tensor 'w' have 9 of the 15 elements", "[5, 3]"}},
      {"f32 [5, 3]:", {"have 0 of the 15 elements"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 1 [2:4, 0:3]", {"[0:3, 0:3] in", "/x/a and [2:4, 0:3] in", "/x/b overlap"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 1 [3:5, 0:3], 1 [4:5, 1:2]", {"overlap"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 1 [4:6, 0:3]", {"tensor 'w' of shape [5, 3] has no part [4:6, 0:3] in", "/x/b"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 1 [5:3, 0:3]", {"has no part [5:3, 0:3]"}},
      {"f32 [5, 3]: 0 [0:3], 1 [3:5]", {"has no part [0:3] in"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 1 [9223372036854775807:9223372036854775807, 0:3]", {"has no part"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 7 [3:5, 0:3]", {"tensor 'w' has a part in file 7, which the index does not list"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 2 [3:5, 0:3]", {"for tensor 'w'", "/x/c has f32 [2, 3], but it has f64 [2, 3]"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 3 [3:5, 0:3]", {"/x/d has f32 [2, 3], but it has no such tensor"}},
      {"f32 [5, 3]: 0 [0:3, 0:3], 4 [3:5, 0:3]", {"The file", "/x/e: safetensors: "}},
      {"f32 [5, 3]: 1 [0:3, 0:3], 0 [3:5, 0:3]", {"has f32 [3, 3], but it has f32 [2, 3]"}},
      {"f99 [5, 3]: 0 [0:3, 0:3]", {"'tensor w': 'f99' is not a dtype"}},
      {"f32", {"'tensor w': '[' is missing"}},
      {"f32 [5, 3]: 0 [0:3, 0:3] 1", {"there is text after the parts"}},
      {"f32 [9223372036854775807, 9]: 0 [0:3, 0:3]", {"is too large"}},
      {"f32 [1, 1, 1, 1, 1, 1, 1, 1, 1]:", {"a tensor of rank 9 is beyond 8"}},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.text);
    with("tensor w", each.text);
    expect_error(each.error, [&] { load(folder / "x", {{"w", target}}); });
    expect_error(each.error, [&] { load(folder / "x", {{"w", local}}); });
  }
  expect_same(target, whole, "nothing was written");
  for (const char* name : {"../x/b", "/etc/passwd", "..", ""}) {
    with("file 1", name);
    expect_error({"names the file", "which is not in its folder"}, [&] { load(folder / "x", {{"w", target}}); });
  }
  with("file 1", "gone");
  expect_error(
      {"there is no file", "/x/gone, which has the part [3:5, 0:3] of tensor 'w' according to", "index.safetensors"},
      [&] {
        load(folder / "x", {{"w", target}});
      });
  with("tenon checkpoint", "2");
  expect_error({"is the index of version 2; this version of Tenon reads checkpoints of version 1"}, [&] {
    load(folder / "x", {{"w", target}});
  });
  on_one([&] { save_safetensors(folder / "x/index.safetensors", {{"w", whole}}); });
  expect_error({"is the index of no checkpoint"}, [&] { load(folder / "x", {{"w", target}}); });
}

}  // namespace
}  // namespace tenon::global
