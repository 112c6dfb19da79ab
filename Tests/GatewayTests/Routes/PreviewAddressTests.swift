import Base
import Testing

@testable import Gateway

@Suite struct `A preview's address` {
    private let show: StreamID
    private let keys = SigningKeys([Self.key([1, 2, 3])])
    private let signed: PreviewAddress

    init() throws {
        show = try #require(StreamID("show"))
        signed = PreviewAddress(keys: keys)
    }

    private static func key(_ secret: [UInt8]) -> TokenAuthority.Key {
        TokenAuthority.Key(id: "main", secret: Secret(secret))
    }

    /// The query of an address that was made at this time.
    private func query(_ address: String) -> [String: String] {
        let items = address.split(separator: "?").last?.split(separator: "&") ?? []
        return Dictionary(
            uniqueKeysWithValues: items.map { item in
                let parts = item.split(separator: "=").map(String.init)
                return (parts[0], parts[1])
            })
    }

    private func isGood(
        _ change: (inout [String: String]) -> Void = { _ in }, stream: StreamID? = nil, now: Int = 1_000_100
    ) -> Bool {
        var query = query(signed.url(of: show, takenAt: WallTime(milliseconds: 1_000_000_000)))
        change(&query)
        return signed.isGood(
            for: stream ?? show, time: query["ts"] ?? "", lifetime: query["ttl"] ?? "",
            signature: query["sig"] ?? "", now: now)
    }

    @Test func `is good for a while`() {
        #expect(isGood())
        #expect(isGood(now: 1_000_000 + PreviewAddress.lifetime - 1))
        #expect(!isGood(now: 1_000_000 + PreviewAddress.lifetime))
        #expect(!isGood(now: 999_000))
    }

    @Test func `is good for its stream, as it was signed, and for no other`() {
        #expect(!isGood(stream: StreamID("other")))
        #expect(!isGood { $0["ts"] = "1000050" })
        #expect(!isGood { $0["ttl"] = "864000" })
        #expect(!isGood { $0["sig"] = String(($0["sig"] ?? "").reversed()) })
        #expect(!isGood { $0["sig"] = "" })
        #expect(!isGood { $0["ttl"] = "99999999999999999999" })
    }

    @Test func `shows its own picture, and later ones for a minute`() {
        func shows(pictureOf milliseconds: Int64, now: Int) -> Bool {
            signed.shows(pictureOf: WallTime(milliseconds: milliseconds), time: "1000000", now: now)
        }
        #expect(shows(pictureOf: 1_000_000_900, now: 1_080_000))
        #expect(!shows(pictureOf: 1_000_005_000, now: 1_080_000))
        #expect(shows(pictureOf: 1_000_005_000, now: 1_000_000 + PreviewAddress.overlap - 1))
        #expect(!shows(pictureOf: 1_000_055_000, now: 1_000_000 + PreviewAddress.overlap))
        #expect(!signed.shows(pictureOf: WallTime(milliseconds: 0), time: "x", now: 1))
    }

    @Test func `needs no signature where all streams are public`() {
        let address = PreviewAddress(keys: nil)
        #expect(!address.isSigned)
        #expect(
            address.url(of: show, takenAt: WallTime(milliseconds: 5)) == "/v1/streams/show/preview.webp?v=5")
        #expect(!address.isGood(for: show, time: "1", lifetime: "1", signature: "", now: 1))
    }

    @Test func `an address is valid as long as its signing key is accepted`() {
        let query = query(signed.url(of: show, takenAt: WallTime(milliseconds: 1_000_000_000)))
        func isGood() -> Bool {
            signed.isGood(
                for: show, time: query["ts"] ?? "", lifetime: query["ttl"] ?? "",
                signature: query["sig"] ?? "",
                now: 1_000_100)
        }
        keys.replace(with: [Self.key([4, 5, 6]), Self.key([1, 2, 3])])
        #expect(isGood())
        keys.replace(with: [Self.key([4, 5, 6])])
        #expect(!isGood())
    }
}
