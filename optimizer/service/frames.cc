// The payloads between a node and its children.
#include <fmt/format.h>

#include "core/base/bytes.h"
#include "optimizer/service/child.h"

namespace tenon::optimizer {
namespace {

constexpr std::size_t kMessageBytesMax = 64 << 10;

enum Kind : std::uint8_t { kTask = 1, kPackPart = 2, kProgress = 3, kNote = 4, kEnd = 5 };

// Nanoseconds of the steady clock, which all processes of a machine share; 0: none.
std::uint64_t FromTime(const std::optional<SteadyTime>& t) {
  return t ? std::uint64_t(t->time_since_epoch() / std::chrono::nanoseconds(1)) : 0;
}
std::optional<SteadyTime> ToTime(std::uint64_t ns) {
  if (ns == 0) return std::nullopt;
  return SteadyTime(std::chrono::nanoseconds(ns));
}

struct Encoder {
  std::string out;

  void operator()(const ChildTask& task) {
    base::PutByte(out, kTask);
    base::PutString(out, convert::Serialize(task.options));
    base::PutVarint(out, FromTime(task.search_end));
    base::PutVarint(out, FromTime(task.check_end));
    base::PutVarint(out, task.packs);
  }
  void operator()(const ChildPackPart& part) {
    base::PutByte(out, kPackPart);
    base::PutByte(out, part.last ? 1 : 0);
    base::PutString(out, part.bytes);
  }
  void operator()(const ChildProgress& progress) {
    base::PutByte(out, kProgress);
    base::PutString(out, progress.phase);
    base::PutVarint(out, progress.done);
    base::PutDouble(out, progress.cost_us);
  }
  void operator()(const ChildNote& note) {
    base::PutByte(out, kNote);
    base::PutString(out, std::string_view(note.text).substr(0, kMessageBytesMax));
  }
  void operator()(const ChildEnd& end) {
    base::PutByte(out, kEnd);
    base::PutVarint(out, std::uint64_t(end.status.raw_code()));
    base::PutString(out, base::Message(end.status).substr(0, kMessageBytesMax));
    base::PutString(out, end.reason);
    base::PutByte(out, end.repeatable ? 1 : 0);
  }
};

Status Nonsense(const base::ByteReader& in) {
  return base::InvalidArgument(fmt::format("a frame of an optimizer: {}", in.error()));
}

}  // namespace

std::string Encode(const ToChild& message) {
  Encoder encoder;
  std::visit(encoder, message);
  return std::move(encoder.out);
}

std::string Encode(const FromChild& message) {
  Encoder encoder;
  std::visit(encoder, message);
  return std::move(encoder.out);
}

StatusOr<ToChild> DecodeToChild(std::string_view payload) {
  base::ByteReader in(payload);
  const std::uint8_t kind = in.Byte();
  if (kind == kPackPart) {
    ChildPackPart part;
    part.last = in.Byte() == 1;
    part.bytes = in.String();
    in.End();
    if (in.ok()) return part;
    return Nonsense(in);
  }
  if (kind != kTask) in.Fail("an unknown kind");
  ChildTask task;
  const std::string options(in.String());
  task.search_end = ToTime(in.Varint());
  task.check_end = ToTime(in.Varint());
  task.packs = std::uint32_t(in.Count(convert::kPacksMax, "too many packs"));
  in.End();
  if (!in.ok()) return Nonsense(in);
  ASSIGN_OR_RETURN(task.options, convert::ParseOptimizeOptions(options));
  return task;
}

StatusOr<FromChild> DecodeFromChild(std::string_view payload) {
  base::ByteReader in(payload);
  FromChild out;
  switch (in.Byte()) {
    case kProgress: {
      ChildProgress progress;
      progress.phase = in.String();
      progress.done = in.Varint();
      progress.cost_us = in.Double();
      out = std::move(progress);
      break;
    }
    case kNote:
      out = ChildNote{std::string(in.String())};
      break;
    case kEnd: {
      ChildEnd end;
      const auto code = absl::StatusCode(in.Count(16, "a status"));
      const std::string message(in.String());
      if (code != absl::StatusCode::kOk) end.status = Status(code, message);
      end.reason = in.String();
      end.repeatable = in.Byte() == 1;
      out = std::move(end);
      break;
    }
    default:
      in.Fail("an unknown kind");
  }
  in.End();
  if (!in.ok()) return Nonsense(in);
  return out;
}

}  // namespace tenon::optimizer
