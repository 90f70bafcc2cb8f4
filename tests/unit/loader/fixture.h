// What tests of the loader need around them: folders of their own, an environment that is put back, a loader that
// starts anew.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::loader {

// No TENON_ variable set, HOME and the XDG folders in a scratch folder, the loader reset before and after.
class LoaderTest : public testing::Test {
 protected:
  LoaderTest();
  ~LoaderTest() override;

  void set(const std::string& variable, const std::string& value);
  // Starts the loader anew, as in a new process with the environment of now.
  static void restart();
  const ScratchFolder& scratch() const { return scratch_; }
  std::string config_folder() const { return fmt::format("{}/config/tenon", scratch_.path()); }
  std::string data_folder() const { return fmt::format("{}/data/tenon/providers", scratch_.path()); }

 private:
  ScratchFolder scratch_;
  std::map<std::string, std::optional<std::string>> before_;
};

// The folder the broken providers were built into.
std::string broken_folder();
// The candidate of that provider; fails the test if there is none.
Candidate candidate_of(const std::string& provider, Stage until = Stage::enumerated);

}  // namespace tenon::loader
