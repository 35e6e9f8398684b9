// Export: the plan (plan.h) with everything of the file that is not a node, checked and written.
//
// Weights are not copied: the message that is written borrows the tensors of the parsed file (they
// may be 100 MB), so it lives shorter than the Model and is never changed after they are lent.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "optimizer/onnx/check.h"
#include "optimizer/onnx/files.h"
#include "optimizer/onnx/model.h"
#include "optimizer/onnx/plan.h"
#include "optimizer/onnx/source.h"
#include "optimizer/onnx/subgraph.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {
namespace {

using google::protobuf::Message;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

// New weights below this size stay inline in any case.
constexpr std::size_t kAlwaysInline = 1024;

// Copies the set fields of `from` but those named, and the fields this version does not know.
void CopyExcept(const Message& from, Message* to, std::initializer_list<std::string_view> except) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const auto* reflection = from.GetReflection();
  reflection->ListFields(from, &fields);
  to->GetReflection()->MutableUnknownFields(to)->MergeFrom(reflection->GetUnknownFields(from));
  for (const auto* field : fields) {
    if (std::ranges::find(except, field->name()) != except.end()) continue;
    // By way of a message that holds the one field: reflection has no call that copies one.
    const std::unique_ptr<Message> only(from.New());
    if (field->is_repeated()) {
      for (int k = 0; k < reflection->FieldSize(from, field); ++k) {
        if (field->cpp_type() == field->CPPTYPE_MESSAGE) {
          reflection->AddMessage(only.get(), field)
              ->CopyFrom(reflection->GetRepeatedMessage(from, field, k));
        } else {
          reflection->AddString(only.get(), field, reflection->GetRepeatedString(from, field, k));
        }
      }
    } else if (field->cpp_type() == field->CPPTYPE_MESSAGE) {
      reflection->MutableMessage(only.get(), field)->CopyFrom(reflection->GetMessage(from, field));
    } else if (field->cpp_type() == field->CPPTYPE_STRING) {
      reflection->SetString(only.get(), field, reflection->GetString(from, field));
    } else {
      reflection->SetInt64(only.get(), field, reflection->GetInt64(from, field));
    }
    to->MergeFrom(*only);
  }
}

// Puts tensors and nodes of the file at the end of a list, and takes them back before the list's
// owner would delete them.
template <class T>
class Loan {
 public:
  explicit Loan(google::protobuf::RepeatedPtrField<T>& list) : list_(list) {}
  ~Loan() {
    // From the back: what follows is the list's own.
    for (std::size_t k = places_.size(); k-- > 0;) {
      T* lent = nullptr;
      list_.UnsafeArenaExtractSubrange(places_[k], 1, &lent);
    }
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  // Serialising sets cached sizes inside `t`, nothing else.
  void Lend(const T& t) {
    places_.push_back(list_.size());
    list_.UnsafeArenaAddAllocated(const_cast<T*>(&t));
  }

 private:
  google::protobuf::RepeatedPtrField<T>& list_;
  std::vector<int> places_;
};

// The data file of the new model: the parts of the old one that are still used, and new weights.
class DataFile {
 public:
  DataFile(const std::filesystem::path& target, std::filesystem::path from)
      : target_(target), from_(std::move(from)) {}

  bool used() const { return used_; }
  StagedFile& file() { return file_; }
  const std::filesystem::path& target() const { return target_; }

  // Copies the data of an external tensor, equal parts once, and makes it refer to the copy.
  Status Move(TensorProto& tensor) {
    ASSIGN_OR_RETURN(const DataRange range, DataRangeOf(tensor));
    std::int64_t length = range.length;
    if (length < 0) {
      length = std::int64_t(std::filesystem::file_size(from_ / range.location)) - range.offset;
    }
    const auto key = std::tuple(range.location, range.offset, length);
    auto it = places_.find(key);
    if (it == places_.end()) {
      ASSIGN_OR_RETURN(const std::int64_t offset, Append(length));
      constexpr std::int64_t kChunk = std::int64_t{16} << 20;
      for (std::int64_t at = 0; at < length; at += kChunk) {
        ASSIGN_OR_RETURN(
            const std::string bytes,
            ReadRange(from_ / range.location, range.offset + at, std::min(kChunk, length - at)));
        RETURN_IF_ERROR(file_.Write(bytes));
      }
      it = places_.emplace(key, offset).first;
    }
    Refer(tensor, it->second, length);
    return OkStatus();
  }

  // Moves inline raw data there.
  Status Store(TensorProto& tensor) {
    const std::string bytes = std::move(*tensor.mutable_raw_data());
    tensor.clear_raw_data();
    ASSIGN_OR_RETURN(const std::int64_t offset, Append(std::int64_t(bytes.size())));
    RETURN_IF_ERROR(file_.Write(bytes));
    Refer(tensor, offset, std::int64_t(bytes.size()));
    return OkStatus();
  }

 private:
  StatusOr<std::int64_t> Append(std::int64_t) {
    if (!used_) RETURN_IF_ERROR(file_.Open(target_));
    used_ = true;
    return file_.Align(4096);  // So that a runtime can map it.
  }
  void Refer(TensorProto& tensor, std::int64_t offset, std::int64_t length) const {
    tensor.clear_external_data();
    tensor.set_data_location(TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {
        {"location", target_.filename().string()},
        {"offset", std::to_string(offset)},
        {"length", std::to_string(length)}};
    for (const auto& [key, value] : entries) {
      auto* e = tensor.add_external_data();
      e->set_key(key);
      e->set_value(value);
    }
  }

  const std::filesystem::path target_, from_;
  StagedFile file_;
  bool used_ = false;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::int64_t> places_;
};

bool SameFolder(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return std::filesystem::equivalent(a.empty() ? "." : a, b.empty() ? "." : b, error) && !error;
}

bool HasExternal(const NodeProto& node) {
  bool found = false;
  NodeProto copy = node;
  ForEachTensor(copy, [&](TensorProto& t) { found = found || IsExternal(t); });
  return found;
}

}  // namespace

class Exporter {
 public:
  Exporter(const Model& model, const ExportOptions& options, const std::string& path)
      : model_(model),
        source_(*model.source_),
        options_(options),
        path_(path),
        data_(path + ".data", source_.folder) {}

  StatusOr<ExportSummary> Run() {
    RETURN_IF_ERROR(Prepare());
    RETURN_IF_ERROR(AddWeights());
    AddDeclarations();
    Loan<TensorProto> tensors(*out_.mutable_graph()->mutable_initializer());
    Loan<NodeProto> nodes(*out_.mutable_graph()->mutable_node());
    for (const TensorProto* t : lent_) tensors.Lend(*t);
    AddNodes(nodes);
    RETURN_IF_ERROR(Check());
    RETURN_IF_ERROR(Write());
    return std::move(summary_);
  }

 private:
  Status Prepare();
  Status AddWeights();
  void AddDeclarations();
  void AddNodes(Loan<NodeProto>& nodes);
  Status Check();
  Status Write();

  const Model& model_;
  const Source& source_;
  const ExportOptions options_;
  const std::filesystem::path path_;
  DataFile data_;
  Plan plan_;
  ModelProto out_;
  std::vector<const TensorProto*> lent_;
  std::vector<int> constants_;  // Constant nodes of the file that are used.
  bool moves_ = false;          // External data goes to another folder.
  ExportSummary summary_;
};

Status Exporter::Prepare() {
  std::unordered_set<std::string> reserved;
  for (const auto& v : source_.proto.graph().input()) reserved.insert(v.name());
  for (const auto& [name, tensor] : source_.weight) reserved.insert(name);
  for (const auto& t : source_.proto.graph().sparse_initializer()) {
    reserved.insert(t.values().name());
  }
  for (const auto& [name, weight] : model_.added_) reserved.insert(name);
  ASSIGN_OR_RETURN(plan_, MakePlan(source_, model_.graph_, std::move(reserved)));
  moves_ = !SameFolder(path_.parent_path(), source_.folder);
  CopyExcept(source_.proto, &out_, {"graph"});
  CopyExcept(source_.proto.graph(), out_.mutable_graph(),
             {"node", "initializer", "sparse_initializer", "input", "value_info",
              "quantization_annotation"});
  return OkStatus();
}

// Those of the file in their order, then the new ones. Initializers that are also inputs (defaults
// that a caller may override) and those that training or quantization refers to are kept, used or
// not.
Status Exporter::AddWeights() {
  GraphProto& graph = *out_.mutable_graph();
  std::unordered_set<std::string> keep = plan_.weights;
  for (const auto& a : source_.proto.graph().quantization_annotation()) {
    for (const auto& p : a.quant_parameter_tensor_names()) keep.insert(p.value());
  }
  const bool all = source_.proto.training_info_size() > 0;
  const bool overridable = source_.proto.ir_version() >= 4;
  for (const auto& v : source_.proto.graph().input()) {
    if (overridable) keep.insert(v.name());
  }
  for (const auto& t : source_.proto.graph().initializer()) {
    if (!all && !keep.contains(t.name())) continue;
    if (moves_ && IsExternal(t)) {
      TensorProto& copy = *graph.add_initializer();
      copy = t;
    } else {
      lent_.push_back(&t);
    }
  }
  for (const auto& t : source_.proto.graph().sparse_initializer()) {
    if (all || keep.contains(t.values().name())) *graph.add_sparse_initializer() = t;
  }
  for (auto& t : plan_.initializers) *graph.add_initializer() = std::move(t);
  std::vector<std::string> added;
  for (const std::string& name : plan_.weights) {
    if (model_.added_.contains(name)) added.push_back(name);
    const auto it = source_.constant_node.find(name);
    if (it != source_.constant_node.end()) constants_.push_back(it->second);
  }
  std::ranges::sort(constants_);
  std::ranges::sort(added);
  for (const std::string& name : added) {
    const AddedWeight& weight = *model_.added_.at(name);
    TensorProto& t = *graph.add_initializer();
    t.set_name(name);
    t.set_data_type(int(weight.dtype));
    for (std::int64_t n : weight.extents) t.add_dims(n);
    t.set_raw_data(weight.bytes);
  }
  return OkStatus();
}

void Exporter::AddDeclarations() {
  const GraphProto& from = source_.proto.graph();
  GraphProto& to = *out_.mutable_graph();
  // Up to IR version 3 initializers are inputs as well: those that are gone take theirs along.
  const bool paired = source_.proto.ir_version() < 4;
  std::unordered_set<std::string> kept;
  for (const TensorProto* t : lent_) kept.insert(t->name());
  for (const TensorProto& t : to.initializer()) kept.insert(t.name());
  std::unordered_set<std::string> declared;
  for (const auto& v : from.input()) {
    if (paired && source_.weight.contains(v.name()) && !kept.contains(v.name())) continue;
    *to.add_input() = v;
    declared.insert(v.name());
  }
  for (const TensorProto& t : to.initializer()) {
    if (!paired || declared.contains(t.name())) continue;
    auto* v = to.add_input();
    v->set_name(t.name());
    auto* type = v->mutable_type()->mutable_tensor_type();
    type->set_elem_type(t.data_type());
    for (std::int64_t n : t.dims()) type->mutable_shape()->add_dim()->set_dim_value(n);
    if (t.dims_size() == 0) type->mutable_shape();
  }
  // What the file declares of values that are still there.
  std::unordered_set<std::string> values;
  for (const NodeProto& n : plan_.nodes) values.insert(n.output().begin(), n.output().end());
  for (int k : constants_) values.insert(source_.node(k).output(0));
  const bool trusted = source_.inference != Inference::kNoDeclared;
  for (const auto& v : from.value_info()) {
    if (trusted && values.contains(v.name())) *to.add_value_info() = v;
  }
  values.insert(declared.begin(), declared.end());
  values.insert(kept.begin(), kept.end());
  for (const auto& a : from.quantization_annotation()) {
    if (values.contains(a.tensor_name())) *to.add_quantization_annotation() = a;
  }
}

void Exporter::AddNodes(Loan<NodeProto>& nodes) {
  for (int k : constants_) {
    const NodeProto& node = source_.node(k);
    if (moves_ && HasExternal(node)) {
      *out_.mutable_graph()->add_node() = node;
    } else {
      nodes.Lend(node);
    }
  }
  for (NodeProto& n : plan_.nodes) *out_.mutable_graph()->add_node() = std::move(n);
  summary_.nodes = out_.graph().node_size();
  summary_.kept_nodes = plan_.kept_nodes + int(constants_.size());
}

Status Exporter::Check() {
  if (source_.opset > kOpsetMax) {
    summary_.notes.push_back(
        fmt::format("ONNX's checker was not asked: it does not know opset {}", source_.opset));
    return OkStatus();
  }
  Status status = RunChecker(out_, source_.folder);
  if (status.ok()) status = InferTypes(out_, source_.inference).status();
  if (source_.inference != Inference::kAll) {
    summary_.notes.push_back("shape inference was asked no more than the original passes");
  }
  if (status.ok()) return OkStatus();
  return base::Internal(fmt::format("{}: the result is not valid and was not written: {}",
                                    path_.string(), base::Message(status)));
}

Status Exporter::Write() {
  GraphProto& graph = *out_.mutable_graph();
  Status status = OkStatus();
  const auto move = [&](TensorProto& t) {
    if (status.ok() && IsExternal(t)) status = data_.Move(t);
  };
  if (moves_) {
    for (auto& t : *graph.mutable_initializer()) move(t);
    for (int k = 0; k < graph.node_size(); ++k) {
      // Nodes that are lent have no external data.
      if (HasExternal(graph.node(k))) ForEachTensor(*graph.mutable_node(k), move);
    }
    RETURN_IF_ERROR(status);
  }
  if (out_.ByteSizeLong() > options_.inline_bytes_max) {
    for (auto& t : *graph.mutable_initializer()) {
      if (!model_.added_.contains(t.name()) || t.raw_data().size() < kAlwaysInline) continue;
      RETURN_IF_ERROR(data_.Store(t));
    }
  }
  if (out_.ByteSizeLong() > std::size_t{0x7fffffff}) {
    return base::ResourceExhausted(
        fmt::format("{}: the model exceeds the 2 GiB of a protobuf; store its weights as external "
                    "data",
                    path_.string()));
  }
  StagedFile file;
  RETURN_IF_ERROR(file.Open(path_));
  RETURN_IF_ERROR(file.Write(out_));
  RETURN_IF_ERROR(file.Sync());
  if (data_.used()) {
    RETURN_IF_ERROR(data_.file().Sync());
    std::error_code ignored;
    // An old model beside the new data would be a wrong one; none is only a missing one.
    if (std::filesystem::exists(data_.target(), ignored)) std::filesystem::remove(path_, ignored);
    RETURN_IF_ERROR(data_.file().Commit());
    summary_.files.push_back(data_.target().string());
  }
  RETURN_IF_ERROR(file.Commit());
  summary_.files.insert(summary_.files.begin(), path_.string());
  return OkStatus();
}

StatusOr<ExportSummary> Export(const Model& model, const std::string& path,
                               const ExportOptions& options) {
  return Exporter(model, options, path).Run();
}

}  // namespace tenon::optimizer
