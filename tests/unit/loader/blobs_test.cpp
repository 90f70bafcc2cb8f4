// Blobs kept for later runs: they are read back unchanged, or not at all.
#include "loader/blobs/blobs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "loader/kept/kept.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::loader {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class BlobStore : public testing::Test {
 protected:
  BlobStore() {
    if (const char* set = std::getenv("XDG_CACHE_HOME")) before_ = set;
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  ~BlobStore() override { before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

  fs::path blobs() const { return fs::path(folder_.path()) / "tenon" / "blobs"; }
  fs::path only_file() const {
    const fs::directory_iterator all(blobs());
    return all->path();
  }
  void write(const std::string& bytes) const { std::ofstream(only_file(), std::ios::binary) << bytes; }
  std::string random_bytes(size_t size) {
    std::string bytes(size, 0);
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  ScratchFolder folder_;
  std::string before_;
  std::mt19937_64 random_{3};
};

TEST_F(BlobStore, KeepsAndReadsNothingWhereItIsSwitchedOff) {
  keep_blob("a", "before", "one");
  ASSERT_TRUE(set_argument("blobs", "off").ok());
  EXPECT_EQ(kept_blob("a", "before"), std::nullopt);
  keep_blob("a", "meanwhile", "two");
  ASSERT_TRUE(set_argument("blobs", "on").ok());
  EXPECT_EQ(kept_blob("a", "before"), "one") << "what was there stays";
  EXPECT_EQ(kept_blob("a", "meanwhile"), std::nullopt);
}

TEST_F(BlobStore, GivesBackWhatWasKeptByProviderAndKey) {
  const std::string one = random_bytes(1), large = random_bytes(1 << 20), zeros(100, 0);
  keep_blob("a", "key", one);
  keep_blob("b", "key", large);
  keep_blob("a", std::string_view("key\0", 4), zeros);
  EXPECT_EQ(kept_blob("a", "key"), one);
  EXPECT_EQ(kept_blob("b", "key"), large);
  EXPECT_EQ(kept_blob("a", std::string_view("key\0", 4)), zeros);
  EXPECT_EQ(kept_blob("c", "key"), std::nullopt);
  EXPECT_EQ(kept_blob("a", "ke"), std::nullopt);
  keep_blob("a", "key", large);
  EXPECT_EQ(kept_blob("a", "key"), large) << "the later one";
}

TEST_F(BlobStore, KeepsNothingUnderAKeyOrOfASizeThatIsNone) {
  keep_blob("a", "", "x");
  keep_blob("a", std::string(longest_blob_key + 1, 'k'), "x");
  keep_blob("a", "empty", "");
  keep_blob("a", "large", std::string(largest_blob + 1, 'x'));
  EXPECT_FALSE(fs::exists(blobs()) && !fs::is_empty(blobs()));
  keep_blob("a", std::string(longest_blob_key, 'k'), "x");
  EXPECT_EQ(kept_blob("a", std::string(longest_blob_key, 'k')), "x");
}

TEST_F(BlobStore, AFileWithAnyByteChangedCutOrAddedIsAMiss) {
  const std::string blob = random_bytes(60);
  keep_blob("a", "key", blob);
  const std::string whole = read_all(only_file());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << random_() % 8));
    write(changed);
    ASSERT_EQ(kept_blob("a", "key"), std::nullopt) << "byte " << i;
    write(whole.substr(0, i));
    ASSERT_EQ(kept_blob("a", "key"), std::nullopt) << "cut to " << i;
  }
  write(whole + "x");
  EXPECT_EQ(kept_blob("a", "key"), std::nullopt);
  write(whole);
  EXPECT_EQ(kept_blob("a", "key"), blob);
}

// A file of the right name with another key inside: a collision of names.
TEST_F(BlobStore, AFileOfAnotherKeyIsAMiss) {
  keep_blob("a", "one", "blob");
  const fs::path one = only_file();
  const std::string bytes = read_all(one);
  fs::remove(one);
  keep_blob("a", "two", "other");
  write(bytes);
  EXPECT_EQ(kept_blob("a", "two"), std::nullopt);
}

TEST_F(BlobStore, AFileThatOthersCouldHaveWrittenIsAMiss) {
  keep_blob("a", "key", "blob");
  ASSERT_EQ(chmod(only_file().c_str(), 0666), 0);
  EXPECT_EQ(kept_blob("a", "key"), std::nullopt);
  ASSERT_EQ(chmod(only_file().c_str(), 0600), 0);
  EXPECT_EQ(kept_blob("a", "key"), "blob");
}

TEST_F(BlobStore, WithoutAFolderThatCanBeWrittenNothingIsKeptAndNothingFails) {
  setenv("XDG_CACHE_HOME", "/proc/1/nowhere", 1);
  keep_blob("a", "key", "blob");
  EXPECT_EQ(kept_blob("a", "key"), std::nullopt);
}

TEST_F(BlobStore, WhatWasNotAskedForTheLongestGoesFirst) {
  const std::string folder = folder_.path() + "/room";
  for (int i = 0; i < 10; ++i) {
    const std::string path = fmt::format("{}/{}", folder, i);
    ASSERT_TRUE(keep_file(path, std::string(100, 'x')));
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(100 - i));
  }
  drop_oldest(folder, {.files = 10, .bytes = 1000});
  EXPECT_TRUE(fs::exists(folder + "/0")) << "the room is not exceeded";
  fs::last_write_time(folder + "/0", fs::file_time_type::clock::now());
  drop_oldest(folder, {.bytes = 999});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(fs::exists(fmt::format("{}/{}", folder, i)), i == 0 || i >= 7) << i;
  }
}

TEST_F(BlobStore, AskingForABlobMakesItTheLatest) {
  keep_blob("a", "key", "blob");
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(5);
  fs::last_write_time(only_file(), old);
  EXPECT_EQ(kept_blob("a", "key"), "blob");
  EXPECT_GT(fs::last_write_time(only_file()), old + std::chrono::hours(4));
}

TEST_F(BlobStore, ThreadsThatKeepAndAskAtOnceSeeWholeBlobs) {
  const std::string blobs[] = {random_bytes(5000), random_bytes(70000)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        keep_blob("a", "key", blobs[(t + i) % 2]);
        const std::optional<std::string> got = kept_blob("a", "key");
        ASSERT_TRUE(got == blobs[0] || got == blobs[1]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon::loader
