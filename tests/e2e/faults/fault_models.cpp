// Runs chains of ops and real models on wrapped providers. One call of each run fails. See README.md.
//
//   fault_models --cpu libtenon_cpu.so [--demo shapes.onnx] [--models FOLDER] [--rounds 200] [--chains 2000] [--seed 1]
//                [--slot copy] [--trouble refuse] [--tally FILE]
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/background/cancellation.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "loader/loader.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/onnx/onnx.h"
#include "tests/e2e/faults/plan.h"
#include "tests/fakes/async/control.h"

namespace tenon::testing {
namespace {

constexpr int kTries = 6;

using Answer = std::vector<std::vector<float>>;

// Work on a device. It may keep memory there until it is dropped.
class Work {
 public:
  virtual ~Work() = default;
  virtual Answer run(Device device) = 0;
  virtual void drop() {}
  virtual std::string name() const = 0;
};

std::vector<float> random_floats(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(0.1f, 1.0f);
  std::vector<float> floats(count);
  for (float& value : floats) value = values(random);
  return floats;
}

// Ten ops, each on results of earlier ones.
class Chain : public Work {
 public:
  explicit Chain(uint64_t seed) : seed_(seed) {}
  std::string name() const override { return fmt::format("chain {}", seed_); }

  Answer run(Device device) override {
    std::mt19937_64 random(seed_);
    std::vector<Tensor> all;
    for (uint64_t i = 0; i < 3; ++i) all.push_back(Tensor::from<float>(random_floats(64, seed_ + i), {8, 8}, device));
    all.push_back(borrowed(random_floats(64, seed_ + 7)).to(device));
    for (int i = 0; i < 10; ++i) {
      const Tensor& a = all[random() % all.size()];
      const Tensor& b = all[random() % all.size()];
      all.push_back(apply(random() % 8, a, b));
    }
    Answer answer;
    for (const Tensor& tensor : all) answer.push_back(tensor.to_host<float>());
    return answer;
  }

 private:
  // Memory of the caller, in use until the deleter runs.
  static Tensor borrowed(std::vector<float> values) {
    auto* own = new std::vector<float>(std::move(values));
    return Tensor::borrow(own->data(), {8, 8}, {8, 1}, DType::f32, [own] { delete own; });
  }
  static Tensor apply(uint64_t which, const Tensor& a, const Tensor& b) {
    switch (which) {
      case 0: return relu(a);
      case 1: return mul(add(a, b), 0.5);
      case 2: return mul(a, b);
      case 3: return softmax(a, -1);
      case 4: return mul(matmul(a, b), 0.125);
      case 5: return add(sum(a, {1}, true), b);
      case 6: return sigmoid(a);
      default: return maximum(a, transpose(b, 0, 1));
    }
  }

  uint64_t seed_;
};

class ModelWork : public Work {
 public:
  using Feed = std::function<onnx::Inputs(const onnx::Model&)>;
  ModelWork(std::string path, Feed feed) : path_(std::move(path)), feed_(std::move(feed)) {}
  std::string name() const override { return path_; }
  void drop() override { model_.reset(); }

  Answer run(Device device) override {
    if (!model_ || !(model_->device() == device)) {
      onnx::Options options;
      options.device = device;
      model_.emplace(onnx::load(path_, options));
    }
    Answer answer;
    for (const Tensor& tensor : model_->run(feed_(*model_))) answer.push_back(tensor.to_host<float>());
    return answer;
  }

 private:
  std::string path_;
  Feed feed_;
  std::optional<onnx::Model> model_;
};

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::unique_ptr<Work> demo(const std::string& path) {
  return std::make_unique<ModelWork>(path, [](const onnx::Model& model) {
    const std::vector<float> pixels = random_floats(2 * 3 * 64 * 64, 3);
    return onnx::Inputs{{model.inputs().front().name, Tensor::from<float>(pixels, {2, 3, 64, 64}, Device("cpu"))}};
  });
}

std::unique_ptr<Work> test_case(const std::filesystem::path& folder) {
  return std::make_unique<ModelWork>(folder / "model.onnx", [folder](const onnx::Model&) {
    onnx::Inputs inputs;
    for (int i = 0;; ++i) {
      const auto path = folder / "test_data_set_0" / (fmt::format("input_{}.pb", i));
      if (!std::filesystem::exists(path)) return inputs;
      std::string name;
      const Tensor tensor = onnx::tensor_from_bytes(file_bytes(path), Device("cpu"), &name);
      inputs[name] = tensor;
    }
  });
}

// The first difference, or an empty string.
std::string compare(const Answer& got, const Answer& wanted) {
  if (got.size() != wanted.size()) return "another number of results";
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].size() != wanted[i].size()) return fmt::format("result {} has another size", i);
    for (size_t at = 0; at < got[i].size(); ++at) {
      const float x = got[i][at], y = wanted[i][at];
      if (std::abs(x - y) <= 1e-4f + 1e-3f * std::abs(y)) continue;
      return fmt::format("result {}, element {} is {} and should be {}", i, at, x, y);
    }
  }
  return {};
}

// A provider under its wrapped name, and the work that runs on it.
class Subject {
 public:
  Subject(int number, std::string provider, std::vector<Slot> slots, uint64_t seed)
      : number_(number), provider_(std::move(provider)), plan_(std::move(slots), seed + static_cast<uint64_t>(number)) {
    loader::register_provider(provider_, fakes::faulty_query(number));
  }

  Plan& plan() { return plan_; }
  const std::string& provider() const { return provider_; }
  fakes::Faulty& faulty() { return fakes::faulty(number_); }

  // Repeats `work` under faults until it succeeds, and then runs it once without a fault.
  std::string round(Work& work, const Answer& wanted) {
    const Strike strike = plan_.next();
    if (is_early(strike.slot)) close(work);
    faulty().arm(strike.slot, strike.trouble, strike.nth);
    std::string wrong = attempts(work, wanted);
    plan_.done(strike, faulty().disarm(), faulty().calls_since());
    if (wrong.empty()) wrong = attempts(work, wanted);
    if (wrong.empty()) return {};
    return fmt::format("{}, {}: {} call {}, {}: {}", provider_, work.name(), loader::slot_name(strike.slot), strike.nth,
                       fakes::trouble_names[static_cast<size_t>(strike.trouble)], wrong);
  }

  void close(Work& work) {
    work.drop();
    try {
      tenon::retire(provider_);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
    if (loader::provider_host_memory(provider_).bytes != 0)
      throw std::runtime_error("host memory is left after retiring");
  }

 private:
  // True if the function is called only at the beginning, or only until its result is cached.
  static bool is_early(Slot slot) {
    return slot == Slot::memory_allocate || slot == Slot::memory_map || slot == Slot::stream_create ||
           slot == Slot::event_create || slot == Slot::primitive_support || slot == Slot::primitive_create;
  }

  std::string attempts(Work& work, const Answer& wanted) {
    std::string said;
    for (int i = 0; i < kTries; ++i) {
      bool lost = false;
      const Cancellation stop;
      faulty().on_cancel([stop] { stop.cancel(); });
      const CancellationScope scope(stop);
      try {
        return compare(work.run(Device(provider_)), wanted);
      } catch (const Error& error) {
        said = error.what();
        lost = error.code() == Code::device_lost;
      }
      if (said.find(provider_ + ":0") == std::string::npos) return "an error that does not name the device: " + said;
      if (said.find("while ") == std::string::npos && said.find("ing ") == std::string::npos) {
        return "an error that does not name what was done: " + said;
      }
      if (lost) close(work);
    }
    return "it does not go on: " + said;
  }

  int number_;
  std::string provider_;
  Plan plan_;
};

struct Options {
  std::string demo, models, cpu;
  uint64_t rounds = 200, chains = 2000, seed = 1;
  std::string slot, trouble, tally;
};

class Campaign {
 public:
  explicit Campaign(const Options& options) : options_(options) {
    fakes::async_control().shadow = false;
    fakes::async_control().memory = uint64_t{1} << 28;
    if (const std::string wrong = fakes::faulty(0).wrap(options.cpu); !wrong.empty()) throw std::runtime_error(wrong);
    fakes::faulty(1).wrap(fakes::async_query);
    subjects_.emplace_back(0, "faultycpu",
                           std::vector<Slot>{Slot::memory_allocate, Slot::memory_map, Slot::stream_create, Slot::upload,
                                             Slot::download, Slot::primitive_support, Slot::primitive_create,
                                             Slot::primitive_workspace, Slot::primitive_launch},
                           options.seed);
    subjects_.emplace_back(
        1, "faultyasync",
        std::vector<Slot>{Slot::memory_allocate, Slot::stream_create, Slot::stream_flush, Slot::stream_take_fault,
                          Slot::upload, Slot::download, Slot::event_create, Slot::event_record, Slot::event_query,
                          Slot::event_host_wait, Slot::stream_wait_event, Slot::primitive_support,
                          Slot::primitive_create, Slot::primitive_launch},
        options.seed);
    for (Subject& subject : subjects_) {
      subject.plan().only(options_.slot, options_.trouble);
      subject.plan().load(tally_of(subject));
    }
    static_cast<void>(Device("cpu"));  // the host, which also computes the expected results
  }

  std::string run() {
    std::vector<std::unique_ptr<Work>> models;
    if (!options_.demo.empty()) models.push_back(demo(options_.demo));
    if (!options_.models.empty()) {
      for (const auto& entry : std::filesystem::directory_iterator(options_.models)) {
        if (std::filesystem::exists(entry.path() / "model.onnx")) models.push_back(test_case(entry.path()));
      }
    }
    for (uint64_t i = 0; i < options_.chains; ++i) {
      Chain chain(options_.seed * 7919 + i % 64);
      if (const std::string wrong = rounds(chain, 1, i % subjects_.size()); !wrong.empty()) return wrong;
    }
    for (std::unique_ptr<Work>& model : models) {
      for (size_t subject = 0; subject < subjects_.size(); ++subject) {
        const std::string wrong = rounds(*model, options_.rounds / models.size() / subjects_.size(), subject);
        if (!wrong.empty()) return wrong;
        subjects_[subject].close(*model);
      }
    }
    for (Subject& subject : subjects_) {
      subject.plan().report(subject.provider().c_str(), subject.faulty(), tally_of(subject));
    }
    return {};
  }

 private:
  std::string tally_of(const Subject& subject) const {
    return options_.tally.empty() ? std::string() : fmt::format("{}.{}", options_.tally, subject.provider());
  }

  std::string rounds(Work& work, uint64_t count, size_t subject) {
    const Answer wanted = work.run(Device("cpu"));
    for (uint64_t i = 0; i < count; ++i) {
      if (const std::string wrong = subjects_[subject].round(work, wanted); !wrong.empty()) return wrong;
    }
    return {};
  }

  Options options_;
  std::deque<Subject> subjects_;
};

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    if (word == "--demo")
      options->demo = value;
    else if (word == "--models")
      options->models = value;
    else if (word == "--cpu")
      options->cpu = value;
    else if (word == "--rounds")
      options->rounds = std::stoull(value);
    else if (word == "--chains")
      options->chains = std::stoull(value);
    else if (word == "--seed")
      options->seed = std::stoull(value);
    else if (word == "--slot")
      options->slot = value;
    else if (word == "--trouble")
      options->trouble = value;
    else if (word == "--tally")
      options->tally = value;
    else
      return false;
  }
  return !options->cpu.empty();
}

}  // namespace
}  // namespace tenon::testing

int main(int argc, char** argv) {
  tenon::testing::Options options;
  if (!tenon::testing::parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: fault_models --cpu libtenon_cpu.so [--demo shapes.onnx] [--models FOLDER] [--rounds N] "
                 "[--chains N] [--seed N] [--slot NAME] [--trouble NAME] [--tally FILE]\n");
    return 2;
  }
  try {
    const std::string wrong = tenon::testing::Campaign(options).run();
    if (wrong.empty()) return 0;
    std::printf("%s\n", wrong.c_str());
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
  return 1;
}
