// The version of a storage, which every write increments. Autograd uses it to detect that a saved tensor has changed.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/ops/ops.h"
#include "core/vm/storage.h"
#include "tests/unit/interpreter/positive_floats.h"

namespace tenon {
namespace {

uint64_t version_of(const Tensor& tensor) { return tensor.impl()->storage.version(); }

struct Use {
  const char* name;
  std::function<void(Tensor& x, const Tensor& y)> run;
};

// The increments of the versions of x and y by `use`, in its first and in its second run, which take different paths.
void expect_counts(const Use& use, uint64_t of_x, uint64_t of_y) {
  Tensor x = positive_floats({4, 6}, 1, Device("cpu"));
  const Tensor y = positive_floats({4, 6}, 2, Device("cpu"));
  for (const char* run : {"first", "second"}) {
    const uint64_t x_before = version_of(x), y_before = version_of(y);
    use.run(x, y);
    EXPECT_EQ(version_of(x) - x_before, of_x) << use.name << ", " << run << " run";
    EXPECT_EQ(version_of(y) - y_before, of_y) << use.name << ", " << run << " run";
  }
}

TEST(Writes, AreCountedOnce) {
  const std::vector<float> values(24, 3.0f);
  const Use writes[] = {
      {"add_", [](Tensor& x, const Tensor& y) { add_(x, y); }},
      {"relu_", [](Tensor& x, const Tensor&) { relu_(x); }},
      {"add_out", [](Tensor& x, const Tensor& y) { add_out(x, y, y); }},
      {"add_ of a strided view", [](Tensor& x, const Tensor& y) { add_(transpose(x, 0, 1), transpose(y, 0, 1)); }},
      {"mul_ of every second column",
       [](Tensor& x, const Tensor& y) { mul_(slice(x, 1, 0, 6, 2), slice(y, 1, 0, 3)); }},
      {"add_ of a row", [](Tensor& x, const Tensor& y) { add_(x, select(y, 0, 1)); }},
      {"add_ of a number to a view", [](Tensor& x, const Tensor&) { add_(slice(x, 1, 0, 6, 2), 2.0f); }},
      {"copy_", [](Tensor& x, const Tensor& y) { copy_(x, y); }},
      {"fill_", [](Tensor& x, const Tensor&) { fill_(x, 2.0f); }},
      {"copy_from", [&](Tensor& x, const Tensor&) { x.copy_from(values.data()); }},
      {"access", [](Tensor& x, const Tensor&) { x.access(Access::write, [](void*) {}); }},
  };
  for (const Use& use : writes) expect_counts(use, 1, 0);
}

TEST(Writes, AreNotWhatOnlyReads) {
  const Use reads[] = {
      {"add", [](Tensor& x, const Tensor& y) { add(x, y); }},
      {"add of strided views", [](Tensor& x, const Tensor& y) { add(transpose(x, 0, 1), transpose(y, 0, 1)); }},
      {"sum", [](Tensor& x, const Tensor&) { sum(x); }},
      {"to_host", [](Tensor& x, const Tensor&) { x.to_host<float>(); }},
      {"access", [](Tensor& x, const Tensor&) { x.access(Access::read, [](void*) {}); }},
  };
  for (const Use& use : reads) expect_counts(use, 0, 0);
}

}  // namespace
}  // namespace tenon
