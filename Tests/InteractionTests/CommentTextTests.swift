import TestSupport
import Testing

@testable import Interaction

@Suite struct TextOfComments {
    @Test(arguments: [
        ("hello", "hello"),
        ("  two \t\n words\u{2028}here ", "two words here"),
        ("<b>bold</b> &amp; <script>", "<b>bold</b> &amp; <script>"),
        ("a\u{202E}b\u{2066}c\u{200F}d", "abcd"),
        ("bell\u{07} and \u{1B}[31mred", "bell and [31mred"),
        ("👩‍👩‍👧‍👦 می‌خواهم", "👩‍👩‍👧‍👦 می‌خواهم"),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿 a\u{E0067}\u{E0062}", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 a"),
        ("e\u{301}", "e\u{301}"),
        ("\u{FEFF}x\u{200B}", "x"),
    ])
    func `is one line without what nobody sees`(written: String, text: String) throws {
        let cleaned = try CommentText(written).text
        #expect(Array(cleaned.unicodeScalars) == Array(text.unicodeScalars))
    }

    @Test(arguments: ["", "   \n", "\u{200B}\u{202E}", "\u{200D}", "\u{301}", "\u{3164}\u{2800}", "\u{00}"])
    func `is refused where nothing would be seen`(written: String) {
        #expect(throws: Interaction.Refusal.emptyComment) { try CommentText(written) }
    }

    @Test func `has at most 300 characters as people count them`() throws {
        #expect(try CommentText(String(repeating: "🦊", count: 300)).text.count == 300)
        for long in [
            String(repeating: "a", count: 301), String(repeating: "👩‍👩‍👧‍👦", count: 60),
            String(repeating: "x", count: 10_000_000),
        ] {
            #expect(throws: Interaction.Refusal.longComment) { try CommentText(long) }
        }
    }

    @Test func `has no towers of accents`() throws {
        let tower = "o" + String(repeating: "\u{0336}", count: 900)
        #expect(try CommentText(tower).text.unicodeScalars.count == 9)
    }

    @Test func `is the same when it is cleaned again`() throws {
        var random = SeededGenerator(seed: 4)
        let parts = [
            " ", "a", "\u{202E}", "👩", "\u{200D}", "\u{1F3F4}", "\u{E0067}", "\u{301}", "\r\n", "한",
            "\u{1100}",
        ]
        for _ in 0..<3_000 {
            let written = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                parts[Int.random(in: parts.indices, using: &random)]
            }.joined()
            guard let once = try? CommentText(written) else { continue }
            #expect(once.text.count <= CommentText.length && once.text.utf8.count <= CommentText.byteLength)
            #expect(!once.text.unicodeScalars.contains { $0.properties.generalCategory == .control })
            #expect(!once.text.unicodeScalars.contains("\u{202E}"))
            let again = try CommentText(once.text)
            #expect(
                Array(again.text.unicodeScalars) == Array(once.text.unicodeScalars),
                "\(once.text.debugDescription)")
        }
    }
}

@Suite struct UnwantedWords {
    @Test(arguments: [
        ("an Ass!", true), ("class", false), ("ASS", true), ("big   BAD-wolf", true), ("big wolf", false),
        ("the big bad", false), ("", false),
    ])
    func `are whole ones, in any letter case`(text: String, isFound: Bool) {
        #expect(WordList(["ass", "Big bad wolf"]).isIn(text) == isFound)
    }

    @Test(arguments: [
        ("sp\u{200D}am", true), ("s\u{200C}p\u{200D}am!", true), ("ＳＰＡＭ", true), ("spa m", false),
        ("你真是笨蛋啊", true), ("笨 蛋", true), ("笨鸟", false), ("これはだめです", true), ("นี่คือสแปมนะ", true),
    ])
    func `are found whatever hides them, and where there are no blanks`(text: String, isFound: Bool) {
        #expect(WordList(["spam", "笨蛋", "だめ", "สแปม"]).isIn(text) == isFound)
    }

    /// Half-width kana have their voicing as a letter of its own.
    @Test(arguments: [
        ("ﾊﾞｶだ", true), ("バカだ", true), ("ﾊ\u{200D}ﾞｶ", true), ("ﾊｶ", false), ("ﾊﾟｶ", false),
        ("そのガードは", true), ("ｶﾞｰﾄﾞ", true), ("ｶｰﾄﾞ", false), ("カード", false),
    ])
    func `are found in half-width kana, and written in them`(text: String, isFound: Bool) {
        #expect(WordList(["バカ", "ｶﾞｰﾄﾞ"]).isIn(text) == isFound)
    }

    /// Selectors of variants and fillers are marks and letters, but nobody sees them either.
    @Test(arguments: [
        "\u{FE0F}", "\u{FE00}", "\u{34F}", "\u{AD}", "\u{2060}", "\u{3164}", "\u{115F}", "\u{E0100}",
        "\u{180B}", "\u{FE0F}\u{200D}\u{34F}",
    ])
    func `are found although something invisible is in them`(invisible: String) throws {
        for text in ["sp\(invisible)am", "spam\(invisible)", "a spam\(invisible)!", "笨\(invisible)蛋"] {
            // As it reaches the list.
            let shown = try CommentText(text).text
            #expect(WordList(["spam", "笨蛋"]).isIn(shown), "\(shown.debugDescription)")
            #expect(WordList(["sp\(invisible)am", "笨\(invisible)蛋"]).isIn(shown))
        }
        // What is seen makes another word.
        #expect(!WordList(["spam"]).isIn("spa\u{308}m"))
    }

    @Test(arguments: [
        ("bad bad wolf", true), ("bad, bad! wolf", true), ("bad wolf bad", false), ("bad bad", false),
        ("bad bad bad wolf", true), ("wolves", false), ("wolf", false), ("wolf-3", true), ("3 wolf", false),
        ("\u{1F43A}wolf\u{1F43A}3", true),
    ])
    func `are phrases in their order, wherever they begin`(text: String, isFound: Bool) {
        #expect(WordList(["bad bad wolf", "wolf 3"]).isIn(text) == isFound)
    }

    @Test func `are none in a list of signs alone`() {
        for entries in [[], [""], ["!!!", " ", "\u{200D}", "\u{FE0F}"]] as [[String]] {
            for text in ["", "!!!", "a b", "笨蛋", "\u{FE0F}"] { #expect(!WordList(entries).isIn(text)) }
        }
    }
}
