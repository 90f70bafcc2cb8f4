// Where a plug-in looks for symbols.
#include "loader/library/scope.h"

#include <dlfcn.h>

#include "fixture.h"

namespace tenon::loader {
namespace {

class ScopeTest : public LoaderTest {};

TEST_F(ScopeTest, AStubHasNothingButItsLibrariesInTheirOrder) {
  const std::string sound = broken_folder() + "/libtenon_sound.so";
  const std::string path = scratch().write("stub.so", stub_library({"libm.so.6", sound}));
  void* stub = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(stub, nullptr) << dlerror();
  EXPECT_NE(dlsym(stub, "cos"), nullptr);
  EXPECT_NE(dlsym(stub, "ep_plugin_query_v0"), nullptr);
  EXPECT_EQ(dlclose(stub), 0);
}

TEST_F(ScopeTest, AStubWithoutItsLibrarySaysWhichIsMissing) {
  const std::string path = scratch().write("stub.so", stub_library({"libtenon_test_absent.so"}));
  EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
  EXPECT_NE(std::string(dlerror()).find("libtenon_test_absent.so: cannot open shared object file"), std::string::npos);
}

TEST_F(ScopeTest, OwnSymbolsComeFirstUnlessASanitizerMustComeFirst) {
  const Scope scope = scope_of("/somewhere/libtenon_foo.so");
  EXPECT_NE(scope.mode & RTLD_NOW, 0);
  EXPECT_EQ(scope.mode & RTLD_GLOBAL, 0);
  EXPECT_EQ((scope.mode & RTLD_DEEPBIND) != 0, EP_SANITIZER_OF_THIS_BUILD == EP_SANITIZER_NONE);
  EXPECT_EQ(scope.path, "/somewhere/libtenon_foo.so") << "no stub, since nothing replaces the C library's allocator";
}

}  // namespace
}  // namespace tenon::loader
