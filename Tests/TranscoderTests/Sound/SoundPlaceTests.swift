import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// Decodes each frame to 1,024 samples of the value that it names in hundredths; of 255 there are none.
private final class Level: FrameDecoder {
    static let none: UInt8 = 255
    static let absurd: UInt8 = 254

    func decode(_ frame: [UInt8]) throws(CodecError) -> [Float] {
        guard let level = frame.first else { throw .failed }
        guard level != Self.none else { return [] }
        let value: Float = level == Self.absurd ? .nan : Float(level) / 100
        return [Float](repeating: value, count: 2_048)
    }
}

@Suite struct `The place of re-encoded sound` {
    private static let arrival = MonotonicTime(nanoseconds: 9_000_000_000)
    private let converter: SoundConverter

    init() throws {
        converter = try SoundConverter(seed: 3) { _ in Level() }
        converter.configure([0x11, 0x90])
    }

    private func receive(
        _ timestamp: UInt32, captured: MonotonicTime? = Self.arrival, _ payload: [UInt8] = [10]
    ) -> [OutputPacket] {
        converter.receive(
            InputPacket(
                sequenceNumber: 0, timestamp: timestamp, marker: true, codec: .aac, isEntryPoint: true,
                arrival: Self.arrival, captured: captured, payload: payload))
    }

    private func headers(_ packets: [OutputPacket]) throws -> [RTPHeader] {
        try packets.map { try RTPHeader(parsing: $0.bytes.span) }
    }

    /// Samples from one packet to the next; 960 where nothing is corrected.
    private func steps(_ headers: [RTPHeader]) -> [UInt32] {
        zip(headers, headers.dropFirst()).map { $1.timestamp &- $0.timestamp }
    }

    @Test func `goes on over the end of time stamps`() throws {
        let base = UInt32.max - 20_000
        let made = (0..<60).flatMap { receive(base &+ UInt32($0) * 1_024) }
        let heads = try headers(made)
        #expect(heads.first?.timestamp == base && heads.count == 64)
        #expect(steps(heads).allSatisfy { $0 == 960 })
        let marked = heads.indices.filter { heads[$0].marker }
        #expect(marked == [0])
    }

    /// In steps of a millisecond, which nobody hears, until it is within what RTMP rounds.
    @Test(arguments: [(2_000, 1_008), (-2_000, 912)])
    func `follows its time stamps by a millisecond with each frame`(shift: Int, step: Int) throws {
        var made = (0..<10).flatMap { receive(UInt32(100_000 + $0 * 1_024)) }
        made += (10..<80).flatMap { receive(UInt32(100_000 + shift + $0 * 1_024)) }
        let heads = try headers(made)
        let corrected = steps(heads).filter { $0 != 960 }
        #expect(corrected.count == 22 && corrected.allSatisfy { $0 == UInt32(step) })
        let gaps = heads.dropFirst().filter(\.marker)
        #expect(gaps.isEmpty)
    }

    @Test(arguments: [960, -960])
    func `does not follow what may be rounded`(shift: Int) throws {
        var made = (0..<10).flatMap { receive(UInt32(100_000 + $0 * 1_024)) }
        made += (10..<80).flatMap { receive(UInt32(100_000 + shift + $0 * 1_024)) }
        let heads = try headers(made)
        #expect(steps(heads).allSatisfy { $0 == 960 })
    }

    @Test(arguments: [4_801, -4_801, 90_000])
    func `is another one behind a gap, which is marked`(shift: Int) throws {
        var made = (0..<10).flatMap { receive(UInt32(100_000 + $0 * 1_024)) }
        let before = made.count
        made += (10..<20).flatMap { receive(UInt32(100_000 + shift + $0 * 1_024)) }
        let heads = try headers(made)
        let marked = heads.indices.filter { heads[$0].marker }
        #expect(marked == [0, before])
        let begin = UInt32(100_000 + shift + 10 * 1_024)
        #expect(heads[before].timestamp == begin)
    }

    @Test func `is of when it came where nobody tells when it was captured`() throws {
        let made = (0..<3).flatMap { receive(5_000 + UInt32($0) * 1_024, captured: nil) }
        // The second packet begins 64 samples before the second frame.
        let wanted: [MonotonicTime?] = [
            Self.arrival, Self.arrival.advanced(byNanoseconds: -64 * 62_500 / 3),
        ]
        #expect(made.prefix(2).map(\.captured) == wanted)
    }

    @Test func `stays where a frame has no sound yet, or numbers that are none`() throws {
        var made = receive(0)
        made += receive(1_024, [Level.none])
        #expect(converter.failures == 1)
        made += receive(2_048, [Level.absurd])
        made += receive(3_072)
        let heads = try headers(made)
        // The missing frame is no gap yet, and is followed by one millisecond for each frame.
        #expect(heads.first?.timestamp == 0 && heads.dropFirst().allSatisfy { !$0.marker })
        let decoder = try OpusDecoder()
        let sound = try made.flatMap { packet in
            let header = try RTPHeader(parsing: packet.bytes.span)
            return try decoder.decode(Array(packet.bytes[header.payloadRange]))
        }
        let isSound = sound.allSatisfy { $0.isFinite }
        #expect(isSound)
    }
}
