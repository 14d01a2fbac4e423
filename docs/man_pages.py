# SPDX-License-Identifier: Apache-2.0
"""Manual pages, section 3, of what the public headers declare. usage: man_pages.py FOLDER HEADER...

The headers are the reference, and this only sets them: a comment and the declarations below it are a page, which has the
names of all of them; the comment at a header's head is a page by itself, weft or weft_shard. A declaration without a
comment, and one whose comment does not begin with a short clause, is an error.
"""

import pathlib
import re
import sys
import textwrap

ITEM = re.compile(
    r"(?P<blank>\n[ \t]*(?=\n))|(?P<space>\s+)|/\* ----(?:.*?)\*/|/\*(?P<comment>.*?)\*/|(?P<type>typedef (?:struct|enum) \{.*?\} (?P<typename>\w+);)"
    r"|(?P<call>WEFT_API [^;]*?\b(?P<callname>weft\w+)\([^;]*;)|(?P<other>typedef [^\n;]*;|#(?:[^\n]*\\\n)*[^\n]*|[^\n]+)",
    re.S,
)
LONGEST = 90  # of a name's purpose, in characters


class Page:
    def __init__(self, comment):
        self.comment, self.names, self.code, self.has_result = comment, [], [], False

    def add(self, name, code, has_result):
        self.names.append(name)
        self.code.append(code)
        self.has_result |= has_result


def plain(comment):
    """The text of a comment, without the stars at the left."""
    lines = (re.sub(r"^ ?\* ?", "", line) for line in comment.strip("\n").split("\n"))
    return "\n".join(line.rstrip() for line in lines).strip("\n ")


def pages_of(text):
    """A page for each comment that stands before declarations, or behind one on its line."""
    body = text[text.index('extern "C" {') : text.rindex("#ifdef __cplusplus")]
    page, fresh, line = None, False, False  # fresh: the page has a comment and no code; line: code stands on this line
    for item in ITEM.finditer(body):
        if item["comment"] is not None:
            if line:
                last = page.names.pop(), page.code.pop(), page.has_result
                if page.names:
                    yield page
                page = Page(plain(item["comment"]))
                page.add(*last)
                yield page
                page = None
            else:
                if page and page.names:
                    yield page
                page, fresh = Page(plain(item["comment"])), True
        elif item["type"] or item["call"]:
            page = page or Page("")
            name = item["typename"] or item["callname"]
            page.add(name, item["type"] or declaration(item["call"]), (item["call"] or "").startswith("WEFT_API weftResult_t"))
            fresh, line = False, True
        elif item["blank"] or (item["space"] and "\n" in item["space"]):
            line = False
            if (item["blank"] or item["space"].count("\n") > 1) and not fresh:
                if page and page.names:
                    yield page
                page = None
    if page and page.names:
        yield page


def declaration(call):
    text = re.sub(r"\s+", " ", call.removeprefix("WEFT_API ").replace(" WEFT_OR_NULL", ""))
    return "\n".join(textwrap.wrap(text, 76, subsequent_indent="    ", break_long_words=False))


def purpose(page):
    """The first clause of the comment, in lower case: what stands behind the names."""
    text = " ".join(page.comment.split())
    clause = re.split(r"[.:;](?: |$)", text, maxsplit=1)[0].replace("`", "")
    if not clause or len(clause) > LONGEST:
        raise ValueError(f"{', '.join(page.names)}: the comment must begin with a clause of at most {LONGEST} characters")
    begins_with_a_word = re.match(r"[A-Z][a-z ]", clause)
    return clause[0].lower() + clause[1:] if begins_with_a_word else clause


def paragraphs(text):
    """A line that is empty, or indented, begins another."""
    parts = [[]]
    for line in text.split("\n"):
        if (not line or line.startswith(" ")) and parts[-1]:
            parts.append([])
        parts[-1] += line.split()
    return [" ".join(words) for words in parts if words]


def roff(text):
    text = re.sub(r"`(\w+)`", "\\\\fI\\1\\\\fR", text.replace("\\", "\\e").replace("-", "\\-"))
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def heading(name, version):
    return f'.TH "{name}" 3 "" "weft {version}" "weft"\n.ad l\n.nh\n'


def literal(text):
    return f".nf\n{roff(text)}\n.fi\n"


def described(text):
    return "\n.PP\n".join(roff(paragraph) for paragraph in paragraphs(text)) + "\n"


def errors_of(text):
    """(name, comment) of the results that the header lists."""
    listed = re.search(r"typedef enum \{([^}]*)\} weftResult_t", text)
    return re.findall(r"(weft\w+) = [1-9]\d*,?(?: /\* (.*?) \*/)?", re.sub(r" +/\*", " /*", listed[1])) if listed else []


def results(page, errors):
    if not page.has_result:
        return ".SH RETURN VALUE\nSee the description: a call that cannot fail, or types.\n.SH ERRORS\nNone.\n"
    listed = "".join(f".TP\n{name}\n{roff(comment)}\n" for name, comment in errors if comment)
    return (
        ".SH RETURN VALUE\nweftSuccess, or why not; weftGetLastError(3) then has a line that says who, what, where and how\n"
        f"to fix it.\n.SH ERRORS\nOf weftResult_t(3), and of these as far as they apply:\n{listed}"
    )


def set_page(page, header, overview, version, errors):
    synopsis = f"#include <weft/{header}>\n\n" + "\n\n".join(page.code)
    return (
        heading(page.names[0], version)
        + f".SH NAME\n{', '.join(page.names)} \\- {roff(purpose(page))}\n"
        + ".SH SYNOPSIS\n"
        + literal(synopsis)
        + ".SH DESCRIPTION\n"
        + described(page.comment)
        + results(page, errors)
        + f".SH SEE ALSO\n{overview}(3)\n"
    )


def set_overview(name, text, version):
    """Of a comment "file: what it is. All else.", whose lines are kept as they are."""
    head = plain(re.search(r"/\*\n(.*?)\*/", text, re.S)[1]).split(": ", 1)[1]
    what, rest = head.split(".", 1)
    return heading(name, version) + f".SH NAME\n{name} \\- {roff(what)}\n.SH DESCRIPTION\n" + literal(rest.strip("\n "))


def main(folder, *headers):
    texts = {pathlib.Path(header).name: pathlib.Path(header).read_text() for header in headers}
    errors = errors_of(texts["weft.h"])
    version = ".".join(re.findall(r"#define WEFT_(?:MAJOR|MINOR|PATCH) (\d+)", texts["weft.h"]))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for header, text in texts.items():
        overview = "weft" if header == "weft.h" else f"weft_{header.removesuffix('.h')}"
        (folder / f"{overview}.3").write_text(set_overview(overview, text, version))
        for page in pages_of(text):
            (folder / f"{page.names[0]}.3").write_text(set_page(page, header, overview, version, errors))
            for name in page.names[1:]:
                (folder / f"{name}.3").write_text(f".so man3/{page.names[0]}.3\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(f"man_pages.py: {error}")
