#include "loader/trust/trust.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "fixture.h"

namespace tenon::loader {
namespace {

constexpr uid_t user = 4001;
constexpr uid_t stranger = 4002;
constexpr gid_t group = 4100;

// A raw system.posix_acl_access value.
std::string access_list(std::initializer_list<std::array<uint32_t, 3>> entries) {
  std::string raw("\x02\0\0\0", 4);
  for (const auto& [tag, permissions, id] : entries) {
    const uint16_t words[] = {static_cast<uint16_t>(tag), static_cast<uint16_t>(permissions)};
    raw.append(reinterpret_cast<const char*>(words), sizeof words);
    raw.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  return raw;
}

TEST(FindStranger, RootAndTheUserAreTrusted) {
  EXPECT_TRUE(find_stranger({0, 0, 0755, ""}, user).empty());
  EXPECT_TRUE(find_stranger({user, group, 0700, ""}, user).empty());
  EXPECT_TRUE(find_stranger({user, group, 0755, ""}, user).empty());
}

TEST(FindStranger, AnotherOwnerIsNot) {
  const Complaint complaint = find_stranger({stranger, group, 0755, ""}, user);
  EXPECT_EQ(complaint.sentence, "belongs to user id 4002, neither to root nor to user id 4001");
  EXPECT_EQ(complaint.remedy, "chown root %");
}

TEST(FindStranger, WritableByOthersOrAGroupIsNot) {
  EXPECT_EQ(find_stranger({user, group, 0757, ""}, user).sentence, "can be written by anyone (mode 0757)");
  EXPECT_EQ(find_stranger({user, group, 0775, ""}, user).sentence,
            "can be written by the group group id 4100 (mode 0775)");
  EXPECT_EQ(find_stranger({user, group, 0775, ""}, user).remedy, "chmod g-w %");
}

TEST(FindStranger, TheOwnersOwnGroupIsTheOwner) {
  const passwd* root = getpwuid(0);
  if (!root) GTEST_SKIP() << "this system does not know the user id 0";
  EXPECT_TRUE(find_stranger({0, root->pw_gid, 0775, ""}, user).empty());
}

TEST(FindStranger, AccessListsCount) {
  constexpr uint32_t owner = 1, named_user = 2, owning_group = 4, named_group = 8, mask = 0x10, other = 0x20;
  constexpr uint32_t none = UINT32_MAX;
  const auto with = [&](std::array<uint32_t, 3> entry, uint32_t mask_bits) {
    return find_stranger(
               {user, group, 0775,
                access_list(
                    {{owner, 7, none}, {owning_group, 5, none}, entry, {mask, mask_bits, none}, {other, 5, none}})},
               user)
        .sentence;
  };
  EXPECT_EQ(with({named_user, 7, stranger}, 7), "can be written by the user user id 4002 through its access list");
  EXPECT_EQ(with({named_user, 5, stranger}, 7), "") << "the mode's group bits are the list's mask, not a right";
  EXPECT_EQ(with({named_user, 7, stranger}, 5), "") << "the mask takes the right away";
  EXPECT_EQ(with({named_user, 7, user}, 7), "");
  EXPECT_EQ(with({named_user, 7, 0}, 7), "");
  EXPECT_EQ(with({named_group, 7, group}, 7), "can be written by the group group id 4100 through its access list");
  EXPECT_EQ(find_stranger({user, group, 0775,
                           access_list({{owner, 7, none}, {owning_group, 7, none}, {mask, 7, none}, {other, 5, none}})},
                          user)
                .sentence,
            "can be written by the group group id 4100");
}

TEST(FindStranger, CutShortAccessListsAreRead) {
  const std::string whole = access_list({{1, 7, UINT32_MAX}, {2, 7, stranger}, {0x10, 7, UINT32_MAX}});
  for (size_t size = 0; size <= whole.size(); ++size) {
    find_stranger({user, group, 0755, whole.substr(0, size)}, user);
  }
}

class OpenChecked : public testing::Test {
 protected:
  void change_mode(const std::string& path, mode_t mode) { ASSERT_EQ(chmod(path.c_str(), mode), 0); }
  ScratchFolder scratch_;
};

TEST_F(OpenChecked, GivesTheResolvedPathAndWhatTheFileWas) {
  const std::string path = scratch_.write("a/b/file", "content");
  std::filesystem::create_symlink(path, scratch_.path() + "/link");
  const Result<CheckedFile> file = open_checked(scratch_.path() + "/link");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->path, path);
  EXPECT_EQ(file->identity.size, 7u);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(file->identity.inode, status.st_ino);
  EXPECT_GE(file->descriptor.get(), 0);
}

TEST_F(OpenChecked, ChecksEveryFolderAbove) {
  const std::string path = scratch_.write("a/b/c/file", "content");
  change_mode(scratch_.path() + "/a", 0777);
  EXPECT_EQ(open_checked(path).status().message(),
            "the folder '" + scratch_.path() + "/a' can be written by anyone (mode 0777).");
  EXPECT_TRUE(open_checked(path, false).ok());
}

TEST_F(OpenChecked, ChecksTheFolderOfALinkToo) {
  const std::string path = scratch_.write("good/file", "content");
  const std::string open_folder = scratch_.make_folder("open");
  std::filesystem::create_symlink(path, open_folder + "/file");
  EXPECT_TRUE(open_checked(open_folder + "/file").ok());
  change_mode(open_folder, 0777);
  EXPECT_FALSE(open_checked(open_folder + "/file").ok());
}

TEST_F(OpenChecked, AFolderOfRootWithTheStickyBitWillDo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a folder of root's";
  const std::string path = scratch_.write("shared/file", "content");
  change_mode(scratch_.path() + "/shared", 01777);
  EXPECT_TRUE(open_checked(path).ok()) << open_checked(path).status().message();
  ASSERT_EQ(chown((scratch_.path() + "/shared").c_str(), stranger, 0), 0);
  change_mode(scratch_.path() + "/shared", 01777);
  EXPECT_FALSE(open_checked(path).ok()) << "its owner may replace what is in it";
}

TEST_F(OpenChecked, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string path = scratch_.write("file", "content");
  ASSERT_EQ(chown(path.c_str(), stranger, 0), 0);
  const Status status = open_checked(path).status();
  EXPECT_EQ(status.message().find("the file '" + path + "' belongs to user id 4002"), 0u) << status.message();
  EXPECT_EQ(status.remedy(), "Run: chown root '" + path + "'");
}

TEST_F(OpenChecked, OnlyRegularFiles) {
  scratch_.make_folder("libtenon_folder.so");
  EXPECT_EQ(open_checked(scratch_.path() + "/libtenon_folder.so").status().message(),
            "'" + scratch_.path() + "/libtenon_folder.so' is not a regular file.");
  ASSERT_EQ(mkfifo((scratch_.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(open_checked(scratch_.path() + "/pipe").ok()) << "and does not wait for a writer";
  EXPECT_EQ(open_checked(scratch_.path() + "/absent").status().code(), Code::not_found);
  std::filesystem::create_symlink("loop", scratch_.path() + "/loop");
  EXPECT_FALSE(open_checked(scratch_.path() + "/loop").ok());
}

}  // namespace
}  // namespace tenon::loader
