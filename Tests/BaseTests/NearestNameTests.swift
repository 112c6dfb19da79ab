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

    /// Of a text that is mostly dashes, what comes after them counts as well.
    @Test func `is compared with all letters of a long text`() {
        let dashes = String(repeating: "-", count: 100)
        #expect(NearestName.of("layers" + dashes + "ofonions", among: names) == nil)
        #expect(NearestName.of("lay" + dashes + "er", among: names) == "layers")
    }

    @Test func `is the first of several in alphabetical order`() {
        #expect(NearestName.of("cat", among: ["hat", "bat", "cart"]) == "bat")
        #expect(NearestName.of("cat", among: [String]()) == nil)
    }
}
