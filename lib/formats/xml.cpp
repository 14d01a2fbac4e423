// SPDX-License-Identifier: Apache-2.0
#include "formats/xml.h"

#include <dlfcn.h>
#include <expat.h>

#include <memory>

#include "base/text.h"

namespace weft::formats {
namespace {

constexpr const char* kExpat = "libexpat.so.1";

// libexpat's functions, by their own names. It stays open.
struct Expat {
  decltype(&XML_ParserCreate) parserCreate = nullptr;
  decltype(&XML_ParserFree) parserFree = nullptr;
  decltype(&XML_SetUserData) setUserData = nullptr;
  decltype(&XML_SetElementHandler) setElementHandler = nullptr;
  decltype(&XML_Parse) parse = nullptr;
  decltype(&XML_StopParser) stopParser = nullptr;
  decltype(&XML_GetCurrentLineNumber) line = nullptr;
  decltype(&XML_GetErrorCode) errorCode = nullptr;
  decltype(&XML_ErrorString) errorString = nullptr;

  bool open() {
    void* const handle = ::dlopen(kExpat, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    const auto find = [handle](const char* name, auto* function) {
      *function =
          reinterpret_cast<std::remove_pointer_t<decltype(function)>>(::dlsym(handle, name));
      return *function != nullptr;
    };
    return find("XML_ParserCreate", &parserCreate) && find("XML_ParserFree", &parserFree) &&
           find("XML_SetUserData", &setUserData) &&
           find("XML_SetElementHandler", &setElementHandler) && find("XML_Parse", &parse) &&
           find("XML_StopParser", &stopParser) && find("XML_GetCurrentLineNumber", &line) &&
           find("XML_GetErrorCode", &errorCode) && find("XML_ErrorString", &errorString);
  }
};

struct Reading {
  const Expat& expat;
  XML_Parser parser;
  const std::function<Status(const XmlElement&)>& begin;
  std::size_t depth = 0;
  Status status = {};
};

void onBegin(void* data, const char* name, const char** attributes) {
  auto& reading = *static_cast<Reading*>(data);
  if (!reading.status.ok()) return;
  XmlElement element{.name = name,
                     .attributes = {},
                     .line = reading.expat.line(reading.parser),
                     .depth = reading.depth++};
  for (; attributes[0] != nullptr; attributes += 2)
    element.attributes.emplace_back(attributes[0], attributes[1]);
  reading.status = reading.begin(element);
  if (!reading.status.ok()) reading.expat.stopParser(reading.parser, XML_FALSE);
}

void onEnd(void* data, const char*) { --static_cast<Reading*>(data)->depth; }

}  // namespace

Status readXml(std::string_view document, const std::string& file,
               const std::function<Status(const XmlElement&)>& begin) {
  static Expat expat;
  static const bool isOpen = expat.open();
  if (!isOpen)
    return Status::error(Code::SystemError, file, ": ", kExpat,
                         ", which reads XML, cannot be opened; fix: install libexpat1");
  const std::unique_ptr<XML_ParserStruct, decltype(expat.parserFree)> parser(
      expat.parserCreate("UTF-8"), expat.parserFree);
  if (parser == nullptr)
    return Status::error(Code::OutOfMemory, file, ": no memory to read it; fix: free some");
  Reading reading{expat, parser.get(), begin};
  expat.setUserData(parser.get(), &reading);
  expat.setElementHandler(parser.get(), onBegin, onEnd);
  const XML_Status parsed =
      expat.parse(parser.get(), document.data(), static_cast<int>(document.size()), XML_TRUE);
  if (!reading.status.ok()) return reading.status;
  if (parsed == XML_STATUS_OK) return {};
  return Status::error(Code::InvalidArgument, file, ":", expat.line(parser.get()),
                       ": no XML: ", expat.errorString(expat.errorCode(parser.get())),
                       "; fix: write the file anew");
}

}  // namespace weft::formats
