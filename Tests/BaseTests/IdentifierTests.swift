import Base
import Foundation
import TestSupport
import Testing

@Suite struct StreamIDs {
    @Test(arguments: ["a", "Z9_-", String(repeating: "x", count: 64)])
    func `stand in a path as they are`(text: String) {
        #expect(StreamID(text)?.description == text)
        #expect(StreamID(text[...]) == StreamID(text))
    }

    @Test(arguments: [
        "", " ", "a b", "a/b", "ä", "a.b", "a\n", "a%20", "\0", String(repeating: "x", count: 65),
    ])
    func `are not made of other text`(text: String) {
        #expect(StreamID(text) == nil)
    }

    @Test func `tell capital letters from small ones`() {
        #expect(StreamID("a") != StreamID("A"))
    }
}

@Suite struct ParticipantIDs {
    @Test(arguments: [
        "Bob", "Zoë Müller", "李小龍", "👩‍👩‍👧‍👦", "a b", String(repeating: "x", count: 128),
        String(repeating: "😀", count: 128), "علی\u{200C}رضا", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 Jane",
    ])
    func `are any printable name`(text: String) {
        #expect(ParticipantID(text)?.description == text)
    }

    @Test(arguments: [
        "", "a\nb", "\0", "\u{7F}", "\u{85}", "\u{2028}", "\u{2029}", "a\tb", "\u{1B}[31m", "\u{FFFF}",
        "\u{202E}bob", "b\u{200B}ob", "bob\u{2066}", "\u{FEFF}bob", "b\u{AD}ob", "bob\u{E0067}",
        String(repeating: "x", count: 129), String(repeating: "👩‍👩‍👧‍👦", count: 21),
    ])
    func `hold no control character and not too much`(text: String) {
        #expect(ParticipantID(text) == nil)
    }

    @Test func `of earlier versions can be read`() throws {
        let read = try JSONDecoder().decode([ParticipantID].self, from: Data("[\"b\u{200B}ob\"]".utf8))
        #expect(read.first?.description == "b\u{200B}ob")
    }
}

@Suite struct SessionIDs {
    @Test func `come back from their text`() {
        var random = SeededGenerator(seed: 9_725)
        for _ in 0..<200 {
            let id = SessionID(using: &random)
            #expect(id.description.utf8.count == 32)
            #expect(SessionID(id.description) == id)
        }
    }

    @Test(arguments: [String(repeating: "0", count: 32), "0000000000000001000000000000000f"])
    func `keep their leading zeros`(text: String) {
        #expect(SessionID(text)?.description == text)
    }

    @Test func `differ`() {
        var random = SeededGenerator(seed: 1)
        let ids = Set((0..<1_000).map { _ in SessionID(using: &random) })
        #expect(ids.count == 1_000)
    }

    @Test(arguments: [
        "", "0", String(repeating: "0", count: 31), String(repeating: "0", count: 33),
        String(repeating: "A", count: 32), String(repeating: "g", count: 32),
        "-" + String(repeating: "0", count: 31),
        String(repeating: "é", count: 16),
    ])
    func `are not made of other text`(text: String) {
        #expect(SessionID(text) == nil)
    }
}

@Suite struct TrackIDs {
    @Test func `are written with a t`() {
        #expect(TrackID(number: 42).description == "t42")
        #expect(TrackID(number: 1) != TrackID(number: 2))
    }
}

@Suite struct Secrets {
    private struct Holder {
        let name = "key"
        let password = Secret("open sesame")
        let key = Secret<[UInt8]>([0xAB, 0xCD])
    }

    @Test func `cannot be printed by accident`() {
        let secret = Secret("open sesame")
        var dumped = ""
        dump(Holder(), to: &dumped)
        dump(secret, to: &dumped)
        let texts = [
            "\(secret)", String(describing: secret), String(reflecting: secret), "\([secret])",
            "\(Optional(secret) as Any)", "\(Holder())", String(reflecting: Holder()), dumped,
        ]
        for text in texts {
            #expect(!text.contains("sesame"))
            #expect(!text.contains("171"))
            #expect(text.contains("<secret>"))
        }
        #expect(secret.exposed == "open sesame")
    }
}
