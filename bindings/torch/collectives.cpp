// SPDX-License-Identifier: Apache-2.0
//
// From torch's calls to weft's. Where torch passes a list of tensors and weft takes one buffer, the tensors are used as
// they are if they lie side by side, else they are copied through the scratch memory.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "process_group.h"

namespace weft::pytorch {
namespace {

using Parts = std::vector<Elements>;

std::size_t bytesOf(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const Elements& e) { return sum + e.bytes; });
}

bool areSideBySide(const Parts& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (static_cast<char*>(parts[i - 1].data) + parts[i - 1].bytes != parts[i].data) return false;
  return true;
}

bool areEqual(const Parts& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Elements& e) { return e.count == parts.front().count; });
}

std::vector<std::size_t> countsOf(const Parts& parts) {
  std::vector<std::size_t> counts;
  for (const Elements& part : parts) counts.push_back(part.count);
  return counts;
}

// One buffer that holds all parts, filled from them.
char* packed(const Parts& parts, Scratch& scratch) {
  if (areSideBySide(parts)) return static_cast<char*>(parts.front().data);
  char* const all = scratch.atLeast(bytesOf(parts));
  char* next = all;
  for (const Elements& part : parts) {
    if (part.bytes > 0) std::memcpy(next, part.data, part.bytes);
    next += part.bytes;
  }
  return all;
}

// One buffer for all parts; unpack() brings what a call has left there to them.
char* spaceFor(const Parts& parts, Scratch& scratch) {
  return areSideBySide(parts) ? static_cast<char*>(parts.front().data)
                              : scratch.atLeast(bytesOf(parts));
}

void unpack(const char* all, const Parts& parts) {
  if (all == parts.front().data) return;
  for (const Elements& part : parts) {
    if (part.bytes > 0) std::memcpy(part.data, all, part.bytes);
    all += part.bytes;
  }
}

void checkCount(const char* call, const at::Tensor& tensor, const at::Tensor& like,
                std::size_t times) {
  const auto wanted = static_cast<std::size_t>(like.numel()) * times;
  if (static_cast<std::size_t>(tensor.numel()) == wanted) return;
  refuse(call, "got a " + describe(tensor) + " beside a " + describe(like),
         "pass one of " + std::to_string(wanted) + " elements");
}

// The part of a tensor's first dimension that each rank gets: split sizes, or equal ones if there are none.
Parts partsOf(const char* call, const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
              int ranks) {
  const Elements whole = elementsOf(call, tensor);
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const auto n = static_cast<std::size_t>(ranks);
  if (splits.empty() && rows % ranks != 0)
    refuse(call,
           "the first dimension of a " + describe(tensor) + " is not divisible by " +
               std::to_string(ranks) + " ranks",
           "pass split sizes");
  if (!splits.empty() && (splits.size() != n ||
                          std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) != rows ||
                          *std::min_element(splits.begin(), splits.end()) < 0))
    refuse(call,
           "the split sizes do not fit a " + describe(tensor) + " and " + std::to_string(ranks) +
               " ranks",
           "pass one for each rank, which add up to the first dimension");
  Parts parts;
  char* next = static_cast<char*>(whole.data);
  for (std::size_t r = 0; r < n; ++r) {
    const auto mine = static_cast<std::size_t>(splits.empty() ? rows / ranks : splits[r]);
    const std::size_t all = std::max<std::size_t>(static_cast<std::size_t>(rows), 1);
    parts.push_back({next, whole.count / all * mine, whole.type, whole.bytes / all * mine});
    next += parts.back().bytes;
  }
  return parts;
}

// Each rank's part of `in` to it, and its part of `out` from it; all progress together. For parts that lie apart, which
// weftAlltoAllV would want copied.
void exchange(const Parts& in, const Parts& out, weftComm_t comm, const weftOpts_t* options) {
  Group group;
  for (std::size_t r = 0; r < in.size(); ++r) {
    check(
        weftSend(in[r].data, in[r].count, in[r].type, static_cast<int>(r), comm, nullptr, options),
        comm);
    check(weftRecv(out[r].data, out[r].count, out[r].type, static_cast<int>(r), comm, nullptr,
                   options),
          comm);
  }
  group.end();
}

Tensors together(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

Work ProcessGroupWeft::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only("broadcast", "input", tensors);
  const Elements e = elementsOf("broadcast", tensor);
  checkRoot("broadcast", options.rootRank, getSize());
  const auto root = static_cast<int>(options.rootRank);
  return submit(
      {c10d::OpType::BROADCAST, "weft:broadcast"}, tensors, tensors, options.timeout, e.bytes,
      [=](const Way& way) {
        check(weftBroadcast(e.data, e.data, e.count, e.type, root, way.comm, nullptr, way.options),
              way.comm);
      });
}

Work ProcessGroupWeft::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only("all_reduce", "input", tensors);
  const Elements e = elementsOf("all_reduce", tensor);
  const Reduction reduction = reductionOf("all_reduce", options.reduceOp, tensor);
  return submit(
      {c10d::OpType::ALLREDUCE, "weft:all_reduce"}, tensors, tensors, options.timeout, e.bytes,
      [=](const Way& way) {
        const Operation op(reduction, e.type, way.comm);
        check(weftAllReduce(e.data, e.data, e.count, e.type, op, way.comm, nullptr, way.options),
              way.comm);
      });
}

Work ProcessGroupWeft::allreduce_coalesced(Tensors& tensors,
                                           const c10d::AllreduceCoalescedOptions& options) {
  if (tensors.empty()) refuse("all_reduce_coalesced", "got no tensors", "pass at least one");
  Parts parts;
  std::vector<Reduction> reductions;
  for (const at::Tensor& tensor : tensors) {
    parts.push_back(elementsOf("all_reduce_coalesced", tensor));
    reductions.push_back(reductionOf("all_reduce_coalesced", options.reduceOp, tensor));
  }
  return submit(
      {c10d::OpType::ALLREDUCE_COALESCED, "weft:all_reduce"}, tensors, tensors, options.timeout,
      bytesOf(parts), [=](const Way& way) {
        for (std::size_t i = 0; i < parts.size(); ++i) {
          const Elements& e = parts[i];
          const Operation op(reductions[i], e.type, way.comm);
          check(weftAllReduce(e.data, e.data, e.count, e.type, op, way.comm, nullptr, way.options),
                way.comm);
        }
      });
}

Work ProcessGroupWeft::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only("reduce", "input", tensors);
  const Elements e = elementsOf("reduce", tensor);
  const Reduction reduction = reductionOf("reduce", options.reduceOp, tensor);
  checkRoot("reduce", options.rootRank, getSize());
  const auto root = static_cast<int>(options.rootRank);
  return submit(
      {c10d::OpType::REDUCE, "weft:reduce"}, tensors, tensors, options.timeout, e.bytes,
      [=](const Way& way) {
        const Operation op(reduction, e.type, way.comm);
        check(weftReduce(e.data, e.data, e.count, e.type, op, root, way.comm, nullptr, way.options),
              way.comm);
      });
}

Work ProcessGroupWeft::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& options) {
  constexpr const char* kCall = "all_gather";
  const at::Tensor& input = only(kCall, "input", inputs);
  const Tensors& list = onlyList(kCall, "output", outputs);
  const Elements in = elementsOf(kCall, input);
  const Parts out = oneForEach(kCall, "output", list, getSize(), input);
  checkCount(kCall, list[static_cast<std::size_t>(getRank())], input, 1);
  return submit(
      {c10d::OpType::ALLGATHER, "weft:all_gather"}, inputs, list, options.timeout, bytesOf(out),
      [=](const Way& way) {
        char* const all = spaceFor(out, way.scratch);
        if (areEqual(out))
          check(weftAllGather(in.data, all, in.count, in.type, way.comm, nullptr, way.options),
                way.comm);
        else
          check(weftAllGatherV(in.data, all, countsOf(out).data(), nullptr, in.type, way.comm,
                               nullptr, way.options),
                way.comm);
        unpack(all, out);
      });
}

Work ProcessGroupWeft::_allgather_base(at::Tensor& output, at::Tensor& input,
                                       const c10d::AllgatherOptions& options) {
  constexpr const char* kCall = "_all_gather_base";
  const Elements in = elementsOf(kCall, input);
  const Elements out = elementsOf(kCall, output);
  checkType(kCall, "output", output, input);
  checkCount(kCall, output, input, static_cast<std::size_t>(getSize()));
  return submit(
      {c10d::OpType::_ALLGATHER_BASE, "weft:_all_gather_base"}, {input}, {output}, options.timeout,
      out.bytes, [=](const Way& way) {
        check(weftAllGather(in.data, out.data, in.count, in.type, way.comm, nullptr, way.options),
              way.comm);
      });
}

// outputs[rank][i] gets that rank's inputs[i].
Work ProcessGroupWeft::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions& options) {
  constexpr const char* kCall = "all_gather_coalesced";
  if (outputs.size() != static_cast<std::size_t>(getSize()))
    refuse(kCall,
           "got " + std::to_string(outputs.size()) + " output lists for " +
               std::to_string(getSize()) + " ranks",
           "pass one for each rank of the group");
  Parts in;
  std::vector<Parts> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors column;
    for (const Tensors& ofRank : outputs) {
      if (ofRank.size() != inputs.size())
        refuse(kCall,
               "got an output list of " + std::to_string(ofRank.size()) + " tensors for " +
                   std::to_string(inputs.size()) + " inputs",
               "pass as many");
      column.push_back(ofRank[i]);
    }
    in.push_back(elementsOf(kCall, inputs[i]));
    out.push_back(oneForEach(kCall, "output", column, getSize(), inputs[i]));
    for (const at::Tensor& tensor : column) checkCount(kCall, tensor, inputs[i], 1);
  }
  return submit({c10d::OpType::ALLGATHER_COALESCED, "weft:all_gather"}, inputs, together(outputs),
                options.timeout, bytesOf(in), [=](const Way& way) {
                  for (std::size_t i = 0; i < in.size(); ++i) {
                    char* const all = spaceFor(out[i], way.scratch);
                    check(weftAllGather(in[i].data, all, in[i].count, in[i].type, way.comm, nullptr,
                                        way.options),
                          way.comm);
                    unpack(all, out[i]);
                  }
                });
}

Work ProcessGroupWeft::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::GatherOptions& options) {
  constexpr const char* kCall = "gather";
  const at::Tensor& input = only(kCall, "input", inputs);
  const Elements in = elementsOf(kCall, input);
  checkRoot(kCall, options.rootRank, getSize());
  const auto root = static_cast<int>(options.rootRank);
  Parts out;
  if (root == getRank()) {
    out = oneForEach(kCall, "output", onlyList(kCall, "output", outputs), getSize(), input);
    for (const at::Tensor& tensor : outputs.front()) checkCount(kCall, tensor, input, 1);
  } else if (!together(outputs).empty()) {
    refuse(kCall, "got output tensors on a rank that is not the root", "pass none");
  }
  return submit(
      {c10d::OpType::GATHER, "weft:gather"}, inputs, together(outputs), options.timeout, in.bytes,
      [=](const Way& way) {
        char* const all = out.empty() ? nullptr : spaceFor(out, way.scratch);
        check(weftGather(in.data, all, in.count, in.type, root, way.comm, nullptr, way.options),
              way.comm);
        if (all != nullptr) unpack(all, out);
      });
}

Work ProcessGroupWeft::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                               const c10d::ScatterOptions& options) {
  constexpr const char* kCall = "scatter";
  const at::Tensor& output = only(kCall, "output", outputs);
  const Elements out = elementsOf(kCall, output);
  checkRoot(kCall, options.rootRank, getSize());
  const auto root = static_cast<int>(options.rootRank);
  Parts in;
  if (root == getRank()) {
    in = oneForEach(kCall, "input", onlyList(kCall, "input", inputs), getSize(), output);
    for (const at::Tensor& tensor : inputs.front()) checkCount(kCall, tensor, output, 1);
  } else if (!together(inputs).empty()) {
    refuse(kCall, "got input tensors on a rank that is not the root", "pass none");
  }
  return submit(
      {c10d::OpType::SCATTER, "weft:scatter"}, together(inputs), outputs, options.timeout,
      out.bytes, [=](const Way& way) {
        const char* const all = in.empty() ? nullptr : packed(in, way.scratch);
        check(weftScatter(all, out.data, out.count, out.type, root, way.comm, nullptr, way.options),
              way.comm);
      });
}

Work ProcessGroupWeft::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                      const c10d::ReduceScatterOptions& options) {
  constexpr const char* kCall = "reduce_scatter";
  const at::Tensor& output = only(kCall, "output", outputs);
  const Tensors& list = onlyList(kCall, "input", inputs);
  const Elements out = elementsOf(kCall, output);
  const Parts in = oneForEach(kCall, "input", list, getSize(), output);
  const Reduction reduction = reductionOf(kCall, options.reduceOp, output);
  checkCount(kCall, list[static_cast<std::size_t>(getRank())], output, 1);
  return submit({c10d::OpType::REDUCE_SCATTER, "weft:reduce_scatter"}, list, outputs,
                options.timeout, bytesOf(in), [=](const Way& way) {
                  const Operation op(reduction, out.type, way.comm);
                  const char* const all = packed(in, way.scratch);
                  if (areEqual(in))
                    check(weftReduceScatter(all, out.data, out.count, out.type, op, way.comm,
                                            nullptr, way.options),
                          way.comm);
                  else
                    check(weftReduceScatterV(all, out.data, countsOf(in).data(), nullptr, out.type,
                                             op, way.comm, nullptr, way.options),
                          way.comm);
                });
}

Work ProcessGroupWeft::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                            const c10d::ReduceScatterOptions& options) {
  constexpr const char* kCall = "_reduce_scatter_base";
  const Elements in = elementsOf(kCall, input);
  const Elements out = elementsOf(kCall, output);
  checkType(kCall, "output", output, input);
  checkCount(kCall, input, output, static_cast<std::size_t>(getSize()));
  const Reduction reduction = reductionOf(kCall, options.reduceOp, output);
  return submit({c10d::OpType::_REDUCE_SCATTER_BASE, "weft:_reduce_scatter_base"}, {input},
                {output}, options.timeout, in.bytes, [=](const Way& way) {
                  const Operation op(reduction, out.type, way.comm);
                  check(weftReduceScatter(in.data, out.data, out.count, out.type, op, way.comm,
                                          nullptr, way.options),
                        way.comm);
                });
}

Work ProcessGroupWeft::alltoall_base(at::Tensor& output, at::Tensor& input,
                                     std::vector<std::int64_t>& outputSplits,
                                     std::vector<std::int64_t>& inputSplits,
                                     const c10d::AllToAllOptions& options) {
  constexpr const char* kCall = "all_to_all_single";
  checkType(kCall, "output", output, input);
  const Parts in = partsOf(kCall, input, inputSplits, getSize());
  const Parts out = partsOf(kCall, output, outputSplits, getSize());
  // Whoever passes no splits knows that none of the others does.
  const bool isEven = inputSplits.empty() && outputSplits.empty();
  if (isEven) checkCount(kCall, output, input, 1);
  return submit({c10d::OpType::ALLTOALL_BASE, "weft:all_to_all"}, {input}, {output},
                options.timeout, bytesOf(in), [=](const Way& way) {
                  const Elements& from = in.front();
                  const Elements& to = out.front();
                  if (isEven)
                    check(weftAlltoAll(from.data, to.data, from.count, from.type, way.comm, nullptr,
                                       way.options),
                          way.comm);
                  else
                    check(weftAlltoAllV(from.data, countsOf(in).data(), nullptr, to.data,
                                        countsOf(out).data(), nullptr, from.type, way.comm, nullptr,
                                        way.options),
                          way.comm);
                });
}

Work ProcessGroupWeft::alltoall(Tensors& outputs, Tensors& inputs,
                                const c10d::AllToAllOptions& options) {
  constexpr const char* kCall = "all_to_all";
  if (inputs.empty()) refuse(kCall, "got no input tensors", "pass one for each rank of the group");
  const Parts in = oneForEach(kCall, "input", inputs, getSize(), inputs.front());
  const Parts out = oneForEach(kCall, "output", outputs, getSize(), inputs.front());
  return submit({c10d::OpType::ALLTOALL, "weft:all_to_all"}, inputs, outputs, options.timeout,
                bytesOf(in), [=](const Way& way) { exchange(in, out, way.comm, way.options); });
}

Work ProcessGroupWeft::barrier(const c10d::BarrierOptions& options) {
  return submit(
      {c10d::OpType::BARRIER, "weft:barrier"}, {}, {}, options.timeout, 0,
      [](const Way& way) { check(weftBarrier(way.comm, nullptr, way.options), way.comm); });
}

Work ProcessGroupWeft::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllgatherOptions& options) {
  if (outputs.size() != inputs.size() || inputs.empty())
    refuse("all_gather_into_tensor_coalesced", "got lists of different lengths, or none",
           "pass an output for each input");
  Work last;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    last = _allgather_base(outputs[i], inputs[i], options);
  return last;
}

Work ProcessGroupWeft::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                       const c10d::ReduceScatterOptions& options) {
  if (outputs.size() != inputs.size() || inputs.empty())
    refuse("reduce_scatter_tensor_coalesced", "got lists of different lengths, or none",
           "pass an output for each input");
  Work last;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    last = _reduce_scatter_base(outputs[i], inputs[i], options);
  return last;
}

}  // namespace weft::pytorch
