// The fixture of loader tests: scratch folders, an environment that is restored, and a fresh loader.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::loader {

// A test with no TENON_ variable set, with HOME and the XDG folders in a scratch folder, and with a fresh loader.
class LoaderTest : public testing::Test {
 protected:
  LoaderTest();
  ~LoaderTest() override;

  void set(const std::string& variable, const std::string& value);
  // Restarts the loader as in a new process with the present environment.
  static void restart();
  const ScratchFolder& scratch() const { return scratch_; }
  std::string config_folder() const { return fmt::format("{}/config/tenon", scratch_.path()); }
  std::string data_folder() const { return fmt::format("{}/data/tenon/providers", scratch_.path()); }

 private:
  ScratchFolder scratch_;
  std::map<std::string, std::optional<std::string>> before_;
};

// The build folder of the broken providers.
std::string broken_folder();
// The build folder of the providers that crash or hang while the loader counts their devices.
std::string probed_folder();
// Returns the candidate of `provider`. Fails the test if there is none.
Candidate candidate_of(const std::string& provider, Stage until = Stage::enumerated);

}  // namespace tenon::loader
