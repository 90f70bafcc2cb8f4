#include "fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sample_provider.h"

namespace tenon::loader {

LoaderTest::LoaderTest() {
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("TENON_")) before_[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  for (const auto& [variable, value] : before_) unsetenv(variable.c_str());
  set("HOME", scratch_.path());
  set("XDG_CONFIG_HOME", scratch_.path() + "/config");
  set("XDG_DATA_HOME", scratch_.path() + "/data");
  set("XDG_CACHE_HOME", scratch_.path() + "/cache");
  reset_samples();
  restart();
}

LoaderTest::~LoaderTest() {
  for (const auto& [variable, value] : before_) {
    value ? setenv(variable.c_str(), value->c_str(), 1) : unsetenv(variable.c_str());
  }
  restart();
}

void LoaderTest::set(const std::string& variable, const std::string& value) {
  const char* now = std::getenv(variable.c_str());
  before_.emplace(variable, now ? std::optional<std::string>(now) : std::nullopt);
  setenv(variable.c_str(), value.c_str(), 1);
}

void LoaderTest::restart() { reset_for_tests(); }

std::string broken_folder() { return TENON_BROKEN_FOLDER; }
std::string probed_folder() { return TENON_PROBED_FOLDER; }

Candidate candidate_of(const std::string& provider, Stage until) {
  for (const Candidate& candidate : explain(until)) {
    if (candidate.provider == provider) return candidate;
  }
  ADD_FAILURE() << "there is no candidate named " << provider;
  return {};
}

}  // namespace tenon::loader
