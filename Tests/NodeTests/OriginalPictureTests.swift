import Base
import Forwarding
import Synchronization
import TestSupport
import Testing
import Transcoder
import Wire

@testable import Ingest
@testable import Node

/// What inputs of a transcoder were fed.
private final class Inputs: Sendable {
    private let fed = Mutex<[(input: InputID, packet: InputPacket, payload: [UInt8])]>([])

    func feed(_ input: InputID, _ packet: InputPacket, _ payload: Span<UInt8>) {
        var bytes: [UInt8] = []
        bytes.append(payload)
        let packet = (input: input, packet: packet, payload: bytes)
        fed.withLock { $0.append(packet) }
    }

    /// The times of what an input has, in pictures of 30 a second.
    func pictures(of input: InputID) -> [UInt32] { packets(of: input).map { $0.packet.timestamp / 3_000 } }

    func packets(of input: InputID) -> [(packet: InputPacket, payload: [UInt8])] {
        fed.withLock { $0.filter { $0.input == input }.map { ($0.packet, $0.payload) } }
    }
}

@Suite struct `A publisher's own pictures` {
    private let inputs = Inputs()
    private let original: OriginalPicture
    private let input = InputID(number: 7)
    private let tap = TapID(number: 1)
    private let ended = Watched<[TapID]>([])

    init() {
        original = OriginalPicture(.hevc) { [inputs] in inputs.feed($0, $1, $2) }
    }

    private func picture(_ number: UInt32, isKeyFrame: Bool = false, packets: Int = 1) -> TimedPicture {
        let packet = [UInt8](repeating: 0, count: RTPHeader.fixedLength) + [UInt8(truncatingIfNeeded: number)]
        return TimedPicture(
            picture: IngestPicture(
                packets: Array(repeating: packet, count: packets), timestamp: number &* 3_000,
                isKeyFrame: isKeyFrame, captured: .zero),
            arrival: .zero)
    }

    private func open() -> Bool {
        original.open(tap, into: input) { [ended] tap in ended.change { $0.append(tap) } }
    }

    @Test func `are fed from the latest key frame on`() {
        let group = [picture(10, isKeyFrame: true, packets: 2), picture(11)]
        original.take(group[0], [group[0]])
        #expect(inputs.packets(of: input).isEmpty)
        #expect(open())
        original.take(group[1], group)
        original.take(picture(12), group + [picture(12)])
        #expect(inputs.pictures(of: input) == [10, 10, 11, 12])
        let packets = inputs.packets(of: input).map(\.packet)
        #expect(packets.map(\.sequenceNumber) == [1, 2, 3, 4])
        #expect(packets.map(\.isEntryPoint) == [true, false, false, false])
        #expect(packets.map(\.marker) == [false, true, true, true])
        #expect(packets.allSatisfy { $0.codec == .hevc })
        #expect(inputs.packets(of: input).map(\.payload) == [[10], [10], [11], [12]])
    }

    @Test func `wait for a key frame where nothing is kept`() {
        #expect(open())
        original.take(picture(10), [])
        #expect(inputs.pictures(of: input).isEmpty)
        let next = picture(11, isKeyFrame: true)
        original.take(next, [next])
        #expect(inputs.pictures(of: input) == [11])
    }

    @Test func `go to nobody who closed their tap, nor after their end`() {
        #expect(open())
        #expect(original.has(tap))
        #expect(original.close(tap))
        #expect(!original.close(tap))
        #expect(ended.value == [tap])
        let first = picture(1, isKeyFrame: true)
        original.take(first, [first])
        #expect(inputs.pictures(of: input).isEmpty)
        #expect(open())
        original.end()
        #expect(ended.value == [tap, tap])
        #expect(original.hasEnded)
        #expect(!open())
    }

    @Test func `go on in another order than they are shown`() {
        #expect(open())
        var group: [TimedPicture] = []
        for number in [UInt32(1), 4, 2, 3] {
            group.append(picture(number, isKeyFrame: number == 1))
            original.take(group[group.count - 1], group)
        }
        #expect(inputs.pictures(of: input) == [1, 4, 2, 3])
        #expect(ended.value.isEmpty)
    }

    /// Whoever begins with the key frame has nothing to decode them with.
    @Test func `end where one is shown before the key frame that it follows`() {
        #expect(open())
        let group = [picture(3, isKeyFrame: true), picture(4), picture(2)]
        original.take(group[0], [group[0]])
        original.take(group[1], Array(group[..<2]))
        #expect(ended.value.isEmpty)
        original.take(group[2], group)
        #expect(ended.value == [tap])
        #expect(inputs.pictures(of: input) == [3, 4])
        #expect(original.hasEnded)
        #expect(!open())
    }

    /// An encoder that begins anew begins with a key frame.
    @Test func `go on where a key frame is earlier than what came before`() {
        #expect(open())
        for number in [UInt32(100), 90] {
            let first = picture(number, isKeyFrame: true)
            original.take(first, [first])
        }
        #expect(inputs.pictures(of: input) == [100, 90])
        #expect(ended.value.isEmpty)
    }

    @Test func `are found by session, until they end`() throws {
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        let transcoder = TranscoderSupervisor(settings, log: .silent)
        defer { transcoder.stop() }
        let originals = OriginalPictures()
        let session = try #require(SessionID(String(repeating: "1", count: 32)))
        let other = try #require(SessionID(String(repeating: "2", count: 32)))
        let picture = originals.begin(session, .hevc, by: transcoder)
        #expect(originals[session] === picture)
        #expect(originals[other] == nil)
        let isOpen = picture.open(tap, into: input) { [ended] tap in ended.change { $0.append(tap) } }
        #expect(isOpen)
        originals.end(session)
        #expect(originals[session] == nil)
        #expect(ended.value == [tap])
        let next = originals.begin(session, .hevc, by: transcoder)
        next.end()
        #expect(originals[session] == nil)
    }
}
