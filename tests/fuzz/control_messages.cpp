// SPDX-License-Identifier: Apache-2.0
// Messages of the control link, and the mirror of a control page that a report is written to.
#include <memory>
#include <optional>

#include "control/bodies.h"
#include "control/groups.h"
#include "fuzz.h"

namespace weft::fuzz {
namespace {

constexpr std::size_t kFewRanks = 3, kManyRanks = 1 << 20;

template <class Body>
void tryBody(net::ByteView bytes, std::size_t ranks) {
  requireRoundTrip(
      bytes, [](const Body& body) { return control::encode(body); },
      [ranks](net::ByteView from) {
        Body body;
        return control::decode(from, ranks, &body) ? std::optional(body) : std::nullopt;
      });
}

void tryPage(net::ByteView bytes) {
  control::PageReport page;
  if (!control::decode(bytes, &page)) return;
  require(control::encode(page).size() <= control::PageReport::kMaxBytes, "a page is bounded");
  const auto mirror = std::make_unique<transport::ControlPage>();
  control::writePage(page, mirror.get());
  const control::PageReport seen = control::readPage(*mirror, true);
  require(seen.callSeq == page.callSeq && seen.left == page.left,
          "a mirror says what was reported");
}

void tryRelayed(net::ByteView bytes, std::size_t ranks) {
  control::RankSet set;
  net::Message inner{};
  if (!control::decodeRelayed(bytes, ranks, &set, &inner)) return;
  const net::Bytes again = control::encodeRelayed(set, inner.type, inner.body);
  control::RankSet sameSet;
  net::Message same{};
  require(control::decodeRelayed(again, ranks, &sameSet, &same) && sameSet == set &&
              same.type == inner.type && same.body == inner.body,
          "what is relayed stays as it is");
}

void tryGrouped(net::ByteView bytes) {
  std::uint32_t group = 0, sameGroup = 0;
  net::Message inner{}, same{};
  if (!control::decodeGrouped(bytes, &group, &inner)) return;
  const net::Bytes again = control::encodeGrouped(group, inner.type, inner.body);
  require(control::decodeGrouped(again, &sameGroup, &same) && sameGroup == group &&
              same.type == inner.type && same.body == inner.body,
          "what is said of a group stays as it is");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const net::ByteView body = bytesOf(input.subspan(1));
  const std::size_t ranks = (input[0] & 128) != 0 ? kManyRanks : kFewRanks;
  switch (input[0] % 7) {
    case 0:
      return tryPage(body);
    case 1:
      return tryBody<control::News>(body, ranks);
    case 2:
      return tryBody<control::Ending>(body, ranks);
    case 3:
      return tryRelayed(body, ranks);
    case 4: {
      control::Loss loss;
      (void)control::decode(body, &loss);
      return;
    }
    case 5:
      return tryBody<control::Part>(body, ranks);
    default:
      return tryGrouped(body);
  }
}

}  // namespace weft::fuzz
