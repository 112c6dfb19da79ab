import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// Makes pictures whose width tells the frame; one frame cannot be decoded, and another one shows nothing.
private final class WidthDecoder: PictureDecoder {
    static let broken: UInt8 = 255
    static let hidden: UInt8 = 254

    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        guard let number = frame.first, number != Self.broken else { throw .failed }
        guard number != Self.hidden else { return nil }
        return try Picture(width: 16 + 2 * Int(number), height: 16)
    }
}

@Suite struct `The frames that several have in common` {
    private var chain = DecodedChain(WidthDecoder())

    /// Decodes the next frame.
    /// - Parameter fingerprint: of the frame; its number is that modulo 100 unless it is given.
    /// - Returns: what it shows, as in `shown`.
    @discardableResult
    private mutating func append(
        _ fingerprint: Int, as member: UInt64, number: UInt8? = nil, isKeyFrame: Bool = false
    ) -> String {
        let frame = AssembledFrame(
            codec: .vp8, isKeyFrame: isKeyFrame, timestamp: UInt32(fingerprint), epoch: 0, arrival: .zero,
            captured: nil, orientation: nil, bytes: [number ?? UInt8(fingerprint % 100)])
        return Self.shown(chain.append(frame, fingerprint, as: member))
    }

    private mutating func take(_ fingerprint: Int, as member: UInt64) -> String {
        Self.shown(chain.take(fingerprint, as: member))
    }

    /// The number of a picture, "nothing" of a frame without one, or why there is none.
    private static func shown(_ outcome: DecodedChain.Outcome?) -> String {
        switch outcome {
        case nil: "elsewhere"
        case .success(let picture)?: picture.map { "\(($0.width - 16) / 2)" } ?? "nothing"
        case .failure(let error)?: "\(error)"
        }
    }

    @Test mutating func `are taken in their order, each once by each`() {
        append(0, as: 1, isKeyFrame: true)
        let hasJoined = chain.join(2, at: 0)
        let early = take(1, as: 2)
        let found = [take(0, as: 2), take(0, as: 2)]
        append(1, as: 1)
        let next = [take(2, as: 2), take(1, as: 2), take(1, as: 1)]
        #expect(hasJoined && early == "elsewhere")
        #expect(found == ["0", "elsewhere"] && next == ["elsewhere", "1", "elsewhere"])
    }

    @Test mutating func `may be appended by who is at their end, and by nobody else`() {
        append(0, as: 1, isKeyFrame: true)
        append(1, as: 1)
        _ = chain.join(2, at: 0)
        let before = [chain.mayAppend(1), chain.mayAppend(2), chain.mayAppend(3)]
        _ = [take(0, as: 2), take(1, as: 2)]
        let after = chain.mayAppend(2)
        append(2, as: 2)
        #expect(before == [true, false, false] && after)
        #expect(!chain.mayAppend(1) && chain.mayAppend(2))
    }

    @Test mutating func `are joined at key frames alone, at the latest of those that are alike`() {
        append(7, as: 1, isKeyFrame: true)
        append(8, as: 1)
        append(7, as: 1, isKeyFrame: true)
        let joined = [chain.join(2, at: 8), chain.join(2, at: 9), chain.join(2, at: 7)]
        let found = [take(7, as: 2), take(8, as: 2)]
        #expect(joined == [false, false, true])
        #expect(found == ["7", "elsewhere"] && chain.mayAppend(2))
    }

    /// The next picture of a slide may be far away.
    @Test mutating func `keep their latest picture for who joins, though all have had it`() {
        append(3, as: 1, isKeyFrame: true)
        append(4, as: 1, number: WidthDecoder.hidden)
        _ = chain.join(2, at: 3)
        let still = [take(3, as: 2), take(4, as: 2)]
        append(5, as: 1)
        _ = chain.join(3, at: 3)
        let later = [take(3, as: 3), take(4, as: 3), take(5, as: 3)]
        #expect(still == ["3", "nothing"])
        #expect(later == ["nothing", "nothing", "5"])
    }

    @Test mutating func `keep twelve pictures for who is behind, and none once that one leaves`() {
        append(0, as: 1, isKeyFrame: true)
        _ = chain.join(2, at: 0)
        _ = chain.join(3, at: 0)
        for number in 1..<20 { append(number, as: 1) }
        let first = (0..<20).map { take($0, as: 2) }
        #expect(first.prefix(8).allSatisfy { $0 == "nothing" })
        let numbers = (8..<20).map { "\($0)" }
        #expect(Array(first.dropFirst(8)) == numbers)
        chain.leave(3)
        _ = chain.join(4, at: 0)
        let second = (0..<20).map { take($0, as: 4) }
        #expect(second.dropLast().allSatisfy { $0 == "nothing" } && second.last == "19")
    }

    @Test mutating func `end with one that cannot be decoded, of which all are told who get there`() {
        append(0, as: 1, isKeyFrame: true)
        _ = chain.join(2, at: 0)
        let failed = append(1, as: 1, number: WidthDecoder.broken)
        let others = [take(0, as: 2), take(1, as: 2)]
        #expect(failed == "failed" && others == ["0", "failed"])
        let joined = chain.join(3, at: 0)
        #expect(!joined && !chain.mayAppend(1) && !chain.mayAppend(2))
    }

    @Test mutating func `are forgotten beyond so many, and with them who stands there`() {
        append(0, as: 1, isKeyFrame: true)
        _ = chain.join(2, at: 0)
        _ = take(0, as: 2)
        for number in 1..<(2 * DecodedChain.frameLimit) { append(number, as: 1) }
        #expect(chain.frameCount == 2 * DecodedChain.frameLimit)
        append(2 * DecodedChain.frameLimit, as: 1)
        #expect(chain.frameCount == DecodedChain.frameLimit + 1)
        let found = [take(1, as: 2), take(DecodedChain.frameLimit, as: 2)]
        let joined = chain.join(2, at: 0)
        #expect(found == ["elsewhere", "elsewhere"] && !joined)
        #expect(chain.mayAppend(1) && !chain.mayAppend(2))
        // Who leaves does not take the others along.
        chain.leave(2)
        #expect(!chain.isEmpty && chain.has(1) && !chain.has(2))
        chain.leave(1)
        #expect(chain.isEmpty)
    }
}
