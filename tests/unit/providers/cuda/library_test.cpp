// The search for a vendor's library, and the message if none is usable.
#include "providers/cuda/driver/library.h"

#include <gtest/gtest.h>

#include "tests/unit/scratch_folder.h"

namespace tenon::provider::cuda {
namespace {

TEST(CudaLibrary, NamesEachFileItLookedFor) {
  constexpr const char* names[] = {"libnever_heard_of.so.13", "libnever_heard_of.so.12"};
  const Library library = Library::open(names);
  EXPECT_FALSE(library.loaded());
  EXPECT_FALSE(library.found_broken());
  EXPECT_NE(library.failure().find("libnever_heard_of.so.13: cannot open shared object file"), std::string::npos);
  EXPECT_NE(library.failure().find("; libnever_heard_of.so.12: cannot open"), std::string::npos) << library.failure();
  EXPECT_EQ(library.symbol("anything"), nullptr);
}

TEST(CudaLibrary, TellsABrokenFileFromNone) {
  const ScratchFolder scratch;
  const std::string path = scratch.write("libtext.so.13", std::string(4096, 'x'));
  const char* names[] = {path.c_str()};
  const Library library = Library::open(names);
  EXPECT_FALSE(library.loaded());
  EXPECT_TRUE(library.found_broken());
  EXPECT_NE(library.failure().find("invalid ELF header"), std::string::npos) << library.failure();
}

TEST(CudaLibrary, TakesTheFirstThatLoads) {
  constexpr const char* names[] = {"libnever_heard_of.so.13", "libm.so.6"};
  const Library library = Library::open(names);
  ASSERT_TRUE(library.loaded());
  EXPECT_EQ(library.name(), "libm.so.6");
  EXPECT_EQ(library.failure(), "");
  EXPECT_NE(library.symbol("cos"), nullptr);
}

}  // namespace
}  // namespace tenon::provider::cuda
