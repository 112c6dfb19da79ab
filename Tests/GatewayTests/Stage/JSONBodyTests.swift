import Base
import HTTP
import Node
import Stage
import Testing

@testable import Gateway

@Suite struct `A JSON body` {
    /// How a member is read.
    enum Reading: String, CaseIterable, Sendable {
        case string, person, participant, bool, integer, strings, integers, counts, object, objects
    }

    private func parse(_ text: String, type: String = "application/json") throws -> JSONBody {
        let request = HTTPRequest(
            method: .post, path: "/", headers: ["Content-Type": type], body: Array(text.utf8))
        return try JSONBody(request) { _ in }
    }

    /// Whether the member `m` is there.
    private func finds(_ text: String, _ reading: Reading) throws -> Bool {
        let body = try parse(text)
        switch reading {
        case .string: return try body.string("m") != nil
        case .person: return try body.personName("m") != nil
        case .participant: return try body.participant("m") != nil
        case .bool: return try body.bool("m") != nil
        case .integer: return try body.integer("m") != nil
        case .strings: return try body.strings("m") != nil
        case .integers: return try body.integers("m") != nil
        case .counts: return try body.counts("m") != nil
        case .object: return try body.object("m") != nil
        case .objects: return try body.objects("m") != nil
        }
    }

    /// The status, and the field that is complained of; nil if nothing is.
    private func refusal(_ read: () throws -> Void) throws -> (status: Int, field: String?)? {
        do {
            try read()
            return nil
        } catch let problem as Problem {
            return (problem.status, problem.members["field"]?.string)
        }
    }

    // MARK: The whole

    @Test(arguments: [
        "application/json", "Application/JSON", "application/json;charset=utf-8", "application/json ; a=b",
        "application/merge-patch+json",
    ]) func `a body with a JSON type is read`(type: String) throws {
        let text = try parse(#"{"a":"x"}"#, type: type).string("a")
        #expect(text == "x")
    }

    /// A form in a page of another origin may send these without asking first.
    @Test(arguments: ["", "text/plain", "application/x-www-form-urlencoded", "text/json", "x/json"])
    func `a body with another type is refused`(type: String) throws {
        let complaint = try refusal { _ = try parse("{}", type: type) }
        #expect(complaint?.status == 415)
    }

    @Test(arguments: ["", " ", "null", "[]", "[{}]", "5", "\"{}\"", "{", "{}{}", "{\"a\":}"])
    func `is one object`(text: String) throws {
        let complaint = try refusal { _ = try parse(text) }
        #expect(complaint?.status == 400)
    }

    @Test func `may be missing where that is said, whatever its type, but be nothing else`() throws {
        func make(_ text: String, _ type: String) throws -> JSONBody {
            let request = HTTPRequest(
                method: .post, path: "/", headers: ["Content-Type": type], body: Array(text.utf8))
            return try JSONBody(request, isOptional: true) { _ in }
        }
        let missing = try make("", "text/plain").string("a")
        #expect(missing == nil)
        let blank = try refusal { _ = try make(" ", "application/json") }
        #expect(blank?.status == 400)
        let plain = try refusal { _ = try make("{}", "text/plain") }
        #expect(plain?.status == 415)
    }

    /// Also of members that are null: a misspelt removal is no removal.
    @Test func `has all its members checked, before any is read`() throws {
        let request = HTTPRequest(
            method: .patch, path: "/", headers: ["Content-Type": "application/json"],
            body: Array(#"{"a":1,"b":null}"#.utf8))
        var names: Set<String> = []
        _ = try JSONBody(request) { members in names = Set(members.keys) }
        #expect(names == ["a", "b"])
        let complaint = try refusal {
            _ = try JSONBody(request) { _ throws(Problem) in throw Problem(418, nil, "No.") }
        }
        #expect(complaint?.status == 418)
    }

    // MARK: Members

    @Test(arguments: Reading.allCases)
    func `takes null for a missing member`(reading: Reading) throws {
        for text in ["{}", #"{"m":null}"#, #"{"M":5}"#] {
            let isThere = try finds(text, reading)
            #expect(!isThere, "\(text)")
        }
    }

    @Test(
        arguments: [
            (Reading.string, "\"\""), (.string, #""x""#), (.person, #"" Ann ""#), (.participant, #""a/b c""#),
            (.bool, "false"), (.bool, "true"), (.integer, "0"), (.integer, "-5"), (.integer, "1.0"),
            (.integer, "1e3"), (.strings, "[]"), (.strings, #"["a",""]"#), (.integers, "[]"),
            (.integers, "[1,-2]"), (.counts, "{}"), (.counts, #"{"a":1,"":2}"#), (.object, "{}"),
            (.objects, "[]"), (.objects, "[{},{}]"),
        ] as [(Reading, String)])
    func `reads what is of its type`(reading: Reading, value: String) throws {
        let isThere = try finds(#"{"m":\#(value)}"#, reading)
        #expect(isThere)
    }

    @Test(
        arguments: [
            (Reading.string, "5"), (.string, "true"), (.string, #"["x"]"#), (.string, "{}"), (.person, "5"),
            (.person, "\"\""), (.person, #"" \t ""#), (.person, #""\u3000\u2003""#), (.person, #""a\u0000""#),
            (.person, #""a\u202eb""#), (.participant, "\"\""), (.participant, #""a\n""#),
            (.bool, "0"), (.bool, "1"), (.bool, #""true""#), (.integer, "1.5"), (.integer, #""1""#),
            (.integer, "true"), (.integer, "1e300"), (.integer, "-1e19"), (.integer, "9223372036854775808"),
            (.strings, #""a""#), (.strings, #"["a",5]"#), (.strings, "[null]"), (.strings, "{}"),
            (.integers, "5"), (.integers, #"[1,"2"]"#), (.integers, "[1.5]"), (.integers, "[null]"),
            (.counts, "[]"), (.counts, #"{"a":1.5}"#), (.counts, #"{"a":null}"#), (.counts, #"{"a":true}"#),
            (.object, "[]"), (.object, #""{}""#), (.objects, "[{},[]]"), (.objects, "[null]"),
        ] as [(Reading, String)])
    func `names a member of another type`(reading: Reading, value: String) throws {
        let complaint = try refusal { _ = try finds(#"{"m":\#(value)}"#, reading) }
        #expect(complaint?.status == 422)
        #expect(complaint?.field == "m")
    }

    @Test func `needs an identity where it must have one`() throws {
        for text in ["{}", #"{"participant":null}"#, #"{"participant":""}"#] {
            let complaint = try refusal { _ = try parse(text).requiredParticipant() }
            #expect(complaint?.field == "participant", "\(text)")
        }
        let id = try parse(#"{"participant":"bob"}"#).requiredParticipant()
        #expect(id.description == "bob")
    }

    // MARK: Patches

    @Test func `keeps, clears and sets a stream's settings`() throws {
        let none = try parse("{}").edit()
        #expect(none == StageEdit())
        let cleared = try parse(#"{"title":null,"startsAt":null,"composition":null,"gate":null}"#).edit()
        #expect(cleared.title == .clear && cleared.startsAt == .clear)
        #expect(cleared.composition == .clear && cleared.gate == .clear)
        let time = "2030-01-01T20:00:00Z"
        let given = try parse(#"{"title":"","startsAt":"\#(time)","maxSpeakers":3,"layers":[]}"#).edit()
        let startsAt = try #require(WallTime(time))
        #expect(given.title == .set(""))
        #expect(given.startsAt == .set(startsAt))
        #expect(given.maxSpeakers == 3)
        let layers = try #require(given.layers)
        #expect(layers.isEmpty)
        #expect(given.gate == .keep && given.composition == .keep)
    }

    /// What has no "none" is not reset by null.
    @Test(arguments: [
        "joinAheadSeconds", "hostGraceSeconds", "maxSpeakers", "programme", "recording", "clips", "hls",
        "dvrSeconds", "audienceData", "layers",
    ]) func `changes nothing by null of a setting that always has a value`(name: String) throws {
        let edit = try parse(#"{"\#(name)":null}"#).edit()
        #expect(edit == StageEdit())
    }

    @Test(arguments: [
        ("title", "5"), ("startsAt", "5"), ("startsAt", #""tomorrow""#), ("startsAt", "\"\""),
        ("joinAheadSeconds", "1.5"), ("hostGraceSeconds", #""5""#), ("maxSpeakers", "true"),
        ("programme", #""none of them""#), ("recording", "5"), ("clips", "\"\""), ("hls", "true"),
        ("dvrSeconds", "[]"), ("audienceData", #""x""#), ("composition", "5"),
        ("composition", #"{"width":"640"}"#), ("composition", #"{"layout":"pile"}"#),
        ("composition", #"{"background":"red"}"#), ("composition", #"{"background":5}"#), ("gate", "true"),
        ("gate", "{}"), ("gate", #"{"freeSeconds":5}"#), ("gate", #"{"tier":null}"#),
        ("gate", #"{"tier":"gold","freeSeconds":"5"}"#), ("gate", #"{"tier":"gold","unlock":5}"#),
        ("layers", #""background""#), ("layers", #"["background",5]"#), ("layers", #"["backgrounds"]"#),
        ("layers", "[null]"),
    ]) func `names a setting by its outermost name, whatever is wrong`(name: String, value: String) throws {
        let complaint = try refusal { _ = try parse(#"{"\#(name)":\#(value)}"#).edit() }
        #expect(complaint?.status == 422)
        #expect(complaint?.field == name)
    }

    @Test func `members that a composition leaves out have their defaults`() throws {
        let edit = try parse(#"{"composition":{"width":640,"height":null,"layout":"spotlight"}}"#).edit()
        var expected = StageDetails.Composition()
        expected.width = 640
        expected.layout = .spotlight
        #expect(edit.composition == .set(expected))
        let empty = try parse(#"{"composition":{}}"#).edit()
        #expect(empty.composition == .set(StageDetails.Composition()))
    }

    @Test func `gives a gate no free time unless it says so`() throws {
        let edit = try parse(#"{"gate":{"tier":"gold","freeSeconds":null,"unlock":null}}"#).edit()
        #expect(edit.gate == .set(StageDetails.Gate(tier: "gold")))
    }

    @Test func `unpins a stream by null, and only by that`() throws {
        let unpinned = try parse(#"{"pinned":null,"boost":-3}"#).placementEdit()
        #expect(unpinned.pinned == .clear && unpinned.boost == -3)
        let pinned = try parse(#"{"pinned":0,"boost":null}"#).placementEdit()
        #expect(pinned.pinned == .set(0) && pinned.boost == nil)
        let untouched = try parse("{}").placementEdit()
        #expect(untouched == StagePlacement.Edit())
        let complaint = try refusal { _ = try parse(#"{"pinned":false}"#).placementEdit() }
        #expect(complaint?.field == "pinned")
    }

    /// In a viewer's preferences null means something else than nothing.
    @Test func `tells null from nothing in what a viewer prefers`() throws {
        let cleared = try parse(#"{"maxHeight":null}"#).deliveryPatch()
        let expected = try DeliveryPatch(["maxHeight": .null])
        #expect(cleared == expected)
        let nothing = try parse("{}").deliveryPatch()
        let empty = try DeliveryPatch([:])
        #expect(nothing == empty)
        #expect(cleared != nothing)
        let complaint = try refusal { _ = try parse(#"{"maxHeight":0}"#).deliveryPatch() }
        #expect(complaint?.field == "maxHeight")
    }
}
