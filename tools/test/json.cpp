// SPDX-License-Identifier: Apache-2.0
#include "tools/test/json.h"

#include <nlohmann/json.hpp>

#include "perf/common/error_json.h"
#include "tools/test/columns.h"

namespace weft::test {
namespace {

using Json = nlohmann::ordered_json;

Json configuration(const TestOptions& options) {
  const perf::Options& measure = options.measure;
  Json config{{"nworkers", options.ranks},
              {"minbytes", measure.minBytes},
              {"maxbytes", measure.maxBytes},
              {"iters", measure.iterations},
              {"warmup_iters", measure.warmup},
              {"further_warmup", measure.settles},
              {"datatype", nameOf(measure.types.front().type)},
              {"check", measure.checks == 0 ? ""
                        : measure.checkOnes ? "all_ones"
                                            : "random"},
              {"seed", measure.seed},
              {"bandwidth_unit", "2^30 bytes per second"}};
  if (measure.factor > 1) {
    config["stepfactor"] = measure.factor;
  } else {
    config["stepbytes"] = measure.stepBytes;
  }
  if (!options.groups.empty()) config["replica_groups"] = options.groups;
  return config;
}

}  // namespace

struct JsonReport::Document {
  Json json;
};

JsonReport::JsonReport(const TestOptions& options)
    : options_(options), file_(options.json()), document_(std::make_unique<Document>()) {
  document_->json = Json{
      {"config", configuration(options)}, {"results", Json::array()}, {"errors", Json::array()}};
}

JsonReport::~JsonReport() = default;

void JsonReport::row(const std::string& operation, const perf::Row& row) {
  Json result;
  for (const Column& column : columnsOf(options_, row)) {
    std::visit([&](const auto& value) { result[column.title] = value; }, column.cell);
  }
  result["op"] = operation;
  if (row.outOfPlace->wrong) result["wrong"] = *row.outOfPlace->wrong;
  document_->json["results"].push_back(std::move(result));
}

void JsonReport::error(const std::string& text, const ErrorInfo& error) {
  document_->json["errors"].push_back(text);
  document_->json["error_info"].push_back(tools::errorJson<Json>(error));
}

void JsonReport::write() { file_.write(document_->json.dump(4) + '\n'); }

void JsonReport::writeSoFar() {
  if (file_.isReplaced()) write();
}

}  // namespace weft::test
