#include "client/observe/http.h"

#include <civetweb.h>

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

namespace tenon::observe {
namespace {

std::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 503:
      return "Service Unavailable";
    case 405:
      return "Method Not Allowed";
    default:
      return "Error";
  }
}

}  // namespace

struct HttpServer::Impl {
  std::function<Response(const std::string&)> answer;
  mg_context* context = nullptr;
  int port = 0;

  static int Handle(mg_connection* connection, void* self) {
    const mg_request_info* const request = mg_get_request_info(connection);
    const std::string_view method = request->request_method;
    Response response{.status = 405, .type = "text/plain", .body = "GET only\n"};
    if (method == "GET" || method == "HEAD") {
      response = static_cast<Impl*>(self)->answer(request->local_uri);
    }
    // Nothing is loaded from elsewhere, and no script runs.
    const std::string head = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; img-src data:\r\n"
        "\r\n",
        response.status, Reason(response.status), response.type, response.body.size());
    mg_write(connection, head.data(), head.size());
    if (method != "HEAD") mg_write(connection, response.body.data(), response.body.size());
    return response.status;
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const std::string& listen, std::function<Response(const std::string& path)> answer) {
  const std::size_t colon = listen.rfind(':');
  const bool digits = colon != std::string::npos && colon + 1 < listen.size() &&
                      std::all_of(listen.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                                  listen.end(), [](char c) { return c >= '0' && c <= '9'; });
  // civetweb would take a comma for a second port.
  if (!digits || colon == 0 || listen.find(',') != std::string::npos) {
    return base::InvalidArgument(fmt::format("'{}' is no address; give HOST:PORT", listen));
  }
  auto impl = std::make_unique<Impl>();
  impl->answer = std::move(answer);
  // A name is not resolved: numbers only, which civetweb does.
  const std::string where =
      listen.starts_with("localhost:") ? "127.0.0.1" + listen.substr(colon) : listen;
  const char* options[] = {
      "listening_ports",   where.c_str(), "num_threads", "4", "request_timeout_ms", "5000",
      "enable_keep_alive", "no",          nullptr};
  const mg_callbacks callbacks{};
  impl->context = mg_start(&callbacks, nullptr, options);
  if (impl->context == nullptr) {
    return base::Unavailable(
        fmt::format("{}: cannot listen there; give another address with a free port", listen));
  }
  mg_server_port ports[1]{};
  if (mg_get_server_ports(impl->context, 1, ports) == 1) impl->port = ports[0].port;
  mg_set_request_handler(impl->context, "/", Impl::Handle, impl.get());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() { mg_stop(impl_->context); }

int HttpServer::port() const { return impl_->port; }

}  // namespace tenon::observe
