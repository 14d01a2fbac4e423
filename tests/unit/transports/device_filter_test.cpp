// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/device_filter.h"

#include <gtest/gtest.h>

namespace weft::transport {
namespace {

wire::DeviceFilter filterOf(const std::string& text) {
  wire::DeviceFilter filter;
  const Status status = wire::DeviceFilter::parse(text, &filter);
  EXPECT_TRUE(status.ok()) << status.text();
  return filter;
}

TEST(DeviceFilter, BeginningsExactNamesAndExceptions) {
  EXPECT_TRUE(filterOf("").allows("mlx5_0", 1));
  EXPECT_TRUE(filterOf("mlx5_0,rxe").allows("rxe1", 1));
  EXPECT_TRUE(filterOf("mlx5_1").allows("mlx5_10", 1));
  EXPECT_FALSE(filterOf("=mlx5_1").allows("mlx5_10", 1));
  EXPECT_FALSE(filterOf("^mlx5_1").allows("mlx5_10", 1));
  EXPECT_TRUE(filterOf("^=mlx5_1").allows("mlx5_10", 1));
  EXPECT_FALSE(filterOf("rxe").allows("mlx5_0", 1));
}

TEST(DeviceFilter, Ports) {
  EXPECT_TRUE(filterOf("mlx5_0:2").allows("mlx5_0", 2));
  EXPECT_FALSE(filterOf("mlx5_0:2").allows("mlx5_0", 1));
  EXPECT_TRUE(filterOf("mlx5_0:2").allows("mlx5_0", 0));
  EXPECT_TRUE(filterOf("^mlx5_0:2").allows("mlx5_0", 0));
  EXPECT_FALSE(filterOf("^mlx5_0:2").allows("mlx5_0", 2));
  EXPECT_FALSE(filterOf("^mlx5_0").allows("mlx5_0", 0));
}

TEST(DeviceFilter, WiresWithoutPorts) {
  EXPECT_TRUE(filterOf("").allows("eth0"));
  EXPECT_TRUE(filterOf("eth,ib0:1").allows("eth0"));
  EXPECT_TRUE(filterOf("eth,ib0:1").allows("ib0"));
  EXPECT_FALSE(filterOf("eth,ib0:1").allows("lo"));
  EXPECT_FALSE(filterOf("=eth").allows("eth0"));
  EXPECT_TRUE(filterOf("=eth0").allows("eth0"));
  EXPECT_FALSE(filterOf("^docker,lo").allows("docker0"));
  EXPECT_TRUE(filterOf("^docker,lo").allows("eth0"));
  EXPECT_FALSE(filterOf("^ib0:1").allows("ib0"));
}

TEST(DeviceFilter, BadNames) {
  wire::DeviceFilter filter;
  for (const char* bad : {",", "a,,b", ":1", "a:", "a:0", "a:x", "a:1x"}) {
    const Status status = wire::DeviceFilter::parse(bad, &filter);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << bad;
    EXPECT_NE(status.text().find("fix:"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft::transport
