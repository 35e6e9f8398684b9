// The parts that writing and reading canonical bytes share; docs/formats/operator.md is the format.
// For canonical.cc and decode.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/poly.h"
#include "core/ops/operator.h"

namespace tenon::rules::wire {

inline constexpr std::uint8_t kVersion = 1;
enum class Kind : std::uint8_t { kRule = 1, kRenamed = 2, kInterface = 3 };

inline constexpr std::size_t kSymbolsMax = 255;
inline constexpr std::size_t kRuleNodesMax = 255;  // Inputs count.
inline constexpr std::size_t kGraphNodesMax = std::size_t{1} << 20;
inline constexpr std::size_t kTermsMax = 16;
inline constexpr int kDivisionsMax = 8;  // Deep.

// `number` gives the numbers of the symbols in `p`.
void WritePoly(std::string& out, const base::Poly& p, const base::Symbols& symbols,
               std::span<const int> number);

// wire_id and the attributes that differ from their defaults; `size` appends a polynomial.
void WriteOperator(std::string& out, const ops::Operator& op,
                   const std::function<void(const base::Poly&)>& size);

}  // namespace tenon::rules::wire
