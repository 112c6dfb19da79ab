import Base
import Codecs

/// What one decoder made of the frames that it was given, for all who come with the same ones.
///
/// Each member has a place in it and is told the results one after the other, at its own pace. Pictures that all
/// members have had go, and of those that wait for slower ones only the last few stay: who is further behind is shown
/// fewer.
struct DecodedChain {
    /// What came of a frame: nil where it shows nothing, or nothing any more.
    typealias Outcome = Result<Picture?, CodecError>

    private struct Frame {
        let fingerprint: Int
        let isKeyFrame: Bool
        var outcome: Outcome
    }

    /// Frames that are known again: more than a cached group of pictures has, or waits anywhere to be decoded.
    static let frameLimit = 1_024
    /// Pictures that are kept for members who are behind; each input keeps as many.
    static let pictureLimit = 12

    private let decoder: any PictureDecoder
    private var frames: [Frame] = []
    /// The number of the first of them.
    private var first = 0
    /// The number of the frame that each member has next.
    private var members: [UInt64: Int] = [:]
    /// The numbers of frames whose pictures are held.
    private var pictured: [Int] = []
    /// Whether the decoder failed: nothing can follow.
    private var hasFailed = false

    init(_ decoder: any PictureDecoder) { self.decoder = decoder }

    private var end: Int { first + frames.count }

    var isEmpty: Bool { members.isEmpty }

    func has(_ member: UInt64) -> Bool { members[member] != nil }

    /// Pictures that are held right now.
    var pictureCount: Int { pictured.count }
    /// Frames that are known again right now.
    var frameCount: Int { frames.count }

    /// Lets a member go on with a key frame that was decoded before.
    /// - Returns: false where there is none.
    mutating func join(_ member: UInt64, at fingerprint: Int) -> Bool {
        guard !hasFailed,
            let index = frames.lastIndex(where: { $0.isKeyFrame && $0.fingerprint == fingerprint })
        else { return false }
        members[member] = first + index
        return true
    }

    mutating func leave(_ member: UInt64) {
        members[member] = nil
        release()
    }

    /// What came of a member's next frame; nil where others had no such one there.
    mutating func take(_ fingerprint: Int, as member: UInt64) -> Outcome? {
        guard let next = members[member], next >= first, next < end,
            frames[next - first].fingerprint == fingerprint
        else { return nil }
        let outcome = frames[next - first].outcome
        members[member] = next + 1
        release()
        return outcome
    }

    /// Whether a member has had all there is, so that its next frame may follow.
    func mayAppend(_ member: UInt64) -> Bool { !hasFailed && members[member] == end }

    /// Decodes what comes next, for a member that was here or is new.
    mutating func append(_ frame: AssembledFrame, _ fingerprint: Int, as member: UInt64) -> Outcome {
        let outcome: Outcome
        do throws(CodecError) {
            outcome = .success(try decoder.decode(frame.bytes))
        } catch {
            outcome = .failure(error)
            hasFailed = true
        }
        if frames.count >= 2 * Self.frameLimit {
            frames.removeFirst(Self.frameLimit)
            first += Self.frameLimit
        }
        frames.append(Frame(fingerprint: fingerprint, isKeyFrame: frame.isKeyFrame, outcome: outcome))
        if outcome.picture != nil { pictured.append(end - 1) }
        members[member] = end
        release()
        return outcome
    }

    /// Lets go of pictures that nobody waits for.
    ///
    /// The latest one stays for who joins: the next may be far away.
    private mutating func release() {
        let slowest = members.values.min() ?? end
        while let oldest = pictured.first, pictured.count > 1,
            oldest < slowest || pictured.count > Self.pictureLimit
        {
            pictured.removeFirst()
            if oldest >= first { frames[oldest - first].outcome = .success(nil) }
        }
    }
}

extension DecodedChain.Outcome {
    /// Nil where there is none to show.
    fileprivate var picture: Picture? { try? get() }
}
