// Devices that measure: what is priced how, and what the cache of costs holds on to.
#include "optimizer/device/measured.h"

#include <cmath>
#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optimizer/device/cost_cache.h"
#include "optimizer/device/cpu/meter.h"
#include "optimizer/device/sample.h"
#include "store/store.h"
#include "tests/optimizer/fake_meter.h"
#include "tests/optimizer/lecture_graphs.h"

namespace tenon::optimizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A directory that goes with the test.
class MeasuredDeviceTest : public ::testing::Test {
 protected:
  MeasuredDeviceTest() {
    std::string name = ::testing::TempDir() + "/costs-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~MeasuredDeviceTest() override { std::filesystem::remove_all(root_); }

  std::string cache() const { return root_ + "/costs"; }
  std::unique_ptr<MeasuredDevice> Open(const MeasuredDevice::Options& options = {},
                                       const std::string& identity = "fake 1.0") {
    auto device =
        MeasuredDevice::Create("fake", std::make_unique<FakeMeter>(asked_, identity), options);
    CHECK(device.ok());
    return *std::move(device);
  }
  std::unique_ptr<MeasuredDevice> OpenCached(const std::string& identity = "fake 1.0") {
    return Open({.cost_cache = cache()}, identity);
  }

  std::string root_;
  Asked asked_;
};

TEST_F(MeasuredDeviceTest, OperationsAreNamedByOperatorTypesAndWhatIsAWeight) {
  Builder b;
  const auto x = b.Activation("x", {1, 64, 56, 56}), w = b.Weight("w", {64, 64, 3, 3});
  const auto y = b.Add(Conv3x3(ops::Activation::kRelu, true), {x, w, x});
  EXPECT_EQ(TextOf(*OperationOf(b.g, y)),
            "Conv(pads=[1,1,1,1], residual=1, activation=relu) f32[1,64,56,56] f32w[64,64,3,3] "
            "f32[1,64,56,56]=0 -> f32[1,64,56,56]");
  const auto sum = b.Add(ops::Add{}, {y, b.Activation("s", {})});
  EXPECT_EQ(TextOf(*OperationOf(b.g, sum)), "Add f32[1,64,56,56] f32[] -> f32[1,64,56,56]");
  EXPECT_EQ(OperationOf(b.g, x), std::nullopt);
}

TEST_F(MeasuredDeviceTest, EqualOperationsAreMeasuredOnce) {
  Builder b;
  const auto x = b.Activation("x", {10, 10}), y = b.Activation("y", {10, 10});
  const auto device = Open();
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Relu{}, {x})), 9);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Relu{}, {y})), 9);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Add{}, {x, y})), 13);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Add{}, {x, x})), 9);
  EXPECT_THAT(asked_.operations, ElementsAre("Relu f32[10,10] -> f32[10,10]",
                                             "Add f32[10,10] f32[10,10] -> f32[10,10]",
                                             "Add f32[10,10] f32[10,10]=0 -> f32[10,10]"));
}

TEST_F(MeasuredDeviceTest, WeightsAndReshapesAreFreeAndPartsAreCopied) {
  Builder b;
  const auto x = b.Activation("x", {8, 8}), w = b.Weight("w", {8, 8});
  const auto device = Open();
  EXPECT_EQ(device->CostOf(b.g, x), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::MatMul{}, {w, w})), 0);
  EXPECT_EQ(device->CostOf(b.g, b.Add(ops::Reshape{.shape = {4, 16}}, {x})), 0);
  EXPECT_THAT(asked_.operations, IsEmpty());
  EXPECT_GT(device->CostOf(b.g, b.Add(ops::Split{}, {x})), 1);
  EXPECT_GT(device->CostOf(b.g, b.Add(ops::Slice{.axis = 1, .start = 2, .end = 5}, {x})), 1);
}

TEST_F(MeasuredDeviceTest, ColdCostsAreThoseOfColdCaches) {
  Builder b;
  const auto y = b.Add(ops::Relu{}, {b.Activation("x", {10, 10})});
  EXPECT_EQ(Open({.state = CacheState::kCold})->CostOf(b.g, y), 18);
  EXPECT_THAT(Open({.state = CacheState::kCold})->description(), HasSubstr("fake 1.0, cold"));
}

// 1 us each, and 100 bytes a microsecond; arithmetic from a product of 512 x 512.
TEST_F(MeasuredDeviceTest, WhatCannotBeMeasuredIsEstimatedFromMeasurements) {
  Builder b;
  const auto x = b.Activation("x", {1000, 1000});
  const auto device = Open();
  const double erf = device->CostOf(b.g, b.Add(ops::Erf{}, {x}));
  EXPECT_NEAR(erf, 1 + 8e6 / 100, 2);
  const auto foreign = b.Add(ops::Opaque{.key = 7, .output = 0, .shape = {1000, 1000}}, {x});
  EXPECT_NEAR(device->CostOf(b.g, foreign), erf, 1e-6);
  ASSERT_EQ(device->Notes().size(), 1u);
  EXPECT_THAT(device->Notes()[0], HasSubstr("2 different operations were estimated"));
}

TEST_F(MeasuredDeviceTest, SizesOfRunTimeAndOtherTypesAreEstimated) {
  Builder b;
  graph::TensorType type = Floats({1000});
  type.shape.push_back(base::Poly::Var(b.g.symbols().Add("batch", base::SymbolKind::kDim)));
  const auto x = b.g.AddInput("x", graph::InputKind::kActivation, type);
  graph::TensorType half = Floats({1000});
  half.dtype = graph::DataType::kFloat16;
  const auto h = b.g.AddInput("h", graph::InputKind::kActivation, half);
  const auto device = Open();
  EXPECT_GT(device->CostOf(b.g, b.Add(ops::Relu{}, {x})), 0);
  EXPECT_GT(device->CostOf(b.g, b.Add(ops::Relu{}, {h})), 0);
  for (const std::string& asked : asked_.operations) EXPECT_THAT(asked, Not(HasSubstr("Relu")));
}

TEST_F(MeasuredDeviceTest, WhatTheCacheHoldsIsNotMeasuredAgain) {
  const graph::Graph g = ResnetBlock();
  const double cost = CostOfGraph(*OpenCached(), g, g.outputs()).us;
  EXPECT_FALSE(asked_.operations.empty());
  asked_ = {};
  EXPECT_EQ(CostOfGraph(*OpenCached(), g, g.outputs()).us, cost);
  EXPECT_THAT(asked_.operations, IsEmpty());
  EXPECT_GT(CostOfGraph(*OpenCached("fake 1.1"), g, g.outputs()).us, 0);
  EXPECT_FALSE(asked_.operations.empty()) << "another version's costs were taken";
}

TEST_F(MeasuredDeviceTest, ACostThatIsThereIsNotReplaced) {
  const Measurement first{1, 2, 3}, second{4, 5, 6};
  EXPECT_EQ(*AddCosts(cache(), std::vector<CostEntry>{{"d", "op", first}}), 1);
  EXPECT_EQ(*AddCosts(cache(), std::vector<CostEntry>{{"d", "op", second}, {"e", "op", second}}),
            1);
  EXPECT_EQ(ReadCosts(cache(), "d")->at("op"), first);
  EXPECT_EQ(ReadCosts(cache(), "e")->at("op"), second);
  // A device whose name another one's starts with.
  EXPECT_THAT(*ReadCosts(cache(), ""), IsEmpty());
}

TEST_F(MeasuredDeviceTest, ProfilingMeasuresEachOperationOnceInBatches) {
  const graph::Graph g = ResnetBlock();
  const auto device = OpenCached();
  const std::vector<Operation> missing = device->Missing(g);
  EXPECT_EQ(missing.size(), 3u + 4u);  // Two of the block's convolutions and Relus are equal.
  std::vector<std::size_t> seen;
  const auto measured =
      device->MeasureAll(missing, {}, [&](std::size_t done) { seen.push_back(done); });
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->measured, 7);
  EXPECT_EQ(seen.back(), 7u);
  EXPECT_EQ(asked_.batches, 1);
  EXPECT_THAT(device->Missing(g), IsEmpty());
  EXPECT_THAT(OpenCached()->Missing(g), IsEmpty());
}

TEST_F(MeasuredDeviceTest, AStopBetweenBatchesKeepsWhatWasMeasured) {
  Builder b;
  std::vector<graph::NodeId> outputs;
  for (std::int64_t n = 1; n <= 40; ++n) {
    outputs.push_back(b.Add(ops::Relu{}, {b.Activation("x", {n})}));
  }
  const graph::Graph g = b.Done(outputs);
  std::stop_source stop;
  const auto device = OpenCached();
  const std::vector<Operation> missing = device->Missing(g);
  const auto measured =
      device->MeasureAll(missing, stop.get_token(), [&](std::size_t) { stop.request_stop(); });
  ASSERT_TRUE(measured.ok());
  EXPECT_TRUE(measured->stopped);
  EXPECT_GT(measured->measured, 0);
  EXPECT_LT(measured->measured, int(missing.size()));
  // As after kill -9: the device that measured was not ended.
  EXPECT_EQ(ReadCosts(cache(), "fake 1.0")->size(), std::size_t(measured->measured));
}

TEST_F(MeasuredDeviceTest, ManyAtOnceShareOneCache) {
  std::vector<std::jthread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      for (int j = 0; j < 5; ++j) {
        const CostEntry entry{"d", "op " + std::to_string(5 * k + j), {1, 2, 3}};
        EXPECT_TRUE(AddCosts(cache(), std::span(&entry, 1)).ok());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(ReadCosts(cache(), "d")->size(), 20u);
}

TEST_F(MeasuredDeviceTest, ACacheThatCannotBeWrittenIsToldAndDoesNotStopTheSearch) {
  const auto device = OpenCached();
  Builder b;
  const auto y = b.Add(ops::Relu{}, {b.Activation("x", {10, 10})});
  EXPECT_EQ(device->CostOf(b.g, y), 9);
  FILE* in_the_way = std::fopen(cache().c_str(), "w");
  ASSERT_NE(in_the_way, nullptr);
  std::fclose(in_the_way);
  EXPECT_FALSE(device->Save().ok());
  ASSERT_EQ(device->Notes().size(), 1u);
  EXPECT_THAT(device->Notes()[0], HasSubstr("could not be kept"));
  std::filesystem::remove(cache());
  EXPECT_TRUE(device->Save().ok());
  EXPECT_EQ(ReadCosts(cache(), "fake 1.0")->size(), 1u);
}

TEST_F(MeasuredDeviceTest, DamagedCostsAreNotBelieved) {
  const auto put = [&](std::string_view key, std::string_view value) {
    auto store = store::Store::Open(cache());
    CHECK(store.ok() && (*store)->Put(store::Family::kCosts, key, value).ok());
  };
  put("d\nop", "short");
  EXPECT_EQ(ReadCosts(cache(), "d").status().code(), absl::StatusCode::kDataLoss);
  put("d\nop", std::string("\x01", 1) + std::string(20, '\0'));  // 0 microseconds.
  EXPECT_EQ(ReadCosts(cache(), "d").status().code(), absl::StatusCode::kDataLoss);
  // To the letter: docs/formats/costs.md.
  put("d\nop", std::string("\x01\x3f\xf8\0\0\0\0\0\0\x40\x04\0\0\0\0\0\0\0\0\0\x07", 21));
  EXPECT_EQ(ReadCosts(cache(), "d")->at("op"), (Measurement{1.5, 2.5, 7}));
}

TEST(CostsJsonTest, ReadsBackWhatItWrites) {
  const std::vector<CostEntry> entries{{"d \"1\"", "Add f32[1] f32[1] -> f32[1]", {0.1, 1e9, 5}},
                                       {"e", "Add f32[1] f32[1] -> f32[1]", {1.0 / 3, 2, 1}}};
  const auto back = ParseCosts(CostsToJson(entries), "f");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, entries);
  EXPECT_THAT(*ParseCosts(CostsToJson({}), "f"), IsEmpty());
}

TEST(CostsJsonTest, EveryMistakeIsNamed) {
  const auto document = [](const std::string& costs) {
    return "{\"format\": \"tenon costs 1\", \"costs\": [" + costs + "]}";
  };
  const auto entry = [](const std::string& warm, const std::string& samples,
                        const std::string& operation = "op") {
    return "{\"device\": \"d\", \"operation\": \"" + operation + "\", \"warm_us\": " + warm +
           ", \"cold_us\": 1, \"samples\": " + samples + "}";
  };
  const std::pair<std::string, const char*> cases[] = {
      {"", "no file of costs"},
      {"[]", "no file of costs"},
      {"{\"format\": \"tenon costs 2\", \"costs\": []}", "its format is not"},
      {"{\"format\": \"tenon costs 1\"}", "costs"},
      {document("{}"), "device"},
      {document("7"), "no file of costs"},
      {document(entry("0", "1")), "a time is not above 0"},
      {document(entry("-1", "1")), "a time is not above 0"},
      {document(entry("null", "1")), "no file of costs"},
      {document(entry("1e999", "1")), "no file of costs"},
      {document(entry("1", "0")), "samples is out of range"},
      {document(entry("1", "99999999999")), "samples is out of range"},
      {document(entry("1", "1", "a\\nb")), "printable"},
      {document(entry("1", "1") + "," + entry("2", "1")), "'op' is there twice"},
  };
  for (const auto& [text, error] : cases) {
    const auto costs = ParseCosts(text, "f.json");
    ASSERT_FALSE(costs.ok()) << text;
    EXPECT_EQ(costs.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(base::Message(costs.status()), HasSubstr(error)) << text;
    EXPECT_THAT(base::Message(costs.status()), HasSubstr("f.json")) << text;
  }
}

// Takes 2 us warm and 7 us cold, but for one sample in four, when something else took the time;
// writes down whose turn it was.
class Disturbed final : public Sampled {
 public:
  Disturbed(char name, double us, std::string& turns) : name_(name), us_(us), turns_(turns) {}
  double Time(int runs) override {
    turns_ += name_;
    return runs * us_ * (++samples_ % 4 == 0 ? 50 : 1);
  }
  double TimeCold() override { return us_ + 5; }

 private:
  char name_;
  double us_;
  std::string& turns_;
  int samples_ = 0;
};

TEST(SampleInTurnsTest, TheMedianOfRoundsInTurnsIsTheCost) {
  std::string turns;
  std::vector<std::unique_ptr<Sampled>> operations;
  operations.push_back(std::make_unique<Disturbed>('a', 2, turns));
  operations.push_back(nullptr);
  operations.push_back(std::make_unique<Disturbed>('b', 3000, turns));
  const auto results = SampleInTurns(operations);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0], (Measurement{2, 7, 15}));
  EXPECT_EQ(results[1], std::nullopt);
  EXPECT_EQ(results[2], (Measurement{3000, 3005, 5}));  // 40 ms are spent sooner.
  EXPECT_THAT(turns, HasSubstr("aabbaabbaabb"));
}

TEST(CpuMeterTest, SaysWhatItIsAndMeasuresWhatThereIsAKernelFor) {
  const auto meter = cpu::OpenMeter(1);
  ASSERT_TRUE(meter.ok());
  EXPECT_THAT((*meter)->identity(), HasSubstr("oneDNN"));
  EXPECT_THAT((*meter)->identity(), HasSubstr("threads=1"));
  const graph::Extents small{8}, large{1 << 20};
  const std::vector<Operation> operations{
      {ops::Relu{}, {{small, false, -1}}, small},
      {ops::Relu{}, {{large, false, -1}}, large},
      {ops::Reshape{.shape = {8}}, {{small, false, -1}}, small}};
  const auto results = (*meter)->Measure(operations);
  ASSERT_EQ(results.size(), 3u);
  ASSERT_TRUE(results[0] && results[1]);
  EXPECT_FALSE(results[2]);
  EXPECT_GT(results[0]->warm_us, 0);
  // 100,000 times the elements: no machine is so disturbed that this order changes.
  EXPECT_GT(results[1]->warm_us, results[0]->warm_us);
  EXPECT_GE(results[0]->samples, 5);
}

}  // namespace
}  // namespace tenon::optimizer
