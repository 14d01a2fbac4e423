// SPDX-License-Identifier: Apache-2.0
#include "base/knobs.h"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>

#include "base/environment.h"
#include "base/invalid.h"
#include "base/max_ranks.h"
#include "base/text.h"

namespace weft::inline base {
namespace {

constexpr std::int64_t kMaxMs = INT32_MAX;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

// In the order of enum Knob.
constexpr std::array kTable = {
    KnobInfo{Knob::Debug, "WEFT_DEBUG", KnobType::Choice, "WARN",
             "How much is logged. NCCL_DEBUG's names are understood.",
             "NONE|ERROR|VERSION|WARN|INFO|DEBUG|TRACE"},
    KnobInfo{Knob::DebugFile, "WEFT_DEBUG_FILE", KnobType::Text, "",
             "File that the log is appended to instead of stderr; %h is the host name, %p the "
             "process id."},
    KnobInfo{Knob::TimeoutMs, "WEFT_TIMEOUT_MS", KnobType::Integer, "600000",
             "Deadline of each operation in milliseconds.", "", 1, kMaxMs},
    KnobInfo{Knob::InitTimeoutMs, "WEFT_INIT_TIMEOUT_MS", KnobType::Integer, "120000",
             "Deadline of creating a communicator in milliseconds.", "", 1, kMaxMs},
    KnobInfo{
        Knob::Transport, "WEFT_TRANSPORT", KnobType::Text, "auto",
        "How bytes move: auto, local (threads of one process), shm (processes of one host), verbs "
        "(RoCE), ofi (libfabric: EFA, TCP), INSIDE+BETWEEN for two of them, such as shm+ofi "
        "(inside a host and between hosts), or faulty:SEED around auto, or faulty(ofi):SEED around "
        "the wires of a choice. A pair of ranks that loses its link later takes another, with a "
        "warning. Must agree on all ranks."},
    KnobInfo{
        Knob::Reproducible, "WEFT_REPRODUCIBLE", KnobType::Flag, "0",
        "Fold every sum in rank order, so that the same inputs always give the same bits. Must "
        "agree on all ranks."},
    KnobInfo{Knob::Algo, "WEFT_ALGO", KnobType::Text, "auto",
             "Force an algorithm by name for every collective that has it (weft-perf --algo list), "
             "or the schedule of a file: MSCCL's XML or MSCCL++'s JSON, proved when a communicator "
             "is made. model: what the model of the calibrated machine chooses. auto: the same, "
             "but inside a host with a core for each rank the first calls of a kind, and now and "
             "then some later ones, run what the model finds nearly as cheap, too, and the "
             "quickest is taken. Must agree on all ranks, and so must the file's bytes."},
    KnobInfo{Knob::SegmentKb, "WEFT_SEGMENT_KB", KnobType::Integer, "auto",
             "Size in KiB of the pieces that a large message is cut into. Must agree on all ranks.",
             "", 1, 1 << 20},
    KnobInfo{
        Knob::Lanes, "WEFT_LANES", KnobType::Integer, "auto",
        "How many pieces of a large message are in flight at once; auto: 4, so that what cores "
        "and what links do overlap.",
        "", 1, 4},
    KnobInfo{Knob::Threads, "WEFT_THREADS", KnobType::Integer, "1",
             "Threads that share the bytes of a rank's large calls, on the cores of its affinity "
             "mask: the caller's, and helpers that sleep between calls. Same bits with any number.",
             "", 1, kMaxThreads},
    KnobInfo{
        Knob::OneShotMax, "WEFT_ONE_SHOT_MAX", KnobType::ByteSize, "auto",
        "Largest message that takes the one-shot all-reduce; auto: as the model of the calibrated "
        "machine says. Must agree on all ranks.",
        "", 0, kMaxBytes},
    KnobInfo{
        Knob::DirectMin, "WEFT_DIRECT_MIN", KnobType::ByteSize, "auto",
        "Smallest message that is written straight into the receiver's buffer where the transport "
        "can; auto: as the model of the calibrated machine says. Must agree on all ranks.",
        "", 0, kMaxBytes},
    KnobInfo{Knob::Cma, "WEFT_CMA", KnobType::Choice, "auto",
             "Copies between processes by CMA (process_vm_readv): auto where measured to win, or "
             "off.",
             "auto|off"},
    KnobInfo{
        Knob::TuneFile, "WEFT_TUNE_FILE", KnobType::Text, "auto",
        "File that keeps the calibration of this machine for later processes: auto is a file in "
        "$XDG_CACHE_HOME/weft or ~/.cache/weft; off keeps none. A recorded machine "
        "(lib/tune/machine_file.h) holds as it stands, and nothing is measured."},
    KnobInfo{Knob::SpinUs, "WEFT_SPIN_US", KnobType::Integer, "auto",
             "Microseconds that a wait spins before it yields and sleeps.", "", 0, 1000000},
    KnobInfo{
        Knob::NetDevices, "WEFT_NET_DEVICES", KnobType::Text, "",
        "Devices that verbs and ofi may use: names or their beginnings, with :port if need be, "
        "separated by commas; ^ in front means all but these, = means exact names. By default "
        "all."},
    KnobInfo{Knob::OfiProvider, "WEFT_OFI_PROVIDER", KnobType::Text, "auto",
             "libfabric provider, such as efa or tcp;ofi_rxm; auto takes efa where it is, else "
             "tcp. Must agree on all ranks."},
    KnobInfo{Knob::OfiMode, "WEFT_OFI_MODE", KnobType::Choice, "auto",
             "Remote writes (rdma) or messages (msg) over libfabric; auto: rdma where the provider "
             "does it natively. Must agree on all ranks.",
             "auto|rdma|msg"},
    KnobInfo{Knob::MeshFile, "WEFT_MESH_FILE", KnobType::Text, "",
             "File that says which port of which rank a cable joins to which "
             "(transports/verbs/mesh.h); by default subnets and a hello tell."},
    KnobInfo{
        Knob::RoceGid, "WEFT_ROCE_GID", KnobType::Text, "auto",
        "Which GID of a port verbs uses: auto, ipv4, ipv6, link-local, or an address range such as "
        "10.1.0.0/16."},
    KnobInfo{
        Knob::TopoFile, "WEFT_TOPO_FILE", KnobType::Text, "",
        "File that describes nodes, links and rails (weft-topo writes one); by default they are "
        "found out."},
    KnobInfo{
        Knob::SocketIfname, "WEFT_SOCKET_IFNAME", KnobType::Text, "",
        "Interface that the bootstrap root listens on, such as eth0 or lo; by default the one with "
        "the default route."},
    KnobInfo{
        Knob::CommId, "WEFT_COMM_ID", KnobType::Text, "",
        "host:port of rank 0; weftGetUniqueId then derives the same id in every process (needs "
        "WEFT_SECRET or WEFT_SECRET_FILE)."},
    KnobInfo{Knob::Secret, "WEFT_SECRET", KnobType::Text, "",
             "Shared secret of the job, where the launcher hands over no unique id."},
    KnobInfo{
        Knob::SecretFile, "WEFT_SECRET_FILE", KnobType::Text, "",
        "File with the shared secret; it must belong to the user and be closed to others (0600)."},
    KnobInfo{Knob::Auth, "WEFT_AUTH", KnobType::Choice, "auto",
             "Without a secret: auto derives one from the job id and warns, require makes that an "
             "error, off derives it silently.",
             "auto|require|off"},
    KnobInfo{Knob::Rank, "WEFT_RANK", KnobType::Integer, "",
             "Rank of this process; with WEFT_SIZE.", "", 0, kMaxRanks - 1},
    KnobInfo{Knob::Size, "WEFT_SIZE", KnobType::Integer, "", "Number of ranks; with WEFT_RANK.", "",
             1, kMaxRanks},
    KnobInfo{Knob::Root, "WEFT_ROOT", KnobType::Text, "",
             "host:port where rank 0 listens; with WEFT_RANK and WEFT_SIZE."},
    KnobInfo{Knob::LocalRank, "WEFT_LOCAL_RANK", KnobType::Integer, "",
             "Rank among the ranks of this host, if the launcher does not say it.", "", 0,
             kMaxRanks - 1},
    KnobInfo{Knob::LocalSize, "WEFT_LOCAL_SIZE", KnobType::Integer, "",
             "Number of ranks of this host, if the launcher does not say it.", "", 1, kMaxRanks},
    KnobInfo{
        Knob::Library, "WEFT_LIBRARY", KnobType::Text, "",
        "libweft.so that Python's `import weft` opens; by default that of its own tree, else the "
        "system's."},
};
static_assert(kTable.size() <= 32, "weft has at most 32 knobs");

constexpr bool inOrder() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<std::size_t>(kTable[i].knob) != i) return false;
  return true;
}
static_assert(inOrder(), "the table follows enum Knob");

// The variable's value, or the default.
std::string valueOf(const KnobInfo& info) {
  std::string value = environment(info.name);
  return value.empty() ? info.fallback : value;
}

std::string replaced(std::string_view from, char what, std::string_view by) {
  std::string to;
  for (char c : from) c == what ? to += by : to += c;
  return to;
}

Status refused(const KnobInfo& info, std::string_view value, std::string_view expected) {
  return invalidVariable(info.name, info.name, "=", value, " is not ", expected,
                         ". fix: correct or unset ", info.name);
}

std::string rangeOf(const KnobInfo& info) {
  const std::string bytes = info.type == KnobType::ByteSize ? " bytes (suffix K, M or G)" : "";
  const std::string automatic = equalIgnoringCase(info.fallback, "auto") ? "auto or " : "";
  return text(automatic, "a number from ", info.min, " to ", info.max, bytes);
}

int suffixShift(char suffix) {
  constexpr std::string_view kSuffixes = "kKmMgG";
  const std::size_t at = kSuffixes.find(suffix);
  return at == kSuffixes.npos ? -1 : static_cast<int>(at / 2 + 1) * 10;
}

// Decimal digits and, for Bytes, one suffix; false if anything else or out of range.
bool parseValue(const KnobInfo& info, std::string_view value, std::int64_t* number) {
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, *number);
  if (error != std::errc()) return false;
  if (rest != end) {
    const int shift = suffixShift(*rest);
    if (info.type != KnobType::ByteSize || rest + 1 != end || shift < 0) return false;
    if (*number < 0 || *number > info.max >> shift) return false;
    *number <<= shift;
  }
  return *number >= info.min && *number <= info.max;
}

// Levenshtein's distance by one row of the table.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string describeUnknown(std::string_view name) {
  const auto distanceTo = [&](const KnobInfo& info) { return editDistance(name, info.name); };
  const KnobInfo& nearest = std::ranges::min(kTable, {}, distanceTo);
  const std::string said = text("unknown variable ", name, " is ignored");
  return distanceTo(nearest) <= 4 ? text(said, "; did you mean ", nearest.name, "?") : said;
}

}  // namespace

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::span<const KnobInfo> knobTable() { return kTable; }

const KnobInfo& knobInfo(Knob knob) { return kTable[static_cast<std::size_t>(knob)]; }

bool isSet(Knob knob) { return !environment(knobInfo(knob).name).empty(); }

Status readInteger(Knob knob, std::int64_t* value) {
  const KnobInfo& info = knobInfo(knob);
  const std::string written = valueOf(info);
  if (equalIgnoringCase(info.fallback, "auto") && equalIgnoringCase(written, "auto")) {
    *value = kKnobAuto;
    return {};
  }
  return parseValue(info, written, value) ? Status() : refused(info, written, rangeOf(info));
}

Status readFlag(Knob knob, bool* value) {
  static constexpr std::array yes = {"1", "on", "yes", "true"};
  static constexpr std::array no = {"0", "off", "no", "false"};
  const KnobInfo& info = knobInfo(knob);
  const std::string written = valueOf(info);
  const auto same = [&](const char* word) { return equalIgnoringCase(word, written); };
  *value = std::ranges::any_of(yes, same);
  if (*value || std::ranges::any_of(no, same)) return {};
  return refused(info, written, "0 or 1");
}

Status readText(Knob knob, std::string* value) {
  const KnobInfo& info = knobInfo(knob);
  *value = valueOf(info);
  if (info.type != KnobType::Choice) return {};
  for (std::string_view left = info.choices; !left.empty();) {
    const std::string_view choice = left.substr(0, left.find('|'));
    if (equalIgnoringCase(choice, *value)) {
      *value = choice;
      return {};
    }
    left.remove_prefix(std::min(left.size(), choice.size() + 1));
  }
  return refused(info, *value, text("one of ", replaced(info.choices, '|', ", ")));
}

std::vector<std::string> unknownKnobs() {
  std::vector<std::string> lines;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view variable = *entry;
    const std::string_view name = variable.substr(0, variable.find('='));
    const auto known = [&](const KnobInfo& info) { return name == info.name; };
    if (name.starts_with("WEFT_") && std::ranges::none_of(kTable, known))
      lines.push_back(describeUnknown(name));
  }
  return lines;
}

}  // namespace weft::inline base
