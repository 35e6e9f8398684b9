#include "core/base/bytes.h"

#include <bit>

namespace tenon::base {

void PutByte(std::string& out, std::uint8_t v) { out.push_back(static_cast<char>(v)); }

void PutVarint(std::string& out, std::uint64_t v) {
  while (v >= 0x80) {
    PutByte(out, static_cast<std::uint8_t>(v | 0x80));
    v >>= 7;
  }
  PutByte(out, static_cast<std::uint8_t>(v));
}

void PutSigned(std::string& out, std::int64_t v) {
  const auto u = static_cast<std::uint64_t>(v);
  PutVarint(out, (u << 1) ^ (v < 0 ? ~std::uint64_t{0} : 0));
}

void PutDouble(std::string& out, double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  for (unsigned k = 0; k < 8; ++k) PutByte(out, static_cast<std::uint8_t>(bits >> (8 * k)));
}

void PutString(std::string& out, std::string_view v) {
  PutVarint(out, v.size());
  out.append(v);
}

std::string_view ByteReader::Bytes(std::uint64_t size) {
  if (ok() && size > remaining()) Fail("the bytes end early");
  if (!ok()) return {};
  const std::string_view out = bytes_.substr(at_, static_cast<std::size_t>(size));
  at_ += out.size();
  return out;
}

std::uint8_t ByteReader::Byte() {
  const std::string_view one = Bytes(1);
  return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one[0]);
}

std::uint64_t ByteReader::Varint() {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = Byte();
    if (!ok()) return 0;
    if (shift == 63 && byte > 1) break;
    v |= std::uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) {
      if (byte == 0 && shift > 0) {
        Fail("a number is spelled with more bytes than it needs");
        return 0;
      }
      return v;
    }
  }
  Fail("a number does not fit 64 bits");
  return 0;
}

std::int64_t ByteReader::Signed() {
  const std::uint64_t u = Varint();
  return static_cast<std::int64_t>((u >> 1) ^ ((u & 1) != 0 ? ~std::uint64_t{0} : 0));
}

double ByteReader::Double() {
  const std::string_view raw = Bytes(8);
  std::uint64_t bits = 0;
  for (unsigned k = 0; k < raw.size(); ++k) {
    bits |= std::uint64_t{static_cast<std::uint8_t>(raw[k])} << (8 * k);
  }
  return std::bit_cast<double>(bits);
}

std::string_view ByteReader::String() { return Bytes(Varint()); }

std::uint64_t ByteReader::Count(std::uint64_t limit, const char* why) {
  const std::uint64_t n = Varint();
  if (ok() && n > limit) Fail(why);
  return ok() ? n : 0;
}

}  // namespace tenon::base
