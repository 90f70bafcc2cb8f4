#include "core/device/free_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tenon::memory {
namespace {

// Under the address sanitizer every object goes to the heap, which does not return the same address twice in a row.
constexpr bool kReuses = EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_ADDRESS;

template <int kOfTest>
struct Object {
  uint64_t words[4] = {};
};

TEST(FreeList, GivesWhatWasFreedLast) {
  using List = FreeList<Object<1>, 8>;
  Object<1>* const first = List::make();
  Object<1>* const second = List::make();
  List::destroy(first);
  List::destroy(second);
  Object<1>* const again = List::make();
  Object<1>* const then = List::make();
  EXPECT_EQ(again == second && then == first, kReuses);
  List::destroy(again);
  List::destroy(then);
}

TEST(FreeList, MakesObjectsAnewOfItsArguments) {
  using List = FreeList<Object<2>, 8>;
  List::destroy(List::make(Object<2>{{1, 2, 3, 4}}));
  Object<2>* const object = List::make(Object<2>{{5, 6, 7, 8}});
  EXPECT_EQ(object->words[0], 5u);
  EXPECT_EQ(object->words[3], 8u);
  List::destroy(object);
}

template <class Pointer>
size_t shared_with(const std::set<Pointer>& some, const std::set<Pointer>& others) {
  return static_cast<size_t>(
      std::count_if(some.begin(), some.end(), [&](Pointer one) { return others.contains(one); }));
}

// Lets another thread free `objects`, and calls `meanwhile` before that thread ends. When the thread ends, its own list
// goes to the heap, which may reuse it.
template <class List, class Object>
void freed_by_another_thread(const std::set<Object*>& objects, const std::function<void()>& meanwhile) {
  std::latch done(1), seen(1);
  std::thread other([&] {
    for (Object* object : objects) List::destroy(object);
    done.count_down();
    seen.wait();
  });
  done.wait();
  meanwhile();
  seen.count_down();
  other.join();
}

template <class List, class Object>
std::set<Object*> make(size_t count) {
  std::set<Object*> made;
  for (size_t i = 0; i < count; ++i) made.insert(List::make());
  EXPECT_EQ(made.size(), count) << "an object was given twice";
  return made;
}

// The number of objects, out of `count` that one thread frees, that another thread then gets. The first thread may
// first take a batch of objects that others freed.
template <int kOfTest>
size_t handed_on(size_t count, bool takes_before) {
  using List = FreeList<Object<kOfTest>, 8>;
  const std::set<Object<kOfTest>*> nine = make<List, Object<kOfTest>>(9);
  const std::set<Object<kOfTest>*> objects = make<List, Object<kOfTest>>(count);
  if (takes_before) freed_by_another_thread<List>(nine, [] {});
  std::set<Object<kOfTest>*> taken, made;
  std::latch done(1), seen(1);
  std::thread other([&] {
    if (takes_before) taken = make<List, Object<kOfTest>>(4);
    for (auto* object : objects) List::destroy(object);
    done.count_down();
    seen.wait();
  });
  done.wait();
  made = make<List, Object<kOfTest>>(16);
  EXPECT_EQ(shared_with(taken, nine), takes_before ? 4u : 0u);
  const size_t got = shared_with(made, objects);
  seen.count_down();
  other.join();
  for (auto* object : made) List::destroy(object);
  for (auto* object : takes_before ? taken : nine) List::destroy(object);
  return got;
}

// A full list of 8 passes on a batch of 4 before it takes one more.
TEST(FreeList, OneThreadReusesWhatAnotherThreadFreed) {
  if (!kReuses) GTEST_SKIP() << "the address sanitizer sees the life of every object";
  EXPECT_EQ(handed_on<10>(8, false), 0u);
  EXPECT_EQ(handed_on<11>(9, false), 4u);
  EXPECT_EQ(handed_on<12>(12, false), 4u);
  EXPECT_EQ(handed_on<13>(13, false), 8u);
  EXPECT_EQ(handed_on<14>(8, true), 0u);
  EXPECT_EQ(handed_on<15>(9, true), 4u);
}

TEST(FreeList, SixteenBatchesAtMostAreKeptForOtherThreads) {
  if (!kReuses) GTEST_SKIP() << "the address sanitizer sees the life of every object";
  using List = FreeList<Object<4>, 8>;
  const std::set<Object<4>*> freed = make<List, Object<4>>(8 + 16 * 4 + 20);
  std::set<Object<4>*> made;
  freed_by_another_thread<List>(freed, [&] {
    std::vector<std::unique_ptr<Object<4>>> taken(1000);  // so that the memory in the heap is in use again
    for (auto& one : taken) one = std::make_unique<Object<4>>();
    made = make<List, Object<4>>(16 * 4 + 40);
    EXPECT_EQ(shared_with(made, freed), 16u * 4);
  });
  for (Object<4>* object : made) List::destroy(object);
}

TEST(FreeList, ObjectsGoBackAndForthBetweenThreads) {
  using List = FreeList<Object<5>, 8>;
  for (int round = 0; round < 50; ++round) {
    const std::set<Object<5>*> sent = make<List, Object<5>>(30);
    freed_by_another_thread<List>(sent, [] {});
    const std::set<Object<5>*> own = make<List, Object<5>>(25);
    for (Object<5>* object : own) List::destroy(object);
  }
}

}  // namespace
}  // namespace tenon::memory
