/* SPDX-License-Identifier: Apache-2.0 */
/* What weft does to files, as a disk sees it: for programs that are linked with watched_files.c. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Those in this folder, from now on; what was before is forgotten. The n-th file that weft makes, if n is not 0, has
 * been replaced by a link to `target` just before. */
void watchFiles(const char* folder, int n, const char* target);
/* How many files weft has made since then. */
int filesMade(void);
/* What a power cut would lose now, or would have lost when it was renamed to its place: a path and what it lacks; or
 * NULL. All must be named by absolute paths without links. */
const char* whatIsNotDurable(void);

#ifdef __cplusplus
}
#endif
