import Base
import Foundation
import Synchronization
import Testing

@Suite struct Logs {
    /// Keeps what is logged.
    private final class Lines: Sendable {
        private let entries = Mutex<[Log.Entry]>([])

        var all: [Log.Entry] { entries.withLock { $0 } }

        func append(_ entry: Log.Entry) { entries.withLock { $0.append(entry) } }
    }

    private let lines = Lines()

    private func log(_ level: Log.Level) -> Log {
        Log(level: level) { [lines] in lines.append($0) }
    }

    @Test(arguments: Log.Level.allCases) func `write what is at least as grave as their level`(
        level: Log.Level
    ) {
        let log = log(level)
        log.debug("one")
        log.info("two")
        log.warning("three")
        log.error("four")
        let graver = Log.Level.allCases.filter { $0 >= level }
        #expect(lines.all.map(\.level) == graver)
        #expect(lines.all.map(\.event) == ["one", "two", "three", "four"].suffix(graver.count))
    }

    @Test func `do not build what they do not write`() {
        var evaluations = 0
        func value() -> String {
            evaluations += 1
            return "x"
        }
        log(.warning).info("event", ["key": value()])
        #expect(evaluations == 0)
        log(.info).info("event", ["key": value()])
        #expect(evaluations == 1)
    }

    @Test func `name a subsystem`() {
        let log = log(.debug)
        log.info("started")
        log.subsystem("peer").subsystem("ice").debug("nominated")
        #expect(lines.all.map(\.text) == ["info server started", "debug ice nominated"])
    }

    @Test func `can be silent`() {
        Log.silent.debug("event")
        Log.silent.subsystem("peer").warning("event")
        #expect(Log.silent.level == .error)
    }

    @Test func `keep the order of fields, and repeat what is repeated`() {
        log(.info).info("joined", ["b": 1, "a": true, "b": "two"])
        #expect(lines.all.first?.text == "info server joined b=1 a=true b=two")
    }

    @Test(arguments: [
        ("plain", "plain"), ("a=b", "a=b"), ("[2001:db8::1]:7000", "[2001:db8::1]:7000"), ("", "\"\""),
        ("two words", "\"two words\""), ("say \"hi\"", "\"say \\\"hi\\\"\""),
        ("back\\slash", "\"back\\\\slash\""),
        ("line\nbreak", "\"line\\nbreak\""), ("a\r\n\tb", "\"a\\r\\n\\tb\""),
        ("\u{1B}[31m", "\"\\u001b[31m\""),
        ("\0", "\"\\u0000\""), ("\u{7F}", "\"\\u007f\""), ("Zoë", "\"Zoë\""),
    ])
    func `quote values where it is needed`(value: String, expected: String) {
        log(.info).info("event", ["key": value])
        #expect(lines.all.first?.text == "info server event key=\(expected)")
    }

    @Test func `keep one event on one line, whatever the value`() throws {
        for scalar in (0..<0x3000).compactMap(Unicode.Scalar.init) {
            log(.info).info("event", ["key": "a\(scalar)b"])
        }
        for entry in lines.all {
            for text in [entry.text, entry.json] {
                #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
            }
        }
    }

    @Test func `can be read as JSON`() throws {
        let values = [
            "plain", "", "\"quoted\" \\ \n\r\t\u{08}\u{0C}\u{1F}\u{7F}", "Zoë 😀", "\u{2028}", "</script>",
        ]
        for value in values {
            log(.warning).subsystem("peer").warning("lost", ["the \"key\"": value, "count": 3])
        }
        for (entry, value) in zip(lines.all, values) {
            let object = try #require(
                JSONSerialization.jsonObject(with: Data(entry.json.utf8)) as? [String: NSObject])
            let expected: [String: NSObject] = [
                "level": "warning" as NSString, "subsystem": "peer" as NSString, "event": "lost" as NSString,
                "the \"key\"": NSString(string: value), "count": NSNumber(value: 3),
            ]
            #expect(object == expected)
        }
        #expect(
            lines.all.first?.json.hasPrefix(#"{"level":"warning","subsystem":"peer","event":"lost","#) == true
        )
    }

    @Test func `tell numbers and truth values as such in JSON`() {
        log(.info).info(
            "event",
            [
                "count": -3, "big": UInt64.max, "share": 0.25, "tiny": Float(1e-9), "on": true, "text": "1",
                "none": Double.nan, "endless": Double.infinity,
            ])
        #expect(
            lines.all.first?.json == """
                {"level":"info","subsystem":"server","event":"event","count":-3,"big":18446744073709551615,\
                "share":0.25,"tiny":1e-09,"on":true,"text":"1","none":"nan","endless":"inf"}
                """)
    }

    @Test func `name nothing twice in JSON`() {
        log(.info).info("failed", ["event": "made", "time": "now", "a": 1, "a": 2, "a_": 3, "level": "low"])
        #expect(
            lines.all.first?.json == """
                {"level":"info","subsystem":"server","event":"failed","event_":"made","time_":"now","a":1,"a_":2,\
                "a__":3,"level_":"low"}
                """)
    }
}
