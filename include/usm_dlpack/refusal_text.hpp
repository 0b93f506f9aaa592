// SPDX-License-Identifier: Apache-2.0
//
// The words that a refusal is made of, without a string for each: code that every program with
// a conversion has, beside the hot paths.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace usm_dlpack::detail {

/// Characters up to a 0 that the caller keeps while an exception is made of them. Everything
/// that a refusal needs is passed so: it stands beside the hot paths in every program, and a
/// string for each part, and its end, are many times the code.
class borrowed_text {
 public:
  borrowed_text(const char* characters) noexcept : characters_(characters) {}
  borrowed_text(const std::string& owner) noexcept : characters_(owner.c_str()) {}
  const char* c_str() const noexcept { return characters_; }

 private:
  const char* characters_;
};

/// Up to 63 characters that need no heap: an integer, or the name of a field.
struct short_text {
  char characters[64];

  operator borrowed_text() const noexcept { return characters; }
  operator std::string() const { return characters; }

  friend std::string operator+(std::string before, const short_text& text) {
    return before.append(text.characters);
  }
  friend std::string operator+(const short_text& text, const char* after) {
    return std::string(text.characters).append(after);
  }
};

/// `name[r]`, the field of a rule about one dimension.
[[gnu::cold, gnu::noinline]] inline short_text indexed(const char* name, std::size_t r) {
  short_text text;
  std::snprintf(text.characters, sizeof text.characters, "%s[%zu]", name, r);
  return text;
}

}  // namespace usm_dlpack::detail
