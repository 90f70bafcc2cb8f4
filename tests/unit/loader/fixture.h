// What tests of the loader need around them: folders of their own, an environment that is put back, a loader that
// starts anew.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "loader/loader.h"

namespace tenon::loader {

// A folder that is gone afterwards, with all in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string make_folder(const std::string& name) const;
  std::string write(const std::string& name, const std::string& content) const;
  // Copies a file into `name`.
  std::string copy(const std::string& from, const std::string& name) const;

 private:
  std::string path_;
};

// No TENON_ variable set, HOME and the XDG folders in a scratch folder, the loader reset before and after.
class LoaderTest : public testing::Test {
 protected:
  LoaderTest();
  ~LoaderTest() override;

  void set(const std::string& variable, const std::string& value);
  // Starts the loader anew, as in a new process with the environment of now.
  static void restart();
  const ScratchFolder& scratch() const { return scratch_; }
  std::string config_folder() const { return scratch_.path() + "/config/tenon"; }
  std::string data_folder() const { return scratch_.path() + "/data/tenon/providers"; }

 private:
  ScratchFolder scratch_;
  std::map<std::string, std::optional<std::string>> before_;
};

// The folder the broken providers were built into.
std::string broken_folder();
// The candidate of that provider; fails the test if there is none.
Candidate candidate_of(const std::string& provider, Stage until = Stage::enumerated);

}  // namespace tenon::loader
