// Checks expected errors: their code, and parts of their text.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "primitives/status/error.h"

namespace tenon::testing {

// The error that `call` throws; ok if it throws none.
inline Status error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.status();
  }
  return Status();
}

inline void expect_error(const std::function<void()>& call, Code code, const std::vector<std::string>& parts) {
  const Status status = error_of(call);
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& part : parts) EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

}  // namespace tenon::testing
