"""What is read of a document, and what is refused: files that the tests make themselves."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.documents.files import archive, docx, epub, page, paragraph
from tts.documents.blocks import Block, document_of
from tts.documents.limits import MAX_CHAPTERS, MAX_DOCUMENT_CHARACTERS, MAX_ENTRIES, MAX_PART_BYTES
from tts.documents.reading import read_document
from tts.documents.refusal import Reason, Refused


def chapters(content: bytes) -> list[tuple[str, str]]:
    return [(chapter.title, chapter.body) for chapter in read_document(content).chapters]


def refusal(content: bytes) -> Reason:
    with pytest.raises(Refused) as caught:
        read_document(content)
    return caught.value.reason


# -- Chapters ---------------------------------------------------------------------------------------------------


def test_the_two_highest_levels_of_headings_begin_chapters():
    blocks = [
        Block("Part one", 2), Block("Chapter 1", 3), Block("a"), Block("Section", 4), Block("b"),
        Block("Chapter 2", 3), Block("c"), Block("第二卷", 2), Block("第一章", 3), Block("d"),
    ]  # fmt: skip
    found = document_of(blocks)
    assert [(chapter.title, chapter.body) for chapter in found.chapters] == [
        ("Part one, Chapter 1", "a\nSection\nb"),
        ("Chapter 2", "c"),
        ("第二卷，第一章", "d"),
    ]
    assert found.chapters[1].text == "# Chapter 2\n\nc"


def test_a_list_of_contents_is_no_chapter_and_a_first_heading_above_all_is_the_title():
    blocks = [
        Block("The book", 1),
        *[Block(f"Chapter {n}", 2) for n in (1, 2, 3)],
        Block("Chapter 1", 2),
        Block("a"),
    ]
    found = document_of(blocks)
    assert (found.title, [(one.title, one.body) for one in found.chapters]) == (
        "The book",
        [("Chapter 1", "a")],
    )


def test_what_stands_before_the_first_heading_is_a_chapter_without_a_title():
    found = document_of([Block("a"), Block("One", 1), Block("b")])
    assert [(one.title, one.text) for one in found.chapters] == [("", "a"), ("One", "# One\n\nb")]


def test_a_paragraph_that_looks_like_a_heading_does_not_become_one():
    assert document_of([Block("# of items: 3")]).chapters[0].text == "of items: 3"


@given(
    st.lists(
        st.tuples(st.text(alphabet="ab 你#\n.", min_size=1, max_size=20), st.integers(0, 6)), max_size=12
    )
)
def test_no_word_of_a_paragraph_is_lost(drawn: list[tuple[str, int]]):
    try:
        found = document_of([Block(text, level) for text, level in drawn])
    except Refused:
        return
    said = "".join(chapter.body for chapter in found.chapters)
    for letter in "ab你":
        assert said.count(letter) >= sum(text.count(letter) for text, level in drawn if not level)


# -- Word -------------------------------------------------------------------------------------------------------


def test_a_word_document_has_its_headings_as_chapters():
    body = (
        paragraph("目录", "Contents")
        + paragraph("第一章 …… 1", "Contents")
        + paragraph("第一章", "1")
        + paragraph("你好。")
        + paragraph("小节", "2")
        + paragraph("世界。", "Loop")
        + paragraph("My own", "Mine")
        + paragraph("a")
        + paragraph("By outline", "Outlined")
        + paragraph("b")
    )
    assert chapters(docx(body)) == [
        ("第一章", "你好。"),
        ("小节", "世界。"),
        ("My own", "a"),
        ("By outline", "b"),
    ]


def test_of_a_word_document_is_read_what_a_reader_sees():
    run = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"
    ruby = (
        "<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>hàn</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t>汉</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    inside = (
        run.format("kept ")
        + f"<w:ins>{run.format('inserted')}</w:ins><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        + "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        + "<w:r><w:footnoteReference w:id='1'/></w:r><w:r><w:br/></w:r>"
        + ruby
        + f"<w:hyperlink>{run.format('字')}</w:hyperlink>"
    )
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("left", "right"))
    body = paragraph("", run=inside) + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    more = {
        "word/footnotes.xml": "<w:footnotes>note</w:footnotes>",
        "word/header1.xml": "<w:hdr>page 1</w:hdr>",
    }
    assert chapters(docx(body, more=more)) == [("", "kept inserted\n汉字\nleft, right")]


def test_a_word_document_with_a_password_and_an_old_one_are_told_apart():
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    assert refusal(container + "EncryptedPackage".encode("utf-16-le")) is Reason.ENCRYPTED
    assert refusal(container + "WordDocument".encode("utf-16-le")) is Reason.FORMAT_NOT_SUPPORTED


# -- Books ------------------------------------------------------------------------------------------------------


def test_a_book_is_read_in_the_order_of_its_spine_without_notes_and_furniture():
    first = (
        '<h1>One</h1><p>Some&nbsp;text<sup><a href="#n1">1</a></sup> of 10<sup>2</sup>\nwords.'
        '<a href="#note2" epub:type="noteref">*</a></p><span epub:type="pagebreak" title="7">7</span>'
        "<p>多<ruby>音<rp>(</rp><rt>yīn</rt><rp>)</rp></ruby>字<script>x()</script><br/>second&mdash;line</p>"
        "<style>p {}</style><figure><img src='a' alt='b'/><figcaption>A picture</figcaption></figure>"
        '<aside epub:type="footnote" id="n1"><p>The note.</p></aside><div class="footnotes"><p>More.</p></div>'
    )
    second = (
        "<h1>Two</h1><table><tr><th>Name</th><td>Age</td></tr></table>"
        '<ul><li>x</li><li>y <a href="a">z</a></li></ul>'
    )
    assert chapters(epub([first, second])) == [
        ("One", "Some text of 10² words.\n多音字\nsecond—line"),
        ("Two", "Name, Age\nx\ny z"),
    ]
    assert read_document(epub([first], title="  The\n title ")).title == "The title"


def test_the_table_of_contents_names_pages_and_places_without_headings():
    pages = [
        "<p>Without a heading.</p>",
        '<p>Goes on.</p><p id="b" class="title">PLACE B</p><p>Inside.</p>',
        "<h2>Its own</h2><p>words</p>",
    ]
    nav = (
        '<li><a href="page%200.xhtml">Page A</a><ol><li><a href="page%201.xhtml#b">Place B</a></li></ol></li>'
        '<li><a href="page%202.xhtml">Another name</a></li>'
    )
    point = '<navPoint><navLabel><text>{}</text></navLabel><content src="{}"/>{}</navPoint>'
    ncx = point.format(
        "Page A", "page%200.xhtml", point.format("Place B", "page%201.xhtml#b", "")
    ) + point.format("Another name", "page%202.xhtml", "")
    expected = [("Page A", "Without a heading.\nGoes on."), ("PLACE B", "Inside."), ("Its own", "words")]
    assert chapters(epub(pages, nav=nav)) == expected
    assert chapters(epub(pages, ncx=ncx)) == expected


def test_a_page_that_only_links_elsewhere_is_left_out():
    links = "".join(f'<p><a href="page%201.xhtml#{n}">Chapter {n}</a></p>' for n in range(4))
    assert chapters(epub([f"<h1>Contents</h1>{links}", "<h1>One</h1><p>a</p>"])) == [("One", "a")]


def test_a_book_that_is_not_well_formed_is_read_as_far_as_can_be():
    assert chapters(epub(["<h1>One</h1><p>a & b<br>c</p>"]))[0][0] == "One"


@pytest.mark.parametrize(
    ("algorithm", "is_refused"),
    [("http://www.w3.org/2001/04/xmlenc#aes256-cbc", True), ("http://www.idpf.org/2008/embedding", False)],
)
def test_a_protected_book_is_refused_and_one_with_scrambled_fonts_is_not(algorithm: str, is_refused: bool):
    encryption = (
        f'<encryption><EncryptedData><EncryptionMethod Algorithm="{algorithm}"/></EncryptedData></encryption>'
    )
    content = epub(["<h1>One</h1><p>a</p>"], more={"META-INF/encryption.xml": encryption})
    if is_refused:
        assert refusal(content) is Reason.ENCRYPTED
    else:
        assert chapters(content) == [("One", "a")]


# -- Plain texts ------------------------------------------------------------------------------------------------

CHINESE = "那天夜里下了很大的雨，街上一个人也没有，只有远处的灯还亮着。"
TRADITIONAL = "那天夜裡下了很大的雨，街上一個人也沒有，只有遠處的燈還亮著。"


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        (CHINESE, "utf-8", "UTF-8"),
        (CHINESE, "utf-8-sig", "UTF-8"),
        (CHINESE, "gb18030", "GB18030"),
        ("你好，世界。", "gb18030", "GB18030"),
        (CHINESE * 3000, "gb18030", "GB18030"),
        (TRADITIONAL, "big5", "Big5"),
        (CHINESE, "utf-16", "UTF-16"),
        ("Plain words.\n", "utf-16-le", "UTF-16"),
        ("Plain words.\n", "utf-16-be", "UTF-16"),
        ("Il était une fois, à l'été, un garçon très âgé qui préférait la forêt.", "cp1252", "Windows-1252"),
    ],
)
def test_a_text_is_read_in_the_encoding_that_it_is_written_in(text: str, codec: str, name: str):
    found = read_document(text.encode(codec))
    assert (found.chapters[0].body, found.encoding) == (text.strip(), name)


def test_markdown_has_its_headings_as_chapters():
    text = (
        "---\ntitle: 'The notes'\ntags: x\n---\nBefore.[^1]\n\n# One #\na\n```\n# no heading\n```\n"
        "Two\n===\n<!-- gone -->b\n\n[^1]: The note\n  goes on.\n"
    )
    found = read_document(text.encode())
    assert found.title == "The notes"
    assert [(one.title, one.body) for one in found.chapters] == [
        ("", "Before."),
        ("One", "a\nno heading"),
        ("Two", "b"),
    ]


def test_a_novel_has_its_chapters_where_lines_name_them():
    text = "书名\r\n\r\n第一章 雪夜\r\n　　他来了。第二章还没有开始，他就走了。\r\n第二章\r\n　　走了。\r\n"
    assert chapters(text.encode()) == [
        ("", "书名"),
        ("第一章 雪夜", "他来了。第二章还没有开始，他就走了。"),
        ("第二章", "走了。"),
    ]
    english = "PROLOGUE\n\nDark.\n\nCHAPTER I. The Storm\n\nIt rained.\n\nChapter Two\n\nIt stopped."
    assert [title for title, _ in chapters(english.encode())] == [
        "PROLOGUE",
        "CHAPTER I. The Storm",
        "Chapter Two",
    ]
    assert chapters(b"Chapter 1 of his life\nwas short.")[0][0] == ""


def test_lines_that_were_broken_at_a_width_are_joined():
    line = "It was a dark and stormy night and the rain fell in torrents."
    text = "\n".join([line] * 6 + ["The end."]) + "\n\nAnother paragraph."
    assert chapters(text.encode()) == [("", " ".join([line] * 6 + ["The end."]) + "\nAnother paragraph.")]
    poem = "Roses are red\nviolets are blue\n" * 4
    assert chapters(poem.encode())[0][1] == poem.strip()


# -- Refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"%PDF-1.7\n", Reason.FORMAT_NOT_SUPPORTED),
        (b"{\\rtf1 hello}", Reason.FORMAT_NOT_SUPPORTED),
        (b"<!DOCTYPE html><p>x", Reason.FORMAT_NOT_SUPPORTED),
        (archive({"a": "b"}), Reason.FORMAT_NOT_SUPPORTED),
        (b"PK\x03\x04broken", Reason.UNREADABLE),
        (b"\x7fELF" + bytes(1000), Reason.UNREADABLE),
        (b"...\n---\n***", Reason.NO_TEXT),
        (docx(""), Reason.NO_TEXT),
        (epub(["<img src='a'/>"]), Reason.NO_TEXT),
        (archive({"META-INF/container.xml": "<container/>"}), Reason.UNREADABLE),
        (docx(paragraph("a"), styles="<broken"), Reason.UNREADABLE),
        (b"\x81\x8d\x8f\x90\x9d\xff\x98" * 30, Reason.ENCODING_UNKNOWN),
    ],
)
def test_what_is_no_document_is_refused(content: bytes, reason: Reason):
    assert refusal(content) is reason


ENTITIES = '<!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;&b;&b;&b;">]>'
EXTERNAL = '<!DOCTYPE a [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    "definitions", [ENTITIES, EXTERNAL, '<!DOCTYPE a SYSTEM "http://127.0.0.1/x.dtd" [ ]>']
)
def test_a_document_that_defines_entities_is_refused(definitions: str):
    container = f"{definitions}<container><rootfile full-path='a'/>&c;&secret;</container>"
    assert refusal(archive({"META-INF/container.xml": container})) is Reason.UNREADABLE
    broken = page("<p>x &c; &secret;</p>").replace("<html", f"{definitions}<html")
    assert refusal(epub(["x"], more={"OEBPS/page 0.xhtml": broken})) is Reason.UNREADABLE


def test_nesting_and_single_texts_without_end_are_refused():
    deep = "<div>" * 3000 + "x" + "</div>" * 3000
    assert refusal(epub([deep])) is Reason.TOO_COMPLEX
    assert refusal(docx("<w:sdt>" * 3000 + "</w:sdt>" * 3000)) is Reason.TOO_COMPLEX
    assert refusal(docx(paragraph("a" * 10_500_000))) is Reason.TOO_COMPLEX


def test_a_paragraph_may_be_as_long_as_a_document():
    text = "长" * 300_000
    assert chapters(docx(paragraph(text))) == [("", text)]


def test_archives_that_unpack_to_too_much_are_refused():
    assert refusal(docx(paragraph("a"), more={f"{n}": "" for n in range(MAX_ENTRIES)})) is Reason.TOO_COMPLEX
    bomb = docx(" " * (MAX_PART_BYTES + 1))
    assert refusal(bomb) is Reason.TOO_COMPLEX
    packed_well = docx(" " * 2_000_000 + paragraph("a"))
    assert refusal(packed_well) is Reason.TOO_COMPLEX


def test_declared_sizes_are_not_believed():
    content = docx(paragraph("a") + " " * 4_000_000)
    # The size as the central directory declares it: one byte.
    name = b"word/document.xml"
    place = content.rindex(name) - 46
    assert content[place : place + 4] == b"PK\x01\x02"
    lying = content[: place + 24] + struct.pack("<I", 1) + content[place + 28 :]
    with zipfile.ZipFile(io.BytesIO(lying)) as file:
        assert file.getinfo(name.decode()).file_size == 1
    assert refusal(lying) is Reason.UNREADABLE


def test_an_archive_with_a_password_is_refused_as_protected():
    content = bytearray(docx(paragraph("a")))
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = content.index(mark)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(mark, place + 4)
    assert refusal(bytes(content)) is Reason.ENCRYPTED


def test_what_is_longer_than_can_be_taken_in_says_how_long_it_is():
    with pytest.raises(Refused) as caught:
        read_document(b"word " * (MAX_DOCUMENT_CHARACTERS // 5) + b"more words")
    assert caught.value.reason is Reason.TOO_LONG
    assert caught.value.characters == MAX_DOCUMENT_CHARACTERS + 10
    assert refusal("\n".join(f"# {n}\na" for n in range(MAX_CHAPTERS + 1)).encode()) is Reason.TOO_COMPLEX


@given(st.binary(max_size=400))
def test_whatever_the_bytes_are_the_answer_is_a_document_or_a_refusal(content: bytes):
    for given_bytes in (content, b"PK\x03\x04" + content):
        try:
            found = read_document(given_bytes)
        except Refused:
            continue
        assert all(any(sign.isalnum() for sign in chapter.body) for chapter in found.chapters)
