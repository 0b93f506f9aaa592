// SPDX-License-Identifier: Apache-2.0
//
// What the source of a kernel says of its dimensions and parameters. The runtime does not
// report them, because the name of an `extern "C"` kernel has no types. Only what is sure is
// read: a macro, or a class of the source's own, is not checked.
#pragma once

#include <usm_dlpack/core/dtype.hpp>
#include <usm_dlpack/core/strides.hpp>
#include <usm_dlpack/sycl/config.hpp>
#include <usm_dlpack/sycl/dtype.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace usm_dlpack::detail {

/// How a source spells the types that are checked; the first name is for messages.
inline constexpr std::pair<DLDataType, std::array<const char*, 4>> spelled_types[] = {
    {data_type_v<bool>, {"bool"}},
    {data_type_v<std::int8_t>, {"char", "signed char", "std::int8_t"}},
    {data_type_v<std::uint8_t>, {"unsigned char", "std::uint8_t"}},
    {data_type_v<std::int16_t>, {"short", "std::int16_t"}},
    {data_type_v<std::uint16_t>, {"unsigned short", "std::uint16_t"}},
    {data_type_v<std::int32_t>, {"int", "std::int32_t"}},
    {data_type_v<std::uint32_t>, {"unsigned", "unsigned int", "std::uint32_t"}},
    {data_type_v<std::int64_t>, {"long", "long long", "std::int64_t", "std::ptrdiff_t"}},
    {data_type_v<std::uint64_t>,
     {"unsigned long", "unsigned long long", "std::uint64_t", "std::size_t"}},
    {data_type_v<float>, {"float"}},
    {data_type_v<double>, {"double"}},
    {data_type_v<sycl::half>, {"sycl::half"}},
};

/// The type of a kernel's parameter, or of the value that it gets.
struct kernel_type {
  DLDataType dtype{};  ///< of the value, or of what the pointer points to; 0 bits if unknown
  bool is_pointer = false;
  bool is_const = false;  ///< what the pointer points to

  bool operator==(const kernel_type& other) const {
    return dtype.code == other.dtype.code && dtype.bits == other.dtype.bits &&
           is_pointer == other.is_pointer && is_const == other.is_const;
  }

  /// Without the `*` of a pointer.
  std::string name_of_element() const {
    for (const auto& [spelled, names] : spelled_types) {
      if (spelled.code == dtype.code && spelled.bits == dtype.bits) {
        return std::string(is_const ? "const " : "") + names[0];
      }
    }
    return to_string(dtype);
  }
  std::string name() const { return name_of_element() + (is_pointer ? "*" : ""); }
};

template <class Value>
constexpr kernel_type type_of_value() {
  using pointee = std::remove_pointer_t<Value>;
  using element = std::remove_cv_t<pointee>;
  using number = std::conditional_t<std::is_same_v<element, char>, signed char, element>;
  kernel_type made{{}, std::is_pointer_v<Value>, std::is_const_v<pointee>};
  if constexpr (has_data_type_v<number>) {
    made.dtype = data_type_v<number>.lanes == 1 ? data_type_v<number> : DLDataType{};
  }
  return made;
}

/// Whether a parameter may get a value. An integer may have the other sign: the kernel gets
/// what C++ converts it to.
inline bool may_get(const kernel_type& parameter, kernel_type given) {
  if (parameter.is_pointer) {
    given.is_const = given.is_const || parameter.is_const;
  } else if (given.dtype.code <= kDLUInt && parameter.dtype.code <= kDLUInt) {
    given.dtype.code = parameter.dtype.code;
  }
  return parameter.dtype.bits == 0 || given.dtype.bits == 0 || given == parameter;
}

/// What a source says of a kernel.
struct kernel_signature {
  int dimensions = 0;  ///< 0 if unknown
  std::vector<kernel_type> parameters;

  /// The kernel's name, with its parameters if all are known.
  std::string describe(const std::string& name) const {
    std::string types;
    for (const kernel_type& parameter : parameters) {
      if (parameter.dtype.bits == 0) {
        return '"' + name + '"';
      }
      types += (types.empty() ? "" : ", ") + parameter.name();
    }
    return '"' + name + (types.empty() ? "" : '(' + types + ')') + '"';
  }
};

/// The names, numbers and single characters of a source, without its comments and literals.
inline std::vector<std::string> words_of(const std::string& text) {
  const auto is = [&](std::size_t at, const char* found) {
    return text.compare(at, std::strlen(found), found) == 0;
  };
  const auto is_digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  const auto is_letter = [&](std::size_t at) {  // the end of a string is the character 0
    return std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
  };
  std::vector<std::string> words;
  for (std::size_t i = 0, end = 0; i < text.size(); i = end) {
    end = i + 1;
    if (is(i, "//") || is(i, "/*")) {
      const char* const closing = is(i, "//") ? "\n" : "*/";
      const std::size_t last = text.find(closing, i + 2);
      end = last == std::string::npos ? text.size() : last + std::strlen(closing);
    } else if (is(i, "\"") || is(i, "'")) {
      while (end < text.size() && text[end] != text[i]) {
        end += is(end, "\\") ? 2U : 1U;
      }
      ++end;
    } else if (is_letter(i)) {
      while (is_letter(end) || (is(end, "::") && is_letter(end + 2)) ||
             (is(end, "'") && is_digit(i))) {
        end += is(end, "::") ? 2U : 1U;
      }
      words.push_back(text.substr(i, end - i));
    } else if (std::isspace(static_cast<unsigned char>(text[i])) == 0 && !is(i, "\\")) {
      words.emplace_back(1, text[i]);
    }
  }
  return words;
}

/// The aliases of a source, such as `using real = float;`: what they stand for, as it is
/// spelled; empty if two definitions differ.
using type_aliases = std::map<std::string, std::string>;
inline type_aliases aliases_of(const std::vector<std::string>& words) {
  type_aliases made;
  for (std::size_t i = 0; i + 3 < words.size(); ++i) {
    if (words[i] == "using" && words[i + 2] == "=") {
      std::string type;
      for (std::size_t j = i + 3; j < words.size() && words[j] != ";"; ++j) {
        type += (type.empty() ? "" : " ") + words[j];
      }
      std::string& known = made.emplace(words[i + 1], type).first->second;
      known = known == type ? type : "";
    }
  }
  return made;
}

inline DLDataType find_spelled(const std::string& type, const type_aliases& aliases) {
  const auto alias = aliases.find(type);
  const std::string& spelled = alias == aliases.end() ? type : alias->second;
  for (const auto& [dtype, names] : spelled_types) {
    for (const char* const name : names) {
      if (name != nullptr && (name == spelled || name == "std::" + spelled)) {
        return dtype;
      }
    }
  }
  return {};
}

/// The type of a parameter that is exactly `[const] type [const] [*] [name]`.
inline kernel_type read_parameter(const std::vector<std::string>& words,
                                  const type_aliases& aliases) {
  const auto star = std::find(words.begin(), words.end(), "*");
  std::string type, unnamed, last;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word != star && *word != "const" && *word != "__restrict__") {
      unnamed = type;
      last = *word;
      type += (type.empty() ? "" : " ") + last;
    }
  }
  kernel_type made{find_spelled(type, aliases), star != words.end(), false};
  made.is_const = made.is_pointer && std::find(words.begin(), star, "const") != star;
  if (made.dtype.bits == 0 && std::isalpha(last[0]) != 0 &&
      find_spelled(last, aliases).bits == 0) {
    made.dtype = find_spelled(unnamed, aliases);
  }
  return made;
}

/// Reads `nd_range_kernel<Dimensions>)) void name(parameters)`, where `at` is the name.
inline kernel_signature read_declaration(const std::vector<std::string>& words, std::size_t at,
                                         const type_aliases& aliases) {
  kernel_signature made;
  std::size_t property = at;
  while (property > 0 && (words[property - 1] == ")" || words[property - 1] == "void")) {
    --property;
  }
  if (property >= 4 && property < at && words[property - 1] == ">" &&
      (words[property - 4] + "$").find("nd_range_kernel$") != std::string::npos) {
    made.dimensions = std::atoi(words[property - 2].c_str());  // 0 if it is a name
  }
  std::vector<std::string> parameter;
  int open = 1;
  for (std::size_t i = at + 2; i < words.size() && open > 0; ++i) {
    open += words[i] == "(" || words[i] == "<"   ? 1
            : words[i] == ")" || words[i] == ">" ? -1
                                                 : 0;
    if (open == 0 || (open == 1 && words[i] == ",")) {
      made.parameters.push_back(read_parameter(std::exchange(parameter, {}), aliases));
    } else {
      parameter.push_back(words[i]);
    }
  }
  return made;
}

/// Reads what all places agree on that have the kernel's name before a parenthesis. Nothing is
/// known if the name is also an argument, because a macro may declare the kernel.
inline kernel_signature read_signature(const std::string& text, const std::string& name) {
  const std::vector<std::string> words = words_of(text);
  const type_aliases aliases = aliases_of(words);
  std::optional<kernel_signature> all;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string &before = words[i - 1], &after = words[i + 1];
    if (words[i] == name && after == "(") {
      const kernel_signature here = read_declaration(words, i, aliases);
      all = all.value_or(here);
      all->dimensions = all->dimensions == here.dimensions ? here.dimensions : 0;
      if (!std::equal(all->parameters.begin(), all->parameters.end(), here.parameters.begin(),
                      here.parameters.end())) {
        all->parameters.clear();
      }
    } else if (words[i] == name && (before == "(" || before == ",") &&
               (after == ")" || after == ",")) {
      return {};
    }
  }
  return all.value_or(kernel_signature{});
}

/// Refuses a launch in another number of dimensions, or with values of other types.
inline void check_launch(const kernel_signature& signature, const std::string& name,
                         int dimensions, const std::vector<kernel_type>& values) {
  const auto refuse_launch = [&](sycl::errc code, const std::string& expected,
                                 const std::string& found) {
    throw sycl::exception(
        make_error_code(code),
        expected + " for the kernel " + signature.describe(name) + ", found " + found);
  };
  if (signature.dimensions != 0 && signature.dimensions != dimensions) {
    refuse_launch(sycl::errc::nd_range, "extents: expected " + digits(signature.dimensions),
                  digits(dimensions) + "; pass one for each dimension that it declares");
  }
  if (signature.parameters.size() != values.size()) {
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const kernel_type &wanted = signature.parameters[i], &given = values[i];
    if (!may_get(wanted, given)) {
      const std::string element = wanted.name_of_element();
      refuse_launch(sycl::errc::kernel_argument,
                    "argument " + digits(i + 1) + ": expected " + wanted.name(),
                    (given.is_pointer ? "an array of " : "") + given.name_of_element() +
                        "; pass " +
                        (wanted.is_pointer  ? "an array of " + element
                         : given.is_pointer ? "a value"
                                            : "static_cast<" + element + ">(...)") +
                        ", or declare the parameter " + given.name());
    }
  }
}

}  // namespace usm_dlpack::detail
