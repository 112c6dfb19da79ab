import TestSupport
import Testing

@testable import Crypto

/// The record layer as far as it is read and written here.
@Suite struct DTLSRecords {
    private static func record(
        _ type: UInt8, epoch: UInt8 = 0, version: UInt8 = 0xFD, body: Int, length: Int? = nil
    ) -> [UInt8] {
        [type, 0xFE, version, 0, epoch, 0, 0, 0, 0, 0, 77, 0, UInt8(length ?? body)]
            + [UInt8](repeating: 1, count: body)
    }

    @Test func `are found one behind the other`() {
        let datagram =
            Self.record(22, body: 20) + Self.record(20, body: 1) + Self.record(22, epoch: 1, body: 40)
        let records = DTLSRecord.parse(datagram.span)
        #expect(records.map(\.type) == [.handshake, .changeCipherSpec, .handshake])
        #expect(records.map(\.epoch) == [0, 0, 1])
        #expect(records.map(\.range) == [0..<33, 33..<47, 47..<100])
        #expect(records.last?.bodyRange == 60..<100)
    }

    @Test(arguments: 0..<33) func `are refused when cut`(_ length: Int) {
        let datagram = Self.record(22, body: 20)
        let records = DTLSRecord.parse(datagram.span.extracting(0..<length))
        #expect(records.isEmpty)
    }

    @Test func `of unknown types are left out, and of other versions end the datagram`() {
        let known = Self.record(22, body: 5)
        let unknown = Self.record(25, body: 5) + known
        #expect(DTLSRecord.parse(unknown.span).map(\.range) == [18..<36])
        let old = known + Self.record(22, version: 0xFC, body: 5) + known
        #expect(DTLSRecord.parse(old.span).count == 1)
        let firstVersion = Self.record(22, version: 0xFF, body: 5)
        #expect(DTLSRecord.parse(firstVersion.span).count == 1)
        let encrypted = Self.record(22, epoch: 1, version: 0xFF, body: 5)
        #expect(DTLSRecord.parse(encrypted.span).isEmpty)
    }

    @Test func `survive random bytes`() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if bytes.count > 12 {
                bytes.replaceSubrange(0..<3, with: [UInt8.random(in: 20...25, using: &random), 0xFE, 0xFD])
                bytes[11] = 0
            }
            for record in DTLSRecord.parse(bytes.span) { #expect(record.range.upperBound <= bytes.count) }
        }
    }

    /// However long they are: in their order, whole, and no datagram longer than it may be unless one record is.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func `are packed as tightly as their order allows`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var packer = DTLSRecordPacker()
        let mtu = Int.random(in: 50...300, using: &random)
        var numbers: [UInt8] = []
        for _ in 0..<4 {
            let sent = (0..<Int.random(in: 0...10, using: &random)).map { _ in
                let epoch = UInt8.random(in: 0...1, using: &random)
                return Self.record(22, epoch: epoch, body: Int.random(in: 0...200, using: &random))
            }
            let flight = packer.pack(Array(sent.joined()), mtu: mtu)
            #expect(flight.map(\.count).reduce(0, +) == sent.map(\.count).reduce(0, +))
            var found: [[UInt8]] = []
            for datagram in flight {
                let records = DTLSRecord.parse(datagram.span)
                #expect(datagram.count <= mtu || records.count == 1)
                for record in records {
                    var bytes = Array(datagram[record.range])
                    if record.epoch == 0 {
                        numbers.append(bytes[10])
                        bytes[10] = 77
                    }
                    found.append(bytes)
                }
            }
            #expect(found == sent)
            for (datagram, next) in zip(flight, flight.dropFirst()) {
                let first = DTLSRecord.parse(next.span).first?.range.count ?? 0
                #expect(datagram.count + first > mtu)
            }
        }
        #expect(numbers == (0..<numbers.count).map { UInt8($0) })
    }

    @Test func `of epoch 0 never carry the same number twice`() {
        var packer = DTLSRecordPacker()
        let output =
            Self.record(22, body: 100) + Self.record(22, body: 100) + Self.record(20, body: 1)
            + Self.record(22, epoch: 1, body: 40)
        let flight = packer.pack(output, mtu: 200)
        #expect(flight.map(\.count) == [113, 113 + 14 + 53])
        let repeated = flight.map { packer.number($0) }
        let numbers = (flight + repeated).flatMap { datagram in
            DTLSRecord.parse(datagram.span).filter { $0.epoch == 0 }.map {
                datagram[$0.range.lowerBound + 10]
            }
        }
        #expect(numbers == [0, 1, 2, 3, 4, 5])
        // The encrypted one stays as it is.
        #expect(flight[1].suffix(53) == output.suffix(53))
        #expect(repeated[1].suffix(53) == output.suffix(53))
        #expect(packer.plainCloseNotify() == [21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 6, 0, 2, 1, 0])
    }
}
