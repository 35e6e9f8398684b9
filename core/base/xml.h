// Text in XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace tenon::base {

// `text` with the characters that mean something in an element or a quoted attribute replaced, and
// control characters that XML does not allow as spaces.
std::string EscapedXml(std::string_view text);

}  // namespace tenon::base
