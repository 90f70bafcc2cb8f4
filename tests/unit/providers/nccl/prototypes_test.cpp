// The prototypes and numbers of providers/nccl, compared with NVIDIA's own header.
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>

#include "providers/nccl/library.h"

namespace tenon::provider::nccl {
namespace {

// The type of a parameter in the calling convention: all pointers are equal, enumerations are their numbers.
template <class T>
using Passed = std::conditional_t<
    std::is_pointer_v<T>, void*,
    typename std::conditional_t<std::is_enum_v<T>, std::type_identity<int>, std::type_identity<T>>::type>;

template <class Ours, class Theirs>
struct Alike : std::false_type {};
template <class R, class... Ours, class S, class... Theirs>
struct Alike<R (*)(Ours...), S (*)(Theirs...)> {
  template <class A, class B>
  static constexpr bool same = std::is_same_v<Passed<A>, Passed<B>> ||
                               (std::is_same_v<A, UniqueId> && std::is_same_v<B, ncclUniqueId>);
  static constexpr bool value = [] {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
      return sizeof(R) == sizeof(S) && (same<Ours, Theirs> && ...);
    } else {
      return false;
    }
  }();
};

// Finds the prototype of the function with this name in NVIDIA's header.
template <class Ours>
bool is_declared_alike(const std::string& symbol) {
  const std::tuple theirs{
      std::pair{"ncclGetVersion", &ncclGetVersion},
      std::pair{"ncclGetUniqueId", &ncclGetUniqueId},
      std::pair{"ncclCommInitRankConfig", &ncclCommInitRankConfig},
      std::pair{"ncclCommGetAsyncError", &ncclCommGetAsyncError},
      std::pair{"ncclCommAbort", &ncclCommAbort},
      std::pair{"ncclGroupStart", &ncclGroupStart},
      std::pair{"ncclGroupEnd", &ncclGroupEnd},
      std::pair{"ncclAllReduce", &ncclAllReduce},
      std::pair{"ncclReduce", &ncclReduce},
      std::pair{"ncclReduceScatter", &ncclReduceScatter},
      std::pair{"ncclAllGather", &ncclAllGather},
      std::pair{"ncclBroadcast", &ncclBroadcast},
      std::pair{"ncclSend", &ncclSend},
      std::pair{"ncclRecv", &ncclRecv},
  };
  return std::apply(
      [&](const auto&... each) { return ((symbol == each.first && Alike<Ours, decltype(each.second)>::value) || ...); },
      theirs);
}

TEST(NcclPrototypes, AreThoseOfTheHeader) {
#define NCCL_FUNCTION(member, symbol, parameters) \
  EXPECT_TRUE(is_declared_alike<decltype(Libraries::member)>(symbol)) << (symbol);
#define CUDA_FUNCTION(member, symbol, parameters)
#include "providers/nccl/functions.def"
#undef NCCL_FUNCTION
#undef CUDA_FUNCTION
}

TEST(NcclPrototypes, NumbersAreThoseOfTheHeader) {
  const std::pair<int, int> numbers[] = {
      {success, ncclSuccess}, {in_progress, ncclInProgress},
      {int8, ncclInt8},       {uint8, ncclUint8},
      {int32, ncclInt32},     {uint32, ncclUint32},
      {int64, ncclInt64},     {uint64, ncclUint64},
      {float16, ncclFloat16}, {float32, ncclFloat32},
      {float64, ncclFloat64}, {bfloat16, ncclBfloat16},
      {sum, ncclSum},         {prod, ncclProd},
  };
  for (const auto& [ours, theirs] : numbers) EXPECT_EQ(ours, theirs);
  EXPECT_EQ(offsetof(Config, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(Config, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(sizeof(UniqueId), sizeof(ncclUniqueId));
  const ncclConfig_t sound = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(Config().magic, sound.magic);
}

}  // namespace
}  // namespace tenon::provider::nccl
