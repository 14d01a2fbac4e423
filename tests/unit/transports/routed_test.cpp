// SPDX-License-Identifier: Apache-2.0
#include "transports/routed/routed.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/unit/still_transport.h"

namespace weft::routed {
namespace {

// Says when it goes, which it may do only while the memory of the first is there.
class Mortal final : public test::StillTransport {
 public:
  Mortal(std::string name, std::string* gone) : name_(std::move(name)), gone_(gone) {}
  ~Mortal() override { *gone_ += name_; }
  WindowView own() const override {
    return {reinterpret_cast<std::byte*>(const_cast<ControlPage*>(&page_)), layout_};
  }

 private:
  const std::string name_;
  std::string* const gone_;
  ControlPage page_;
};

// Inside the host "a", and two wires "b" and "c", of which the last says `made`.
Status make(std::string* gone, const Status& made, std::unique_ptr<Transport>* out) {
  RoutedSetup routed;
  routed.hosts = {0, 1, 2};
  routed.wireOf = {RoutedSetup::kInside, 0, 1};
  routed.inside = [=](const TransportSetup&, std::unique_ptr<Transport>* one) {
    *one = std::make_unique<Mortal>("a", gone);
    return Status();
  };
  for (const char* name : {"b", "c"})
    routed.wires.push_back([=](const TransportSetup&, std::unique_ptr<Transport>* one) -> Status {
      *one = std::make_unique<Mortal>(name, gone);
      return *name == 'c' ? made : Status();
    });
  TransportSetup setup;
  setup.ranks = 3;
  return makeRouted(setup, routed, out);
}

// A wire hears its peers' good-byes in the window of the first.
TEST(Routed, TheFirstGoesLast) {
  std::string gone;
  std::unique_ptr<Transport> routed;
  ASSERT_TRUE(make(&gone, {}, &routed).ok());
  EXPECT_EQ(gone, "");
  routed.reset();
  EXPECT_EQ(gone, "cba");
}

TEST(Routed, TheFirstGoesLastWhereAWireCannotBeMade) {
  std::string gone;
  std::unique_ptr<Transport> routed;
  EXPECT_FALSE(make(&gone, Status::error(Code::SystemError, "no wire"), &routed).ok());
  EXPECT_EQ(gone, "cba");
}

}  // namespace
}  // namespace weft::routed
