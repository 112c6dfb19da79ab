import Base
import Codecs
import TestSupport
import Testing

@testable import Transcoder

/// Decodes a packet to its number, and says what was made up.
private final class NumberVoice: SoundDecoder {
    static let recovered: Float = -1
    static let concealed: Float = -2
    private(set) var recoveries: [(packet: UInt8, frames: Int)] = []

    func decode(_ packet: [UInt8]) throws(CodecError) -> [Float] {
        guard let number = packet.first, number != 0xFF else { throw .failed }
        return [Float](repeating: Float(number), count: 1_920)
    }

    func recover(from packet: [UInt8], frames: Int) throws(CodecError) -> [Float] {
        recoveries.append((packet.first ?? 0, frames))
        return [Float](repeating: Self.recovered, count: frames * 2)
    }

    func conceal(frames: Int) throws(CodecError) -> [Float] {
        [Float](repeating: Self.concealed, count: frames * 2)
    }
}

/// Equal samples of the left channel that follow each other.
private typealias Runs = [(value: Float, count: Int)]

private func isEqual(_ runs: Runs?, _ expected: [(Float, Int)]) -> Bool {
    guard let runs, runs.count == expected.count else { return false }
    return zip(runs, expected).allSatisfy { $0.value == $1.0 && $0.count == $1.1 }
}

@Suite struct `The sound of a speaker` {
    private static let start = MonotonicTime(nanoseconds: 5_000_000_000)
    private let voice = NumberVoice()
    private var input: AudioInput

    init() {
        input = AudioInput(decoder: voice)
    }

    /// Brings a packet of 20 ms, 10 ms after its capture; the first has the time stamp `base`.
    private mutating func bring(_ number: UInt8, base: UInt32 = 48_000, epoch: UInt32 = 0) -> Int64? {
        let captured = Self.start + .milliseconds(Int(number) * 20)
        return input.receive(
            [number], timestamp: base &+ UInt32(number) * 960, frames: 960, captured: captured, epoch: epoch,
            at: captured + .milliseconds(10))
    }

    /// The 20 ms from a time after the start on.
    private mutating func block(at milliseconds: Int) -> Runs? {
        let sound = input.block(capturedAt: Self.start + .milliseconds(milliseconds))
        guard let sound else { return nil }
        let isAlike = stride(from: 0, to: sound.count, by: 2).allSatisfy { sound[$0] == sound[$0 + 1] }
        #expect(isAlike && sound.count == 1_920)
        var runs: Runs = []
        for index in stride(from: 0, to: sound.count, by: 2) {
            if runs.last?.value == sound[index] {
                runs[runs.count - 1].count += 1
            } else {
                runs.append((sound[index], 1))
            }
        }
        return runs
    }

    @Test mutating func `is played when it was captured, and each packet's delay is known`() {
        let isSilent = block(at: 0) == nil
        #expect(isSilent)
        let delays = (0..<4 as Range<UInt8>).map { bring($0) }
        #expect(delays == [10_000_000, 10_000_000, 10_000_000, 10_000_000])
        let (first, second) = (block(at: 0), block(at: 20))
        #expect(isEqual(first, [(0, 960)]) && isEqual(second, [(1, 960)]))
        #expect(input.statistics == AudioInput.Statistics(packets: 4))
    }

    @Test mutating func `that a packet lacks comes of the next packet's copy of it`() {
        _ = bring(0)
        _ = bring(2)
        let (first, second) = (block(at: 5), block(at: 25))
        // When the first block was due, what was missing might still have come: its end was made up.
        #expect(isEqual(first, [(0, 720), (NumberVoice.concealed, 240)]))
        #expect(isEqual(second, [(NumberVoice.recovered, 720), (2, 240)]))
        #expect(voice.recoveries.count == 1)
        #expect(voice.recoveries.first?.packet == 2 && voice.recoveries.first?.frames == 720)
        #expect(input.statistics.recovered == 1 && input.statistics.concealedFrames == 240)
    }

    @Test mutating func `is made up for a tenth of a second, and is silence then`() {
        _ = bring(0)
        _ = block(at: 0)
        let made = (1...7).map { block(at: $0 * 20) }
        #expect(made.prefix(5).allSatisfy { isEqual($0, [(NumberVoice.concealed, 960)]) })
        #expect(made.suffix(2).allSatisfy { isEqual($0, [(0, 960)]) })
        // It goes on with what comes.
        _ = bring(8)
        let next = block(at: 160)
        #expect(isEqual(next, [(8, 960)]))
        #expect(input.statistics.concealedFrames == 7 * 960)
    }

    @Test mutating func `of a late packet is played as far as its time is not over`() {
        _ = bring(0)
        _ = block(at: 5)
        _ = bring(1)
        let rest = block(at: 25)
        // 240 samples of it were made up.
        #expect(isEqual(rest, [(1, 720), (NumberVoice.concealed, 240)]))
        _ = bring(2)
        _ = block(at: 45)
        _ = block(at: 65)
        let delay = bring(3)
        #expect(delay == 10_000_000 && input.statistics.late == 1)
        let after = block(at: 85)
        #expect(isEqual(after, [(NumberVoice.concealed, 960)]))
    }

    @Test mutating func `is not played twice, and has no delay where it came before`() {
        let delays = [bring(0), bring(0), bring(1), bring(1)]
        #expect(delays == [10_000_000, nil, 10_000_000, nil])
        let blocks = [block(at: 0), block(at: 20), block(at: 40)]
        #expect(isEqual(blocks[0], [(0, 960)]) && isEqual(blocks[1], [(1, 960)]))
        #expect(isEqual(blocks[2], [(NumberVoice.concealed, 960)]))
    }

    @Test mutating func `is played in order, whatever comes first`() {
        for number in [2, 0, 3, 1] as [UInt8] { _ = bring(number) }
        let blocks = (0..<4).map { block(at: $0 * 20) }
        for (number, runs) in blocks.enumerated() { #expect(isEqual(runs, [(Float(number), 960)])) }
    }

    @Test mutating func `goes on behind a packet that cannot be decoded`() {
        _ = bring(0)
        _ = input.receive(
            [0xFF], timestamp: 48_960, frames: 960, captured: Self.start + .milliseconds(20),
            at: Self.start + .milliseconds(30))
        _ = bring(2)
        let blocks = (0..<3).map { block(at: $0 * 20) }
        #expect(isEqual(blocks[0], [(0, 960)]) && isEqual(blocks[2], [(2, 960)]))
        #expect(input.statistics.undecodable == 1)
    }

    @Test mutating func `waits for two seconds at most`() {
        for number in 0...100 as ClosedRange<UInt8> { _ = bring(number) }
        #expect(input.statistics.overflows == 1)
        let first = block(at: 20)
        #expect(isEqual(first, [(1, 960)]))
    }

    @Test mutating func `leaps with its clock where that is half a second away, and no less`() {
        _ = bring(0)
        _ = block(at: 0)
        _ = bring(100)
        let there = block(at: 2_000)
        #expect(isEqual(there, [(100, 960)]))
        // Less than that is caught up with, by 5 ms in 20.
        _ = bring(101)
        _ = bring(102)
        let stretched = block(at: 2_030)
        #expect(stretched?.first?.value == 101)
        #expect(input.statistics.concealedFrames == 0)
    }

    @Test mutating func `begins anew with another source`() {
        _ = bring(0)
        _ = block(at: 0)
        _ = bring(1)
        for number in [2, 3] as [UInt8] { _ = bring(number, base: 3_000_000_000, epoch: 9) }
        let blocks = [block(at: 40), block(at: 60)]
        #expect(isEqual(blocks[0], [(2, 960)]) && isEqual(blocks[1], [(3, 960)]))
    }

    @Test mutating func `goes on over the end of its time stamps`() {
        // The fourth packet's is 959.
        for number in 0..<6 as Range<UInt8> { _ = bring(number, base: UInt32.max - 1_920) }
        let blocks = (0..<6).map { block(at: $0 * 20) }
        for (number, runs) in blocks.enumerated() { #expect(isEqual(runs, [(Float(number), 960)])) }
        #expect(input.statistics == AudioInput.Statistics(packets: 6))
    }
}

@Suite struct `A block of another length` {
    @Test(arguments: [2, 720, 959, 960, 961, 1_200])
    func `begins and ends where it did`(frames: Int) {
        let sound = (0..<frames).flatMap { [Float($0), -Float($0)] }
        let made = AudioInput.resample(sound, to: 960)
        #expect(made.count == 1_920)
        #expect(made[0] == 0 && abs(made[1_918] - Float(frames - 1)) < 0.01)
        #expect(stride(from: 0, to: 1_920, by: 2).allSatisfy { made[$0] == -made[$0 + 1] })
        #expect(stride(from: 2, to: 1_920, by: 2).allSatisfy { made[$0] >= made[$0 - 2] })
    }

    @Test func `of nothing is silence`() {
        for sound: [Float] in [[], [0.5, 0.5]] {
            #expect(AudioInput.resample(sound, to: 960) == [Float](repeating: 0, count: 1_920))
        }
    }
}
