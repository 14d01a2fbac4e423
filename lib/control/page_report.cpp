// SPDX-License-Identifier: Apache-2.0
#include "control/page_report.h"

#include <algorithm>

namespace weft::control {
namespace {

// As Watch::enter() writes it: all but `seq` is of that call only if `seq` is the same before and
// after.
PageReport::Call readRecord(const transport::CallRecord& record, std::uint64_t seq) {
  if (record.seq.load(std::memory_order_acquire) != seq) return {};
  const PageReport::Call call{seq, record.fingerprint.load(std::memory_order_acquire),
                              record.count.load(std::memory_order_acquire),
                              record.what.load(std::memory_order_acquire)};
  return record.seq.load(std::memory_order_relaxed) == seq ? call : PageReport::Call{};
}

void writeRecord(const PageReport::Call& call, transport::CallRecord* record) {
  if (call.seq == 0 || record->seq.load(std::memory_order_relaxed) == call.seq) return;
  record->seq.store(0, std::memory_order_relaxed);
  record->fingerprint.store(call.fingerprint, std::memory_order_release);
  record->count.store(call.count, std::memory_order_release);
  record->what.store(call.what, std::memory_order_release);
  record->seq.store(call.seq, std::memory_order_release);
}

}  // namespace

PageReport readPage(const transport::ControlPage& page) {
  PageReport report;
  report.left = page.left.load(std::memory_order_acquire) != 0;
  // The number first: a rank that goes on meanwhile is reported one call behind, never as outside of
  // a call that it is still in.
  report.callSeq = page.callSeq.load(std::memory_order_acquire);
  report.inCall = page.inCall.load(std::memory_order_acquire) != 0;
  for (std::size_t i = 0; i < PageReport::kCalls && i < report.callSeq; ++i) {
    const std::uint64_t seq = report.callSeq - i;
    report.calls[PageReport::kCalls - 1 - i] =
        readRecord(page.calls[seq % transport::kCallRecords], seq);
  }
  return report;
}

void writePage(const PageReport& report, transport::ControlPage* mirror) {
  for (const PageReport::Call& call : report.calls)
    writeRecord(call, &mirror->calls[call.seq % transport::kCallRecords]);
  mirror->callSeq.store(report.callSeq, std::memory_order_release);
  mirror->inCall.store(report.inCall, std::memory_order_release);
  mirror->left.store(report.left, std::memory_order_release);
}

void encode(const PageReport& report, net::ByteWriter* to) {
  to->number(report.callSeq);
  to->number<std::uint8_t>(report.inCall).number<std::uint8_t>(report.left);
  to->number(static_cast<std::uint16_t>(PageReport::kCalls));
  for (const PageReport::Call& call : report.calls)
    to->number(call.seq).number(call.fingerprint).number(call.count).number(call.what);
}

PageReport decodePage(net::ByteReader* from) {
  PageReport report;
  report.callSeq = from->number<std::uint64_t>();
  report.inCall = from->number<std::uint8_t>() != 0;
  report.left = from->number<std::uint8_t>() != 0;
  const auto calls = from->number<std::uint16_t>();
  for (std::size_t i = 0; i < std::min<std::size_t>(calls, PageReport::kCalls); ++i) {
    PageReport::Call& call = report.calls[i];
    call.seq = from->number<std::uint64_t>();
    call.fingerprint = from->number<std::uint64_t>();
    call.count = from->number<std::uint64_t>();
    call.what = from->number<std::uint64_t>();
  }
  return report;
}

}  // namespace weft::control
