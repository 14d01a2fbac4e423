# SPDX-License-Identifier: Apache-2.0
"""house.py finds what it looks for: faults planted in a house of three rooms."""

import pathlib
import tempfile
import unittest

import house

MAP = """
| room | may use | what |
|---|---|---|
| `lib/plan/` | `lib/schedule`, `lib/base` | plans |
| `lib/schedule/` | `lib/base` | schedules |
| `lib/base/` | | what all use |
"""
SCHEDULE = '#include "base/text.h"\nnamespace weft::schedule {\nstruct Place {\n};\n}  // namespace weft::schedule\n'
BASE = "namespace weft::inline base {\nenum class Level : int {\n};\n}  // namespace weft::base\n"


class House(unittest.TestCase):
    def found(self, files):
        """What is said of a house with these files in place of, or besides, its own."""
        sound = {"docs/architecture.md": MAP, "lib/schedule/ir.h": SCHEDULE, "lib/base/text.h": BASE}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for path, text in (sound | files).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return list(house.violations(root))

    def test_a_sound_house(self):
        self.assertEqual(self.found({}), [])

    def test_an_include_that_points_up(self):
        said = self.found({"lib/base/log.h": '#include "schedule/ir.h"\n'})
        self.assertEqual(said, ["lib/base/log.h: includes schedule/ir.h, but lib/base may not use lib/schedule"])

    def test_a_map_whose_arrow_points_up(self):
        said = self.found({"docs/architecture.md": MAP.replace("`lib/base/` | |", "`lib/base/` | `lib/plan` |")})
        self.assertEqual(said, ["docs/architecture.md: lib/base may use lib/plan, which does not stand below it"])

    def test_a_map_of_a_room_that_is_not_there(self):
        said = self.found({"docs/architecture.md": MAP.replace("`lib/base/` | |", "`lib/base/` | `lib/attic` |")})
        self.assertEqual(said, ["docs/architecture.md: lib/base may use lib/attic, which is no room"])

    def test_a_room_that_the_map_lacks(self):
        self.assertEqual(self.found({"lib/attic/old.h": ""}), ["lib/attic/old.h: no room of docs/architecture.md"])

    def test_a_namespace_of_another_room(self):
        said = self.found({"lib/plan/plan.h": "namespace weft::schedule {\n}  // namespace weft::schedule\n"})
        self.assertEqual(said, ["lib/plan/plan.h: opens weft::schedule, not weft::plan"])

    def test_a_type_defined_twice(self):
        again = SCHEDULE.replace('#include "base/text.h"\n', "")
        said = self.found({"lib/schedule/embed.h": again})
        self.assertEqual(said, ["weft::schedule::Place is defined in lib/schedule/embed.h and in lib/schedule/ir.h"])

    def test_a_type_that_the_public_header_has_too(self):
        text = "namespace weft {\nclass Level : public Base {\n};\n}  // namespace weft\n"
        room = "namespace weft {\nclass Level {\n};\n}  // namespace weft\n"
        said = self.found({"include/weft/weft.hpp": text, "lib/base/log.h": room})
        self.assertIn("weft::Level is defined in include/weft/weft.hpp and in lib/base/log.h", said)

    def test_types_of_unnamed_namespaces_are_their_files_own(self):
        hidden = "namespace weft::schedule {\nnamespace {\nstruct Place {\n};\n}  // namespace\n}  // namespace weft::schedule\n"
        self.assertEqual(self.found({"lib/schedule/mesh.cpp": hidden}), [])


if __name__ == "__main__":
    unittest.main()
