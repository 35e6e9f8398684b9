// Packs in the coordinator's own store.
#include "coordinator/publish/sink.h"

#include <gtest/gtest.h>

#include "coordinator/board/journal.h"

namespace tenon::coordinator {
namespace {

TEST(SinkTest, AVersionIsPublishedOnceAndMayBePublishedAgain) {
  const auto store = *store::Store::OpenTemporary();
  board::StoreJournal journal(*store);
  const auto sink = MakeJournalSink(journal);
  EXPECT_FALSE(*sink->Has("matrix", "1.0.0"));
  EXPECT_TRUE(sink->Publish("matrix", "1.0.0", "bytes").ok());
  EXPECT_TRUE(*sink->Has("matrix", "1.0.0"));
  EXPECT_FALSE(*sink->Has("matrix", "1.0.1"));
  EXPECT_TRUE(sink->Publish("matrix", "1.0.0", "bytes").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(sink->Publish("matrix", "1.0.0", "others")));
  EXPECT_TRUE(MakeJournalSink(journal)->Publish("matrix", "1.0.0", "bytes").ok());
}

}  // namespace
}  // namespace tenon::coordinator
