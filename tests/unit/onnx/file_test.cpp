#include "sdk/onnx/file/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::onnx {
namespace {

namespace fs = std::filesystem;

class External : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("model/weights/w.bin", "0123456789");
    scratch_.write("secret.bin", "secret");
  }
  std::string root() const { return base_ + "/model"; }

  std::string refusal(const std::string& location) {
    ExternalFiles files(root());
    const Result<uint64_t> size = files.size(location);
    return size.ok() ? "(opened)" : size.status().message();
  }

  const ScratchFolder scratch_;
  const std::string& base_ = scratch_.path();
};

TEST_F(External, ReadsARangeBelowTheFolder) {
  ExternalFiles files(root());
  char bytes[4] = {};
  ASSERT_TRUE(files.read("weights/w.bin", 3, 4, bytes).ok());
  EXPECT_EQ(std::string(bytes, 4), "3456");
  EXPECT_EQ(files.size("weights/w.bin").value(), 10u);
}

TEST_F(External, RefusesRangesOutsideTheFile) {
  ExternalFiles files(root());
  char bytes[16] = {};
  EXPECT_EQ(files.read("weights/w.bin", 8, 4, bytes).message(),
            "External data 'weights/w.bin' has 10 bytes; a tensor needs 4 bytes at offset 8.");
  EXPECT_FALSE(files.read("weights/w.bin", UINT64_MAX, 2, bytes).ok());
  EXPECT_FALSE(files.read("weights/w.bin", 2, UINT64_MAX, bytes).ok());
}

TEST_F(External, RefusesWaysOutOfTheFolder) {
  EXPECT_NE(refusal("../secret.bin").find("names a parent folder"), std::string::npos);
  EXPECT_NE(refusal("weights/../../secret.bin").find("names a parent folder"), std::string::npos);
  EXPECT_NE(refusal(base_ + "/secret.bin").find("is an absolute path"), std::string::npos);
  EXPECT_NE(refusal("").find("has no usable name"), std::string::npos);
  EXPECT_NE(refusal(std::string("weights/w.bin\0x", 15)).find("has no usable name"), std::string::npos);
}

TEST_F(External, FollowsLinksThatEndInTheFolder) {
  fs::create_symlink("weights/w.bin", root() + "/link.bin");
  fs::create_directory_symlink("weights", root() + "/folder");
  fs::create_hard_link(root() + "/weights/w.bin", root() + "/hard.bin");
  for (const char* location : {"link.bin", "folder/w.bin", "hard.bin", "weights/w.bin"}) {
    char bytes[4] = {};
    EXPECT_EQ(ExternalFiles(root()).read(location, 3, 4, bytes).message(), "") << location;
    EXPECT_EQ(std::string(bytes, 4), "3456") << location;
  }
}

// The layout of a download cache: models--x/snapshots/<revision>/model.onnx_data -> ../../blobs/<hash>.
TEST_F(External, FollowsLinksFromASnapshotToItsBlobs) {
  scratch_.write("models--x/blobs/0123", "blob");
  scratch_.write("models--x/other/0123", "other");
  scratch_.write("models--x/snapshots/abc/onnx/config.json", "{}");
  const std::string snapshot = base_ + "/models--x/snapshots/abc";
  fs::create_symlink("../../blobs/0123", snapshot + "/model.onnx_data");
  fs::create_symlink("../../../blobs/0123", snapshot + "/onnx/model.onnx_data");
  fs::create_symlink("../../other/0123", snapshot + "/outside");
  for (const std::string& folder : {snapshot, snapshot + "/onnx"}) {
    char bytes[4] = {};
    EXPECT_EQ(ExternalFiles(folder).read("model.onnx_data", 0, 4, bytes).message(), "");
    EXPECT_EQ(std::string(bytes, 4), "blob");
  }
  const std::string refused = ExternalFiles(snapshot).size("outside").status().message();
  EXPECT_NE(refused.find("is a symbolic link to '"), std::string::npos) << refused;
  EXPECT_NE(refused.find("/models--x/other/0123', which lies neither in '"), std::string::npos) << refused;
}

TEST_F(External, RefusesSymbolicLinksThatEndElsewhere) {
  fs::create_symlink(base_ + "/secret.bin", root() + "/link.bin");
  fs::create_directory_symlink(base_, root() + "/up");
  fs::create_symlink("nowhere", root() + "/dangling");
  EXPECT_NE(refusal("link.bin").find("symbolic link to '"), std::string::npos);
  EXPECT_NE(refusal("up/secret.bin").find("symbolic link to '"), std::string::npos);
  EXPECT_NE(refusal("dangling").find("does not exist"), std::string::npos);
}

TEST_F(External, RefusesHardLinksAndSpecialFiles) {
  fs::create_hard_link(base_ + "/secret.bin", root() + "/hard.bin");
  ASSERT_EQ(mkfifo((root() + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal("hard.bin").find("is a hard link"), std::string::npos);
  EXPECT_NE(refusal("pipe").find("is not a regular file"), std::string::npos);
  EXPECT_NE(refusal("weights").find("is not a regular file"), std::string::npos);
}

TEST_F(External, RefusesEverythingWithoutAFolder) {
  ExternalFiles files{std::string()};
  const std::string below_root_of_the_system = root().substr(1) + "/weights/w.bin";
  for (const std::string& location : {std::string("weights/w.bin"), below_root_of_the_system}) {
    const Result<uint64_t> size = files.size(location);
    ASSERT_FALSE(size.ok()) << location;
    EXPECT_EQ(size.status().message(),
              fmt::format("External data '{}' cannot be read: no folder for external data was given.", location));
  }
}

}  // namespace
}  // namespace tenon::onnx
