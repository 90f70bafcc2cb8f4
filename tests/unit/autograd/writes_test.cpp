// Effects of writes into tensors on gradients: a gradient is never wrong.
#include <gtest/gtest.h>

#include "core/autograd/history.h"
#include "core/vm/storage.h"
#include "tests/unit/autograd/numbers.h"

namespace tenon {
namespace {

TEST(Writes, ASavedArgumentThatChangedIsAnErrorThatNamesBothOps) {
  const Tensor x = leaf({1, 2});
  Tensor y = x + 1;
  const Tensor z = sum(y * y);
  add_(y, 1);
  EXPECT_EQ(error_of([&] { z.backward(); }),
            "backward: mul saved an argument of shape [2] for its gradient, and add has written into that tensor since "
            "(version 0 was saved, it is version 1 now).\n  while computing the gradient of mul");
}

TEST(Writes, ASavedResultThatChangedIsAnErrorThatNamesBothOps) {
  const Tensor x = leaf({1, 2});
  Tensor y = exp(x);
  const Tensor z = sum(y);
  zero_(y);
  EXPECT_EQ(error_of([&] { z.backward(); }),
            "backward: exp saved a result of shape [2] for its gradient, and zero_ has written into that tensor since "
            "(version 0 was saved, it is version 1 now).\n  while computing the gradient of exp");
}

TEST(Writes, ThroughADetachedTensorAreSeenByTheVersion) {
  const Tensor x = leaf({1, 2});
  const Tensor y = exp(x);
  const Tensor z = sum(y);
  zero_(y.detach());
  EXPECT_NE(error_of([&] { z.backward(); }).find("exp saved a result"), std::string::npos);
}

TEST(Writes, FromTheHostAreSeenByTheVersion) {
  const Tensor x = leaf({1, 2});
  Tensor y = exp(x);
  const Tensor z = sum(y);
  const Values values{3, 4};
  {
    const NoGrad scope;
    y.copy_from(values.data());
  }
  EXPECT_NE(error_of([&] { z.backward(); }).find("copy_from has written"), std::string::npos);
}

TEST(Writes, WhatNoGradientNeedsMayChange) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  const Tensor z = sum(y + 1);
  mul_(y, 5);
  (z + sum(y)).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{18, 18}));
}

TEST(Writes, IntoALeafThatWantsAGradientAreRefused) {
  Tensor x = leaf({1, 2});
  EXPECT_EQ(error_of([&] { add_(x, 1); }),
            "add_: the tensor to write is a leaf that requires a gradient, so its elements may not change.");
  EXPECT_EQ(error_of([&] { zero_(slice(x, 0, 0, 1)); }),
            "zero_: the tensor to write is a view of a leaf that requires a gradient.");
  EXPECT_EQ(numbers(x), (Values{1, 2}));
}

TEST(Writes, IntoAViewWhoseBaseIsNotKnownAreRefused) {
  const Tensor w = leaf({7});
  Tensor buffer = zeros({4}, DType::f64);
  EXPECT_NE(
      error_of([&] { copy_(slice(buffer, 0, 1, 2), w); }).find("a view that was made where no gradient was wanted"),
      std::string::npos);
  const Tensor y = w * ones({4}, DType::f64);
  Tensor part;
  {
    const NoGrad scope;
    part = slice(y, 0, 0, 2);
  }
  EXPECT_NE(error_of([&] { mul_(part, w); }).find("made where no gradient was wanted"), std::string::npos);
}

TEST(Writes, IntoATensorThatNobodyElseSeesGiveItAGradient) {
  const Tensor w = leaf({7, 8});
  Tensor buffer = zeros({2}, DType::f64);
  copy_(buffer, w);
  sum(buffer * buffer).backward();
  EXPECT_EQ(numbers(w.grad()), (Values{14, 16}));
}

TEST(Writes, ThroughAViewReachTheBaseAndOtherViews) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor w = leaf({10});
  Tensor y = x * 2;
  const Tensor whole = view(y, {2, 2});
  mul_(slice(y, 0, 1, 3), w);  // y = 2, 40, 60, 8
  EXPECT_EQ(numbers(whole), (Values{2, 40, 60, 8}));
  sum(whole).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{2, 20, 20, 2}));
  EXPECT_EQ(numbers(w.grad()), (Values{10}));
}

TEST(Writes, KeepACopyOfAnArgumentThatTheyReplace) {
  const Tensor x = leaf({1, 2});
  const Tensor w = leaf({3, 4});
  Tensor y = x + 0;
  mul_(y, w);
  sum(y).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{3, 4}));
  EXPECT_EQ(numbers(w.grad()), (Values{1, 2}));
}

TEST(Writes, OfNumbersCutATensorFromItsHistory) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  zero_(y);
  EXPECT_FALSE(y.requires_grad());
  sum(y + x).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{1, 1}));
}

TEST(Writes, IntoAnArgumentLeaveNoNodeThatHoldsItself) {
  const Tensor x = leaf({1, 2});
  SharedStorage storage;
  {
    Tensor y = x * 2;
    const Tensor z = y * y;
    add_(y, z);
    mul_(y, x);
    storage = y.impl()->storage;
    EXPECT_GE(storage.tensor_count(), 2);
    storage.retain_tensor();
  }
  EXPECT_EQ(storage.tensor_count(), 1) << "only the test's own handle is left";
  storage.release_tensor();
}

}  // namespace
}  // namespace tenon
