// What is seen of calls that a gRPC server serves, and what every server of ours has.
#pragma once

#include <functional>
#include <string_view>

namespace grpc {
class ServerBuilder;
}  // namespace grpc

namespace tenon::observe {

// Health service and reflection for every server that is built from now on.
void EnableHealthAndReflection();

// Calls `on_call` at the end of each call, from several threads: "tenon.v1.JobService/GetJob",
// "OK" or the code of its error, and the seconds that it took.
using OnCall = std::function<void(std::string_view method, std::string_view code, double seconds)>;
void ObserveCalls(grpc::ServerBuilder& builder, OnCall on_call);

}  // namespace tenon::observe
