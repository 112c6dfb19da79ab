import Base
import Testing

@Suite struct `The nearest name` {
    private let names = ["title", "startsAt", "joinAheadSeconds", "hostGraceSeconds", "layers"]

    @Test(arguments: [
        ("titel", "title"), ("Title", "title"), ("starts_at", "startsAt"), ("startAt", "startsAt"),
        ("joinAheadSecond", "joinAheadSeconds"), ("layer", "layers"),
        ("hostgraceseconds", "hostGraceSeconds"),
    ]) func `is what a slip was meant to be`(_ slip: String, _ name: String) {
        #expect(NearestName.of(slip, among: names) == name)
    }

    @Test(arguments: ["", "t", "recording", "-_-", String(repeating: "title", count: 10_000)])
    func `is nobody's guess where all are far`(_ text: String) {
        #expect(NearestName.of(text, among: names) == nil)
    }

    @Test func `is the first of several in alphabetical order`() {
        #expect(NearestName.of("cat", among: ["hat", "bat", "cart"]) == "bat")
        #expect(NearestName.of("cat", among: [String]()) == nil)
    }
}
