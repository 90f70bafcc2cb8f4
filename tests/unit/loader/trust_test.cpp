#include "loader/trust/trust.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "fixture.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uid_t user = 4001;
constexpr uid_t stranger = 4002;
constexpr gid_t group = 4100;

// A raw value of system.posix_acl_access.
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

TEST(FindStranger, AccessListsThatCannotBeUnderstoodAreNoReasonToTrust) {
  const std::string whole = access_list({{1, 7, UINT32_MAX}, {2, 5, stranger}, {0x10, 7, UINT32_MAX}});
  for (size_t size = 1; size < whole.size(); ++size) {
    if (size >= 4 && size % 8 == 4) continue;  // a list with fewer entries
    EXPECT_EQ(find_stranger({user, group, 0755, whole.substr(0, size)}, user).sentence,
              "has an access list that cannot be understood")
        << size;
  }
  std::string newer = whole;
  newer[0] = 3;
  EXPECT_FALSE(find_stranger({user, group, 0755, newer}, user).empty());
}

TEST(FindStranger, AGroupThatIsAnothersPrimaryGroupIsNotTheOwnersOwn) {
  const ScratchFolder scratch;
  const std::string accounts = scratch.write("passwd",
                                             "root:x:0:0:root:/root:/bin/sh\n"
                                             "anna:x:1001:1001::/home/anna:/bin/sh\n"
                                             "bert:x:1002:1001::/home/bert:/bin/sh\n"
                                             "carl:x:1003:1003::/home/carl:/bin/sh\n");
  EXPECT_TRUE(is_group_of_another(accounts.c_str(), 1001, 1001)) << "bert could write what anna's group may write";
  EXPECT_FALSE(is_group_of_another(accounts.c_str(), 1003, 1003));
  EXPECT_FALSE(is_group_of_another(accounts.c_str(), 0, 0));
  EXPECT_FALSE(is_group_of_another((scratch.path() + "/absent").c_str(), 0, 0));
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
            fmt::format("the folder '{}/a' can be written by anyone (mode 0777).", scratch_.path()));
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

TEST_F(OpenChecked, ChecksTheFolderOfEveryLinkOfAChain) {
  const std::string path = scratch_.write("good/file", "content");
  const std::string middle = scratch_.make_folder("middle"), start = scratch_.make_folder("start");
  std::filesystem::create_symlink("../good/file", middle + "/file");
  std::filesystem::create_symlink(middle + "/file", start + "/file");
  ASSERT_TRUE(open_checked(start + "/file").ok()) << open_checked(start + "/file").status().message();
  EXPECT_EQ(open_checked(start + "/file")->path, path);
  change_mode(middle, 0777);
  EXPECT_EQ(open_checked(start + "/file").status().message(),
            fmt::format("the folder '{}' can be written by anyone (mode 0777).", middle));
}

TEST_F(OpenChecked, ChecksTheFolderOfALinkedFolder) {
  scratch_.write("good/plugins/file", "content");
  const std::string open_folder = scratch_.make_folder("open");
  std::filesystem::create_symlink(scratch_.path() + "/good", open_folder + "/linked");
  EXPECT_TRUE(open_checked(open_folder + "/linked/plugins/file").ok());
  EXPECT_TRUE(open_checked(open_folder + "/linked/../good/./plugins//file").ok());
  change_mode(open_folder, 0777);
  EXPECT_EQ(open_checked(open_folder + "/linked/plugins/file").status().message(),
            fmt::format("the folder '{}' can be written by anyone (mode 0777).", open_folder));
}

TEST_F(OpenChecked, ALinkOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  const std::string path = scratch_.write("good/file", "content");
  const std::string shared = scratch_.make_folder("shared");
  change_mode(shared, 01777);
  std::filesystem::create_symlink(path, shared + "/link");
  EXPECT_TRUE(open_checked(shared + "/link").ok());
  ASSERT_EQ(lchown((shared + "/link").c_str(), stranger, 0), 0);
  const Status status = open_checked(shared + "/link").status();
  EXPECT_EQ(status.message().find(fmt::format("the link '{}/link' belongs to user id 4002", shared)), 0u)
      << status.message();
  EXPECT_EQ(status.remedy(), fmt::format("Run: chown -h root '{}/link'", shared));
}

TEST_F(OpenChecked, WhatOthersOwnInAStickyFolderIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const std::string path = scratch_.write("shared/theirs/file", "content");
  change_mode(scratch_.path() + "/shared", 01777);
  EXPECT_TRUE(open_checked(path).ok());
  ASSERT_EQ(chown((scratch_.path() + "/shared/theirs").c_str(), stranger, 0), 0);
  EXPECT_FALSE(open_checked(path).ok());
}

TEST_F(OpenChecked, AFileThatIsNotThereIsNotFoundWhateverTheFolders) {
  const std::string folder = scratch_.make_folder("open");
  change_mode(folder, 0777);
  EXPECT_EQ(open_checked(folder + "/absent").status().code(), Code::not_found);
}

TEST_F(OpenChecked, ReadsAccessListsOfFilesFoldersAndAncestors) {
  constexpr uint32_t owner = 1, named_user = 2, owning_group = 4, mask = 0x10, other = 0x20, none = UINT32_MAX;
  const std::string path = scratch_.write("a/b/file", "content");
  const std::string list = access_list(
      {{owner, 7, none}, {named_user, 7, stranger}, {owning_group, 5, none}, {mask, 7, none}, {other, 5, none}});
  for (const std::string& place : {path, scratch_.path() + "/a/b", scratch_.path() + "/a"}) {
    if (setxattr(place.c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0)
      GTEST_SKIP() << "this file system has no access lists";
    const Status status = open_checked(path).status();
    EXPECT_NE(status.message().find(
                  fmt::format("'{}' can be written by the user user id 4002 through its access list", place)),
              std::string::npos)
        << status.message();
    EXPECT_EQ(status.remedy(), fmt::format("Run: setfacl -b '{}'", place));
    ASSERT_EQ(removexattr(place.c_str(), "system.posix_acl_access"), 0);
    change_mode(place, 0755);
    EXPECT_TRUE(open_checked(path).ok()) << open_checked(path).status().message();
  }
}

TEST_F(OpenChecked, ReadsLongAccessLists) {
  std::string list = access_list({{1, 7, UINT32_MAX}});
  constexpr uint32_t many = 60;  // number of access entries; the last one may write
  for (uint32_t i = 1; i <= many; ++i) list += access_list({{2, i == many ? 7u : 5u, 10000 + i}}).substr(4);
  list += access_list({{4, 5, UINT32_MAX}, {0x10, 7, UINT32_MAX}, {0x20, 5, UINT32_MAX}}).substr(4);
  const std::string path = scratch_.write("file", "content");
  if (setxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0)
    GTEST_SKIP() << "this file system has no access lists of " << many << " users";
  EXPECT_NE(open_checked(path).status().message().find("by the user user id 10060 through"), std::string::npos)
      << open_checked(path).status().message();
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
  EXPECT_EQ(status.message().find(fmt::format("the file '{}' belongs to user id 4002", path)), 0u) << status.message();
  EXPECT_EQ(status.remedy(), fmt::format("Run: chown root '{}'", path));
}

TEST_F(OpenChecked, OnlyRegularFiles) {
  scratch_.make_folder("libtenon_folder.so");
  EXPECT_EQ(open_checked(scratch_.path() + "/libtenon_folder.so").status().message(),
            fmt::format("'{}/libtenon_folder.so' is not a regular file.", scratch_.path()));
  ASSERT_EQ(mkfifo((scratch_.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(open_checked(scratch_.path() + "/pipe").ok()) << "and does not wait for a writer";
  EXPECT_EQ(open_checked(scratch_.path() + "/absent").status().code(), Code::not_found);
  std::filesystem::create_symlink("loop", scratch_.path() + "/loop");
  EXPECT_FALSE(open_checked(scratch_.path() + "/loop").ok());
}

}  // namespace
}  // namespace tenon::loader
