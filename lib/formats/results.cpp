// SPDX-License-Identifier: Apache-2.0
#include "formats/results.h"

namespace weft::formats {

Status setResults(const Form& form, const std::string& file, std::vector<Contents>* contents,
                  Flow* flow) {
  for (std::uint32_t rank = 0; rank < form.ranks; ++rank)
    for (std::uint32_t slot = 0; slot < form.outChunks(); ++slot) {
      const Contents::Chunk& last = (*contents)[rank].at(Contents::Buffer::Output, slot);
      if (last.isThere() && flow->isWanted(rank, slot, last.value)) {
        flow->output(rank, slot, last.value);
        continue;
      }
      const std::size_t where = last.line != 0 ? last.line : (*contents)[rank].line();
      if (!last.isThere())
        return Status::error(Code::InvalidArgument, file, ":", where,
                             ": nothing is stored in output chunk ", slot, " of gpu ", rank,
                             "; fix: store it");
      return Status::error(Code::InvalidArgument, file, ":", where, ": output chunk ", slot,
                           " of gpu ", rank, " is not what ", schedule::nameOf(form.collective),
                           " wants: it is another chunk, or lacks or doubles a rank's; this line "
                           "was the last to store it; fix: see what it stores");
    }
  return {};
}

}  // namespace weft::formats
