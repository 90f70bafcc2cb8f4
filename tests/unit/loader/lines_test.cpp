// Lines that processes append to a user's file: each is there whole and once, or the file is ignored.
#include "loader/kept/lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::loader {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

constexpr uint64_t kMost = 1 << 20;

class KeptLines : public testing::Test {
 protected:
  Lines read(uint64_t most = kMost) const { return read_lines(path_, "head", most); }
  bool append(const std::string& line, uint64_t most = kMost) const { return append_line(path_, "head", line, most); }

  ScratchFolder folder_;
  std::string path_ = folder_.path() + "/own/lines";
};

TEST_F(KeptLines, ComeBackInTheirOrder) {
  EXPECT_EQ(read(), Lines());
  EXPECT_TRUE(append("one"));
  EXPECT_TRUE(append(""));
  EXPECT_TRUE(append("two"));
  EXPECT_EQ(read(), (Lines{"one", "", "two"}));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_FALSE(append("three\nfour")) << "a line is one line";
  EXPECT_EQ(read().size(), 3u);
}

TEST_F(KeptLines, AFileThatBeginsOtherwiseIsReplaced) {
  ASSERT_TRUE(append_line(path_, "other", "one", kMost));
  EXPECT_EQ(read(), Lines());
  EXPECT_TRUE(append("two"));
  EXPECT_EQ(read(), Lines{"two"});
  EXPECT_EQ(read_lines(path_, "other", kMost), Lines());
}

TEST_F(KeptLines, WhatAKilledWriterLeftIsNoLineAndHarmsNone) {
  ASSERT_TRUE(append("one"));
  std::ofstream(path_, std::ios::app) << "half of a li";
  EXPECT_EQ(read(), Lines{"one"});
  EXPECT_TRUE(append("two"));
  EXPECT_EQ(read(), (Lines{"one", "half of a li", "two"})) << "the reader of lines checks each";
}

TEST_F(KeptLines, OfALongFileTheYoungerHalfStays) {
  const std::string line(100, 'x');
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(append(fmt::format("{:03}{}", i, line), 2000));
  const Lines lines = read(2000);
  ASSERT_GT(lines.size(), 5u);
  EXPECT_LE(fs::file_size(path_), 2000u);
  EXPECT_EQ(lines.back().substr(0, 3), "049");
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_EQ(std::stoi(lines[i].substr(0, 3)), std::stoi(lines[i - 1]) + 1);
  EXPECT_FALSE(append(std::string(3000, 'y'), 2000)) << "longer than a file may be";
  EXPECT_EQ(read(2000), lines);
}

TEST_F(KeptLines, WhatOthersMayHaveWrittenIsNeitherReadNorWritten) {
  ASSERT_TRUE(append("one"));
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_EQ(read(), Lines());
  EXPECT_FALSE(append("two"));
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  ASSERT_EQ(chmod((folder_.path() + "/own").c_str(), 0777), 0);
  EXPECT_EQ(read(), Lines());
  EXPECT_FALSE(append("two"));
  ASSERT_EQ(chmod((folder_.path() + "/own").c_str(), 0700), 0);
  EXPECT_EQ(read(), Lines{"one"});
}

TEST_F(KeptLines, LinksPipesAndFoldersAreNoFiles) {
  const std::string target = folder_.write("target", "precious");
  fs::create_directory(folder_.path() + "/own");
  fs::create_symlink(target, path_);
  EXPECT_FALSE(append("one"));
  EXPECT_EQ(fs::file_size(target), 8u);
  fs::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(append("one"));
  EXPECT_EQ(read(), Lines());
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_FALSE(append("one"));
  EXPECT_EQ(read(), Lines());
  EXPECT_FALSE(append_line(target + "/lines", "head", "one", kMost)) << "a file in place of the folder";
  EXPECT_FALSE(append_line("", "head", "one", kMost));
}

TEST_F(KeptLines, ProcessesThatAppendAtOnceLoseNone) {
  constexpr int kProcesses = 4, kEach = 100;
  for (int process = 0; process < kProcesses; ++process) {
    if (fork() != 0) continue;
    bool kept = true;
    for (int i = 0; i < kEach; ++i) kept = append(fmt::format("{} {}", process, i)) && kept;
    _exit(kept ? 0 : 1);
  }
  for (int process = 0; process < kProcesses; ++process) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  const Lines lines = read();
  EXPECT_EQ(lines.size(), size_t{kProcesses * kEach});
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), size_t{kProcesses * kEach});
}

// Each process sometimes replaces the file. Whole lines are left, and the last line of the last process.
TEST_F(KeptLines, ProcessesThatShortenTheFileLeaveWholeLines) {
  const std::string tail(50, 'z');
  for (int process = 0; process < 3; ++process) {
    if (fork() != 0) continue;
    bool kept = true;
    for (int i = 0; i < 200; ++i) kept = append(fmt::format("{} {}", i, tail), 1500) && kept;
    _exit(kept ? 0 : 1);
  }
  for (int process = 0; process < 3; ++process) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  const Lines lines = read(1500);
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_TRUE(line.ends_with(" " + tail)) << line;
  EXPECT_EQ(lines.back().substr(0, 4), "199 ");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path() + "/own"), fs::directory_iterator()), 1)
      << "no draft is left";
}

}  // namespace
}  // namespace tenon::loader
