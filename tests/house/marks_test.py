# SPDX-License-Identifier: Apache-2.0
"""marks.py finds each text of a library of one file, and says which of them no test has met."""

import pathlib
import tempfile
import unittest

import marks


def texts_of(source):
    return [text.strip("* ") for text, _ in marks.texts_in(marks.group_of(marks.tokens_of(source)))]


class Texts(unittest.TestCase):
    def test_parts_are_joined(self):
        self.assertEqual(texts_of('return invalid(text("rank ", r, " is negative: ", r));'), ["rank * is negative:"])

    def test_literals_side_by_side_are_one(self):
        self.assertEqual(texts_of('f("one text " // and\n  "of two lines");'), ["one text of two lines"])

    def test_both_ends_of_a_choice(self):
        source = 'text("ports ", n, lost ? " were lost" : " have no link", "; fix: plug in")'
        self.assertEqual(texts_of(source), ["ports *; fix: plug in", "were lost", "have no link"])

    def test_what_a_function_is_given(self):
        self.assertEqual(texts_of('return malformed("no valid hello");'), ["no valid hello"])

    def test_fields(self):
        source = 'Status::error({.code = Code::A, .what = text("{who} is ", n, " of us"), .fix = "see its log"})'
        self.assertEqual(texts_of(source), ["{who} is * of us", "see its log"])

    def test_one_word_is_no_text(self):
        self.assertEqual(texts_of('text("PMI_RANK", "ranks")'), [])

    def test_a_mark_may_be_one_word(self):
        self.assertEqual(texts_of('if (error == EINTR && WEFT_MARK("again")) continue;'), ["again"])

    def test_documentation_of_knobs_is_silent(self):
        self.assertEqual(texts_of('KnobInfo{Knob::Debug, "How much is logged."}, static_assert(a, "a is true")'), [])

    def test_comments_and_includes_are_no_texts(self):
        self.assertEqual(texts_of('// says "not a text"\n#include "not a text.h"\nchar c = \'"\';'), [])


class Marks(unittest.TestCase):
    def found(self, record, unreached=()):
        """What is said of a library with two texts."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "lib").mkdir()
            (root / "transports").mkdir()
            (root / "lib/a.cpp").write_text('text("{who} sent ", n, " bytes");\ninvalid("count is 0");\n')
            return list(marks.violations(root, record, unreached))

    def test_all_are_met(self):
        self.assertEqual(self.found("rank 3 sent 7 bytes; fix: none\ncount is 0\n"), [])

    def test_one_is_not(self):
        self.assertEqual(self.found("rank 3 sent 7 bytes\n"), ["lib/a.cpp:2: no test meets: lib/a.cpp: count is 0"])

    def test_a_text_lies_in_one_line(self):
        self.assertEqual(len(self.found("rank 3 sent 7\nbytes\ncount is 0\n")), 1)

    def test_the_list_excuses(self):
        self.assertEqual(self.found("count is 0\n", ["[never] why", "lib/a.cpp: {who} sent * bytes"]), [])

    def test_an_entry_that_is_met(self):
        said = self.found("1 sent 2 bytes\ncount is 0\n", ["[never] why", "", "lib/a.cpp: count is 0"])
        self.assertEqual(said, ["note: tests/house/marks.unreached:3: a test meets this, so it needs no entry: lib/a.cpp: count is 0"])

    def test_an_entry_that_is_met_at_times(self):
        self.assertEqual(self.found("1 sent 2 bytes\ncount is 0\n", ["[sometimes] why", "lib/a.cpp: count is 0"]), [])

    def test_an_entry_that_is_no_text(self):
        said = self.found("1 sent 2 bytes\ncount is 0\n", ["[never] why", "lib/a.cpp: count is 1"])
        self.assertEqual(said, ["tests/house/marks.unreached:2: there is no such text: lib/a.cpp: count is 1"])


if __name__ == "__main__":
    unittest.main()
