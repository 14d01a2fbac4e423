// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/topo/svg.h"
#include "topology/cores.h"

namespace weft::topo {
namespace {

constexpr int kMargin = 24, kTop = 56, kCore = 26, kCoresOfARow = 16, kHead = 28, kGap = 16,
              kDeviceHeight = 40;
constexpr int kBoxWidth = kCoresOfARow * kCore + 2 * 10, kWidth = kBoxWidth + 2 * kMargin;

// One below the other: the NUMA nodes with their cores, and the devices.
class HostDrawing {
 public:
  HostDrawing(const topology::HostDescription& host, const cpu_set_t& mine)
      : host_(host), mine_(mine) {}

  std::string draw() {
    for (const topology::NumaNode& node : host_.numa)
      drawCores(
          fmt::format("numa {}: {} MiB, package {}", node.index, node.memoryMiB, node.package),
          node.cores);
    if (host_.numa.empty()) drawCores("cores", mine_);
    for (const topology::HostDevice& device : host_.devices) drawDevice(device);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
               "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
               "<text x=\"{2}\" y=\"26\" font-size=\"16\">host {3}</text>\n"
               "<text x=\"{2}\" y=\"44\">{4} cores to run on (filled), {5} may be kept "
               "busy</text>\n",
               kWidth, y_ + kMargin, kMargin, escaped(host_.name), CPU_COUNT(&mine_),
               topology::usableCores(mine_)) +
           body_ + "</svg>\n";
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Arguments>(arguments)...);
  }

  void drawBox(int height, const std::string& title, const char* stroke) {
    add("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#fafafa\" "
        "stroke=\"{}\"/>\n<text x=\"{}\" y=\"{}\">{}</text>\n",
        kMargin, y_, kBoxWidth, height, stroke, kMargin + 10, y_ + 18, escaped(title));
  }

  void drawCores(const std::string& title, const cpu_set_t& cores) {
    const int rows = (CPU_COUNT(&cores) + kCoresOfARow - 1) / kCoresOfARow;
    const int height = kHead + std::max(rows, 1) * kCore + 8;
    drawBox(height, title, "#555");
    for (int core = 0, place = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(static_cast<std::size_t>(core), &cores)) continue;
      drawCore(core, kMargin + 10 + place % kCoresOfARow * kCore,
               y_ + kHead + place / kCoresOfARow * kCore);
      ++place;
    }
    y_ += height + kGap;
  }

  void drawCore(int core, int x, int y) {
    add("<rect class=\"core\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
        "stroke=\"#333\"/>\n<text x=\"{}\" y=\"{}\" font-size=\"10\" "
        "text-anchor=\"middle\">{}</text>\n",
        x, y, kCore - 3, kCore - 3,
        CPU_ISSET(static_cast<std::size_t>(core), &mine_) ? "#cfe3f7" : "white",
        x + (kCore - 3) / 2, y + 15, core);
  }

  void drawDevice(const topology::HostDevice& device) {
    const std::string rate =
        device.gbit > 0 ? fmt::format("{:g} Gbit/s", device.gbit) : "rate unknown";
    drawBox(
        kDeviceHeight,
        fmt::format("{} {}: {}, {}", device.kind == topology::HostDevice::Rdma ? "rdma" : "network",
                    device.name, device.up ? "up" : "down", rate),
        device.up ? "#1f77b4" : "#bbb");
    add("<text x=\"{}\" y=\"{}\" font-size=\"10\">{}</text>\n", kMargin + 10, y_ + 33,
        CPU_COUNT(&device.near) > 0 ? "near cores " + topology::coreList(device.near)
                                    : "near no cores that are known");
    y_ += kDeviceHeight + kGap;
  }

  const topology::HostDescription& host_;
  const cpu_set_t& mine_;
  int y_ = kTop;
  std::string body_;
};

}  // namespace

std::string drawSvg(const topology::HostDescription& host, const cpu_set_t& mine) {
  return HostDrawing(host, mine).draw();
}

}  // namespace weft::topo
