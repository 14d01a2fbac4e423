// SPDX-License-Identifier: Apache-2.0
#include "control/page_report.h"

#include <algorithm>

#include "watch/remote_ranks.h"

namespace weft::control {
namespace {

void writeRecord(const PageReport::Call& call, transport::CallRecord* record) {
  const bool there = record->seq.load(std::memory_order_relaxed) == call.seq &&
                     record->fingerprint.load(std::memory_order_relaxed) == call.fingerprint;
  const bool tells = there && record->what.load(std::memory_order_relaxed) != watch::kUnknownWords;
  if (call.seq == 0 || tells || (there && call.what == watch::kUnknownWords)) return;
  record->seq.store(0, std::memory_order_relaxed);
  record->fingerprint.store(call.fingerprint, std::memory_order_release);
  record->count.store(call.count, std::memory_order_release);
  record->what.store(call.what, std::memory_order_release);
  record->seq.store(call.seq, std::memory_order_release);
}

}  // namespace

// As Watch::enter() writes it: all but `seq` is of that call only if `seq` is the same before and
// after.
PageReport::Call readCall(const transport::ControlPage& page, std::uint64_t seq) {
  const transport::CallRecord& record = page.calls[seq % transport::kCallRecords];
  if (record.seq.load(std::memory_order_acquire) != seq) return {};
  const PageReport::Call call{seq, record.fingerprint.load(std::memory_order_acquire),
                              record.count.load(std::memory_order_acquire),
                              record.what.load(std::memory_order_acquire)};
  return record.seq.load(std::memory_order_relaxed) == seq ? call : PageReport::Call{};
}

PageReport readPage(const transport::ControlPage& page, bool withCalls) {
  PageReport report;
  report.left = page.left.load(std::memory_order_acquire) != 0;
  // The number first: a rank that goes on meanwhile is reported one call behind, never as outside of
  // a call that it is still in.
  report.callSeq = page.callSeq.load(std::memory_order_acquire);
  report.inCall = page.inCall.load(std::memory_order_acquire) != 0;
  if (report.callSeq != 0) report.fingerprint = readCall(page, report.callSeq).fingerprint;
  const std::uint64_t told = withCalls ? std::min(PageReport::kCalls, report.callSeq) : 0;
  for (std::uint64_t seq = report.callSeq - told + 1; seq <= report.callSeq; ++seq)
    report.calls.push_back(readCall(page, seq));
  return report;
}

void writePage(const PageReport& report, transport::ControlPage* mirror) {
  for (const PageReport::Call& call : report.calls)
    writeRecord(call, &mirror->calls[call.seq % transport::kCallRecords]);
  mirror->callSeq.store(report.callSeq, std::memory_order_release);
  mirror->inCall.store(report.inCall, std::memory_order_release);
  mirror->left.store(report.left, std::memory_order_release);
}

void encode(const PageReport::Call& call, net::ByteWriter* to) {
  to->number(call.seq).number(call.fingerprint).number(call.count).number(call.what);
}

void encode(const PageReport& report, net::ByteWriter* to) {
  to->small(report.callSeq).number(report.fingerprint);
  to->small(report.calls.size() << 2 | std::size_t{report.left} << 1 | std::size_t{report.inCall});
  for (const PageReport::Call& call : report.calls) encode(call, to);
}

PageReport::Call decodeCall(net::ByteReader* from) {
  PageReport::Call call;
  call.seq = from->number<std::uint64_t>();
  call.fingerprint = from->number<std::uint64_t>();
  call.count = from->number<std::uint64_t>();
  call.what = from->number<std::uint64_t>();
  return call;
}

PageReport decodePage(net::ByteReader* from) {
  PageReport report;
  report.callSeq = from->small<std::uint64_t>();
  report.fingerprint = from->number<std::uint64_t>();
  const auto flags = from->small<std::uint32_t>();
  report.inCall = (flags & 1) != 0;
  report.left = (flags & 2) != 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(flags >> 2, PageReport::kCalls); ++i)
    report.calls.push_back(decodeCall(from));
  return report;
}

}  // namespace weft::control
