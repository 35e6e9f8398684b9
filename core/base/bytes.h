// Bytes: writing and reading of the canonical formats (docs/formats/): varints, fixed-width
// numbers, length-prefixed strings.
//
// A varint is a base-128 number, low group first, in as few bytes as possible: there is one
// spelling for one number, so that bytes can be compared. A signed number is zigzag-coded first (0,
// -1, 1, -2 become 0, 1, 2, 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::base {

// Appends to `out`.
void PutByte(std::string& out, std::uint8_t v);
void PutVarint(std::string& out, std::uint64_t v);
void PutSigned(std::string& out, std::int64_t v);
void PutDouble(std::string& out, double v);  // The eight bytes of its bits, low byte first.
void PutString(std::string& out, std::string_view v);  // Its length as a varint, then the bytes.

// Reads foreign bytes from front to back. After the first thing that does not fit, ok() is false,
// error() says what, and every read returns 0 or an empty string; so a decoder may check once at
// the end of a group, but checks counts before it allocates. Keeps views: `bytes` outlives it.
// Thread-compatible.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return error_ == nullptr; }
  // A reason such as "the bytes end early"; null while ok().
  const char* error() const { return error_; }
  std::size_t offset() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }
  // Refuses the bytes for a reason of the caller; the first reason stays.
  void Fail(const char* why) {
    if (error_ == nullptr) error_ = why;
  }

  std::uint8_t Byte();
  std::uint64_t Varint();
  std::int64_t Signed();
  double Double();
  // The next `size` bytes.
  std::string_view Bytes(std::uint64_t size);
  std::string_view String();
  // A varint of at most `limit`; `why` is the error otherwise.
  std::uint64_t Count(std::uint64_t limit, const char* why);
  // Refuses bytes after the end.
  void End() {
    if (ok() && remaining() != 0) Fail("there are bytes after the end");
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  const char* error_ = nullptr;
};

}  // namespace tenon::base
