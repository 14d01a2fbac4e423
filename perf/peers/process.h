// SPDX-License-Identifier: Apache-2.0
// Child processes of weft-peers.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace weft::peers {

// Starts line[0] with `environment` ("NAME=value") added; it gets SIGTERM if we die. Its standard
// output is joined to our standard error, so that the table stays clean. Throws std::system_error.
pid_t spawn(const std::vector<std::string>& line, const std::vector<std::string>& environment);

// Whether a child has ended, however; it stays to be collected.
bool hasExited(pid_t process);
// Waits for the child to end and collects it; false if it is still there after `seconds`.
bool exitsWithin(pid_t process, int seconds);

std::string besideMe(const std::string& program);  // full path in the folder of this executable
int freePort();                                    // a TCP port of 127.0.0.1 that nobody has now
std::string randomSecret();                        // 64 hexadecimal digits

}  // namespace weft::peers
