// The rule files under tests/rules, read.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/rules/text.h"
#include "gtest/gtest.h"

namespace tenon::verifier {

struct CorpusRule {
  std::string file;  // Relative to tests/rules.
  rules::ParsedRule parsed;
};

// The rules of the files below tests/rules that are in its folder `axioms`, or of all the others,
// in the order of names. Fails the test on a bad file.
inline std::vector<CorpusRule> ReadRules(bool axioms) {
  const std::filesystem::path root = std::filesystem::path(TENON_SOURCE_DIR) / "tests/rules";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const bool is_axiom = entry.path().parent_path().filename() == "axioms";
    if (entry.path().extension() == ".rules" && is_axiom == axioms) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<CorpusRule> out;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    const std::string name = std::filesystem::relative(file, root).string();
    auto parsed = rules::ParseRules(text.str(), name);
    if (!parsed.ok()) {
      ADD_FAILURE() << base::Message(parsed.status());
      continue;
    }
    for (rules::ParsedRule& rule : *parsed) out.push_back({name, std::move(rule)});
  }
  return out;
}

inline std::vector<CorpusRule> ReadCorpus() { return ReadRules(false); }
// Hundreds of forms of a few equations (docs/axioms.md), which tests of everything need not repeat.
inline std::vector<CorpusRule> ReadAxioms() { return ReadRules(true); }

}  // namespace tenon::verifier
